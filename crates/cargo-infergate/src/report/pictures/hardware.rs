//! How near each case comes to the hardware's limit, where the receipt has the work and the probes.

use crate::gate::{limit_fraction, summary_ns};
use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Chart, Layer, Look, Unit};

/// Bars of more cases than this cannot be read.
const MOST: usize = 40;

/// One chart of all cases.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(receipt) = &inputs.head else { return Vec::new() };
    let known = receipt.cases.iter().filter_map(|case| {
        let time_ns = summary_ns(&case.processes)?;
        let fraction = limit_fraction(case.work.as_ref(), receipt.probes.as_ref(), Some(time_ns))?;
        (fraction <= 1.0).then_some((case.id, time_ns, fraction))
    });
    let known: Vec<_> = known.take(MOST).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let layers = known.iter().rev().enumerate().map(|(at, (case, time_ns, fraction))| Layer::Span {
        name: String::new(),
        label: Unit::Fraction.show(*fraction),
        from: 0.0,
        to: *fraction,
        y: at as f64,
        hover: format!(
            "{case}: at least {} on this hardware, took {}",
            Unit::Ns.show(time_ns * fraction),
            Unit::Ns.show(*time_ns)
        ),
        look: Look::nth(0),
    });
    let whole = Layer::Limit {
        name: "hardware limit".into(),
        x: 1.0,
        y: None,
        hover: "what the probes measured on this machine".into(),
        look: Look::nth(5),
    };
    vec![Chart {
        id: "hardware".into(),
        title: "Share of the hardware's limit".into(),
        caption: "The least possible time / the measured one: bytes read while decoding at the probed memory bandwidth, floating \
                  point operations of the prompt at the probed matrix rate."
            .into(),
        x: Axis::new("share of the limit", Unit::Fraction).zero(),
        y: Axis::named("", known.iter().rev().map(|(case, ..)| case.to_string()).collect()),
        layers: layers.chain([whole]).collect(),
    }]
}
