//! `bless`: write or refresh this machine class's baseline, after showing what changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::bench::{self, How};
use super::outputs::{Files, Written};
use super::sessions::{Bless, alone, is_marked, write};
use super::{early, flags, load_gate, output};
use crate::machine;
use infergate_receipts::{Baseline, Receipt, ensure_writable, read};
use infergate_report::blessing;

/// Measures or reads, shows, and writes only when every receipt is good.
pub fn run(asked: &Bless) -> Result<i32> {
    let Bless { out, receipt: given, step, dry_run, json, wait, keys, workers } = asked;
    Files {
        read: &[
            ("--receipt", given),
            ("--worker", workers.worker.as_slice()),
            ("--memory-worker", workers.memory_worker.as_slice()),
        ],
        out: out.as_ref(),
        json: json.as_ref(),
        ..Files::default()
    }
    .begin()?;
    let config = keys.config()?;
    if let Some(first) = given.first()
        && load_gate::is_load(first)?
    {
        return load_gate::bless(asked, &config);
    }
    let mut written = Written::default();
    let mut receipts: Vec<Receipt> = match given.is_empty() {
        false => given.iter().map(|path| read::<Receipt>(path)).collect::<Result<_>>()?,
        true => {
            early::baselines(&config)?;
            if !dry_run {
                ensure_writable(&config.baselines.join(machine::detect().class).join("baseline.json"))?;
            }
            let measured = bench::measure(&config, How { out: out.as_deref(), workers, wait, keep_text: false }, 0)?;
            bench::keep(&measured.out, &measured.receipt, &mut written);
            vec![measured.receipt]
        }
    };
    receipts.sort_by(|a, b| a.created.cmp(&b.created));
    receipts.iter().try_for_each(Receipt::ensure_blessable)?;
    let _alone = alone(asked, &config.baselines)?;
    let mut refreshed: BTreeMap<PathBuf, Baseline> = BTreeMap::new();
    for receipt in &receipts {
        let path = config.baselines.join(Baseline::file_name(&receipt.machine.class, &receipt.engine));
        let is_first = !refreshed.contains_key(&path);
        let before = match refreshed.remove(&path) {
            Some(before) => Some(before),
            None => flags::is_there(&path).then(|| read::<Baseline>(&path)).transpose()?,
        };
        let after = added(before.as_ref(), receipt, *step && is_first, &path)?;
        output::report(&blessing::changes(before.as_ref(), &after, receipt, &config.policy, &path));
        refreshed.insert(path, after);
    }
    Ok(write(asked, &refreshed, written))
}

fn added(before: Option<&Baseline>, receipt: &Receipt, step: bool, path: &Path) -> Result<Baseline> {
    let Some(before) = before else { return Ok(Baseline::from_receipt(receipt)) };
    let not_blessed = || format!("{}: not blessed", path.display());
    before.ensure_accepts(receipt).with_context(not_blessed)?;
    let mut after = before.clone();
    let steps = after.sessions.iter_mut().map(|session| (session.created.as_str(), &mut session.step));
    if step && is_marked(steps, &receipt.created).with_context(not_blessed)? {
        return Ok(after);
    }
    ensure!(
        before.sessions.iter().all(|session| session.created != receipt.created),
        "{}: the session of {} is in it already; measure a new one",
        path.display(),
        receipt.created
    );
    after.add(receipt, step);
    Ok(after)
}
