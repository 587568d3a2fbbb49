//! What a report says, topic by topic. Each is a file that gives tables, pictures and sentences from the inputs, and marks what a
//! terminal shows of it. A new one is a file here and a line in `TOPICS`.

mod changes;
mod comparison;
mod configuration;
mod explained;
mod latency;
mod load;
mod memory;
mod recommendations;
mod request;
mod scaling;
mod targets;
mod title;
mod verdict;

use std::collections::HashSet;

use infergate_core::receipt::file_word;

use super::inputs::Inputs;
use super::load::{View, unusable};
use super::model::{Block, Finding, Headline, Report, Section};
use super::{units, words};
use infergate_receipts::Verdict;
pub use title::subject;

/// A part of a report. One that has nothing to say is left out.
type Topic = fn(&Inputs) -> Option<Section>;

const TOPICS: &[Topic] = &[
    verdict::topic,
    targets::topic,
    latency::topic,
    request::topic,
    scaling::topic,
    comparison::topic,
    explained::topic,
    memory::topic,
];
/// Those after the sections of a load run.
const LAST: &[Topic] = &[recommendations::topic, configuration::sides, configuration::topic];
/// Sections that a page begins with: what came out, and what to do.
const FIRST: [&str; 4] = ["findings", "verdict", "recommendations", "load_advice"];
/// Findings of a page; with more nobody reads any.
const MOST_FINDINGS: usize = 5;

pub fn report(inputs: &Inputs) -> Report {
    let of = |topics: &[Topic]| topics.iter().filter_map(|topic| topic(inputs)).collect::<Vec<Section>>();
    let mut sections = [of(TOPICS), load::sections(inputs), of(LAST)].concat();
    let findings = findings(&mut sections);
    sections.push(findings);
    sections.retain(Section::says_something);
    sections.sort_by_key(|section| FIRST.iter().position(|first| *first == section.id).unwrap_or(FIRST.len()));
    one_id_a_chart(&mut sections);
    let headline = inputs.verdict.as_ref().map(headline).or_else(|| inputs.load.as_ref().and_then(of_load));
    let subject = subject(inputs);
    let title = title::of(inputs, headline.as_ref()).map_or_else(|| subject.clone(), |said| units::sentence(&said));
    Report { title, subject, headline, sections }
}

/// A chart's id is the name of its file: of several that would have one, the later ones get a number.
fn one_id_a_chart(sections: &mut [Section]) {
    let mut taken: HashSet<String> = HashSet::new();
    for block in sections.iter_mut().flat_map(|section| &mut section.blocks) {
        let Block::Chart(chart) = block else { continue };
        chart.id = file_word(&chart.id);
        if taken.contains(&chart.id) {
            chart.id += &format!("-{}", taken.len());
        }
        taken.insert(chart.id.clone());
    }
}

/// The findings of all sections in one of their own, bad news first.
fn findings(sections: &mut [Section]) -> Section {
    let mut found: Vec<Finding> = Vec::new();
    for section in sections {
        section.blocks.retain_mut(|block| {
            let Block::Findings(findings) = block else { return true };
            found.append(findings);
            false
        });
    }
    found.sort_by_key(|finding| finding.tone);
    found.truncate(MOST_FINDINGS);
    Section::new("findings", "Findings").on_terminal().with([found])
}

/// The items with the smallest and with the largest value, and the values. `None` where no item has one.
fn ends<T: Copy>(items: impl IntoIterator<Item = T>, value: impl Fn(T) -> Option<f64>) -> Option<[(T, f64); 2]> {
    let mut known: Vec<(T, f64)> = items.into_iter().filter_map(|item| Some((item, value(item)?))).collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    Some([*known.first()?, *known.last()?])
}

fn headline(verdict: &Verdict) -> Headline {
    let (ended, said) = (words::headline::outcome(verdict), words::headline::of(verdict));
    Headline { outcome: verdict.verdict, exit_code: verdict.exit_code, ended, said }
}

/// A load run that is not to be used says so first; `None` for any other.
fn of_load(view: &View) -> Option<Headline> {
    let (outcome, why) = unusable(view)?;
    Some(Headline { outcome, exit_code: outcome.exit_code(), ended: outcome.words(), said: why.into() })
}
