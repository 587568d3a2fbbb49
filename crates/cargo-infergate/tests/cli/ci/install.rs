//! `gate/install.sh`: the release of exactly these sources that GitHub attests, or these sources.

use std::process::Output;

use infergate_core::sha256;

use crate::ci::place::{Place, assert_refused, root, stderr, stdout};

const NAME: &str = "cargo-infergate-x86_64-unknown-linux-gnu";

/// Into `tools/`, as the revision of a repository that lies in `upstream/`.
fn install(place: &Place, revision: &str) -> Output {
    let mut sh = place.script("gate/install.sh");
    sh.arg(place.path("tools")).env("GATE_REVISION", revision);
    sh.env("GATE_REPOSITORY", format!("file://{}", place.path("upstream").display()));
    // What its user has for the engine.
    sh.envs([("RUSTFLAGS", "-C target-cpu=native"), ("RUSTUP_TOOLCHAIN", "1.80"), ("CARGO_BUILD_TARGET", "wasm32")]);
    sh.env("GH_TOKEN", "secret");
    sh.output().expect("sh")
}

/// Knows one archive, and keeps what it was asked.
const GH: &str = r#"#!/bin/sh
cmp -s "$3" "$HERE/attested.tar.gz" || exit 1
shift 3
echo "$*" > "$HERE/verified.txt"
"#;

/// A repository in `upstream/` with a release, whose archive holds a command that says `from the archive`; gives its commit.
fn released() -> (Place, String) {
    let place = Place::new();
    place.write("upstream/file", "");
    place.git("upstream", &["init", "--quiet"]);
    let commit = place.commit("upstream", "a release");
    place.git("upstream", &["tag", "--annotate", "--message", "a text of its own", "v0.1.0"]);
    place.program(&format!("packed/{NAME}/cargo-infergate"), "#!/bin/sh\necho from the archive\n");
    pack(&place);
    (place, commit)
}

fn pack(place: &Place) {
    let archive = place.path(&format!("release/{NAME}.tar.gz"));
    let mut tar = place.process("tar");
    tar.arg("-czf").arg(&archive).arg("-C").arg(place.path("packed")).arg(NAME);
    assert!(tar.status().expect("tar").success());
    std::fs::copy(archive, place.path("attested.tar.gz")).expect("an archive");
    place.program("bin/gh", GH);
}

/// The sources of this checkout were built, without what the user has for the engine.
#[track_caller]
fn assert_built(place: &Place, output: &Output, commit: &str) {
    assert!(output.status.success(), "{}", stderr(output));
    let command = place.path("tools/bin/cargo-infergate").canonicalize().expect("the command");
    assert_eq!(stdout(output), format!("{}\n", command.display()));
    let tools = place.path("tools").canonicalize().expect("a folder");
    let asked = format!("<install>\n<--locked>\n<--path>\n<crates/cargo-infergate>\n<--root>\n<{}>\n", tools.display());
    assert_eq!(place.read("cargo.txt"), asked);
    assert_eq!(place.read("cargo-folder.txt").trim(), root().to_string_lossy());
    let variables = "CARGO_ENCODED_RUSTFLAGS=\nRUSTUP_TOOLCHAIN=unset\nCARGO_BUILD_TARGET=unset\nGH_TOKEN=unset\n";
    assert_eq!(place.read("cargo-variables.txt"), format!("{variables}INFERGATE_COMMIT={commit}\n"));
    place.assert_tidy();
}

#[test]
fn the_release_that_was_made_of_the_pinned_commit_is_installed() {
    let (place, commit) = released();
    for revision in [&*commit, "v0.1.0"] {
        let output = install(&place, revision);
        assert!(output.status.success(), "{}", stderr(&output));
        let installed = place.process(stdout(&output).trim()).output().expect("the command");
        assert_eq!(stdout(&installed), "from the archive\n");
        let upstream = place.path("upstream");
        let upstream = upstream.to_string_lossy();
        let archive = format!("file://{upstream}/releases/download/v0.1.0/{NAME}.tar.gz\n");
        assert_eq!(place.read("urls.txt"), archive);
        let owned = upstream.trim_start_matches('/');
        let signer = format!("--repo {owned} --signer-workflow {owned}/.github/workflows/release.yml");
        let asked = format!("{signer} --source-digest {commit} --deny-self-hosted-runners\n");
        assert_eq!(place.read("verified.txt"), asked);
        assert!(!place.path("cargo.txt").exists());
        place.assert_tidy();
        std::fs::remove_file(place.path("urls.txt")).expect("a file");
    }
}

/// Whoever changes a release's archive changes the sum that the release lists, too.
#[test]
fn a_release_that_nobody_attests_is_not_installed() {
    let (place, commit) = released();
    let archive = std::fs::read(place.path(&format!("release/{NAME}.tar.gz"))).expect("an archive");
    place.write("release/SHA256SUMS", format!("{}  {NAME}.tar.gz\n", sha256::of(archive)));
    place.program("bin/gh", "#!/bin/sh\nexit 1\n");
    for revision in [&*commit, "v0.1.0"] {
        let named = if revision == commit { revision } else { "unset" };
        assert_built(&place, &install(&place, revision), named);
    }
}

#[test]
fn without_a_release_of_the_pinned_commit_the_pinned_sources_are_built() {
    // A commit behind the release.
    let (place, _) = released();
    let later = place.commit("upstream", "later");
    assert_built(&place, &install(&place, &later), &later);
    assert!(!place.path("urls.txt").exists());
    // No release of a tag, or none for this machine; or one that does not start here.
    let (place, commit) = released();
    place.program(&format!("packed/{NAME}/cargo-infergate"), "#!/bin/sh\nexit 127\n");
    pack(&place);
    assert_built(&place, &install(&place, &commit), &commit);
    place.program("bin/uname", "#!/bin/sh\ncase $1 in -s) echo Plan9 ;; -m) echo x86_64 ;; esac\n");
    assert_built(&place, &install(&place, &commit), &commit);
    std::fs::remove_dir_all(place.path("release")).expect("a folder");
    place.program("bin/uname", "#!/bin/sh\ncase $1 in -s) echo Linux ;; -m) echo x86_64 ;; esac\n");
    assert_built(&place, &install(&place, &commit), &commit);
    // No answer of the server.
    std::fs::remove_dir_all(place.path("upstream")).expect("a folder");
    assert_built(&place, &install(&place, &commit), &commit);
}

/// No branch has a release, and what is no revision is given to no program.
#[test]
fn only_a_commit_and_a_version_are_looked_up() {
    let (place, _) = released();
    place.program("bin/git", "#!/bin/sh\ntouch \"$HERE/asked\"\n");
    for revision in ["", "main", "--upload-pack=touch evil", "v1.0.0; touch evil", "v", "0123", &"g".repeat(40)] {
        assert_built(&place, &install(&place, revision), "unset");
    }
    assert!(!place.path("urls.txt").exists() && !place.path("asked").exists() && !place.path("work/evil").exists());
}

#[test]
fn a_build_that_fails_is_one_line() {
    let place = Place::new();
    place.write("cargo-fails", "");
    assert_refused(&install(&place, ""), "error: the command was not built; what cargo said stands above");
    assert!(!place.path("tools/bin/cargo-infergate").exists());
    place.assert_tidy();
}
