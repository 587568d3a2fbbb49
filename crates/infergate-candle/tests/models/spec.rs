//! A model spec means the same everywhere, and one that means nothing is answered with what was probably meant.

use std::path::PathBuf;

use infergate_candle::spec::{HubSpec, ModelSpec, SYNTHETIC};

fn parsed(spec: &str) -> ModelSpec {
    spec.parse().unwrap()
}

fn error(spec: &str) -> String {
    spec.parse::<ModelSpec>().unwrap_err().to_string()
}

fn hub(repo: &str, revision: Option<&str>, file: Option<&str>) -> ModelSpec {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    ModelSpec::Hub(HubSpec { repo: repo.into(), revision: owned(revision), file: owned(file) })
}

#[test]
fn every_form_is_read() {
    for name in SYNTHETIC {
        assert_eq!(parsed(&format!("synthetic:{name}")), ModelSpec::Synthetic(name.into()));
    }
    assert_eq!(parsed("a/model.gguf"), ModelSpec::Gguf(PathBuf::from("a/model.gguf")));
    assert_eq!(parsed("Model.GGUF"), ModelSpec::Gguf(PathBuf::from("Model.GGUF")));
    assert_eq!(parsed("./folder"), ModelSpec::Directory(PathBuf::from("./folder")));
    assert_eq!(parsed("tests"), ModelSpec::Directory(PathBuf::from("tests")));
    assert_eq!(parsed("hf:org/name"), hub("org/name", None, None));
    assert_eq!(parsed("hf:org/name@v1.0"), hub("org/name", Some("v1.0"), None));
    assert_eq!(parsed("hf:org/name/q/m.gguf"), hub("org/name", None, Some("q/m.gguf")));
    assert_eq!(parsed("hf:org/name@main/m.gguf"), hub("org/name", Some("main"), Some("m.gguf")));
    assert_eq!(parsed("hf:org/name@refs/pr/7/m.gguf"), hub("org/name", Some("refs/pr/7"), Some("m.gguf")));
}

#[test]
fn the_name_in_a_receipt_has_no_local_folders() {
    for (spec, name) in [
        ("synthetic:gpt2", "synthetic:gpt2"),
        ("/home/someone/model.gguf", "model.gguf"),
        ("/home/someone/Tiny-Model", "Tiny-Model"),
        ("/home/someone/Tiny-Model/", "Tiny-Model"),
        ("hf:org/name@v1", "hf:org/name"),
        ("hf:org/name@v1/m.gguf", "hf:org/name/m.gguf"),
    ] {
        assert_eq!(parsed(spec).to_string(), name);
    }
    assert_ne!(parsed("./").to_string(), ".");
}

#[test]
fn an_unknown_spec_is_refused_with_those_that_there_are() {
    for spec in ["synthetic:gtp2", "gpt2", "sythetic:tiny", ""] {
        let message = error(spec);
        assert!(SYNTHETIC.iter().all(|name| message.contains(name)) && !message.contains('\n'), "{spec}: {message}");
        assert!(message.contains("hf:ORG/NAME"), "{spec}: {message}");
    }
}

#[test]
fn a_hub_spec_that_names_nothing_is_refused() {
    for spec in [
        "hf:",
        "hf:name",
        "hf:org/",
        "hf:/name",
        "hf:org/name@",
        "hf:org/name/",
        "hf:org/name/config.json",
        "hf:org/../x.gguf",
        "hf:org/name/../x.gguf",
        "hf:org/name@../x",
        "hf:org/na me",
        "hf:org/name@a@b",
        "hf:org/name/a//b.gguf",
        "hf:../name",
    ] {
        assert!(error(spec).contains("does not name a model on the hub"), "{spec}");
    }
}
