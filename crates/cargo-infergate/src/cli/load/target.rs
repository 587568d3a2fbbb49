//! Opens the servers or the engine that `--target` names.

use std::env;

use anyhow::{Context as _, Result, ensure};
use infergate_build::{bench_target, progress};
use infergate_core::engine::LoadRequest;

use super::flags::{self, Load};
use crate::cli::preflight;
use crate::config::Config;
use crate::paired::Program;
use infergate_load::api::body::RequestTemplate;
use infergate_load::client::Client;
use infergate_load::client::endpoint::{Endpoint, Limits};
use infergate_load::client::url::Url;
use infergate_load::targets::Target;
use infergate_load::targets::local::LocalTarget;
use infergate_load::targets::server::ServerTarget;
use infergate_load::targets::tokenizer::Tokenizer;
use infergate_receipts::{MAX_TARGETS, Price, TargetRecord};

/// One `--target`.
pub struct Named {
    /// Empty if it is the only target and has none.
    name: String,
    url: String,
}

/// Each `--target`, with its name.
pub fn named(texts: &[String]) -> Result<Vec<Named>> {
    ensure!(texts.len() <= MAX_TARGETS, "--target: at most {MAX_TARGETS} are asked in turn");
    let mut targets: Vec<Named> = Vec::new();
    for text in texts {
        let (name, url) = match text.split_once('=') {
            Some((name, url)) if !name.contains(':') => (name.to_owned(), url),
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
pub fn open(options: &Load, config: &Config, targets: &[Named]) -> Result<Box<dyn Target>> {
    let flags = &options.target;
    if let Some(spec) = targets.iter().find_map(Named::local) {
        ensure!(targets.len() == 1, "--target: a local engine is measured alone; leave out the other targets");
        ensure!(
            flags.model.is_empty(),
            "--model is the name at a server; a local engine's model stands behind local:, for example local:synthetic:gpt2"
        );
        let of_servers = [
            ("--tokenizer", flags.tokenizer.is_some()),
            ("--price", !flags.price.is_empty()),
            ("--dataset", options.prompts.dataset.is_some()),
            ("--start-at", options.start_at.is_some()),
            ("--ramp", options.levels.ramp.is_some()),
        ];
        for (flag, is_given) in of_servers {
            ensure!(!is_given, "{flag}: a local engine takes none; leave it out, or serve the engine and name its URL");
        }
        let (program, request) = worker(options, config, spec)?;
        return Ok(Box::new(LocalTarget::open(&program, &request, options.slots, progress::cancelled())?));
    }
    let opened = targets.iter().map(|target| endpoint(options, (target, targets)));
    let (mut endpoints, records): (Vec<Endpoint>, _) = opened.collect::<Result<_>>()?;
    let tokenizer = |spec: &String| {
        let (program, request) = worker(options, config, spec)?;
        Tokenizer::open(&program, &request, progress::cancelled()).context("--tokenizer")
    };
    let tokenizer = flags.tokenizer.as_ref().map(tokenizer).transpose()?;
    if tokenizer.is_some() {
        endpoints.iter_mut().for_each(Endpoint::keep_texts);
    }
    Ok(Box::new(ServerTarget { client: Client::new(endpoints)?, records, tokenizer }))
}

/// A server, and its record in the receipt.
fn endpoint(options: &Load, of: (&Named, &[Named])) -> Result<(Endpoint, TargetRecord)> {
    let (flags, target) = (&options.target, of.0);
    let model = value_for("model", &flags.model, of, true)?.with_context(|| match target.name.as_str() {
        "" => "--model is missing: name the model as the server knows it".to_owned(),
        name => format!("--model: the target {name} has none; write {name}=MODEL"),
    })?;
    let key = key(flags, of)?;
    let price = value_for("price", &flags.price, of, false)?
        .map(|text| text.parse::<Price>().with_context(|| format!("--price {text}")))
        .transpose()?;
    let api = flags.api;
    let url = Url::parse(&target.url, api).context("--target")?;
    ensure!(
        key.is_none() || !url.is_read_on_the_way() || flags.key_over_http,
        "--target {}: over plain http everybody on the way could read the API key; write https://, or say --key-over-http",
        url.shown()
    );
    let template = RequestTemplate {
        api,
        model: model.to_owned(),
        limit_field: flags.limit_field,
        ignore_eos: flags.ignore_eos,
        extra: flags.extra_body.clone().unwrap_or_default(),
    };
    let limits = Limits { request: flags.timeout, attempts: flags.attempts };
    let extensions = ["ignore_eos", "min_tokens"].into_iter().filter(|_| template.ignore_eos).map(str::to_owned);
    // Values can be secret.
    let headers = flags.header.iter().filter_map(|header| Some(format!("header {}", header.split_once(':')?.0.trim())));
    let record = TargetRecord::Endpoint {
        name: target.name.clone(),
        url: url.shown(),
        api: api.name().into(),
        model: model.to_owned(),
        extensions: extensions.chain(template.extra.keys().cloned()).chain(headers).collect(),
        shared_prefix_tokens: options.prompts.shared_prefix,
        price,
    };
    let mut endpoint = Endpoint::over_network(&url, key.as_deref(), template, limits)?;
    flags.header.iter().try_for_each(|header| endpoint.add_header(header))?;
    Ok((endpoint, record))
}

impl Named {
    /// The model spec of `local:SPEC`, empty for `local` alone.
    fn local(&self) -> Option<&str> {
        if self.url == "local" { Some("") } else { self.url.strip_prefix("local:") }
    }
}

/// The bench target as a worker, built unless it was given, and what it loads: `spec`, or the usual model if that is empty.
fn worker(options: &Load, config: &Config, spec: &str) -> Result<(Program, LoadRequest)> {
    let mut config = config.clone();
    if !spec.is_empty() {
        spec.clone_into(&mut config.measured.model);
    }
    preflight::check(&config)?;
    let program = bench_target::worker(&config.build_request(), options.worker.clone())?;
    progress::ensure_not_cancelled()?;
    Ok((program, config.measured.load_request()))
}

/// The value of `--flag` for `target`: of `[NAME=]VALUE`s the one with its name, else the one without a name, which several targets
/// can share if `may_share`.
fn value_for<'a>(
    flag: &str,
    values: &'a [String],
    (target, targets): (&Named, &[Named]),
    may_share: bool,
) -> Result<Option<&'a str>> {
    let is_target = |name: &str| !name.is_empty() && targets.iter().any(|target| target.name == name);
    let (mut own, mut shared) = (Vec::new(), Vec::new());
    for value in values {
        match value.split_once('=') {
            Some((name, value)) if is_target(name) => own.extend((name == target.name).then_some(value)),
            _ => shared.push(value.as_str()),
        }
    }
    ensure!(own.len() <= 1 && shared.len() <= 1, "--{flag}: is given twice for one target; give one");
    ensure!(
        shared.is_empty() || may_share || targets.len() == 1,
        "--{flag}: there are several targets; write NAME=... with the name of the one it belongs to"
    );
    Ok(own.first().or(shared.first()).copied())
}

/// The API key of a target. It comes from where no other user of this machine sees it, and goes to its target alone.
fn key(flags: &flags::Target, of: (&Named, &[Named])) -> Result<Option<String>> {
    let Some(variable) = value_for("api-key-env", &flags.api_key_env, of, false)? else { return Ok(None) };
    let key = env::var(variable).ok().with_context(|| format!("--api-key-env: {variable} is not set, or no text"))?;
    let key = key.trim();
    ensure!(!key.is_empty() && !key.contains(char::is_whitespace), "{variable}: holds no API key; a key is one word");
    Ok(Some(key.to_owned()))
}
