//! What was measured, on what, how often; and what was compared: commits, builds, machine.

use infergate_core::case::Phase;

use crate::inputs::Inputs;
use crate::model::{Cell, Column, Missing, Section, Table, Unit};
use crate::words::look;
use infergate_receipts::{Build, CaseRecord, Receipt};

/// Settings of an engine that a reader looks for, and what its receipt calls them.
const SETTINGS: [(&str, &str); 2] = [("attention", "attention"), ("keys and values", "kv_cache")];

/// How each case is warmed up.
const WARM_UP: &str =
    "before any time is taken: the whole output twice in the first process, its first 8 tokens in each further one";
/// What an engine without a device computes on.
const PROCESSOR: &str = "the processor: the engine names no other";

pub fn sides(inputs: &Inputs) -> Option<Section> {
    let subject = inputs.subject()?;
    let base = inputs.base_build()?;
    let columns = vec![Column::words("what", "what"), Column::words("base", "base"), Column::words("head", "head")];
    let mut table = Table::new("sides", "", columns);
    let mut row = |what: &str, base: Cell, head: Cell| table.row(vec![Cell::text(what), base, head]);
    row("commit", commit_cell(base), commit_cell(subject.build));
    let engines = [
        inputs.base.as_ref().map(|receipt| &receipt.engine),
        inputs.paired.as_ref().map(|receipt| &receipt.base.engine),
    ];
    if let Some(engine) = engines.into_iter().flatten().find(|engine| !engine.is_of_benches()) {
        let name = |name: &str, version: &str| Cell::foreign(format!("{name} {version}").trim());
        row("engine", name(&engine.name, &engine.version), name(&subject.engine.name, &subject.engine.version));
        row("model", Cell::foreign(&engine.model), Cell::foreign(&subject.engine.model));
    }
    if let Some(earlier) = &inputs.base {
        row("threads", Cell::count(earlier.threads), Cell::count(subject.threads));
    }
    row("compiler", Cell::foreign(&base.rustc), Cell::foreign(&subject.build.rustc));
    row("flags", Cell::foreign(&base.flags), Cell::foreign(&subject.build.flags));
    let hash = |build: &Build| build.worker_sha256.as_deref().map_or(Cell::text("not noted"), short_hash);
    row("bench binary, SHA-256", hash(base), hash(subject.build));
    let class = &subject.machine.class;
    if let Some(other) = inputs.base.as_ref().map(|receipt| &receipt.machine.class).filter(|other| *other != class) {
        row("machine class", Cell::foreign(other), Cell::foreign(class));
    }
    Some(Section::new("compared", "What was compared").with([table]).with(look::how_sure(inputs)))
}

fn commit_cell(build: &Build) -> Cell {
    Cell::text(look::build(build))
}

fn short_hash(hash: &str) -> Cell {
    Cell::foreign(&hash.chars().take(12).collect::<String>())
}

/// Model, machine and parameters of the run.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let subject = inputs.subject()?;
    let engine = subject.engine;
    let number = |value: Option<u64>, unit| Cell::number(value.map(|value| value as f64), unit, Missing::EngineSilent);
    let is_of_benches = engine.is_of_benches();
    let mut model = Table::facts("model", "Model");
    model.fact("model", Cell::foreign(&engine.model));
    model.fact("architecture", Cell::foreign(engine.architecture.as_deref().unwrap_or("not said")));
    model.fact("dtype", Cell::foreign(&engine.dtype));
    model.fact("weights", number(engine.parameters, Unit::Many));
    model.fact("weights in memory", number(engine.weight_bytes, Unit::Bytes));
    model
        .fact("longest context", Cell::number(Some(engine.context_tokens as f64), Unit::Tokens, Missing::EngineSilent));
    model.fact("engine", Cell::foreign(format!("{} {}", engine.name, engine.version).trim()));
    for (what, setting) in SETTINGS {
        let said = engine.settings.get(setting);
        model.fact(what, said.map_or(Cell::Missing(Missing::EngineSilent), |said| Cell::foreign(said)));
    }

    let mut machine = Table::facts("machine", "Machine and build");
    machine.fact("processor", Cell::foreign(&subject.machine.cpu_model));
    machine.fact("logical cores", Cell::count(subject.machine.logical_cores));
    machine.fact("memory", number(Some(subject.machine.memory_bytes), Unit::Bytes));
    if subject.machine.devices.is_empty() {
        machine.fact("device", Cell::text(PROCESSOR));
    }
    for device in &subject.machine.devices {
        machine.fact("device", Cell::foreign(&format!("{} ({})", device.name, device.kind)));
    }
    // Of two sides they stand beside each other already.
    if inputs.base_build().is_none() {
        machine.fact("commit", commit_cell(subject.build));
        machine.fact("compiler", Cell::foreign(&subject.build.rustc));
        machine.fact("flags", Cell::foreign(&subject.build.flags));
    }

    let mut run = Table::facts("run", "Run");
    run.fact("began", Cell::foreign(subject.created));
    run.fact("infergate", Cell::foreign(subject.tool));
    if is_of_benches {
        run.fact("bench target", Cell::foreign(&engine.model));
    } else {
        run.fact("threads", Cell::count(subject.threads));
        run.fact("seed", Cell::text(subject.seed.to_string()));
    }
    if let Some(receipt) = &inputs.head {
        counts(receipt, &mut run);
    }
    let model = if is_of_benches { None } else { Some(model) };
    Some(Section::new("configuration", "Configuration").with([run]).with(model).with([machine]).folded())
}

fn counts(receipt: &Receipt, table: &mut Table) {
    let processes = receipt.cases.iter().map(|case| case.processes.len()).max().unwrap_or(0);
    table.fact("cases", Cell::count(receipt.cases.len()));
    table.fact("fresh processes", Cell::count(processes));
    if receipt.cases.iter().any(|case| case.id.phase() != Phase::Bench) {
        table.fact("warm-up of a case", Cell::text(WARM_UP));
    }
    let samples = |case: &CaseRecord| case.processes.iter().map(|process| process.samples_ns.len()).sum::<usize>();
    let samples = || receipt.cases.iter().map(samples);
    if let (Some(least), Some(most)) = (samples().min(), samples().max()) {
        let samples = if least == most { Cell::count(most) } else { Cell::text(format!("{least} to {most}")) };
        table.fact("samples of a case", samples);
    }
    if let Some(wall_ns) = receipt.wall_ns {
        table.fact("took", Cell::number(Some(wall_ns as f64), Unit::Ns, Missing::NotMeasured));
    }
    if receipt.partial {
        table.fact("partial", Cell::text("the run was cut short"));
    }
    for broken in &receipt.invalid {
        table.fact("invalid", Cell::foreign(broken));
    }
    let Some(probes) = receipt.probes.map(|probes| probes.best()) else { return };
    table.fact("memory read, probed", Cell::of(probes.memory_read_bytes_per_s, Unit::BytesPerS));
    table.fact("f32 multiply-adds, probed", Cell::of(probes.fma_flops_per_s, Unit::FlopsPerS));
}
