//! Every key has a default, a doc line and a flag; the file is found, read with places, and relative to its folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cargo_infergate::cli;
use cargo_infergate::config::{self, AllKeys, Config, KEYS, Layer, Tables};
use infergate_core::config::{Config as Measured, list};

fn apply(text: &str) -> anyhow::Result<Config> {
    Layer::of_file(Path::new("repo/infergate.toml"), text)?.config(Tables::default())
}

fn defaults() -> Config {
    Layer::default().config(Tables::default()).expect("defaults")
}

fn load(folder: &Path) -> Config {
    Config::load(folder, &Layer::default()).expect("a configuration")
}

#[test]
fn every_key_is_a_flag_of_a_command() {
    let command = cli::command("cargo xtask");
    let flags: BTreeSet<&str> = command
        .get_subcommands()
        .flat_map(|command| command.get_arguments())
        .filter_map(|arg| arg.get_long())
        .collect();
    let keys = config::flags_of::<AllKeys>();
    let ids: BTreeSet<&str> = keys.iter().map(|key| key.get_id().as_str()).collect();
    assert_eq!(ids, BTreeSet::from(KEYS));
    for key in &keys {
        let (id, flag) = (key.get_id(), key.get_long().expect("a flag"));
        assert_eq!(flag, id.as_str().replace(['_', '.'], "-"));
        assert!(flags.contains(flag), "--{flag} is a flag of no command");
    }
}

#[test]
fn every_key_is_put_somewhere() {
    for key in config::flags_of::<AllKeys>() {
        let id = key.get_id().as_str();
        let words = ["'warn'", "'completions'", "['a=b']", "['decode/* tokens_per_s > 20']", "7", "false", "true"];
        let words = words.into_iter().chain(["'50%'", "0.5", "'decode/p1'", "'/other'", "['other']"]);
        let differs = |word: &str| apply(&format!("{id} = {word}")).is_ok_and(|set| set != apply("").expect("valid"));
        assert!(words.into_iter().any(differs), "{id}");
    }
}

#[test]
fn the_committed_file_is_the_defaults() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infergate.toml");
    let committed = fs::read_to_string(path).expect("committed").replace("\r\n", "\n");
    let printed = include_str!("../../templates/infergate.toml").replace("\r\n", "\n");
    assert_eq!(committed, printed, "write it anew: cargo xtask schema > infergate.toml");
    assert_eq!(apply(&committed).expect("valid"), Config { baselines: "repo/baselines".into(), ..defaults() });
    assert_eq!(defaults().measured, Measured::default());
    for key in KEYS {
        let name = key.rsplit('.').next().unwrap_or(key);
        assert!(committed.lines().any(|line| line.trim_start_matches("# ").starts_with(&format!("{name} ="))), "{key}");
    }
}

#[test]
fn a_file_sets_what_it_names_and_nothing_else() {
    let config =
        apply("model = 'a.gguf'\nseconds_per_case = 1\n[bench]\ntarget = 'speed'\nfeatures = ['cuda']\ndefault_features = false")
            .expect("valid");
    assert_eq!((config.measured.model.as_str(), config.session.seconds_per_case), ("repo/a.gguf", 1.0));
    assert_eq!(config.bench.target, "speed");
    assert_eq!(config.bench.cargo_features(), ["--features=cuda", "--no-default-features"]);
    assert!(defaults().bench.cargo_features().is_empty());
    assert_eq!(config.session, config::SessionKeys { seconds_per_case: 1.0, ..defaults().session });
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
    let cases = |word: &str| list(&[word.to_owned()]);
    assert_eq!(cases("mul/(16, 32), add"), ["mul/(16, 32)", "add"]);
    assert_eq!(cases("a[1,{2,3}],b"), ["a[1,{2,3}]", "b"]);
    assert_eq!(cases("a(b,c"), ["a(b", "c"]);
    assert_eq!(cases("a)b,c(d"), ["a)b", "c(d"]);
}

#[test]
fn a_bench_target_reads_the_file_as_the_command_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |text: &str| {
        fs::write(folder.path().join("infergate.toml"), text).expect("a file");
        let config = Config::load(folder.path(), &Layer::default()).ok().map(|config| config.measured);
        assert_eq!(Measured::load(folder.path()).ok(), config, "{text}");
        config
    };
    for refused in ["cases = ['decode/p128,prefill/p128']", "threads = ['3', '4']", "seed = ' 5'", "model = ''"] {
        assert_eq!(read(refused), None, "{refused}");
    }
    let config = read("options = ['stop=a, b']\ncases = ['mul/16, add', 'sum']").expect("valid");
    assert_eq!((config.options["stop"].as_str(), config.cases.len()), ("a, b", 2));
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
    assert_eq!(load(&deep).measured.model, "synthetic:gpt2");
    fs::write(repository.join("infergate.toml"), "model = 'above.gguf'\nprompt = 'p.txt'").expect("a file");
    let config = load(&deep);
    assert_eq!(Path::new(&config.measured.model), repository.join("above.gguf"));
    assert_eq!(config.measured.prompt, Some(repository.join("p.txt")));
    fs::write(deep.join("infergate.toml"), "model = 'near.gguf'").expect("a file");
    let near = load(&deep).measured.model;
    assert_eq!(Path::new(&near), deep.join("near.gguf"));
}

/// A worker runs elsewhere than the command that was told of the model.
#[test]
fn a_model_that_is_a_path_is_asked_for_by_its_whole_path() {
    let requested = |model: &str| Measured { model: model.into(), ..Measured::default() }.load_request().model;
    let here = std::env::current_dir().expect("a folder");
    assert_eq!(Path::new(&requested("models/tiny.gguf")), here.join("models/tiny.gguf"));
    assert_eq!(Path::new(&requested("tests")), here.join("tests"), "a folder that is there");
    for spec in ["synthetic:tiny", "hf:org/name/q4.gguf", "org/name"] {
        assert_eq!(requested(spec), spec);
    }
}

#[test]
fn options_are_names_with_values_and_no_value_shows_in_an_error() {
    let set = |words: &[&str]| {
        let mut layer = Layer::default();
        layer.set_words("options", &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())?;
        Ok::<_, anyhow::Error>(layer.config(Tables::default())?.measured.load_request().options)
    };
    let pairs = set(&["url=http://h/?a=1,b", "device=cuda,layers=12"]).expect("valid");
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(pairs, [("device", "cuda"), ("layers", "12"), ("url", "http://h/?a=1,b")]);
    for wrong in ["sk-secret", "=sk-secret"] {
        let error = format!("{:#}", set(&[wrong]).expect_err("has no name"));
        assert!(error.contains("NAME=VALUE") && !error.contains("secret"), "{error}");
    }
}
