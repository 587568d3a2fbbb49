//! What `--target` names.

use std::env;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::ArgMatches;
use infergate::text_file::read_text;

use crate::cli::flags;
use crate::load::Target;
use crate::load::body::{Api, Wanted};
use crate::load::client::{Endpoint, Limits};
use crate::load::dial::Network;
use crate::load::endpoint::{Client, EndpointTarget};
use crate::load::url::Url;
use crate::receipt::TargetRecord;

/// A key is a line.
const MAX_KEY_BYTES: u64 = 64 << 10;

/// Opens the target, and connects to nothing yet.
///
/// # Errors
/// A URL that cannot be asked, a key that is not there.
pub fn open(matches: &ArgMatches, shared_prefix_tokens: u32) -> Result<Box<dyn Target>> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let api = if text("api") == Some("completions") { Api::Completions } else { Api::Chat };
    let url = Url::parse(text("target").unwrap_or_default(), api)?;
    let model = text("model").unwrap_or_default().to_owned();
    let wanted = Wanted {
        api,
        model: model.clone(),
        limit_field: if text("limit-field") == Some("max_tokens") { "max_tokens" } else { "max_completion_tokens" },
        ignore_eos: matches.get_flag("ignore-eos"),
        min_tokens: matches.get_flag("min-tokens"),
        usage: !matches.get_flag("no-usage"),
    };
    let time = |name: &str, usual: Duration| matches.get_one::<Duration>(name).copied().unwrap_or(usual);
    let usual = Limits::default();
    let limits = Limits {
        connect: time("connect-timeout", usual.connect),
        request: time("timeout", usual.request),
        attempts: matches.get_one("attempts").copied().unwrap_or(usual.attempts),
    };
    let extensions = [("ignore_eos", wanted.ignore_eos), ("min_tokens", wanted.min_tokens)];
    let record = TargetRecord::Endpoint {
        url: url.shown(),
        api: api.name().into(),
        model,
        http: "HTTP/1.1".into(),
        extensions: extensions.into_iter().filter(|(_, sent)| *sent).map(|(name, _)| name.to_owned()).collect(),
        shared_prefix_tokens,
    };
    let key = key(matches)?;
    let dial = Box::new(Network::new(&url)?);
    let endpoint = Endpoint::new(dial, &url.authority(), &url.path, key.as_deref(), wanted, limits)?;
    Ok(Box::new(EndpointTarget { client: Client::new(endpoint)?, record }))
}

/// The API key. It comes from where no other user of this machine sees it, and goes nowhere but into requests.
fn key(matches: &ArgMatches) -> Result<Option<String>> {
    let (key, place) = if let Some(name) = matches.get_one::<String>("api-key-env") {
        let key = env::var(name).ok().with_context(|| format!("--api-key-env: {name} is not set, or no text"))?;
        (key, name.clone())
    } else if let Some(path) = flags::path(matches, "api-key-file") {
        (key_in(&path)?, path.display().to_string())
    } else {
        return Ok(None);
    };
    let key = key.trim().to_owned();
    ensure!(!key.is_empty() && !key.contains(char::is_whitespace), "{place}: holds no API key; a key is one word");
    Ok(Some(key))
}

fn key_in(path: &Path) -> Result<String> {
    read_text(path, MAX_KEY_BYTES).context("the API key cannot be read")
}
