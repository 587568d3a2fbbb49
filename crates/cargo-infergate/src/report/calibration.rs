//! What a calibration says, for a person.

use std::fmt::Write as _;

use super::table::{Style, Table};
use super::terminal;
use super::units::{self, MISSING};
use crate::gate::paired::{FalseAlarms, LiveGates, POWER_ASKED, Share, Summary};
use crate::receipt::Calibration;
use crate::stats::clopper_pearson;

/// The calibration as text.
pub fn text(calibration: &Calibration, summary: &Summary) -> String {
    let Calibration { subject, threads, machine, .. } = calibration;
    let alarms = &summary.false_alarms;
    let mut text = format!("\n{}\n\nfalse alarms\n", terminal::engine(&subject.engine, *threads, machine));
    let _ = writeln!(text, "by design, over the whole suite: at most {}", fine(alarms.design_level));
    for (name, live) in [("one file against itself", alarms.same_file), ("separate builds", alarms.separate_builds)] {
        if live.gates > 0 {
            let _ = writeln!(text, "{}", live_line(name, &live));
        }
    }
    if let Some(resampled) = &alarms.resampled {
        let _ = writeln!(
            text,
            "{} suites resampled from {} live blocks: {} regressed, {} passed",
            resampled.suites,
            resampled.rows,
            share(&resampled.regressed),
            share(&resampled.passed)
        );
    }
    if !summary.noise.is_empty() && summary.noise.iter().any(|noise| noise.std.is_some()) {
        text += "\nnoise: standard deviation of a block's median ratio\n";
        let mut table = Table::new(&["case", "blocks", "std"]);
        for noise in &summary.noise {
            let std = noise.std.map_or_else(|| MISSING.into(), fine);
            table.plain_row(&[&noise.case.to_string(), &noise.blocks.to_string(), &std]);
        }
        text += &table.render();
    }
    if !summary.found.is_empty() {
        let percent = (POWER_ASKED * 100.0).round();
        let _ = writeln!(text, "\nslowdowns called regressed (share of gates; {percent:.0} % is what counts as shown)");
        let mut table = Table::new(&["case", "injected", "measured", "blocks", "called"]);
        for found in &summary.found {
            table.row(vec![
                (found.case.to_string(), Style::Plain),
                (units::signed_percent(found.slowdown), Style::Plain),
                (found.measured.map_or_else(|| MISSING.into(), units::signed_percent), Style::Plain),
                (found.rows.to_string(), Style::Dim),
                (found.called.as_ref().map_or_else(|| format!("{MISSING} (takes 12)"), share), Style::Plain),
            ]);
        }
        text += &table.render();
    }
    if calibration.partial {
        let _ = writeln!(text, "\n{} the calibration was cut short", Style::Warn.paint("partial:"));
    }
    text
}

/// One sentence for a later gate on this machine class. `None` without gates.
pub fn quote(calibration: &Calibration, alarms: &FalseAlarms) -> Option<String> {
    let day = calibration.created.get(..10).unwrap_or(&calibration.created);
    let all = alarms.same_file.gates + alarms.separate_builds.gates;
    let regressed = alarms.same_file.regressed + alarms.separate_builds.regressed;
    // The upper end alone, at 95 %.
    let (_, high) = clopper_pearson(regressed, all, 0.90)?;
    let rest = match &alarms.resampled {
        Some(resampled) => format!(", and {} of resampled suites", share(&resampled.regressed)),
        None => String::new(),
    };
    Some(format!(
        "this gate's own error rate here, calibrated {day}: {regressed} of {all} gates between identical builds called \
         regressed (at most {} with 95 % confidence){rest}",
        fine(high)
    ))
}

fn live_line(name: &str, live: &LiveGates) -> String {
    let interval =
        |share: Option<Share>| share.map_or_else(|| MISSING.into(), |s| format!("{} to {}", fine(s.low), fine(s.high)));
    format!(
        "live, {name}: {} of {} gates regressed ({}), {} passed ({}), median {} blocks",
        live.regressed,
        live.gates,
        interval(live.regressed_share),
        live.passed,
        interval(live.passed_share),
        live.blocks.map_or_else(|| MISSING.into(), |blocks| format!("{blocks:.0}"))
    )
}

fn share(share: &Share) -> String {
    format!("{} ({} to {})", fine(share.share), fine(share.low), fine(share.high))
}

/// A percentage with the two digits that small shares need.
fn fine(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
