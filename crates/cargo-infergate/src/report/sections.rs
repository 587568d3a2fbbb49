//! The parts of a report, each a file that makes a section of the inputs, or none. A new one is a file here and a line in
//! `SECTIONS`.

mod blocks;
mod compared;
mod comparison;
mod configuration;
mod findings;
mod latency;
pub mod llama_bench;
mod memory;
pub mod request;
mod scaling;
mod targets;
mod variance;
mod verdict;
pub mod vllm;

use infergate::printable::printable;

use super::inputs::Inputs;
use super::model::{Block, Headline, Report, Section};
use super::{pictures, terminal};
use crate::receipt::Verdict;

/// In the order they are read.
const SECTIONS: &[fn(&Inputs) -> Option<Section>] = &[
    verdict::section,
    findings::section,
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
    vllm::section,
];

/// The report of these files. Sections that have nothing to say are left out; pictures stand at the end of theirs.
pub fn report(inputs: &Inputs) -> Report {
    let mut sections: Vec<Section> = SECTIONS.iter().filter_map(|section| section(inputs)).collect();
    for section in &mut sections {
        section.blocks.iter_mut().for_each(make_printable);
        section.blocks.extend(pictures::of(section.id, inputs).into_iter().map(Block::Chart));
    }
    let title = inputs.subject().map_or_else(
        || "infergate verdict".into(),
        |subject| terminal::engine(subject.engine, subject.threads, subject.machine),
    );
    Report { title, headline: inputs.verdict.as_ref().map(headline), sections }
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
    let why = terminal::reason(verdict).map(|why| printable(&why).into_owned());
    Headline { outcome: verdict.verdict, exit_code: verdict.exit_code, why }
}
