//! What differs between the sides besides the code.

use std::collections::{BTreeMap, BTreeSet};

use infergate_core::engine::EngineInfo;

use infergate_receipts::{Baseline, Note, PairedReceipt, ProbePair, Probes, Receipt, Session};

/// A probe that moved by more than this during the run is named.
const DRIFT_NAMED: f64 = 0.10;

/// Every difference that may explain a verdict.
pub(super) fn notes(base: &Baseline, head: &Receipt) -> Vec<Note> {
    let mut notes = Vec::new();
    let classes = (&base.machine.class, &head.machine.class);
    if classes.0 != classes.1 {
        notes.push(Note::OtherMachine { base: classes.0.clone(), head: classes.1.clone() });
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
    let differs = once.into_iter().filter(|(_, was, is)| was != is);
    notes.extend(differs.map(|(what, base, head)| differing(what, base, head, false)));
    notes.extend(differing_settings(&was.settings, &is.settings, false));
    notes.extend(session_notes(base, head));
    let missing = base.exact.iter().filter(|exact| head.cases.iter().all(|case| case.id != exact.id));
    let subjects: Vec<_> = missing.map(|exact| exact.id.into()).collect();
    if !subjects.is_empty() {
        notes.push(Note::NotRun { subjects });
    }
    notes
}

fn differing(what: impl Into<String>, base: String, head: String, paired: bool) -> Note {
    Note::Differs { what: what.into(), base, head, sessions: None, paired }
}

fn differing_settings(was: &BTreeMap<String, String>, is: &BTreeMap<String, String>, paired: bool) -> Vec<Note> {
    let keys: BTreeSet<_> = was.keys().chain(is.keys()).filter(|key| was.get(*key) != is.get(*key)).collect();
    let value = |settings: &BTreeMap<String, String>, key| settings.get(key).cloned().unwrap_or_else(|| "unset".into());
    let note = |key| differing(format!("setting {key}"), value(was, key), value(is, key), paired);
    keys.into_iter().map(note).collect()
}

/// Builds differ per session: a baseline that outlived a compiler update says how many of its sessions are older.
fn session_notes(base: &Baseline, head: &Receipt) -> Vec<Note> {
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
    let of_field = |(what, field): (&str, Field)| {
        let sessions: Vec<String> = base.sessions.iter().map(field).collect();
        other_sessions(what, &field(&head), sessions.iter().map(String::as_str))
    };
    fields.into_iter().flat_map(of_field).collect()
}

/// What is `head` in this run and something else in some of the `sessions`: a note of each value, with how many sessions have it.
pub(super) fn other_sessions<'a>(
    what: &str,
    head: &str,
    sessions: impl ExactSizeIterator<Item = &'a str>,
) -> Vec<Note> {
    let (all, mut others) = (sessions.len(), BTreeMap::<&str, usize>::new());
    for base in sessions.filter(|base| *base != head) {
        *others.entry(base).or_default() += 1;
    }
    let note = |(base, count): (&str, usize)| Note::Differs {
        what: what.into(),
        base: base.into(),
        head: head.into(),
        sessions: Some((count, all)),
        paired: false,
    };
    others.into_iter().map(note).collect()
}

/// What differs between the two builds of a paired run.
pub(super) fn of_builds(receipt: &PairedReceipt) -> Vec<Note> {
    let (base, head) = (&receipt.base, &receipt.head);
    let fields = [
        ("rustc", &base.build.rustc, &head.build.rustc),
        ("compiler flags", &base.build.flags, &head.build.flags),
        ("optimisation level", &base.build.opt_level, &head.build.opt_level),
        ("target", &base.build.target, &head.build.target),
        ("infergate", &base.tool, &head.tool),
        ("engine", &base.engine.name, &head.engine.name),
        ("engine version", &base.engine.version, &head.engine.version),
        ("dtype", &base.engine.dtype, &head.engine.dtype),
    ];
    let differs = fields.into_iter().filter(|(_, was, is)| was != is);
    let mut notes: Vec<Note> = differs.map(|(what, was, is)| differing(what, was.clone(), is.clone(), true)).collect();
    notes.extend(differing_settings(&base.engine.settings, &head.engine.settings, true));
    // A streaming engine may compute between its calls, so that its idle time is not checked.
    if base.engine.pacing != head.engine.pacing {
        let word = |engine: &EngineInfo| format!("{:?}", engine.pacing).to_lowercase();
        notes.push(differing("pacing", word(&base.engine), word(&head.engine), true));
    }
    notes
}

/// The probes that moved during the run. Reported, and never used to move a limit.
pub(super) fn probe_drift(probes: Option<&ProbePair>) -> Vec<Note> {
    let Some((before, after)) = probes.and_then(|probes| Some((&probes.before, probes.after?))) else {
        return Vec::new();
    };
    type Rate = fn(&Probes) -> f64;
    let rates: [(&str, Rate); 3] = [
        ("memory read", |probes| probes.memory_read_bytes_per_s),
        ("multiply-adds", |probes| probes.fma_flops_per_s),
        ("scalar loop", |probes| probes.scalar_ops_per_s),
    ];
    let changes = rates.into_iter().map(|(what, rate)| (what, rate(&after) / rate(before) - 1.0));
    let moved = changes.filter(|(_, change)| change.is_finite() && change.abs() > DRIFT_NAMED);
    moved.map(|(what, change)| Note::Drift { what: what.into(), change }).collect()
}
