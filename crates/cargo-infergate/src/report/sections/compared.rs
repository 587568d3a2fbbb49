//! What was compared: commits, builds, machine, and how it is repeated.

use crate::receipt::Build;
use crate::report::inputs::Inputs;
use crate::report::model::{Block, Cell, Column, Section, Table};
use crate::report::words::look;

/// Both sides, beside each other.
pub fn section(inputs: &Inputs) -> Option<Section> {
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
    let mut section = Section::new("compared", "What was compared").with(table);
    if let Some(sure) = look::how_sure(inputs) {
        section = section.with(Block::Said(sure));
    }
    Some(section)
}

/// A build's commit.
pub fn commit_cell(build: &Build) -> Cell {
    Cell::text(look::build(build))
}

fn short_hash(hash: &str) -> Cell {
    Cell::foreign(&hash.chars().take(12).collect::<String>())
}
