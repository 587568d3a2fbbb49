//! Charts as SVG: text that any browser and viewer draws the same. Its colours can be told
//! apart with each kind of colour blindness, on light and on dark; shapes and dashes say the same where there is no colour.

mod frame;
mod legend;
mod marks;
mod ticks;

use std::fmt::Write as _;

use infergate_core::printable::printable_within;

use super::model::Chart;
use frame::Frame;

/// Width of every picture, px: its words can be read on a telephone, and two of them stand side by side on a desk.
pub const WIDTH: f64 = 560.0;

/// How pictures look, also inside a page that holds several.
pub const STYLE: &str = include_str!("../templates/chart.css");

/// Characters of a text in a picture.
const MAX_CHARS: usize = 160;
/// Size of the heading, px.
const TITLE_SIZE: f64 = 17.0;
/// Size and height of a line of the caption, px.
const CAPTION_SIZE: f64 = 14.0;
const CAPTION_ROW: f64 = 19.0;
/// Left and right of whatever stands outside of the axes, px.
const MARGIN: f64 = 14.0;

/// A picture that stands alone: with its style, and its caption below it.
pub fn file(chart: &Chart) -> String {
    let style = format!("<style>{STYLE}</style>\n");
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", draw(chart, &style, &lines(&chart.caption)))
}

/// A part of a page that has [`STYLE`] already, and says the caption itself.
pub fn inline(chart: &Chart) -> String {
    draw(chart, "", &[])
}

fn draw(chart: &Chart, style: &str, caption: &[String]) -> String {
    let (legend, legend_height) = legend::draw(chart);
    let frame = Frame::of(chart, legend_height);
    let height = px(frame.height + caption.len() as f64 * CAPTION_ROW);
    let id = &chart.id;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ig\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-about\">\n<title id=\"{id}-title\">{title}</title>\n\
         <desc id=\"{id}-about\">{about}</desc>\n{style}",
        title = text(&chart.title),
        about = escape(&printable_within(&chart.caption, 4 * MAX_CHARS)),
    );
    let _ = writeln!(svg, "<rect class=\"ig-paper\" width=\"{WIDTH}\" height=\"{height}\"/>");
    let heading = fitting(&chart.title, WIDTH - 2.0 * MARGIN, TITLE_SIZE);
    let _ = writeln!(svg, "<text class=\"ig-title\" x=\"{MARGIN}\" y=\"28\">{heading}</text>");
    svg += &legend;
    svg += &marks::zones(chart, &frame);
    svg += &frame.draw(chart);
    for layer in &chart.layers {
        svg += &marks::draw(layer, chart, &frame);
    }
    for (at, line) in caption.iter().enumerate() {
        let y = px(frame.height + (at as f64 + 0.5) * CAPTION_ROW);
        let _ = writeln!(svg, "<text class=\"ig-legend\" x=\"{MARGIN}\" y=\"{y}\">{}</text>", escape(line));
    }
    svg + "</svg>\n"
}

/// A caption in lines that fit into a picture.
fn lines(caption: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in printable_within(caption, 4 * MAX_CHARS).split(' ') {
        let line = &lines[lines.len() - 1];
        if !line.is_empty() && width_of(line, CAPTION_SIZE) + width_of(word, CAPTION_SIZE) > WIDTH - 2.0 * MARGIN {
            lines.push(String::new());
        }
        let last = lines.len() - 1;
        let gap = if lines[last].is_empty() { "" } else { " " };
        lines[last] += &format!("{gap}{word}");
    }
    lines
}

/// A coordinate with one digit behind the point: files stay small and comparable.
fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Words of anybody, as the text of an element: one printable line, cut where it is too long.
fn text(words: &str) -> String {
    escape(&printable_within(words, MAX_CHARS))
}

/// As [`text`], cut to a width in px at a font size.
fn fitting(words: &str, width: f64, size: f64) -> String {
    let chars = (width / (size * CHAR_WIDTH)).max(1.0) as usize;
    escape(&printable_within(words, chars.min(MAX_CHARS)))
}

fn escape(words: &str) -> String {
    let mut escaped = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Width of a character in the mean, as a part of the font's size.
const CHAR_WIDTH: f64 = 0.56;

/// How wide `words` are about, px, at a font size: no font is asked, so that every machine draws the same.
fn width_of(words: &str, size: f64) -> f64 {
    words.chars().count() as f64 * size * CHAR_WIDTH
}
