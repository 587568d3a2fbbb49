//! Absolute limits of the team's own, met or missed.

use super::verdict::{case, ended};
use crate::inputs::Inputs;
use crate::model::{Cell, Finding, Missing, Rows, Section, Tone, Unit};
use crate::units;
use infergate_receipts::{Evidence, Metric, Outcome, TargetEvidence, TargetMetric, VerdictRow};

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let rows = inputs.verdict.as_ref()?.rows.iter();
    let targets =
        rows.filter_map(|row| if let Evidence::Target(target) = &row.evidence { Some((row, target)) } else { None });
    let targets: Vec<(&VerdictRow, &TargetEvidence)> = targets.collect();
    let (met, of) = (targets.iter().filter(|(row, _)| row.outcome == Outcome::Pass).count(), targets.len());
    let value = |value: fn(&TargetEvidence) -> Option<f64>| {
        move |(_, target): &(&VerdictRow, &TargetEvidence)| {
            let (unit, factor) = Unit::of_target(target.metric);
            Cell::number(value(target).map(|value| value * factor), unit, Missing::NotMeasured)
        }
    };
    let rows = Rows::of("targets", "", targets)
        .words("target", |(_, target)| Cell::foreign(&target.target.to_string()))
        .words("case", case)
        .words("figure", |(row, target)| match (target.metric, row.subject.case()) {
            (TargetMetric::CvPercent, Some(case)) => Metric::gated(case).short(),
            _ => "",
        })
        .numbers("limit", value(|target| Some(target.limit)))
        .numbers("achieved", value(|target| target.value));
    let tone = if met == of { Tone::Good } else { Tone::Bad };
    let finding = Finding::new(tone, format!("{met} of {} met", units::many(of, "target")));
    (of > 0).then(|| Section::new("targets", "Targets").with([ended(rows).folding()]).with([finding]))
}
