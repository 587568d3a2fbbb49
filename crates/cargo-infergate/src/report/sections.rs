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
pub mod memory;
mod recommendations;
pub mod request;
mod scaling;
mod targets;
mod title;
mod variance;
mod verdict;
pub mod vllm;

use infergate_core::printable::printable;

use super::inputs::Inputs;
use super::model::{Block, Chart, Finding, Headline, Report, Section, Tone};
use super::words::pages;
use super::{pictures, terminal, words};
use crate::receipt::Verdict;

/// In the order they are read.
const SECTIONS: &[fn(&Inputs) -> Option<Section>] = &[
    verdict::section,
    recommendations::section,
    targets::section,
    latency::section,
    request::section,
    scaling::section,
    variance::section,
    comparison::section,
    blocks::section,
    memory::section,
    llama_bench::section,
    load::run::asked,
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
    load::run::section,
    compared::section,
    configuration::section,
];

/// What a reader takes in before the numbers.
const MOST_FINDINGS: usize = 5;

/// The report of these files. Sections that have nothing to say are left out.
pub fn report(inputs: &Inputs) -> Report {
    let mut sections: Vec<Section> = SECTIONS.iter().filter_map(|section| section(inputs)).collect();
    findings_first(inputs, &mut sections);
    for section in &mut sections {
        section.blocks.iter_mut().for_each(make_printable);
        let blocks = std::mem::take(&mut section.blocks);
        section.blocks = with_charts(blocks, pictures::of(section.id, inputs));
    }
    let headline = inputs.verdict.as_ref().map(headline).or_else(|| load::run::headline(inputs));
    let subject = subject(inputs);
    let title = title::of(inputs, headline.as_ref()).map_or_else(|| subject.clone(), |said| pages::sentence(&said));
    Report { title, subject, headline, sections }
}

/// Each picture behind the table of its place, so that they stand side by side; what is left of them last.
fn with_charts(blocks: Vec<Block>, charts: Vec<Chart>) -> Vec<Block> {
    let mut charts = charts.into_iter().map(Block::Chart);
    let mut all = Vec::new();
    for block in blocks {
        let beside = if matches!(block, Block::Table(_)) { charts.next() } else { None };
        all.extend([block].into_iter().chain(beside));
    }
    all.extend(charts);
    all
}

/// The most important findings beside numbers in a section of their own, before everything else; those beyond stand in the sections
/// they are of.
fn findings_first(inputs: &Inputs, sections: &mut Vec<Section>) {
    let mut found: Vec<(&str, Finding)> = findings::all(inputs);
    for section in sections.iter_mut().filter(|section| section.tables().next().is_some()) {
        let id = section.id;
        section.blocks.retain(|block| {
            let Block::Findings(own) = block else { return true };
            found.extend(own.iter().map(|finding| (id, finding.clone())));
            false
        });
    }
    found.sort_by_key(|(_, finding)| match finding.tone {
        Tone::Bad => 0,
        Tone::Warn => 1,
        Tone::Good | Tone::Plain => 2,
    });
    let mut first = Vec::new();
    for (at, (id, finding)) in found.into_iter().enumerate() {
        let own = sections.iter_mut().find(|section| section.id == id).filter(|_| at >= MOST_FINDINGS);
        match own.map(|section| &mut section.blocks) {
            None => first.push(finding),
            Some(blocks) => match blocks.last_mut() {
                Some(Block::Findings(findings)) => findings.push(finding),
                _ => blocks.push(Block::Findings(vec![finding])),
            },
        }
    }
    if !first.is_empty() {
        sections.insert(0, Section::new("findings", "Findings").with(Block::Findings(first)));
    }
}

/// Who was measured, in one line.
fn subject(inputs: &Inputs) -> String {
    let engine = inputs.subject().map(|subject| terminal::engine(subject.engine, subject.threads, subject.machine));
    engine.or_else(|| load::run::title(inputs)).unwrap_or_default()
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
