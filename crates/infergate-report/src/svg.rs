//! Charts as SVG: text that any browser and viewer draws the same. Its colours can be told
//! apart with each kind of colour blindness, on light and on dark; shapes and dashes say the same where there is no colour.

mod axes;
mod marks;

use infergate_core::printable::printable_within;

use super::model::{Chart, Layer};
use super::units::trimmed;
use axes::Frame;

/// Width of every picture, px: its words can be read on a telephone, and two of them stand side by side on a desk.
const WIDTH: f64 = 560.0;

/// How pictures look, also inside a page that holds several.
pub const STYLE: &str = include_str!("../templates/chart.css");

/// Characters of a text in a picture.
const MAX_CHARS: usize = 640;
/// Size of the heading, px.
const TITLE_SIZE: f64 = 17.0;
/// Size of the words of the legend and of spans, px.
const SIZE: f64 = 14.0;
/// Height of a line of the legend, px.
const LEGEND_ROW: f64 = 24.0;
/// Left and right of whatever stands outside of the axes, px.
const MARGIN: f64 = 14.0;
/// Room for words, px.
const WORDS_WIDTH: f64 = WIDTH - 2.0 * MARGIN;
/// Width of a character in the mean, as a part of the font's size.
const CHAR_WIDTH: f64 = 0.56;

/// A picture that stands alone: with its style.
pub fn file(chart: &Chart) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", draw(chart, &format!("<style>{STYLE}</style>\n")))
}

/// A part of a page that has [`STYLE`] already.
pub fn inline(chart: &Chart) -> String {
    draw(chart, "")
}

fn draw(chart: &Chart, style: &str) -> String {
    let (legend, top) = legend(chart);
    let frame = Frame::of(chart, top);
    let height = px(frame.height);
    let (id, title) = (&chart.id, escape(&chart.title));
    let about = escape(&chart.caption);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ig\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-about\">\n<title id=\"{id}-title\">{title}</title>\n\
         <desc id=\"{id}-about\">{about}</desc>\n{style}<rect class=\"ig-paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n"
    );
    svg += &text("ig-title", MARGIN, 28.0, &cut(&chart.title, WORDS_WIDTH, TITLE_SIZE));
    svg += &legend;
    svg += &frame.draw(chart);
    svg.extend(chart.layers.iter().map(|layer| marks::draw(layer, &|x, y| (frame.x(x), frame.y(y)))));
    svg + "</svg>\n"
}

/// What each kind of mark means, in rows below the heading, and where these end, px.
fn legend(chart: &Chart) -> (String, f64) {
    let mut named: Vec<&Layer> = Vec::new();
    for layer in &chart.layers {
        if !layer.name.is_empty() && named.iter().all(|known| known.name != layer.name) {
            named.push(layer);
        }
    }
    let (mut svg, mut x, mut y) = (String::new(), MARGIN, 54.0);
    for layer in &named {
        let width = width_of(&layer.name, SIZE) + 52.0;
        if x + width > WIDTH && x > MARGIN {
            (x, y) = (MARGIN, y + LEGEND_ROW);
        }
        svg += &marks::symbol(layer, x, y - 5.0);
        svg += &text("ig-legend", x + 32.0, y, &cut(&layer.name, WORDS_WIDTH - 32.0, SIZE));
        x += width;
    }
    (svg, if named.is_empty() { 44.0 } else { y + 14.0 })
}

/// An outline, and the words that are shown where somebody points at it.
fn path(class: &str, outline: &str, hover: &str) -> String {
    let title = if hover.is_empty() { String::new() } else { format!("<title>{}</title>", escape(hover)) };
    format!("<path class=\"{class}\" d=\"{outline}\">{title}</path>\n")
}

/// Words of anybody.
fn text(class: &str, x: f64, y: f64, words: &str) -> String {
    format!("<text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>\n", px(x), px(y), escape(words))
}

/// A coordinate with one digit behind the point: files stay small and comparable.
fn px(value: f64) -> String {
    trimmed(&format!("{value:.1}")).into()
}

/// Words cut to a width in px at a font size.
fn cut(words: &str, width: f64, size: f64) -> String {
    printable_within(words, (width / (size * CHAR_WIDTH)).max(1.0) as usize).into_owned()
}

/// One printable line, cut where it is too long.
fn escape(words: &str) -> String {
    let words = printable_within(words, MAX_CHARS);
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

/// How wide `words` are about, px, at a font size: no font is asked, so that every machine draws the same.
fn width_of(words: &str, size: f64) -> f64 {
    words.chars().count() as f64 * size * CHAR_WIDTH
}
