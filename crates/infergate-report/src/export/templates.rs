//! The files of `templates`. A name ends with the format of the file, and what it prints is escaped for that format.

use anyhow::{Context, Result};
use infergate_core::printable::printable;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, HtmlEscape, Value, escape_formatter};
use serde::Serialize;

use super::markup::{inline, prose, spans};

/// The template `source` of this name with these values. Only what is marked as safe is printed as it is.
pub fn render(name: &str, source: &str, values: impl Serialize) -> Result<String> {
    let fault = || format!("{name} cannot be made; this is a fault of infergate");
    let mut templates = Environment::new();
    templates.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().with_context(fault)?);
    templates.set_formatter(|out, state, value| {
        let text = value.as_str().filter(|_| !value.is_safe());
        let escaped = match (text, state.auto_escape()) {
            (None, _) => value.clone(),
            (Some(text), AutoEscape::None) => inline(text, false).into(),
            (Some(text), _) => printable(text).into_owned().into(),
        };
        escape_formatter(out, state, &escaped)
    });
    templates.add_filter("prose", |text: &str| Value::from_safe_string(prose(text)));
    templates.add_filter("marked", |text: &str| Value::from_safe_string(html(text)));
    templates.render_named_str(name, source, Serde(values)).with_context(fault)
}

/// A sentence with what stands between backticks as code.
fn html(text: &str) -> String {
    let part = |(is_code, text)| {
        let text = HtmlEscape(text);
        if is_code { format!("<code>{text}</code>") } else { text.to_string() }
    };
    spans(&printable(text)).into_iter().map(part).collect()
}
