//! Which functions take the time of cases: what changed for sure, and both sides as flame graphs.

use crate::inputs::Inputs;
use crate::model::{Axis, Cell, Chart, Column, Layer, Look, Marks, Missing, Section, Table, Tone, Unit};
use crate::{units, words};
use infergate_core::receipt::file_word;
use infergate_receipts::{Explained, ExplainedFrame, Moved, Side};

/// Cases that are drawn.
const MOST_CASES: usize = 2;
/// Frames above each other that are drawn.
const MOST_DEPTH: usize = 14;

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let paired = inputs.paired.as_ref()?;
    let explained = &paired.explained;
    if explained.is_empty() {
        return None;
    }
    let columns = vec![
        Column::words("case", "case"),
        Column::words("function", "function"),
        Column::numbers("base", "base").about("processor time of an iteration, with what it calls that did not change"),
        Column::numbers("head", "head"),
        Column::words("change", "change (95 %)"),
        Column::words("place", "line whose time moved most"),
    ];
    let mut table = Table::new("functions", "", columns);
    for case in explained {
        case.functions.iter().for_each(|function| {
            table.row(vec![
                Cell::text(case.id.to_string()),
                Cell::foreign(&function.name),
                Cell::number(Some(function.time.base_ns), Unit::Ns, Missing::NotMeasured),
                Cell::number(Some(function.time.head_ns), Unit::Ns, Missing::NotMeasured),
                Cell::text(words::explained::change(&function.time)),
                function.place.as_deref().map_or(Cell::Missing(Missing::NotMeasured), Cell::foreign),
            ]);
        });
    }
    let said = explained.iter().flat_map(|case| {
        let id = case.id.to_string();
        let lines = words::explained::heading(case).into_iter().chain(words::explained::lines(case));
        lines.map(move |line| format!("{id}: {line}")).collect::<Vec<_>>()
    });
    let charts =
        explained.iter().take(MOST_CASES).flat_map(|case| [Side::Base, Side::Head].map(|side| flame(case, side)));
    Some(Section::new("explained", "Where the time goes").with([said.collect::<Vec<_>>()]).with([table]).with(charts))
}

fn flame(case: &Explained, side: Side) -> Chart {
    let ns = |time: &Moved| if side == Side::Base { time.base_ns } else { time.head_ns };
    // Where the next frame of each depth begins.
    let mut begins = [0.0; MOST_DEPTH + 1];
    let mut layers = Vec::new();
    let mut deepest = 0;
    for frame in case.frames.iter().filter(|frame| frame.depth < MOST_DEPTH) {
        let (from, took) = (begins[frame.depth], ns(&frame.time));
        begins[frame.depth] = from + took;
        begins[frame.depth + 1] = from;
        if took > 0.0 {
            deepest = deepest.max(frame.depth);
            layers.push(span(frame, from, took));
        }
    }
    let name = side.name();
    let first = case.frames.first().map(|frame| frame.time.base_ns.max(frame.time.head_ns));
    let widest = first.unwrap_or(0.0);
    Chart {
        id: format!("flame-{name}-{}", file_word(&case.id.to_string())),
        title: format!("{}: where {name} takes its time", case.id),
        caption: "Processor time of an iteration. A frame lies on the one that calls it. Coloured is what changed for sure, grey is the \
                  rest."
            .into(),
        // Both pictures have one scale.
        x: Axis { includes: Some(widest), ..Axis::new("processor time", Unit::Ns).zero() },
        y: Axis::named("calls", vec![String::new(); deepest + 1]),
        layers,
    }
}

fn span(frame: &ExplainedFrame, from: f64, took: f64) -> Layer {
    let tone = match (frame.time.is_sure(), frame.time.change_ns() > 0.0) {
        (true, true) => Tone::Bad,
        (true, false) => Tone::Good,
        (false, _) => Tone::Dim,
    };
    let name = match tone {
        Tone::Bad => "slower",
        Tone::Good => "faster",
        _ => "not shown to differ",
    };
    let short = frame.name.rsplit("::").next().unwrap_or(&frame.name);
    let hover = format!(
        "{}: {} to {}, {}",
        frame.name,
        units::duration(Some(frame.time.base_ns)),
        units::duration(Some(frame.time.head_ns)),
        words::explained::change(&frame.time)
    );
    let marks = Marks::Span { from, to: from + took, y: frame.depth as f64, label: short.into(), hover };
    Layer::new(name, Look::of(tone), marks)
}
