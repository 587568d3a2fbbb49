//! What has to be set before a process starts for candle to use its threads well.

/// Environment variables for a process that computes with `threads` threads.
pub fn environment(threads: usize) -> Vec<(String, String)> {
    [
        // Without it every matrix product asks the operating system how many cores there are.
        ("RAYON_NUM_THREADS", threads.to_string()),
        // candle's second pool spins between operations beside rayon's threads; more spinning only takes their cores.
        ("CANDLE_BARRIER_POOL_SPIN_LIMIT", "200".to_owned()),
        // Large buffers from transparent huge pages.
        ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
