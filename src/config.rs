//! shim
use std::path::*;
pub struct Config {
    pub grid: Vec<String>,
    pub threads: usize,
    pub seed: u64,
}
impl Config {
    pub fn load(_p: &Path) -> anyhow::Result<Self> {
        Ok(Self { grid: vec![], threads: 2, seed: 1 })
    }
    pub fn load_request(&self) -> crate::engine::LoadRequest {
        crate::engine::LoadRequest { model: "synthetic:gpt2".into(), dtype: None, threads: 2, seed: 1 }
    }
    pub fn prompt_text(&self) -> anyhow::Result<String> {
        Ok(crate::prompt::TEXT.into())
    }
    pub fn target_folder(&self) -> PathBuf {
        "target/infergate".into()
    }
}
