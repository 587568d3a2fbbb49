//! Every key has a default, a doc line and a flag; the file is found, read with places, and relative to its folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cargo_infergate::cli;
use cargo_infergate::config::keys::{KEYS, Key, Kind, commented_file};
use cargo_infergate::config::{Config, Settings as _};

fn apply(text: &str) -> anyhow::Result<Config> {
    let mut config = Config::default();
    config.apply_file(Path::new("repo/infergate.toml"), text)?;
    Ok(config)
}

#[test]
fn every_key_has_a_doc_a_default_and_a_flag() {
    let command = cli::command("cargo xtask");
    let flags: BTreeSet<&str> = command
        .get_subcommands()
        .flat_map(|command| command.get_arguments())
        .filter_map(|argument| argument.get_long())
        .collect();
    for key in KEYS {
        assert!(key.doc.len() > 10, "{} says what it does", key.name);
        assert!(key.default.is_some() != key.doc.contains("left out: "), "{}: what is it when left out?", key.name);
        assert!(flags.contains(key.flag().as_str()), "--{} is a flag of no command", key.flag());
    }
}

#[test]
fn every_key_is_put_somewhere() {
    for key in KEYS {
        let value = match (key.name, key.kind) {
            (_, Kind::Switch) => (key.default != Some("true")).to_string(),
            (_, Kind::Count(_, most)) => most.to_string(),
            (_, Kind::Number(_, most)) => format!("{most:?}"),
            (_, Kind::Ratio(_, most)) => format!("'{}%'", (most - 1.0) * 100.0),
            ("undecided", _) => "'warn'".into(),
            ("server.api", _) => "'completions'".into(),
            ("memory.case", _) => "'decode/p1'".into(),
            ("options", _) => "['a=b']".into(),
            ("targets", _) => "['decode/* tokens_per_s > 20']".into(),
            (_, Kind::Text | Kind::Path) => "'/other'".into(),
            (_, Kind::List) => "['other']".into(),
        };
        let before = apply("").expect("valid");
        assert_ne!(apply(&format!("{} = {value}", key.name)).expect("valid"), before, "{}", key.name);
    }
}

#[test]
fn the_committed_file_is_the_defaults() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infergate.toml");
    let committed = fs::read_to_string(path).expect("committed").replace("\r\n", "\n");
    assert_eq!(committed, commented_file(), "write it anew: cargo xtask schema > infergate.toml");
    let config = apply(&committed).expect("valid");
    assert_eq!(config, Config { baselines: "repo/baselines".into(), ..Config::default() });
}

#[test]
fn a_file_sets_what_it_names_and_nothing_else() {
    let config =
        apply("model = 'a.gguf'\nseconds_per_case = 1\n[bench]\ntarget = 'speed'\nfeatures = ['cuda']\ndefault_features = false")
            .expect("valid");
    assert_eq!((config.measured.model.as_str(), config.seconds_per_case), ("repo/a.gguf", 1.0));
    assert_eq!((config.bench.target.as_str(), config.bench.features), ("speed", vec!["cuda".to_owned()]));
    assert!(!config.bench.default_features && Config::default().bench.default_features);
    assert_eq!(config.runs, Config::default().runs);
    assert_eq!(apply("bench.target = 'speed'").expect("dotted").bench.target, "speed");
}

#[test]
fn paths_are_relative_to_the_file() {
    let config = apply("prompt = 'texts/long.txt'\nbaselines = '/elsewhere'").expect("valid");
    assert_eq!(config.measured.prompt.as_deref(), Some(Path::new("repo/texts/long.txt")));
    assert_eq!(config.baselines, Path::new("/elsewhere"));
}

#[test]
fn a_comma_within_brackets_parts_no_list() {
    let cases = |word: &str| {
        let key = infergate_core::config::keys::Key::find("cases").expect("a key");
        match key.parse_words(&[word.to_owned()]).expect("a list") {
            infergate_core::config::keys::Value::List(entries) => entries,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(cases("mul/(16, 32), add"), ["mul/(16, 32)", "add"]);
    assert_eq!(cases("a[1,{2,3}],b"), ["a[1,{2,3}]", "b"]);
    assert_eq!(cases("a(b,c"), ["a(b", "c"]);
    assert_eq!(cases("a)b,c(d"), ["a)b", "c(d"]);
}

#[test]
fn the_nearest_file_counts_and_the_search_ends_at_the_repository() {
    let folder = tempfile::tempdir().expect("a folder");
    let outside = folder.path();
    let repository = outside.join("repository");
    let deep = repository.join("crates/engine");
    fs::create_dir_all(&deep).expect("folders");
    fs::create_dir(repository.join(".git")).expect("a repository");
    fs::write(outside.join("infergate.toml"), "no such key").expect("a file");
    assert_eq!(Config::load(&deep).expect("not from outside").measured.model, "synthetic:gpt2");
    fs::write(repository.join("infergate.toml"), "model = 'above.gguf'\nprompt = 'p.txt'").expect("a file");
    let config = Config::load(&deep).expect("found above");
    assert_eq!(Path::new(&config.measured.model), repository.join("above.gguf"));
    assert_eq!(config.measured.prompt, Some(repository.join("p.txt")));
    fs::write(deep.join("infergate.toml"), "model = 'near.gguf'").expect("a file");
    let near = Config::load(&deep).expect("found here").measured.model;
    assert_eq!(Path::new(&near), deep.join("near.gguf"));
}

/// A worker runs elsewhere than the command that was told of the model.
#[test]
fn a_model_that_is_a_path_is_asked_for_by_its_whole_path() {
    let asked = |model: &str| {
        let mut config = Config::default();
        config.apply_text(Key::find("model").expect("a key"), &[model.into()]).expect("valid");
        config.measured.load_request().model
    };
    let here = std::env::current_dir().expect("a folder");
    assert_eq!(Path::new(&asked("models/tiny.gguf")), here.join("models/tiny.gguf"));
    assert_eq!(Path::new(&asked("tests")), here.join("tests"), "a folder that is there");
    for spec in ["synthetic:tiny", "hf:org/name/q4.gguf", "org/name"] {
        assert_eq!(asked(spec), spec);
    }
}

#[test]
fn options_are_names_with_values_and_no_value_shows_in_an_error() {
    let options = Key::find("options").expect("a key");
    let mut config = Config::default();
    config.apply_text(options, &["url=http://h/?a=1,b".into(), "device=cuda,layers=12".into()]).expect("valid");
    let pairs: Vec<_> = config.measured.load_request().options.into_iter().collect();
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(pairs, [("device", "cuda"), ("layers", "12"), ("url", "http://h/?a=1,b")]);
    for wrong in ["sk-secret", "=sk-secret"] {
        let error = format!("{:#}", config.apply_text(options, &[wrong.into()]).expect_err("has no name"));
        assert!(error.contains("NAME=VALUE") && !error.contains("secret"), "{error}");
    }
}
