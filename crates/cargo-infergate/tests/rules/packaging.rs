//! What others get of this repository: packages that build alone, archives where `cargo binstall` looks.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

/// What can be published, and its folder.
const PACKAGES: [(&str, &str); 8] = [
    ("infergate", "."),
    ("cargo-infergate", "crates/cargo-infergate"),
    ("infergate-candle", "crates/infergate-candle"),
    ("infergate-core", "crates/infergate-core"),
    ("infergate-criterion", "crates/infergate-criterion"),
    ("infergate-divan", "crates/infergate-divan"),
    ("infergate-probes", "crates/infergate-probes"),
    ("infergate-serve", "crates/infergate-serve"),
];

/// What a bench target of others links, which builds with an older Rust.
const LINKED: [&str; 4] = ["infergate", "infergate-core", "infergate-criterion", "infergate-divan"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(name: &str) -> String {
    let path = root().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).replace("\r\n", "\n")
}

fn manifest(folder: &str) -> Table {
    text(&format!("{folder}/Cargo.toml")).parse().expect("TOML")
}

/// Every file below `folder` whose name ends in `.EXTENSION`, or in one of several.
fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut waiting = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|end| extensions.iter().any(|extension| end == *extension)) {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "nothing in {}", folder.display());
    found
}

/// A person may start it for a tag, to see whether the archives still build.
#[test]
fn a_release_is_made_of_a_pushed_tag_alone() {
    let workflow = text(".github/workflows/release.yml");
    let (archives, release) = workflow.split_once("\n  release:\n").expect("a job");
    assert!(release.contains("\n    if: github.event_name == 'push' && github.ref_type == 'tag'\n"), "{release}");
    assert!(release.contains("contents: write") && !archives.contains("contents: write"), "{archives}");
}

#[test]
fn archives_have_the_names_that_binstall_looks_for() {
    let manifest = manifest("crates/cargo-infergate");
    let binstall = &manifest["package"]["metadata"]["binstall"];
    let setting = |name: &str| binstall[name].as_str().expect("text");
    let expand = |template: &str| template.replace("{ name }", "cargo-infergate").replace("{ target }", "$target");
    assert_eq!(setting("pkg-fmt"), "tgz");
    let (folder, archive) = setting("pkg-url").rsplit_once('/').expect("a URL");
    assert_eq!(folder, "{ repo }/releases/download/v{ version }");

    let script = text(".ci/archive");
    let name = script.lines().find_map(|line| line.strip_prefix("name=")).expect("a name");
    assert_eq!(expand(archive), format!("{name}.tar.gz"));
    assert!(script.contains("folder=target/dist/$name\n") && script.contains("-czf \"$folder.tar.gz\" \"$name\""));
    assert_eq!(expand(setting("bin-dir")), format!("{name}/{{ bin }}{{ binary-ext }}"));
    assert_eq!(manifest["bin"][0]["name"].as_str(), Some("cargo-infergate"));
    assert!(text(".github/workflows/release.yml").contains("run: bash .ci/archive \"$TARGET\"\n"));
}

#[test]
fn packages_say_what_they_are_and_share_the_lints() {
    let inherited = |table: &Value| table.get("workspace").and_then(Value::as_bool) == Some(true);
    for (name, folder) in PACKAGES {
        let manifest = manifest(folder);
        let package = &manifest["package"];
        assert_eq!(package["name"].as_str(), Some(name));
        assert!(package["description"].as_str().is_some_and(|text| text.len() > 20), "{name}");
        for field in ["license", "repository", "readme", "keywords", "categories", "version"] {
            assert!(inherited(&package[field]), "{name}: {field}");
        }
        let rust = &package["rust-version"];
        let is_stated = if LINKED.contains(&name) { rust.as_str() == Some("1.85") } else { inherited(rust) };
        assert!(is_stated, "{name}: {rust:?}");
        assert!(inherited(&manifest["lints"]), "{name}: its public items may go without a word");
        assert!(package.get("publish").is_none(), "{name}");
    }
    let xtask = manifest("xtask");
    assert_eq!(xtask["package"]["publish"].as_bool(), Some(false));
    assert!(inherited(&xtask["lints"]));
    let lints = &manifest(".")["workspace"]["lints"];
    assert_eq!(lints["rust"]["missing_docs"].as_str(), Some("deny"));
    assert_eq!(lints["rustdoc"]["broken_intra_doc_links"].as_str(), Some("deny"));
}

/// The paths that a source includes, relative to its folder.
fn included(source: &str) -> Vec<&str> {
    let calls = ["include_str!(\"", "include_bytes!(\""];
    let rests = calls.iter().flat_map(|call| source.match_indices(call).map(|(at, call)| &source[at + call.len()..]));
    rests.map(|rest| rest.split('"').next().unwrap_or(rest)).collect()
}

/// `path` without `..`, as cargo lists it.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(plain.pop(), "{}: leads out of its package", path.display()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[test]
fn a_package_holds_all_that_its_sources_include_and_its_licences() {
    let mut count = 0;
    for (name, folder) in PACKAGES {
        let folder = root().join(folder);
        let list = Command::new("cargo")
            .args(["package", "--list", "--allow-dirty", "--offline", "--package", name])
            .current_dir(&folder)
            .output()
            .expect("cargo");
        assert!(list.status.success(), "{}", String::from_utf8_lossy(&list.stderr));
        let list = String::from_utf8(list.stdout).expect("names");
        let packed: BTreeSet<PathBuf> = list.lines().map(PathBuf::from).collect();
        for always in ["Cargo.toml", "LICENSE-MIT", "LICENSE-APACHE", "README.md", "src/lib.rs"] {
            assert!(packed.contains(Path::new(always)), "{name} lacks {always}");
        }
        assert!(
            !packed.iter().any(|path| path.starts_with("tests") || path.starts_with("baselines")),
            "{name}: {list}"
        );
        for source in files(&folder.join("src"), &["rs"]) {
            let within = source.strip_prefix(&folder).expect("below the package").to_owned();
            assert!(packed.contains(&within), "{name} lacks {}", within.display());
            let text = fs::read_to_string(&source).expect("Rust");
            for path in included(&text) {
                count += 1;
                let path = plain(&within.parent().expect("a folder").join(path));
                assert!(packed.contains(&path), "{name}: {} includes {}", within.display(), path.display());
            }
        }
    }
    assert!(count > 10, "only {count} inclusions were found");
}
