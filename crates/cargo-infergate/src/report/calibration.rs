//! What a calibration says, for a person.

use std::fmt::Write as _;

use super::table::{Style, Table};
use super::terminal;
use super::units::{self, MISSING, fine};
use crate::gate::paired::POWER_ASKED;
use crate::receipt::{Calibration, FalseAlarms, LiveGates, Share, Summary};

/// The calibration as text.
pub fn text(calibration: &Calibration, summary: &Summary) -> String {
    let Calibration { subject, threads, machine, .. } = calibration;
    let mut text = format!("\n{}\n\n", terminal::engine(&subject.engine, *threads, machine));
    text += &alarms(&summary.false_alarms);
    text += &noise(summary);
    text += &layout(summary);
    text += &power(summary);
    text += &found(summary);
    if calibration.partial {
        let _ = writeln!(text, "\n{} the calibration was cut short", Style::Warn.paint("partial:"));
    }
    text
}

fn alarms(alarms: &FalseAlarms) -> String {
    let mut text = format!(
        "false alarms (intervals and bounds of 95 %)\nby design, over the whole suite: at most {}\n",
        fine(alarms.design_level)
    );
    for (name, live) in [
        ("one file against itself", alarms.same_file),
        ("builds of different layout", alarms.separate_builds),
        ("layouts drawn block by block", alarms.drawn_layouts),
    ] {
        if live.gates > 0 {
            let _ = writeln!(text, "{}", live_line(name, &live));
        }
    }
    if let Some(resampled) = &alarms.resampled {
        let _ = writeln!(
            text,
            "resampled: {} of {} suites regressed, {} passed; drawn by whole gates from {}, so that the true shares may be up \
             to {} and down to {}",
            resampled.regressed,
            resampled.suites,
            resampled.passed,
            resampled.gates,
            fine(resampled.regressed_at_most),
            fine(resampled.passed_at_least)
        );
    }
    text
}

fn live_line(name: &str, live: &LiveGates) -> String {
    let interval =
        |share: Option<Share>| share.map_or_else(|| MISSING.into(), |s| format!("{} to {}", fine(s.low), fine(s.high)));
    let seconds = |name: &str, seconds: Option<f64>| {
        seconds.map_or_else(String::new, |seconds| format!(", {} {name}", units::duration(Some(seconds * 1e9))))
    };
    format!(
        "live, {name}: {} of {} settled gates regressed ({}), {} of {} passed ({}), median {} blocks{}{}",
        live.regressed,
        live.settled,
        interval(live.regressed_share),
        live.passed,
        live.gates,
        interval(live.passed_share),
        live.blocks.map_or_else(|| MISSING.into(), |blocks| format!("{blocks:.0}")),
        seconds("of timed work", live.timed_seconds),
        seconds("in all", live.wall_seconds)
    )
}

fn noise(summary: &Summary) -> String {
    if summary.noise.iter().all(|noise| noise.std.is_none()) {
        return String::new();
    }
    let mut table = Table::new(&["case", "blocks", "std", "of means"]);
    for noise in &summary.noise {
        let [std, mean_std] = [noise.std, noise.mean_std].map(|std| std.map_or_else(|| MISSING.into(), fine));
        table.plain_row(&[&noise.case.to_string(), &noise.blocks.to_string(), &std, &mean_std]);
    }
    format!(
        "\nnoise: standard deviation of a block's median ratio, and of its ratio of means, within a gate\n{}",
        table.render()
    )
}

fn layout(summary: &Summary) -> String {
    if summary.layout.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["case", "builds", "gates", "tau", "at most"]);
    for layout in &summary.layout {
        let at_most = layout.tau_at_most.map_or_else(|| MISSING.into(), fine);
        let (builds, gates) = (layout.builds.to_string(), layout.gates.to_string());
        table.plain_row(&[&layout.case.to_string(), &builds, &gates, &fine(layout.tau), &at_most]);
    }
    format!(
        "\nlayout: tau, the standard deviation of the difference between two builds that do the same, and its upper bound \
         (95 %)\n{}",
        table.render()
    )
}

fn power(summary: &Summary) -> String {
    if summary.power.is_empty() {
        return String::new();
    }
    let percent = (POWER_ASKED * 100.0).round();
    let mut table = Table::new(&["case", "slowdown", "interval (95 %)", "timed work", "of 5 %"]);
    for power in &summary.power {
        let ratio = |fraction: Option<f64>| fraction.map_or_else(|| MISSING.into(), units::signed_percent);
        let interval = format!("{} to {}", ratio(power.low), ratio(power.high));
        let seconds = |seconds: Option<f64>| units::duration(seconds.map(|seconds| seconds * 1e9));
        let (smallest, larger) = (seconds(power.timed_seconds), seconds(power.timed_seconds_at_5_percent));
        table.plain_row(&[&power.case.to_string(), &ratio(power.smallest), &interval, &smallest, &larger]);
    }
    format!(
        "\npower: the smallest slowdown called {percent:.0} times of 100, from unchanged live blocks shifted by it, and the timed \
         work of a suite with it, and with one of 5 %\n{}",
        table.render()
    )
}

fn found(summary: &Summary) -> String {
    if summary.found.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["case", "injected", "measured", "interval (95 %)", "blocks"]);
    for found in &summary.found {
        let measured = |of: fn(&Share) -> f64| {
            found.measured.as_ref().map_or_else(|| MISSING.into(), |share| units::signed_percent(of(share)))
        };
        let interval = format!("{} to {}", measured(|share| share.low), measured(|share| share.high));
        table.row(vec![
            (found.case.to_string(), Style::Plain),
            (units::signed_percent(found.slowdown), Style::Plain),
            (measured(|share| share.share), Style::Plain),
            (interval, Style::Plain),
            (found.rows.to_string(), Style::Dim),
        ]);
    }
    format!("\ncheck: slowdowns injected into head, and what was measured of them\n{}", table.render())
}
