//! The receipt of a bare `cargo bench`: criterion's own JSON is private, so the raw samples are kept here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;

use crate::engine::Engine;
use crate::measure::Prepared;
use infergate_core::config::Config;
use infergate_core::printable::printable;
use infergate_core::receipt::{CaseRecord, ProcessSamples, RECEIPT_SCHEMA, Receipt, timestamp, write_json};
use infergate_core::{build_info, machine};

/// Collects what one process measured.
pub struct Recorder {
    pub receipt: Receipt,
    path: PathBuf,
}

impl Recorder {
    /// An empty receipt for this machine, build and engine.
    pub fn new(config: &Config, engine: &dyn Engine, prompt_text_sha256: Option<String>) -> Self {
        let mut build = build_info::build();
        (build.commit, build.dirty) = build_info::git(std::path::Path::new("."));
        let receipt = Receipt {
            schema: RECEIPT_SCHEMA.into(),
            created: timestamp(),
            tool: env!("CARGO_PKG_VERSION").into(),
            machine: machine::detect().with_devices(engine.devices()),
            build,
            engine: engine.info(),
            threads: config.threads,
            seed: config.seed,
            prompt_text_sha256,
            ..Receipt::default()
        };
        Self { receipt, path: config.target_folder().join("bench.json") }
    }

    /// A case's samples; none means criterion did not run it. What was measured so far is kept after each case, marked partial, should
    /// the run be cut short. A disk that is full ends no run: it is said when this is finished.
    pub fn case(&mut self, prepared: Prepared, samples_ns: Vec<Vec<u64>>, iterations_per_sample: usize) {
        if samples_ns.is_empty() {
            return;
        }
        self.receipt.cases.push(CaseRecord {
            id: prepared.case,
            output: prepared.output,
            text: None,
            counters: BTreeMap::new(),
            work: prepared.work,
            processes: vec![ProcessSamples { samples_ns, iterations_per_sample }],
        });
        self.receipt.partial = true;
        drop(write_json(&self.path, &self.receipt));
    }

    /// Writes the receipt.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<()> {
        if self.receipt.cases.is_empty() {
            return Ok(());
        }
        self.receipt.partial = false;
        write_json(&self.path, &self.receipt)?;
        eprintln!("raw samples: {}", printable(&self.path.to_string_lossy()));
        Ok(())
    }
}
