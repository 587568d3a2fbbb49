//! A process with a model of ours has its weights where huge pages are asked for, whatever the luck of its start. Without a
//! test harness, whose threads would allocate elsewhere: the process starts itself again as a bench target does.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use infergate::engine::{EngineFactory as _, LoadRequest};
use infergate_core::process::ensure_environment;
use infergate_candle::Candle;

fn main() -> Result<()> {
    if !Path::new("/sys/kernel/mm/transparent_hugepage/enabled").exists() || cfg!(not(target_env = "gnu")) {
        println!("no transparent huge pages on this system, or not glibc's heap");
        return Ok(());
    }
    let request = LoadRequest { model: "synthetic:tiny".into(), threads: 2, ..LoadRequest::default() };
    let wanted = Candle.environment(&request);
    ensure_environment(&wanted)?;
    if let Some((name, _)) = wanted.iter().find(|(name, value)| env::var(name).as_ref() != Ok(value)) {
        println!("{name} is set to something else, which is the user's choice and stays");
        return Ok(());
    }
    let engine = Candle.load(&request)?;
    let weight_bytes = engine.info().weight_bytes.context("a model of ours knows its size")?;
    let advised_bytes = advised_bytes(&fs::read_to_string("/proc/self/smaps")?);
    ensure!(advised_bytes >= weight_bytes, "{weight_bytes} bytes of weights, {advised_bytes} bytes advised");
    Ok(())
}

/// Resident bytes of the heap in mappings that carry the kernel's flag `hg`, huge pages advised.
fn advised_bytes(smaps: &str) -> u64 {
    let (mut heap, mut rss_kib, mut advised_kib) = (false, 0, 0);
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("Rss:"), Some(kib)) => rss_kib = kib.parse().unwrap_or(0),
            (Some("VmFlags:"), first) if heap && first.into_iter().chain(words).any(|flag| flag == "hg") => {
                advised_kib += rss_kib;
            }
            (Some(range), _) if !range.ends_with(':') => heap = line.ends_with("[heap]"),
            _ => {}
        }
    }
    advised_kib * 1024
}
