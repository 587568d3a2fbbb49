//! Which processor this is, and the machine class (pure).

use std::collections::{BTreeMap, BTreeSet};

use crate::receipt::file_word;

/// Longest part of a class that a file's text may fill.
const MAX_WORD_CHARS: usize = 64;

/// A processor's identity, without its clock speed.
#[derive(Debug, Clone, PartialEq)]
pub struct Cpu {
    /// For example `AuthenticAMD`, `GenuineIntel`, `ARM`, `Apple`; `unknown` where nothing says.
    pub vendor: String,
    /// For example `AMD EPYC`, `Intel Xeon Platinum 8488C`, `part 0xd40`; `unknown` where nothing says.
    pub model: String,
    /// x86 family and model numbers. Hypervisors mask the brand to a generic name, and these still tell processors apart.
    pub family_model: Option<(u32, u32)>,
}

impl Cpu {
    /// From a vendor and a brand string. Trademark signs and clock speed are dropped.
    pub fn from_brand(vendor: &str, brand: &str) -> Self {
        Self { vendor: or_unknown(vendor), model: or_unknown(&plain_brand(brand)), family_model: None }
    }

    /// The model with its numbers: `AMD EPYC (family 26, model 2)`.
    pub fn model_with_numbers(&self) -> String {
        match self.family_model {
            Some((family, model)) => format!("{} (family {family}, model {model})", self.model),
            None => self.model.clone(),
        }
    }
}

/// Reads the text of Linux's `/proc/cpuinfo`. `None` when it names no processor.
///
/// Only ARM machines mix processors; all their parts are in the model then.
pub fn parse_cpuinfo(text: &str) -> Option<Cpu> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut parts = BTreeSet::new();
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let (key, value) = (key.trim(), value.trim());
        first.entry(key).or_insert(value);
        if key == "CPU part" {
            parts.insert(value);
        }
    }
    let get = |key: &str| first.get(key).copied().unwrap_or_default();
    if let Some(implementer) = first.get("CPU implementer") {
        let parts: Vec<&str> = parts.into_iter().collect();
        return Some(Cpu::from_brand(&arm_vendor(implementer), &format!("part {}", parts.join(" "))));
    }
    if get("vendor_id").is_empty() && get("model name").is_empty() {
        return None;
    }
    let family_model = get("cpu family").parse().ok().zip(get("model").parse().ok());
    Some(Cpu { family_model, ..Cpu::from_brand(get("vendor_id"), get("model name")) })
}

/// Operating system, architecture, vendor, model, its numbers and logical cores in one file-name-safe word, for example
/// `linux-x86_64-authenticamd-amd-epyc-f26m2-2c`.
pub fn class(os: &str, arch: &str, cpu: &Cpu, logical_cores: usize) -> String {
    let numbers = cpu.family_model.map(|(family, model)| format!("-f{family}m{model}")).unwrap_or_default();
    let words = [os, arch, &cpu.vendor, &cpu.model].map(word);
    format!("{}{numbers}-{logical_cores}c", words.join("-"))
}

/// `text` as one word of a class.
pub(super) fn word(text: &str) -> String {
    or_unknown(&file_word(text))
}

/// `Intel(R) Xeon(R) CPU @ 2.20GHz` -> `Intel Xeon`: what tells processors apart, without the clock speed.
fn plain_brand(brand: &str) -> String {
    let name = brand.split('@').next().unwrap_or_default();
    let name = name.replace("(R)", " ").replace("(r)", " ").replace("(TM)", " ").replace("(tm)", " ");
    name.split_whitespace().filter(|word| *word != "CPU").collect::<Vec<_>>().join(" ")
}

fn or_unknown(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).take(MAX_WORD_CHARS).collect();
    let text = text.trim_matches([' ', '-']);
    if text.is_empty() { "unknown".to_owned() } else { text.to_owned() }
}

/// Arm's own list of implementer codes (MIDR_EL1, Arm Architecture Reference Manual), as far as they run servers or desktops.
fn arm_vendor(code: &str) -> String {
    match code {
        "0x41" => "ARM",
        "0x42" => "Broadcom",
        "0x43" => "Cavium",
        "0x46" => "Fujitsu",
        "0x48" => "HiSilicon",
        "0x4e" => "NVIDIA",
        "0x51" => "Qualcomm",
        "0x61" => "Apple",
        "0x6d" => "Microsoft",
        "0xc0" => "Ampere",
        other => return format!("implementer {other}"),
    }
    .to_owned()
}
