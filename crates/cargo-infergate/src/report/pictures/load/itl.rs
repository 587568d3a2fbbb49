//! The gap between tokens over the number of users, with what feels instant, acceptable and sluggish.

use super::{left_out, lines};
use crate::receipt::Metric;
use crate::report::load::view::View;
use crate::report::load::{INSTANT_NS, SLUGGISH_NS};
use crate::report::model::{Axis, Chart, Layer, Look, Tone, Unit};

/// Gaps below this part of what feels instant stand on an axis of their own length.
const NEAR: f64 = 0.2;

/// One chart, where more than one load ran.
pub fn chart(view: &View<'_>) -> Option<Chart> {
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
    Some(Chart {
        id: "load-itl".into(),
        title: "Inter-token latency".into(),
        caption: format!(
            "The middle gap between two pieces of a stream, and how such a stream feels.{}",
            left_out(view)
        ),
        x: view.axis(),
        y: match largest {
            largest if largest < NEAR * INSTANT_NS => y,
            largest if largest < INSTANT_NS => y.including(INSTANT_NS),
            _ => y.including(SLUGGISH_NS),
        },
        layers: zones.into_iter().chain(lines).collect(),
    })
}
