//! What was measured, on what, how often; and what was compared: commits, builds, machine.

use infergate_core::case::Phase;
use infergate_core::engine::EngineInfo;
use infergate_receipts::Build;

use crate::figures::samples;
use crate::inputs::{Inputs, Subject};
use crate::model::{Cell, Missing, Rows, Section, Table, Unit};
use crate::words::provenance;

/// Settings of an engine that a reader looks for, and what its receipt calls them.
const SETTINGS: [(&str, &str); 2] = [("attention", "attention"), ("keys and values", "kv_cache")];

/// How each case is warmed up.
const WARM_UP: &str =
    "before any time is taken: the whole output twice in the first process, its first 8 tokens in each further one";

pub fn sides(inputs: &Inputs) -> Option<Section> {
    let (head, base) = (inputs.subject()?, inputs.base_build()?);
    let earlier = inputs.base.as_ref().map(|run| (&run.engine, run.threads));
    let paired = inputs.paired.as_ref().map(|run| (&run.base.engine, run.threads));
    let (engine, threads) = earlier.or(paired)?;
    let base = built(engine, threads, base);
    let both = base.into_iter().zip(built(head.engine, head.threads, head.build));
    let table = Rows::of("sides", "", both)
        .words("what", "what", |((what, _), _)| *what)
        .words("base", "base", |((_, base), _)| base.clone())
        .words("head", "head", |(_, (_, head))| head.clone())
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
    let mut table = Table::facts("model", "Model");
    table.fact("architecture", word(engine.architecture.as_ref()));
    table.fact("dtype", Cell::foreign(&engine.dtype));
    table.fact("weights", number(engine.parameters, Unit::Many));
    table.fact("weights in memory", number(engine.weight_bytes, Unit::Bytes));
    table.fact("longest context", Cell::of(engine.context_tokens, Unit::Tokens));
    for (what, setting) in SETTINGS {
        table.fact(what, word(engine.settings.get(setting)));
    }
    table
}

fn machine(inputs: &Inputs, subject: &Subject<'_>) -> Table {
    let machine = subject.machine;
    let mut table = Table::facts("machine", "Machine and build");
    table.fact("processor", Cell::foreign(&machine.cpu_model));
    table.fact("logical cores", machine.logical_cores);
    table.fact("memory", Cell::of(machine.memory_bytes, Unit::Bytes));
    if machine.devices.is_empty() {
        table.fact("device", "the processor");
    }
    for device in &machine.devices {
        table.fact("device", Cell::foreign(&format!("{} ({})", device.name, device.kind)));
    }
    // Two sides stand beside each other already.
    if inputs.base_build().is_none() {
        for (what, value) in built(subject.engine, subject.threads, subject.build) {
            table.fact(what, value);
        }
    }
    table
}

fn run(inputs: &Inputs, subject: &Subject<'_>) -> Table {
    let mut table = Table::facts("run", "Run");
    table.fact("began", Cell::foreign(subject.created));
    table.fact("infergate", Cell::foreign(subject.tool));
    if subject.engine.is_of_benches() {
        table.fact("bench target", Cell::foreign(&subject.engine.model));
    } else {
        table.fact("seed", subject.seed.to_string());
    }
    let Some(receipt) = &inputs.head else { return table };
    table.fact("cases", receipt.cases.len());
    table.fact("fresh processes", Cell::count(receipt.cases.iter().map(|case| case.processes.len()).max()));
    if receipt.cases.iter().any(|case| case.id.phase() != Phase::Bench) {
        table.fact("warm-up of a case", WARM_UP);
    }
    let samples = || receipt.cases.iter().map(samples);
    if let (Some(least), Some(most)) = (samples().min(), samples().max()) {
        table.fact("samples of a case", if least == most { most.to_string() } else { format!("{least} to {most}") });
    }
    if let Some(wall_ns) = receipt.wall_ns {
        table.fact("took", Cell::of(wall_ns, Unit::Ns));
    }
    if receipt.partial {
        table.fact("partial", "the run was cut short");
    }
    for broken in &receipt.invalid {
        table.fact("invalid", Cell::foreign(broken));
    }
    if let Some(probes) = receipt.probes.map(|probes| probes.best()) {
        table.fact("memory read, probed", Cell::of(probes.memory_read_bytes_per_s, Unit::BytesPerS));
        table.fact("f32 multiply-adds, probed", Cell::of(probes.fma_flops_per_s, Unit::FlopsPerS));
    }
    table
}
