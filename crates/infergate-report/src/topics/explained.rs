//! Which functions take the time of cases: what changed for sure, and a flame graph of each case.

use crate::inputs::Inputs;
use crate::model::{Axis, Block, Chart, Layer, Look, Marks, Section, Tone, Unit};
use crate::{units, words};
use infergate_core::case::Case;
use infergate_core::receipt::file_word;
use infergate_receipts::{Explained, ExplainedFrame};

/// Cases that are drawn.
const MOST_CASES: usize = 2;
/// Frames above each other that are drawn.
const MOST_DEPTH: usize = 14;

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let explained = &inputs.paired.as_ref()?.explained;
    let of_case = |case| [words::explained::title(case).into(), words::explained::lines(case).into()];
    Some(
        Section::new("explained", "Where the time goes")
            .with::<Block>(explained.iter().flat_map(of_case))
            .with(explained.iter().take(MOST_CASES).map(flame)),
    )
}

fn flame(case: &Explained) -> Chart {
    // Where the next frame of each depth begins.
    let mut begins = [0.0; MOST_DEPTH + 1];
    let mut layers = Vec::new();
    let mut deepest = 0;
    for frame in case.frames.iter().filter(|frame| frame.depth < MOST_DEPTH) {
        // What head does not call any more has its time in base.
        let took = if frame.time.head_ns > 0.0 { frame.time.head_ns } else { frame.time.base_ns };
        let from = begins[frame.depth];
        begins[frame.depth] = from + took;
        begins[frame.depth + 1] = from;
        if took > 0.0 {
            deepest = deepest.max(frame.depth);
            layers.push(span(case.id, frame, from, took));
        }
    }
    Chart {
        id: format!("flame-{}", file_word(&case.id.to_string())),
        title: format!("{}: where head takes its time", case.id),
        caption:
            "Processor time, all threads together. Each frame is above its caller. Coloured frames clearly changed."
                .into(),
        x: Axis::new("processor time", Unit::Ns).zero(),
        y: Axis::named("calls", vec![String::new(); deepest + 1]),
        layers,
    }
}

fn span(case: Case, frame: &ExplainedFrame, from: f64, took: f64) -> Layer {
    let (tone, name) = match (frame.time.is_sure(), frame.time.change_ns() > 0.0) {
        (true, true) => (Tone::Bad, "slower"),
        (true, false) => (Tone::Good, "faster"),
        (false, _) => (Tone::Dim, "not shown to differ"),
    };
    let short = frame.name.rsplit("::").next().unwrap_or(&frame.name);
    let hover = format!(
        "{}: {}, {}",
        frame.name,
        units::base_to_head(units::duration, frame.time.base_ns, frame.time.head_ns),
        words::explained::change(&frame.time, case)
    );
    let marks = Marks::Span { from, to: from + took, y: frame.depth as f64, label: short.into(), hover };
    Layer::new(name, Look::of(tone), marks)
}
