//! The marks of a layer.

use super::{SIZE, path, px, text, width_of};
use crate::model::{Layer, Look, Marks, Place, Shape, Stretch};

/// Half the height of a span, px.
const HALF_SPAN: f64 = 13.0;
/// More points than this are drawn smaller, so that they do not hide each other.
const MANY: usize = 60;

/// A place of the axes in the picture, px from the left and from the top.
pub type ToPx<'a> = &'a dyn Fn(f64, f64) -> (f64, f64);

pub fn draw(layer: &Layer, to_px: ToPx<'_>) -> String {
    let look = layer.look;
    match &layer.marks {
        Marks::Line(places) => line(layer, places, to_px),
        Marks::MarkedLine(places) => line(layer, places, to_px) + &points(places, look, to_px),
        Marks::Points(places) => points(places, look, to_px),
        Marks::Area(stretches) => {
            let upper = stretches.iter().map(|stretch| to_px(stretch.x, stretch.high));
            let lower = stretches.iter().rev().map(|stretch| to_px(stretch.x, stretch.low));
            path(&format!("ig-area ig-c{}", look.colour), &(outline(upper.chain(lower)) + "Z"), &layer.name)
        }
        Marks::Span { from, to, y, label, hover } => {
            let ((left, y), (right, _)) = (to_px(*from, *y), to_px(*to, *y));
            let width = (right - left).max(1.0);
            let corners = [(left, -1.0), (left + width, -1.0), (left + width, 1.0), (left, 1.0)];
            let bar = outline(corners.map(|(x, side)| (x, y + side * HALF_SPAN))) + "Z";
            let svg = path(&format!("ig-span ig-c{}", look.colour), &bar, hover);
            let fits = width_of(label, SIZE) + 12.0 <= width && !label.is_empty();
            if fits { svg + &text("ig-span-label", left + 7.0, y + 5.0, label) } else { svg }
        }
    }
}

/// What the legend shows of a layer: the same marks around a place of the picture, 24 px wide.
pub fn symbol(layer: &Layer, x: f64, y: f64) -> String {
    let place = |right: f64| Place::new(x + right, y, "");
    let line = Marks::Line(vec![place(0.0), place(24.0)]);
    let middle = vec![place(12.0)];
    let marks = match &layer.marks {
        Marks::Line(_) => vec![line],
        Marks::MarkedLine(_) => vec![line, Marks::Points(middle)],
        Marks::Points(_) => vec![Marks::Points(middle)],
        Marks::Area(_) | Marks::Span { .. } => {
            vec![Marks::Area([x, x + 24.0].map(|x| Stretch { x, low: y + 7.0, high: y - 7.0 }).into())]
        }
    };
    marks.into_iter().map(|marks| draw(&Layer::new("", layer.look, marks), &|x, y| (x, y))).collect()
}

fn line(layer: &Layer, places: &[Place], to_px: ToPx<'_>) -> String {
    let dashed = if layer.look.dashed { " ig-dashed" } else { "" };
    let class = format!("ig-line ig-c{}{dashed}", layer.look.colour);
    path(&class, &outline(places.iter().map(|place| to_px(place.x, place.y))), &layer.name)
}

fn points(places: &[Place], look: Look, to_px: ToPx<'_>) -> String {
    let size = if places.len() > MANY { 2.7 } else { 4.5 };
    let point = |place: &Place| {
        let shape = shape(look.shape, to_px(place.x, place.y), size);
        path(&format!("ig-mark ig-c{}", look.colour), &shape, &place.hover)
    };
    places.iter().map(point).collect()
}

/// From place to place of the picture.
fn outline(places: impl IntoIterator<Item = (f64, f64)>) -> String {
    let steps = places.into_iter().enumerate();
    steps.map(|(at, (x, y))| format!("{}{} {}", if at == 0 { "M" } else { "L" }, px(x), px(y))).collect()
}

/// The outline of a shape around a place.
fn shape(shape: Shape, (x, y): (f64, f64), size: f64) -> String {
    let around =
        |corners: &[(f64, f64)]| outline(corners.iter().map(|(right, down)| (x + right * size, y + down * size))) + "Z";
    match shape {
        Shape::Circle => {
            let (begin, radius, across) = (outline([(x - size, y)]), px(size), px(2.0 * size));
            format!("{begin}a{radius} {radius} 0 1 0 {across} 0a{radius} {radius} 0 1 0 -{across} 0Z")
        }
        Shape::Square => around(&[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]),
        Shape::Diamond => around(&[(0.0, -1.5), (1.5, 0.0), (0.0, 1.5), (-1.5, 0.0)]),
        Shape::Triangle => around(&[(0.0, -1.2), (1.2, 1.2), (-1.2, 1.2)]),
    }
}
