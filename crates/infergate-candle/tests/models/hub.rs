//! Models come from the hub through its cache, and nothing damaged is ever loaded from there.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::common::hub_server::{COMMIT, HubServer, REPO};
use crate::common::{fixture, ids, json, request};
use infergate::engine::EngineFactory;
use infergate_candle::hub::{Fetched, Files, Hub, SILENCE};
use infergate_candle::spec::ModelSpec;
use infergate_candle::{Candle, ModelSpec as Spec};
use tempfile::TempDir;

const TOKEN: &str = "hf_secret";

/// The hub at `endpoint` with its cache in `home`, and whatever `more` sets.
fn hub(endpoint: &str, home: &TempDir, more: &[(&str, &str)]) -> Hub {
    try_hub(endpoint, home, more, SILENCE).unwrap()
}

fn try_hub(endpoint: &str, home: &TempDir, more: &[(&str, &str)], silence: Duration) -> anyhow::Result<Hub> {
    let variable = |name: &str| match name {
        "HF_HOME" => Some(home.path().into()),
        "HF_ENDPOINT" => Some(endpoint.into()),
        _ => more.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value)),
    };
    Hub::new(variable, silence)
}

fn fetch(hub: &Hub, spec: &str) -> anyhow::Result<Fetched> {
    let ModelSpec::Hub(spec) = spec.parse::<Spec>().unwrap() else { panic!("{spec} is not on the hub") };
    hub.fetch(&spec)
}

/// Why there is no hub of these.
fn refused(endpoint: &str, more: &[(&str, &str)]) -> String {
    let hub = try_hub(endpoint, &TempDir::new().unwrap(), more, SILENCE);
    format!("{:#}", hub.err().expect("refused"))
}

fn error(hub: &Hub, spec: &str) -> String {
    let error = format!("{:#}", fetch(hub, spec).unwrap_err());
    assert!(!error.contains('\n') && !error.contains(TOKEN), "{error}");
    error
}

fn gguf_path(fetched: &Fetched) -> &Path {
    match &fetched.files {
        Files::Gguf(path) => path,
        Files::Directory(_) => panic!("a directory in place of a file"),
    }
}

#[track_caller]
fn assert_whole(fetched: &Fetched) {
    assert_eq!(std::fs::read(gguf_path(fetched)).unwrap(), std::fs::read(fixture("llama/model.gguf")).unwrap());
}

fn gguf() -> (HubServer, TempDir, String) {
    (HubServer::start(&fixture("llama")), TempDir::new().unwrap(), format!("hf:{REPO}/model.gguf"))
}

/// Nothing is asked of the endpoints here.
#[test]
fn a_token_goes_over_plain_http_to_this_machine_alone() {
    let (home, token) = (TempDir::new().unwrap(), [("HF_TOKEN", TOKEN)]);
    let error = refused("http://mirror.example", &token);
    assert!(error.contains("HF_ENDPOINT is plain http") && !error.contains(TOKEN), "{error}");
    hub("http://mirror.example", &home, &[]);
    for endpoint in ["https://mirror.example", "http://127.0.0.1:9", "http://[::1]:9"] {
        hub(endpoint, &home, &token);
    }
}

/// Files below the cache that could be loaded later.
fn loadable(home: &TempDir) -> Vec<String> {
    fn walk(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.exists() && !path.extension().is_some_and(|e| e == "part" || e == "lock") {
                found.push(path.display().to_string());
            }
        }
    }
    let mut found = Vec::new();
    let cache = home.path().join("hub/models--org--tiny");
    walk(&cache.join("blobs"), &mut found);
    walk(&cache.join("snapshots"), &mut found);
    found
}

#[test]
fn a_sharded_model_is_fetched_once_and_then_offline() {
    let (server, home) = (HubServer::start(&fixture("qwen2")), TempDir::new().unwrap());
    let spec = format!("hf:{REPO}");
    let online = hub(&server.endpoint, &home, &[]);
    let fetched = fetch(&online, &spec).unwrap();
    assert_eq!(fetched.revision, COMMIT);
    let Files::Directory(files) = &fetched.files else { panic!("a file in place of a directory") };
    assert_eq!((files.weights.len(), &files.tokenizer), (2, &None));

    let expected = json("qwen2/expected.json");
    let mut engine = Candle.load(&request(files.config.parent().unwrap(), None)).unwrap();
    assert_eq!(engine.start(&ids(&expected["prompt_ids"])).unwrap(), ids(&expected["output_ids"])[0]);

    server.with(|s| s.log.clear());
    assert_eq!(fetch(&online, &spec).unwrap(), fetched);
    // What the repository lacks is asked for again; no file that is there.
    let again = server.with(|s| s.log.clone());
    assert!(
        again
            .iter()
            .all(|l| l.contains("/revision/main") || l.contains("/model.safetensors ") || l.contains("tokenizer")),
        "{again:?}"
    );

    drop(server);
    let offline = hub("http://127.0.0.1:9", &home, &[("HF_HUB_OFFLINE", "1")]);
    assert_eq!(fetch(&offline, &spec).unwrap(), fetched);
    assert_eq!(fetch(&offline, &format!("hf:{REPO}@{COMMIT}")).unwrap(), fetched);
}

#[test]
fn a_commit_in_the_cache_needs_no_network() {
    let (server, home, spec) = gguf();
    let fetched = fetch(&hub(&server.endpoint, &home, &[]), &spec).unwrap();
    let nowhere = hub("http://127.0.0.1:9", &home, &[]);
    assert_eq!(fetch(&nowhere, &format!("hf:{REPO}@{COMMIT}/model.gguf")).unwrap(), fetched);
}

#[test]
fn offline_what_is_not_in_the_cache_is_named() {
    let home = TempDir::new().unwrap();
    let offline = hub("http://127.0.0.1:9", &home, &[("HF_HUB_OFFLINE", "true")]);
    assert!(error(&offline, "hf:org/tiny").contains("HF_HUB_OFFLINE"));
    assert!(error(&offline, &format!("hf:org/tiny@{COMMIT}/model.gguf")).contains("model.gguf is not in the cache"));
}

#[test]
fn no_network_is_one_line() {
    let home = TempDir::new().unwrap();
    let message = error(&hub("http://127.0.0.1:9", &home, &[]), "hf:org/tiny");
    assert!(message.contains("check the network"), "{message}");
    let message = refused("user:password@host", &[]);
    assert!(message.contains("HF_ENDPOINT") && !message.contains("password"), "{message}");
}

#[test]
fn a_gated_model_needs_the_token() {
    let (server, home, spec) = gguf();
    server.with(|s| s.token = Some(TOKEN.into()));
    assert!(error(&hub(&server.endpoint, &home, &[]), &spec).contains("set HF_TOKEN"));
    assert!(error(&hub(&server.endpoint, &home, &[("HF_TOKEN", "hf_secret2")]), &spec).contains("refused"));
    fetch(&hub(&server.endpoint, &home, &[("HF_TOKEN", TOKEN)]), &spec).unwrap();

    let home = TempDir::new().unwrap();
    std::fs::write(home.path().join("token"), format!("{TOKEN}\n")).unwrap();
    fetch(&hub(&server.endpoint, &home, &[]), &spec).unwrap();
}

#[test]
fn what_the_hub_does_not_have_is_named() {
    let (server, home, _) = gguf();
    let online = hub(&server.endpoint, &home, &[]);
    assert!(error(&online, "hf:org/other").contains("no such repository"));
    assert!(error(&online, &format!("hf:{REPO}@v2")).contains("no such repository or revision"));
    assert!(error(&online, &format!("hf:{REPO}/other.gguf")).contains("other.gguf"));
    server.with(|s| s.files.remove("config.json"));
    assert!(error(&online, &format!("hf:{REPO}")).contains("config.json"));
}

/// Unless a mirror ignores where.
#[test]
fn an_interrupted_download_goes_on_where_it_stopped() {
    for ignores_ranges in [false, true] {
        let (server, home, spec) = gguf();
        server.with(|s| (s.interruptions, s.ignores_ranges) = (1, ignores_ranges));
        let fetched = fetch(&hub(&server.endpoint, &home, &[]), &spec).unwrap();
        assert_whole(&fetched);
        let log = server.with(|s| s.log.clone());
        let half = format!("bytes={}-", std::fs::metadata(gguf_path(&fetched)).unwrap().len() / 2);
        assert!(log.iter().any(|line| line.ends_with(&half)), "{log:?}");
    }
}

#[test]
fn an_interrupted_download_leaves_nothing_that_loads() {
    let (server, home, spec) = gguf();
    server.with(|s| s.interruptions = usize::MAX);
    let online = hub(&server.endpoint, &home, &[]);
    let message = error(&online, &spec);
    assert!(message.contains("cannot download model.gguf") && message.contains("run it again"), "{message}");
    assert_eq!(loadable(&home), Vec::<String>::new());
    assert!(error(&hub(&server.endpoint, &home, &[("HF_HUB_OFFLINE", "1")]), &spec).contains("not in the cache"));

    server.with(|s| s.interruptions = 0);
    assert_whole(&fetch(&online, &spec).unwrap());
}

#[test]
fn leftovers_of_a_download_never_spoil_the_next() {
    let whole = std::fs::read(fixture("llama/model.gguf")).unwrap();
    for leftover in [b"wrong from the start".to_vec(), whole.clone(), [whole.clone(), whole.clone()].concat()] {
        let (server, home, spec) = gguf();
        let etag = server.with(|s| s.files["model.gguf"].1.clone());
        let blobs = home.path().join("hub/models--org--tiny/blobs");
        std::fs::create_dir_all(&blobs).unwrap();
        std::fs::write(blobs.join(etag).with_extension("part"), &leftover).unwrap();
        assert_whole(&fetch(&hub(&server.endpoint, &home, &[]), &spec).unwrap());
        let requests = server.with(|s| s.log.iter().filter(|line| line.contains("/model.gguf ")).count());
        assert_eq!(requests == 1, leftover == whole, "a whole file is only checked");
    }
}

#[test]
fn an_empty_file_is_fetched() {
    let (server, home, spec) = gguf();
    server.with(|s| s.put("model.gguf", Vec::new()));
    let fetched = fetch(&hub(&server.endpoint, &home, &[]), &spec).unwrap();
    assert_eq!(std::fs::read(gguf_path(&fetched)).unwrap(), b"");
}

#[test]
fn content_that_is_not_what_the_hub_names_is_removed() {
    for (name, file, hash) in [("model.gguf", "/model.gguf", "SHA-256"), ("config.json", "", "SHA-1")] {
        let (server, home, _) = gguf();
        server.with(|s| s.files.get_mut(name).unwrap().0[10] ^= 1);
        let message = error(&hub(&server.endpoint, &home, &[]), &format!("hf:{REPO}{file}"));
        assert!(message.contains(&format!("{name}: ")) && message.contains(hash), "{message}");
        assert_eq!(loadable(&home), Vec::<String>::new());
    }
}

#[test]
fn a_hostile_hub_cannot_write_elsewhere() {
    let (server, home, spec) = gguf();
    server.with(|s| s.files.get_mut("model.gguf").unwrap().1 = "../../../escaped".into());
    assert!(error(&hub(&server.endpoint, &home, &[]), &spec).contains("ETag"));

    let (server, home) = (HubServer::start(&fixture("qwen2")), TempDir::new().unwrap());
    let index = br#"{"weight_map": {"a": "../../../escaped.safetensors"}}"#;
    server.with(|s| s.put("model.safetensors.index.json", index.to_vec()));
    assert!(error(&hub(&server.endpoint, &home, &[]), &format!("hf:{REPO}")).contains("no plain file name"));
}

#[test]
fn an_unsupported_architecture_is_refused_before_its_weights_are_downloaded() {
    let (server, home) = (HubServer::start(&fixture("llama")), TempDir::new().unwrap());
    server.with(|s| s.put("config.json", br#"{"model_type": "mamba"}"#.to_vec()));
    let message = error(&hub(&server.endpoint, &home, &[]), &format!("hf:{REPO}"));
    assert!(message.contains("`mamba`") && message.contains("llama"), "{message}");
    assert!(server.with(|s| s.log.iter().all(|line| !line.contains("safetensors"))));
}

/// A hub whose files lie on another server, as those of the real one do.
fn with_storage() -> (HubServer, HubServer, TempDir, String) {
    let (server, home, spec) = gguf();
    let storage = HubServer::start(&fixture("llama"));
    server.with(|s| (s.token, s.redirects_to) = (Some(TOKEN.into()), Some(storage.endpoint.clone())));
    storage.with(|s| s.only_storage = true);
    (server, storage, home, spec)
}

#[test]
fn the_token_goes_to_the_endpoint_alone() {
    let (server, storage, home, spec) = with_storage();
    assert_whole(&fetch(&hub(&server.endpoint, &home, &[("HF_TOKEN", TOKEN)]), &spec).unwrap());
    let bearer = Some(format!("Bearer {TOKEN}"));
    assert!(server.with(|s| s.authorizations.iter().all(|sent| *sent == bearer)));
    assert_eq!(storage.with(|s| s.authorizations.clone()), [None, None], "one look and one download, both without it");
}

#[test]
fn another_server_cannot_send_the_token_back_for_its_own_purpose() {
    let (server, storage, home, spec) = with_storage();
    // Back to an address of the endpoint that the storage chose.
    storage.with(|s| (s.only_storage, s.redirects_to) = (false, Some(server.endpoint.clone())));
    let message = error(&hub(&server.endpoint, &home, &[("HF_TOKEN", TOKEN)]), &spec);
    assert!(message.contains("refused access"), "{message}");
    let sent = server.with(|s| s.authorizations.clone());
    assert_eq!(sent.last().unwrap(), &None, "{sent:?}");
}

#[test]
fn what_storage_says_of_commit_and_etag_is_not_believed() {
    let (server, storage, home, spec) = with_storage();
    server.with(|s| s.files.get_mut("model.gguf").unwrap().1 = "/etc/infergate-escaped".into());
    let message = error(&hub(&server.endpoint, &home, &[("HF_TOKEN", TOKEN)]), &spec);
    assert!(message.contains("ETag"), "{message}");
    assert_eq!(storage.with(|s| s.log.len()), 1, "nothing is downloaded under such a name");
}

#[test]
fn endless_redirects_end() {
    let (server, home, spec) = gguf();
    server.with(|s| s.redirects_to = Some(String::new()));
    let message = error(&hub(&server.endpoint, &home, &[]), &spec);
    assert!(message.contains("redirects more than 5 times"), "{message}");
    assert_eq!(server.with(|s| s.log.len()), 1 + 6, "the revision, the file and five more");
    for nowhere in ["ftp://127.0.0.1", "http://user:password@127.0.0.1", "//127.0.0.1", "file://"] {
        server.with(|s| s.redirects_to = Some(nowhere.into()));
        let message = error(&hub(&server.endpoint, &home, &[]), &spec);
        assert!(message.contains("cannot be followed") && !message.contains("password"), "{message}");
    }
}

#[test]
fn a_silent_server_is_given_up() {
    let (server, home, spec) = gguf();
    server.with(|s| s.stalls = true);
    let impatient = try_hub(&server.endpoint, &home, &[], Duration::from_millis(20)).unwrap();
    let message = error(&impatient, &spec);
    assert!(message.contains("stopped sending") && message.contains("run it again"), "{message}");
    assert_eq!(loadable(&home), Vec::<String>::new());
}

#[test]
fn more_than_was_announced_is_neither_stored_nor_loaded() {
    let (server, home, spec) = gguf();
    server.with(|s| s.surplus_bytes = 1);
    let message = error(&hub(&server.endpoint, &home, &[]), &spec);
    assert!(message.contains("more than the"), "{message}");
    assert_eq!(loadable(&home), Vec::<String>::new());
}

#[test]
fn a_link_that_leads_nowhere_is_replaced() {
    let (server, home, spec) = gguf();
    let online = hub(&server.endpoint, &home, &[]);
    let fetched = fetch(&online, &spec).unwrap();
    std::fs::remove_dir_all(home.path().join("hub/models--org--tiny/blobs")).unwrap();
    assert_eq!(fetch(&online, &spec).unwrap(), fetched);
    assert!(gguf_path(&fetched).is_file());
}

/// Whoever opens a pipe waits for whoever writes into it.
#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_the_token_is_not_waited_for() {
    let (server, home, spec) = gguf();
    let made = std::process::Command::new("mkfifo").arg(home.path().join("token")).status().unwrap();
    assert!(made.success());
    assert!(fetch(&hub(&server.endpoint, &home, &[]), &spec).is_ok());
}

#[test]
fn a_token_that_cannot_be_sent_is_not_shown() {
    let message = refused("https://mirror.example", &[("HF_TOKEN", "hf_sec\nret")]);
    assert!(message.contains("HF_TOKEN") && !message.contains("ret"), "{message}");
}
