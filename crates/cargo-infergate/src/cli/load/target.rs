//! What `--target` names.

use std::env;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result, ensure};
use infergate_core::engine::LoadRequest;
use infergate_core::text_file::read_text;

use super::flags::{self, Load};
use crate::cli::{bench_target, early};
use crate::paired::{Program, ensure_not};
use infergate_load::api::body::Wanted;
use infergate_load::api::text::Room;
use infergate_load::api::tokenizer::Tokenizer;
use infergate_load::client::dial::Network;
use infergate_load::client::endpoint::{Client, EndpointTarget};
use infergate_load::client::request::{Endpoint, Limits};
use infergate_load::client::url::Url;
use infergate_load::target::Target;
use infergate_load::target::local::LocalTarget;
use infergate_receipts::{MAX_TARGETS, Price, TargetRecord};

/// A key is a line.
const MAX_KEY_BYTES: u64 = 64 << 10;

/// One `--target`.
pub struct Named {
    /// Empty where it is the only one and has none.
    name: String,
    url: String,
}

/// Each `--target`, with its name.
pub fn named(texts: &[String]) -> Result<Vec<Named>> {
    ensure!(texts.len() <= MAX_TARGETS, "--target: at most {MAX_TARGETS} are asked in turn");
    let mut targets: Vec<Named> = Vec::new();
    for text in texts {
        let (name, url) = match text.split_once('=') {
            Some((name, url)) if !name.contains([':', '/']) => (name.to_owned(), url),
            _ => (String::new(), text.as_str()),
        };
        ensure!(
            texts.len() == 1 || !name.is_empty(),
            "--target: several are told apart by names; write NAME=URL for each"
        );
        ensure!(
            targets.iter().all(|other| other.name != name),
            "--target: two are named {name}; give each its own name"
        );
        targets.push(Named { name, url: url.to_owned() });
    }
    Ok(targets)
}

/// Opens the targets, and connects to nothing yet.
pub fn open<'a>(asked: &Load, targets: Vec<Named>, cancelled: &'a AtomicBool) -> Result<Box<dyn Target + 'a>> {
    if let Some(spec) = targets.iter().find_map(Named::local) {
        ensure!(targets.len() == 1, "--target: a local engine is measured alone; leave out the other targets");
        ensure!(
            asked.target.tokenizer.is_none(),
            "--tokenizer: a local engine's tokens are known one by one; leave it out"
        );
        return Ok(Box::new(local(asked, spec, cancelled)?));
    }
    let flags = &asked.target;
    let several = targets.len() > 1;
    let (mut endpoints, mut records) = (Vec::new(), Vec::new());
    for target in &targets {
        let others = || targets.iter().filter(|other| other.name != target.name);
        let models = &flags.model;
        let bare = |model: &&String| !others().any(|other| own(model, &other.name).is_some());
        let model = models.iter().find_map(|model| own(model, &target.name));
        let model = model.or_else(|| models.iter().find(bare).map(|model| model.as_str()));
        let model = model.with_context(|| match target.name.as_str() {
            "" => "--model is missing: name the model as the server knows it".to_owned(),
            name => format!("--model: the target {name} has none; write {name}=MODEL"),
        })?;
        let key = key(flags, &target.name, several)?;
        let price = price(&flags.price, &targets, &target.name)?;
        let (endpoint, record) = endpoint(flags, target, model, key.as_deref(), (asked.prompts.shared_prefix, price))?;
        endpoints.push(endpoint);
        records.push(record);
    }
    let tokenizer = flags.tokenizer.as_ref().map(|spec| tokenizer_of(asked, spec, cancelled)).transpose()?;
    if tokenizer.is_some() {
        endpoints.iter_mut().for_each(|endpoint| endpoint.keep_texts(Room::default()));
    }
    Ok(Box::new(EndpointTarget { client: Client::new(endpoints)?, records, tokenizer }))
}

fn endpoint(
    flags: &flags::Target,
    target: &Named,
    model: &str,
    key: Option<&str>,
    (shared_prefix_tokens, price): (u32, Option<Price>),
) -> Result<(Endpoint, TargetRecord)> {
    let (api, http) = (flags.api, flags.http);
    let url = Url::parse(&target.url, api).context("--target")?;
    ensure!(
        key.is_none() || !url.is_read_on_the_way() || flags.key_over_http,
        "--target {}: over plain http everybody on the way could read the API key; write https://, or say --key-over-http",
        url.shown()
    );
    let wanted = Wanted {
        api,
        model: model.to_owned(),
        limit_field: flags.limit_field,
        ignore_eos: flags.ignore_eos,
        min_tokens: flags.min_tokens,
        usage: !flags.no_usage,
    };
    let limits = Limits { connect: flags.connect_timeout, request: flags.timeout, attempts: flags.attempts };
    let extensions = [("ignore_eos", wanted.ignore_eos), ("min_tokens", wanted.min_tokens)];
    let record = TargetRecord::Endpoint {
        name: target.name.clone(),
        url: url.shown(),
        api: api.name().into(),
        model: model.to_owned(),
        http: http.name().into(),
        extensions: extensions.into_iter().filter(|(_, sent)| *sent).map(|(name, _)| name.to_owned()).collect(),
        shared_prefix_tokens,
        price,
    };
    let dial = Box::new(Network::new(&url, http)?);
    Ok((Endpoint::new(dial, http, &url, key, wanted, limits)?, record))
}

impl Named {
    /// The model spec of `local:SPEC`, empty for `local` alone.
    fn local(&self) -> Option<&str> {
        if self.url == "local" { Some("") } else { self.url.strip_prefix("local:") }
    }
}

/// The engine of the bench target, which is built, or was already.
fn local<'a>(asked: &Load, spec: &str, cancelled: &'a AtomicBool) -> Result<LocalTarget<'a>> {
    ensure!(
        asked.target.model.is_empty(),
        "--model is the name at a server; a local engine's model stands behind local:, for example local:synthetic:gpt2"
    );
    ensure!(asked.target.price.is_empty(), "--price: the tokens of a local engine have none; leave it out");
    let (program, request) = worker(asked, spec, cancelled)?;
    Ok(LocalTarget::open(&program, &request, asked.slots, cancelled)?)
}

/// The tokenizer of the model `spec`, by the engine of the bench target.
fn tokenizer_of<'a>(asked: &Load, spec: &str, cancelled: &'a AtomicBool) -> Result<Tokenizer<'a>> {
    let (program, request) = worker(asked, spec, cancelled)?;
    Tokenizer::open(&program, &request, cancelled).context("--tokenizer")
}

/// The bench target as a worker, which is built, or was already, and what it is to load: `spec`, or the usual model where that is
/// empty.
fn worker(asked: &Load, spec: &str, cancelled: &AtomicBool) -> Result<(Program, LoadRequest)> {
    let mut config = asked.keys.config()?;
    if !spec.is_empty() {
        spec.clone_into(&mut config.measured.model);
    }
    early::check(&config)?;
    let program = bench_target::worker(&config.bench, asked.worker.clone())?;
    ensure_not(cancelled)?;
    Ok((program, config.measured.load_request()))
}

/// What stands behind `NAME=` in `text`; `None` where it is another one's, or nobody's.
fn own<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    if name.is_empty() { None } else { text.strip_prefix(name)?.strip_prefix('=') }
}

/// The API key of the target `name`. It comes from where no other user of this machine sees it, and goes to its target alone.
fn key(flags: &flags::Target, name: &str, several: bool) -> Result<Option<String>> {
    let mut found = Vec::new();
    for variable in &flags.api_key_env {
        if let Some(variable) = of_target(variable, name, several, "--api-key-env")? {
            let key = env::var(variable).ok();
            let key = key.with_context(|| format!("--api-key-env: {variable} is not set, or no text"))?;
            found.push((key, variable.to_owned()));
        }
    }
    for path in &flags.api_key_file {
        let path = path.to_str().context("--api-key-file: the path is no text")?;
        if let Some(path) = of_target(path, name, several, "--api-key-file")? {
            let key = read_text(Path::new(path), MAX_KEY_BYTES).context("the API key cannot be read")?;
            found.push((key, path.to_owned()));
        }
    }
    ensure!(found.len() <= 1, "a target has one API key; leave out all but one of --api-key-env and --api-key-file");
    let Some((key, place)) = found.pop() else { return Ok(None) };
    let key = key.trim().to_owned();
    ensure!(!key.is_empty() && !key.contains(char::is_whitespace), "{place}: holds no API key; a key is one word");
    Ok(Some(key))
}

/// What the tokens of the target `name` cost, where a flag says it.
fn price(prices: &[String], targets: &[Named], name: &str) -> Result<Option<Price>> {
    let mut found = None;
    for text in prices {
        let whose = targets.iter().find(|target| own(text, &target.name).is_some());
        ensure!(
            whose.is_some() || (targets.len() == 1 && !text.contains('=')),
            "--price {text}: it belongs to no target; write NAME=IN,OUT with the name of one"
        );
        if whose.is_none_or(|target| target.name == name) {
            ensure!(found.is_none(), "--price {text}: this target has a price already; give one");
            let price = whose.and_then(|target| own(text, &target.name)).unwrap_or(text);
            found = Some(price.parse::<Price>().with_context(|| format!("--price {text}"))?);
        }
    }
    Ok(found)
}

/// Where `text` says the key of the target `name` is. A key that is not given to one of several would go to all of them.
fn of_target<'a>(text: &'a str, name: &str, several: bool, flag: &str) -> Result<Option<&'a str>> {
    if let Some(own) = own(text, name) {
        return Ok(Some(own));
    }
    ensure!(
        !several || text.contains('='),
        "{flag}: there are several targets; write NAME=... for the one the key belongs to"
    );
    Ok((!several).then_some(text))
}
