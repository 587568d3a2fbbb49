//! What differs between the sides besides the code.

use std::collections::{BTreeMap, BTreeSet};

use infergate_core::engine::EngineInfo;

use infergate_receipts::{
    Baseline, Build, LoadBaseline, Machine, Note, PairedReceipt, ProbePair, Probes, Receipt, Session, SideRecord,
    Subject,
};

/// The change of a probe during the run, as a fraction, above which a note names it.
const DRIFT_NAMED: f64 = 0.10;

/// What a side was measured with, by name.
type Conditions = BTreeMap<String, String>;

/// Notes of what differs from a baseline, and of its cases that were not run.
pub(super) fn of_baseline(base: &Baseline, head: &Receipt) -> Vec<Note> {
    let once = |info: &EngineInfo, machine: &Machine| {
        let machine = [("libc", known(&machine.libc)), ("instruction set", known(&machine.instruction_set))];
        [engine(info), named(machine)].into_iter().flatten().collect()
    };
    let session = |session: &Session| {
        let threads = named([("threads", session.threads.to_string())]);
        [build(&session.build, &session.tool), threads].into_iter().flatten().collect()
    };
    let sessions: Vec<Conditions> = base.sessions.iter().map(session).collect();
    let missing = base.exact.iter().filter(|exact| head.cases.iter().all(|case| case.id != exact.id));
    let mut notes = not_run(missing.map(|exact| exact.id.into()).collect());
    notes.extend(differing(&[once(&base.engine, &base.machine)], &once(&head.engine, &head.machine), false));
    notes.extend(differing(&sessions, &session(&Session::from(head)), false));
    notes
}

/// Note if another class's baseline judges outputs and counters.
pub(super) fn of_references(references: &[&Baseline], head: &Receipt) -> Option<Note> {
    let first = references.first().filter(|first| first.machine.class != head.machine.class)?;
    let created = first.sessions.last()?.created.clone();
    Some(Note::OtherClass { machine_class: first.machine.class.clone(), created })
}

/// The same for a load run; `missing` are the levels that were not run.
pub(super) fn of_load(base: &LoadBaseline, run: &LoadBaseline, missing: Vec<Subject>) -> Vec<Note> {
    let mut notes = not_run(missing);
    let sessions: Vec<Conditions> = base.sessions.iter().map(|session| session.conditions.clone()).collect();
    notes.extend(run.sessions.last().into_iter().flat_map(|head| differing(&sessions, &head.conditions, false)));
    notes
}

/// Notes of what differs between the two builds of a paired run.
pub(super) fn of_builds(receipt: &PairedReceipt) -> Vec<Note> {
    let side =
        |side: &SideRecord| [engine(&side.engine), build(&side.build, &side.tool)].into_iter().flatten().collect();
    differing(&[side(&receipt.base)], &side(&receipt.head), true)
}

fn not_run(subjects: Vec<Subject>) -> Vec<Note> {
    if subjects.is_empty() { Vec::new() } else { vec![Note::NotRun { subjects }] }
}

fn engine(info: &EngineInfo) -> Conditions {
    let fields = named([
        ("engine", info.name.clone()),
        ("engine version", info.version.clone()),
        ("dtype", info.dtype.clone()),
        ("weights", known(&info.weights_sha256)),
        ("revision", known(&info.revision)),
        // A streaming engine may compute between its calls, so that its idle time is not checked.
        ("pacing", format!("{:?}", info.pacing).to_lowercase()),
    ]);
    let settings = info.settings.iter().map(|(name, value)| (format!("setting {name}"), value.clone()));
    fields.into_iter().chain(settings).collect()
}

fn build(build: &Build, tool: &str) -> Conditions {
    named([
        ("rustc", build.rustc.clone()),
        ("compiler flags", build.flags.clone()),
        ("optimisation level", build.opt_level.clone()),
        ("target", build.target.clone()),
        ("Cargo features", build.features().to_owned()),
        ("infergate", tool.to_owned()),
    ])
}

fn named<const N: usize>(fields: [(&str, String); N]) -> Conditions {
    fields.map(|(name, value)| (name.to_owned(), value)).into()
}

pub(super) fn known(value: &Option<String>) -> String {
    value.clone().unwrap_or_else(|| "unknown".into())
}

/// A note for each value in `bases` that differs from `head`'s, with the number of sessions that have it. After a compiler update
/// it tells how many sessions are older.
fn differing(bases: &[Conditions], head: &Conditions, paired: bool) -> Vec<Note> {
    let value = |conditions: &Conditions, name| conditions.get(name).cloned().unwrap_or_else(|| "unset".into());
    let names: BTreeSet<&String> = bases.last().into_iter().chain([head]).flat_map(BTreeMap::keys).collect();
    let mut notes = Vec::new();
    for name in names {
        let (head, mut others) = (value(head, name), BTreeMap::<String, usize>::new());
        for base in bases.iter().map(|base| value(base, name)).filter(|base| *base != head) {
            *others.entry(base).or_default() += 1;
        }
        notes.extend(others.into_iter().map(|(base, count)| {
            let sessions = (!paired).then_some((count, bases.len()));
            Note::Differs { what: name.clone(), base, head: head.clone(), sessions, paired }
        }));
    }
    notes
}

/// The probes that moved during the run. Reported, and never used to move a limit.
pub(super) fn probe_drift(probes: Option<&ProbePair>) -> Vec<Note> {
    let Some((before, after)) = probes.and_then(|probes| Some((&probes.before, probes.after?))) else {
        return Vec::new();
    };
    type Rate = fn(&Probes) -> f64;
    let rates: [(&str, Rate); 2] =
        [("memory read", |probes| probes.memory_read_bytes_per_s), ("multiply-adds", |probes| probes.fma_flops_per_s)];
    let changes = rates.into_iter().map(|(what, rate)| (what, rate(&after) / rate(before) - 1.0));
    let moved = changes.filter(|(_, change)| change.is_finite() && change.abs() > DRIFT_NAMED);
    moved.map(|(what, change)| Note::Drift { what: what.into(), change }).collect()
}
