//! What was measured, on what, how often; and what was compared: commits, builds, machine.

use infergate_core::case::Phase;
use infergate_core::engine::EngineInfo;
use infergate_receipts::Build;

use crate::inputs::{Inputs, Subject};
use crate::model::{Cell, Missing, Rows, Section, Table, Unit};
use crate::words::provenance;

/// How each case is warmed up.
const WARM_UP: &str = "the whole output twice in the first process, its first 8 tokens in each further one";

pub fn sides(inputs: &Inputs) -> Option<Section> {
    let head = inputs.subject()?;
    let earlier = inputs.base.as_ref().map(|run| built(&run.engine, run.threads, &run.build));
    let paired = inputs.paired.as_ref().map(|run| built(&run.base.engine, run.threads, &run.base.build));
    let base = earlier.or(paired)?;
    let is_paired = inputs.paired.is_some();
    let began =
        inputs.base.iter().map(|run| (("began", Cell::foreign(&run.created)), ("began", Cell::foreign(head.created))));
    let both = began.chain(base.into_iter().zip(built(head.engine, head.threads, head.build)));
    let table = Rows::of("sides", "", both)
        .words("what", |((what, _), _)| *what)
        .titled_words("base", if is_paired { "base" } else { "earlier run" }, |((_, base), _)| base.clone())
        .titled_words("head", if is_paired { "head" } else { "this run" }, |(_, (_, head))| head.clone())
        .table();
    Some(Section::new("compared", "What was compared").with([table]).with(provenance::how_sure(inputs)))
}

/// What a side is, line by line.
fn built(engine: &EngineInfo, threads: usize, build: &Build) -> Vec<(&'static str, Cell)> {
    let mut lines: Vec<(&str, Cell)> = vec![("commit", provenance::build(build).into())];
    if !engine.is_of_benches() {
        lines.push(("engine", Cell::foreign(format!("{} {}", engine.name, engine.version).trim())));
        lines.push(("model", Cell::foreign(&engine.model)));
        lines.push(("threads", threads.into()));
    }
    lines.push(("compiler", Cell::foreign(&build.rustc)));
    lines.push(("flags", Cell::foreign(&build.flags)));
    let hash = build.worker_sha256.as_deref().map(|hash| hash.chars().take(12).collect::<String>());
    lines.push(("bench binary, SHA-256", hash.map_or("not noted".into(), |hash| Cell::foreign(&hash))));
    lines
}

/// Model, machine and parameters of the run.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let subject = inputs.subject()?;
    let model = (!subject.engine.is_of_benches()).then(|| model(&subject));
    let section = Section::new("configuration", "Configuration").with([run(inputs, &subject)]).with(model);
    Some(section.with([machine(inputs, &subject)]).folded())
}

fn model(subject: &Subject<'_>) -> Table {
    let engine = subject.engine;
    let number = |value: Option<u64>, unit| Cell::number(value, unit, Missing::EngineSilent);
    let word = |value: Option<&String>| value.map_or(Cell::Missing(Missing::EngineSilent), |word| Cell::foreign(word));
    let facts = vec![
        ("architecture", word(engine.architecture.as_ref())),
        ("dtype", Cell::foreign(&engine.dtype)),
        ("weights", number(engine.parameters, Unit::Many)),
        ("weights in memory", number(engine.weight_bytes, Unit::Bytes)),
        ("longest context", Cell::of(engine.context_tokens, Unit::Tokens)),
        // Settings of an engine that a reader looks for.
        ("quantization", if engine.dtype.starts_with('q') { Cell::foreign(&engine.dtype) } else { "none".into() }),
        ("attention", word(engine.settings.get("attention"))),
        ("keys and values", word(engine.settings.get("kv_cache"))),
    ];
    Table::facts("model", "Model", facts)
}

fn machine(inputs: &Inputs, subject: &Subject<'_>) -> Table {
    let machine = subject.machine;
    let mut facts = vec![
        ("processor", Cell::foreign(&machine.cpu_model)),
        ("logical cores", machine.logical_cores.into()),
        ("memory", Cell::of(machine.memory_bytes, Unit::Bytes)),
    ];
    if machine.devices.is_empty() {
        facts.push(("device", Cell::foreign(&machine.cpu_model)));
    }
    let devices = machine.devices.iter();
    facts.extend(devices.map(|device| ("device", Cell::foreign(&format!("{} ({})", device.name, device.kind)))));
    // Two sides stand beside each other already.
    if inputs.base_build().is_none() {
        facts.extend(built(subject.engine, subject.threads, subject.build));
    }
    Table::facts("machine", "Machine and build", facts)
}

fn run(inputs: &Inputs, subject: &Subject<'_>) -> Table {
    let mut facts = vec![("began", Cell::foreign(subject.created)), ("infergate", Cell::foreign(subject.tool))];
    facts.push(if subject.engine.is_of_benches() {
        ("bench target", Cell::foreign(&subject.engine.model))
    } else {
        ("seed", subject.seed.to_string().into())
    });
    if let Some(receipt) = &inputs.head {
        facts.push(("cases", receipt.cases.len().into()));
        facts.push(("fresh processes", Cell::count(receipt.cases.iter().map(|case| case.processes.len()).max())));
        if receipt.cases.iter().any(|case| case.id.phase() != Phase::Bench) {
            facts.push(("warm-up of a case", WARM_UP.into()));
            facts.push(("time of a token", "when the engine returns it, within the measured process".into()));
        }
        facts.extend(receipt.wall_ns.map(|wall_ns| ("took", Cell::of(wall_ns, Unit::Ns))));
    }
    let of_run = inputs.head.as_ref().and_then(|run| Some(run.probes?.best()));
    if let Some(probes) = of_run.or_else(|| inputs.load.as_ref()?.receipt.probes) {
        facts.push(("memory read, probed", Cell::of(probes.memory_read_bytes_per_s, Unit::BytesPerS)));
        facts.push(("f32 multiply-adds, probed", Cell::of(probes.fma_flops_per_s, Unit::FlopsPerS)));
    }
    Table::facts("run", "Run", facts)
}
