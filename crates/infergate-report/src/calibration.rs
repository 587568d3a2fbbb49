//! What a calibration says, for a person.

use super::model::{Cell, Rows, Unit};
use super::units::{self, MISSING, percent};
use super::{terminal, words};
use infergate_receipts::{Calibration, LiveGates, Share, Summary};

pub fn text(calibration: &Calibration, summary: &Summary) -> String {
    let Calibration { subject, threads, machine, .. } = calibration;
    let subject = words::subject::engine(&subject.engine, *threads, machine);
    let kinds =
        [("one file against itself", &summary.same_file), ("two builds that do the same", &summary.separate_builds)];
    let measured = kinds.into_iter().filter(|(_, live)| live.gates > 0).map(|(name, live)| live_line(name, live));
    let (design, measured) = (words::by_design(), measured.collect::<String>());
    let noise = noise(summary);
    format!("\n{subject}\n\nfalse failures (intervals and bounds of 95 %)\n{design}\n{measured}{noise}")
}

fn live_line(name: &str, live: &LiveGates) -> String {
    let interval = |share: Option<Share>| {
        share.map_or_else(|| MISSING.into(), |s| format!("{} to {}", percent(s.low), percent(s.high)))
    };
    let seconds = |name: &str, seconds: Option<f64>| {
        seconds.map_or_else(String::new, |seconds| format!(", {} {name}", units::duration(seconds * 1e9)))
    };
    format!(
        "measured, {name}: {} of {} decided gates regressed ({}), {} of {} passed ({}), {} inconclusive, median {} blocks{}{}\n",
        live.regressed,
        live.settled,
        interval(live.regressed_share),
        live.passed,
        live.gates,
        interval(live.passed_share),
        live.gates - live.settled,
        live.blocks.map_or_else(|| MISSING.into(), |blocks| format!("{blocks:.0}")),
        seconds("of timed work", live.timed_seconds),
        seconds("in all", live.wall_seconds)
    )
}

fn noise(summary: &Summary) -> String {
    if summary.noise.iter().all(|noise| noise.std.is_none()) {
        return String::new();
    }
    let table = Rows::of("noise", "", summary.noise.iter().zip(&summary.smallest_called))
        .words("case", |(noise, _)| noise.case.to_string())
        .numbers("blocks", |(noise, _)| noise.blocks)
        .numbers("std", |(noise, _)| Cell::of(noise.std, Unit::Fraction))
        .titled_numbers("mean_std", "of means", |(noise, _)| Cell::of(noise.mean_std, Unit::Fraction))
        .titled_numbers("shows_from", "shows from", |(_, smallest)| {
            Cell::of(smallest.map(|ratio| ratio - 1.0), Unit::Change)
        })
        .table();
    format!(
        "\nnoise: standard deviation of a block's median and mean, and the smallest slowdown found 19 times out of 20\n{}",
        terminal::table(&table)
    )
}
