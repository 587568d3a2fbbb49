//! shim
pub fn detect() -> crate::receipt::Machine {
    Default::default()
}
/// shim
pub mod probes {
    /// shim
    pub fn run(_t: usize) -> anyhow::Result<crate::receipt::Probes> {
        Ok(crate::receipt::Probes { memory_read_bytes_per_s: 1e9, matrix_flops_per_s: 1e9, scalar_ops_per_s: 1e9 })
    }
}
