//! `[[accept]]` of infergate.toml: the changes that head declares as intended.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use serde::Deserialize;

use infergate_receipts::{Accept, UpTo, validate_accepts};

/// The tables; the file's other keys are read elsewhere.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    accept: Vec<toml::Spanned<Table>>,
}

/// One of them. A misspelt key would be a limit that nobody meant.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    case: String,
    metric: String,
    up_to: Option<UpTo>,
    reason: String,
}

/// The line of `text` in which this byte is.
pub fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Those in `text`, which stands in the file `path`.
pub fn accepts(path: &Path, text: &str) -> Result<Vec<Accept>> {
    let place = |offset| format!("{}:{}: accept", path.display(), line_at(text, offset));
    let file: File = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        anyhow!("{}: {}", place(offset), error.message().lines().next().unwrap_or_default())
    })?;
    let accept = |table: toml::Spanned<Table>| {
        let offset = table.span().start;
        let Table { case, metric, up_to, reason } = table.into_inner();
        let case = case.parse().with_context(|| format!("case '{case}'"));
        let accept = case.map(|case| Accept { case, metric, up_to, reason: reason.trim().to_owned() });
        accept.and_then(|accept| accept.validate().map(|()| accept)).with_context(|| place(offset))
    };
    let accepts = file.accept.into_iter().map(accept).collect::<Result<Vec<Accept>>>()?;
    validate_accepts(&accepts).with_context(|| format!("{}: accept", path.display()))?;
    Ok(accepts)
}
