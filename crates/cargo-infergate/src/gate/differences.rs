//! What differs between baseline and run besides the code.

use std::collections::{BTreeMap, BTreeSet};

use crate::receipt::{Baseline, ProbePair, Probes, Receipt, Session};

/// A probe that moved by more than this during the run is named.
const DRIFT_NAMED: f64 = 0.10;

/// Every difference that may explain a verdict, one sentence each.
pub(super) fn notes(base: &Baseline, head: &Receipt) -> Vec<String> {
    let mut notes = Vec::new();
    if base.machine.class != head.machine.class {
        notes.push(format!(
            "another machine class ({}, baseline {}): time is advisory",
            head.machine.class, base.machine.class
        ));
    }
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
    let (was, is) = (&base.engine, &head.engine);
    let once = [
        ("engine version", was.version.clone(), is.version.clone()),
        ("weights", text(&was.weights_sha256), text(&is.weights_sha256)),
        ("revision", text(&was.revision), text(&is.revision)),
        ("libc", text(&base.machine.libc), text(&head.machine.libc)),
        ("instruction set", text(&base.machine.instruction_set), text(&head.machine.instruction_set)),
    ];
    notes.extend(once.iter().filter(|(_, was, is)| was != is).map(|(what, was, is)| differs(what, is, was)));
    let keys: BTreeSet<_> = was.settings.keys().chain(is.settings.keys()).collect();
    let value = |settings: &BTreeMap<String, String>, key| settings.get(key).cloned().unwrap_or_else(|| "unset".into());
    notes.extend(
        keys.into_iter()
            .filter(|key| was.settings.get(*key) != is.settings.get(*key))
            .map(|key| differs(&format!("setting {key}"), &value(&is.settings, key), &value(&was.settings, key))),
    );
    notes.extend(session_notes(base, head));
    let missing: Vec<String> = base
        .exact
        .iter()
        .filter(|exact| head.cases.iter().all(|case| case.id != exact.id))
        .map(|exact| exact.id.to_string())
        .collect();
    if !missing.is_empty() {
        notes.push(format!("in the baseline and not run, so not judged: {}", missing.join(", ")));
    }
    notes
}

/// Builds differ per session: a baseline that outlived a compiler update says how many of its sessions are older.
fn session_notes(base: &Baseline, head: &Receipt) -> Vec<String> {
    let head = Session::from(head);
    type Field = fn(&Session) -> String;
    let fields: [(&str, Field); 6] = [
        ("rustc", |session| session.build.rustc.clone()),
        ("compiler flags", |session| session.build.flags.clone()),
        ("optimisation level", |session| session.build.opt_level.clone()),
        ("target", |session| session.build.target.clone()),
        ("threads", |session| session.threads.to_string()),
        ("infergate", |session| session.tool.clone()),
    ];
    let mut notes = Vec::new();
    for (what, field) in fields {
        let is = field(&head);
        let mut others: BTreeMap<String, usize> = BTreeMap::new();
        for was in base.sessions.iter().map(field).filter(|was| *was != is) {
            *others.entry(was).or_default() += 1;
        }
        let all = base.sessions.len();
        notes.extend(others.iter().map(|(was, count)| {
            let whose = if *count == all { "in the baseline".into() } else { format!("in {count} of {all} sessions") };
            format!("{what} differs: '{is}' here, '{was}' {whose}")
        }));
    }
    notes
}

fn differs(what: &str, is: &str, was: &str) -> String {
    format!("{what} differs: '{is}' here, '{was}' in the baseline")
}

/// Names the probes that moved during the run. Reported, and never used to move a limit.
pub(super) fn probe_drift(probes: Option<&ProbePair>) -> Option<String> {
    let probes = probes?;
    let after = probes.after?;
    type Rate = fn(&Probes) -> f64;
    let rates: [(&str, Rate); 3] = [
        ("memory read", |probes| probes.memory_read_bytes_per_s),
        ("matrix product", |probes| probes.matrix_flops_per_s),
        ("scalar loop", |probes| probes.scalar_ops_per_s),
    ];
    let moved: Vec<String> = rates
        .iter()
        .map(|(what, rate)| (what, rate(&after) / rate(&probes.before) - 1.0))
        .filter(|(_, change)| change.abs() > DRIFT_NAMED)
        .map(|(what, change)| format!("{what} {:+.0} %", change * 100.0))
        .collect();
    (!moved.is_empty()).then(|| format!("the machine drifted during the run: {}", moved.join(", ")))
}
