//! What one user's stream is like as more users share the engine: how many tokens a second, and how even it is.

use super::{charted, ends, left_out, lines, quartiles, worded};
use crate::inputs::Inputs;
use crate::load::{INSTANT_NS, Metric, Rank, SLUGGISH_NS, View, has_p99, percentile_cell, smoothness};
use crate::model::{Axis, Cell, Chart, Column, Finding, Layer, Look, Missing, Section, Tone, Unit};

const ABOUT_SPEED: &str = "Tokens a second that each user receives once the first one is there (1 / TPOT), as more users share the \
                           server.";
const ABOUT_ITL: &str = "The gap between two pieces of a stream, every one counted. Under 20 ms a stream feels instant, from 20 to 70 ms \
                         acceptable, above 70 ms sluggish.";
/// Tokens a second that people read: 200 to 300 words a minute.
const READING_TOKENS_PER_S: (f64, f64) = (4.0, 7.0);
/// Gaps below this part of what feels instant stand on an axis of their own length.
const NEAR: f64 = 0.2;

/// A line a level of decode speed, and what follows.
pub fn decode_speed(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let own = vec![
        Column::numbers("p25", "P25"),
        Column::numbers("p50", "P50"),
        Column::numbers("p75", "P75"),
        Column::words("reading", "for a reader").about("people read 4 to 7 tokens a second"),
    ];
    let table = view.table("levels", "", own, |point| {
        let [p25, p50, p75] =
            [Rank::P25, Rank::P50, Rank::P75].map(|rank| percentile_cell(point, Metric::DecodeSpeed, rank));
        let reading = worded(&p50, reading);
        vec![p25, p50, p75, reading]
    });
    let section = Section::new("load_decode", "Decode speed of each user").with([ABOUT_SPEED]).with([table]);
    Some(section.with(speeds(&view)).with(speed_chart(&view)))
}

/// What a reader makes of a decode speed.
fn reading(tokens_per_s: f64) -> &'static str {
    let (slow, fast) = READING_TOKENS_PER_S;
    match tokens_per_s {
        speed if speed < slow => "slower than reading",
        speed if speed <= fast => "as fast as reading",
        _ => "faster than reading",
    }
}

fn speeds(view: &View<'_>) -> Option<Finding> {
    let [(slow, least), (fast, most)] = ends(&charted(view), |point| point.spread(Metric::DecodeSpeed).p50)?;
    let (slow, fast) = (view.place_name(slow), view.place_name(fast));
    let show = |value| Unit::TokensPerS.show(value);
    let said = if fast == slow {
        format!("The middle decode speed of a user is {} ({fast}): {}", show(most), reading(most))
    } else {
        format!(
            "The middle decode speed of a user is from {} ({fast}) down to {} ({slow}): {} at the slowest",
            show(most),
            show(least),
            reading(least)
        )
    };
    let tone = if least < READING_TOKENS_PER_S.0 { Tone::Warn } else { Tone::Plain };
    Some(Finding::new(tone, said))
}

/// Decode speed over the number of users with the speed at which people read, where more than one load ran.
fn speed_chart(view: &View<'_>) -> Option<Chart> {
    let metric = Metric::DecodeSpeed;
    let lines = lines(view, Unit::of(metric), |point| point.spread(metric).p50);
    if lines.is_empty() {
        return None;
    }
    let (slow, fast) = READING_TOKENS_PER_S;
    let name = format!("reading speed, {slow:.0} to {fast:.0} tokens/s");
    let mut layers = vec![Layer::Zone { name, from: slow, to: fast, look: Look::ink() }];
    if let [series] = view.series()[..] {
        layers.extend(quartiles(view, series, metric, "P25 to P75".into(), Look::nth(0)));
    }
    layers.extend(lines);
    Some(Chart {
        id: "load-decode-speed".into(),
        title: "Decode speed of each user".into(),
        caption: format!(
            "Median tokens a second that one user receives. People read {slow:.0} to {fast:.0} tokens a second: above it a faster \
             stream is no gain for a reader.{}",
            left_out(view)
        ),
        x: view.axis(),
        y: Axis::new("decode speed", Unit::of(metric)).zero().including(fast),
        layers,
    })
}

/// A line a level of ITL, and what follows.
pub fn itl(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let with_p99 = has_p99(&view, Metric::Itl);
    let p99 = with_p99.then(|| Column::numbers("p99", "P99"));
    let own = vec![
        Column::words("feels", "feels").about("by the P50"),
        Column::numbers("instant", "instant").about("the part of gaps under 20 ms"),
        Column::numbers("acceptable", "acceptable").about("from 20 to 70 ms"),
        Column::numbers("sluggish", "sluggish").about("above 70 ms"),
    ];
    let middle = vec![
        Column::numbers("mean", "mean").about("of all gaps of requests that completed"),
        Column::numbers("p50", "P50"),
    ];
    let own = [middle, p99.into_iter().collect(), own].concat();
    let table = view.table("levels", "", own, |point| {
        let p50 = percentile_cell(point, Metric::Itl, Rank::P50);
        let feels = worded(&p50, smoothness);
        let why = if point.window.is_none() { Missing::NoWindow } else { Missing::Undefined };
        let mut cells = vec![Cell::number(point.mean_itl_ns, Unit::Ns, why), p50];
        cells.extend(with_p99.then(|| percentile_cell(point, Metric::Itl, Rank::P99)));
        cells.push(feels);
        cells.extend(
            [0, 1, 2].map(|class| Cell::number(point.smoothness.map(|shares| shares[class]), Unit::Fraction, why)),
        );
        cells
    });
    Some(Section::new("load_itl", "Inter-token latency").with([ABOUT_ITL]).with([table]).with(gaps(&view)))
}

fn gaps(view: &View<'_>) -> Option<Finding> {
    let [(smooth, least), (rough, most)] = ends(&charted(view), |point| point.spread(Metric::Itl).p50)?;
    let (smooth, rough) = (view.place_name(smooth), view.place_name(rough));
    let show = |value| Unit::Ns.show(value);
    let said = if smooth == rough {
        format!("The middle gap is {} ({smooth}): {}", show(least), smoothness(least))
    } else {
        format!(
            "The middle gap is from {} ({smooth}: {}) up to {} ({rough}: {})",
            show(least),
            smoothness(least),
            show(most),
            smoothness(most)
        )
    };
    let tone = if most > SLUGGISH_NS { Tone::Warn } else { Tone::Plain };
    Some(Finding::new(tone, said))
}

/// The gap between tokens over the number of users, with what feels instant, acceptable and sluggish; where more than one load ran.
pub fn itl_chart(view: &View<'_>) -> Option<Chart> {
    let metric = Metric::Itl;
    let lines = lines(view, Unit::of(metric), |point| point.spread(metric).p50);
    if lines.is_empty() {
        return None;
    }
    let zone = |name: &str, from, to, tone| Layer::Zone { name: name.into(), from, to, look: Look::of(tone) };
    let zones = [
        zone("instant, under 20 ms", 0.0, INSTANT_NS, Tone::Good),
        zone("acceptable, 20 to 70 ms", INSTANT_NS, SLUGGISH_NS, Tone::Warn),
        zone("sluggish, above 70 ms", SLUGGISH_NS, f64::INFINITY, Tone::Bad),
    ];
    let largest =
        view.digest.points.iter().filter_map(|point| point.spread(metric).p50).reduce(f64::max).unwrap_or(0.0);
    let y = Axis::new("ITL", Unit::of(metric)).zero();
    let said = "The middle gap between two pieces of a stream, and how such a stream feels.";
    Some(Chart {
        id: "load-itl".into(),
        title: "Inter-token latency".into(),
        caption: format!("{said}{}", left_out(view)),
        x: view.axis(),
        y: match largest {
            largest if largest < NEAR * INSTANT_NS => y,
            largest if largest < INSTANT_NS => y.including(INSTANT_NS),
            _ => y.including(SLUGGISH_NS),
        },
        layers: zones.into_iter().chain(lines).collect(),
    })
}
