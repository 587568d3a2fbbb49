//! What a calibration says, for a person.

use std::fmt::Write as _;

use super::model::{Cell, Rows, Unit};
use super::terminal;
use super::units::{self, MISSING, percent};
use infergate_receipts::{Calibration, LiveGates, Share, Summary};

pub fn text(calibration: &Calibration, summary: &Summary) -> String {
    let Calibration { subject, threads, machine, .. } = calibration;
    let mut text = format!("\n{}\n\n", crate::words::subject::engine(&subject.engine, *threads, machine));
    text += &alarms(summary);
    text += &noise(summary);
    text
}

fn alarms(alarms: &Summary) -> String {
    let mut text = format!(
        "false failures (intervals and bounds of 95 %)\nby design, over the whole suite: at most {}\n",
        percent(alarms.design_level)
    );
    for (name, live) in
        [("one file against itself", alarms.same_file), ("two builds that do the same", alarms.separate_builds)]
    {
        if live.gates > 0 {
            let _ = writeln!(text, "{}", live_line(name, &live));
        }
    }
    text
}

fn live_line(name: &str, live: &LiveGates) -> String {
    let interval = |share: Option<Share>| {
        share.map_or_else(|| MISSING.into(), |s| format!("{} to {}", percent(s.low), percent(s.high)))
    };
    let seconds = |name: &str, seconds: Option<f64>| {
        seconds.map_or_else(String::new, |seconds| format!(", {} {name}", units::duration(seconds * 1e9)))
    };
    format!(
        "measured, {name}: {} of {} decided gates regressed ({}), {} of {} passed ({}), {} inconclusive, median {} blocks{}{}",
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
        .words("case", "case", |(noise, _)| noise.case.to_string())
        .numbers("blocks", "blocks", |(noise, _)| noise.blocks)
        .numbers("std", "std", |(noise, _)| Cell::of(noise.std, Unit::Fraction))
        .numbers("mean_std", "of means", |(noise, _)| Cell::of(noise.mean_std, Unit::Fraction))
        .numbers("shows_from", "shows from", |(_, smallest)| Cell::of(smallest.map(|ratio| ratio - 1.0), Unit::Change))
        .table();
    format!(
        "\nnoise: standard deviation of a block's median and mean, and the smallest slowdown found 19 times out of 20\n{}",
        terminal::table(&table)
    )
}
