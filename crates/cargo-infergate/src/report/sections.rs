//! The parts of a report, each a file that makes a section of the inputs, or none. A new one is a file here and a line in
//! `SECTIONS`.

mod blocks;
mod compared;
mod comparison;
mod configuration;
mod findings;
mod latency;
pub mod llama_bench;
pub mod load;
mod memory;
mod recommendations;
pub mod request;
mod scaling;
mod targets;
mod variance;
mod verdict;
pub mod vllm;

use infergate::printable::printable;

use super::inputs::Inputs;
use super::model::{Block, Headline, Report, Section};
use super::{pictures, terminal, words};
use crate::receipt::Verdict;

/// In the order they are read.
const SECTIONS: &[fn(&Inputs) -> Option<Section>] = &[
    verdict::section,
    findings::section,
    recommendations::section,
    compared::section,
    targets::section,
    configuration::section,
    request::section,
    latency::section,
    scaling::section,
    variance::section,
    comparison::section,
    blocks::section,
    memory::section,
    llama_bench::section,
    load::run::section,
    load::levels::section,
    load::limits::section,
    load::users::section,
    load::decode_speed::section,
    load::itl::section,
    load::scaling::section,
    load::range::decode_speed,
    load::range::ttft,
    load::targets::section,
    load::winners::section,
    load::uses::section,
    load::cost::section,
    load::agreement::section,
    load::stability::section,
    load::failures::section,
    load::audit::section,
    vllm::section,
];

/// The report of these files. Sections that have nothing to say are left out; pictures stand at the end of theirs.
pub fn report(inputs: &Inputs) -> Report {
    let mut sections: Vec<Section> = SECTIONS.iter().filter_map(|section| section(inputs)).collect();
    for section in &mut sections {
        section.blocks.iter_mut().for_each(make_printable);
        section.blocks.extend(pictures::of(section.id, inputs).into_iter().map(Block::Chart));
    }
    let headline = inputs.verdict.as_ref().map(headline).or_else(|| load::run::headline(inputs));
    Report { title: title(inputs), headline, sections }
}

/// Who was measured, in one line.
fn title(inputs: &Inputs) -> String {
    let engine = inputs.subject().map(|subject| terminal::engine(subject.engine, subject.threads, subject.machine));
    engine.or_else(|| load::run::title(inputs)).unwrap_or_else(|| "infergate verdict".into())
}

/// Sentences can quote a file of someone else's: one line each, and nothing that moves a cursor.
fn make_printable(block: &mut Block) {
    let said: Vec<&mut String> = match block {
        Block::Said(said) => vec![said],
        Block::List(list) => list.iter_mut().collect(),
        Block::Findings(findings) => findings.iter_mut().map(|finding| &mut finding.said).collect(),
        Block::Table(_) | Block::Chart(_) => Vec::new(),
    };
    for said in said {
        *said = printable(said).into_owned();
    }
}

fn headline(verdict: &Verdict) -> Headline {
    Headline { outcome: verdict.verdict, exit_code: verdict.exit_code, said: words::headline::of(verdict) }
}
