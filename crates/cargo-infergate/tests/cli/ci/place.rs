//! A folder with the programs that scripts start, and all that a CI and its servers would give them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Keeps how it was asked, and installs what lies in `command`.
const CARGO: &str = r#"#!/bin/sh
pwd > "$HERE/cargo-folder.txt"
printf '<%s>\n' "$@" > "$HERE/cargo.txt"
for name in CARGO_ENCODED_RUSTFLAGS RUSTUP_TOOLCHAIN CARGO_BUILD_TARGET GH_TOKEN INFERGATE_COMMIT; do
    echo "$name=$(printenv "$name" || echo unset)"
done > "$HERE/cargo-variables.txt"
[ ! -e "$HERE/cargo-fails" ] || exit 101
while [ "$1" != --root ]; do shift; done
mkdir -p "$2/bin"
cp "$HERE/command" "$2/bin/cargo-infergate"
"#;

/// A gate that ends with the code in `code.txt`, after it wrote what a gate writes.
const COMMAND: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "cargo-infergate 0.1.0"; exit; fi
pwd > "$HERE/gate-folder.txt"
printf '<%s>\n' "$@" > "$HERE/gate.txt"
mkdir -p target/gate/report
echo receipt > target/gate/paired.json
echo verdict > target/gate/verdict.json
echo "the verdict in words" > target/gate/report/comment.md
echo "::error::a row" > target/gate/report/annotations.txt
exit "$(cat "$HERE/code.txt")"
"#;

/// Has what lies in `release/`.
const CURL: &str = r#"#!/bin/sh
for word; do
    case $before in --output) output=$word ;; --url) url=$word ;; esac
    before=$word
done
echo "$url" >> "$HERE/urls.txt"
[ -f "$HERE/release/${url##*/}" ] || exit 22
cp "$HERE/release/${url##*/}" "$output"
"#;

pub struct Place(TempDir);

impl Place {
    /// With the programs, and `work/`, an empty folder.
    pub fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a folder"));
        for folder in ["bin", "work", "tmp", "release"] {
            fs::create_dir(place.path(folder)).expect("a folder");
        }
        place.program("command", COMMAND);
        place.program("bin/cargo", CARGO);
        place.program("bin/curl", CURL);
        place.program("bin/rustc", "#!/bin/sh\ncat \"$HERE/$([ $1 = -vV ] && echo rustc || echo processor).txt\"\n");
        place.program("bin/uname", "#!/bin/sh\ncase $1 in -s) echo Linux ;; -m) echo x86_64 ;; esac\n");
        place.program("bin/getconf", "#!/bin/sh\necho glibc 2.36\n");
        place.write("rustc.txt", "rustc 1.95.0\n");
        place.write("processor.txt", "znver3\n");
        place.write("code.txt", "0\n");
        place
    }

    /// And in `work/` a repository of three commits, the first of which is `origin/main`.
    pub fn with_repository() -> (Self, [String; 3]) {
        let place = Self::new();
        place.git("work", &["init", "--quiet", "--initial-branch=work"]);
        place.write("work/.gitignore", "/target\n");
        let commits = ["first", "second", "third"].map(|subject| place.commit("work", subject));
        place.git("work", &["update-ref", "refs/remotes/origin/main", &commits[0]]);
        (place, commits)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn program(&self, name: &str, text: &str) {
        self.write(name, text);
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).expect("its own file");
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().expect("below the place")).expect("a folder");
        fs::write(self.path(name), text).expect("a file");
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The programs above before this machine's, and no variable of a CI that runs these tests.
    pub fn process(&self, program: &str) -> Command {
        let mut process = Command::new(program);
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").expect("a path"));
        process.env_clear().current_dir(self.path("work")).env("PATH", path);
        process.envs([("HERE", self.path("")), ("HOME", self.path("")), ("TMPDIR", self.path("tmp"))]);
        process.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("LC_ALL", "C")]);
        for who in ["AUTHOR", "COMMITTER"] {
            process.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
        }
        process
    }

    /// A script of this repository.
    pub fn script(&self, name: &str) -> Command {
        let mut sh = self.process("sh");
        sh.arg(root().join(name));
        sh
    }

    pub fn git(&self, folder: &str, arguments: &[&str]) -> String {
        let output = self.process("git").arg("-C").arg(self.path(folder)).args(arguments).output().expect("git");
        assert!(output.status.success(), "git {arguments:?}: {}", stderr(&output));
        stdout(&output).trim().to_owned()
    }

    /// All that lies in `folder`, as a new commit; gives its name.
    pub fn commit(&self, folder: &str, subject: &str) -> String {
        self.git(folder, &["add", "--all"]);
        self.git(folder, &["commit", "--quiet", "--allow-empty", "--message", subject]);
        self.git(folder, &["rev-parse", "HEAD"])
    }

    /// The words that the gate got.
    pub fn gate_words(&self) -> Vec<String> {
        let word = |line: &str| line.strip_prefix('<')?.strip_suffix('>').map(str::to_owned);
        self.read("gate.txt").lines().map(|line| word(line).expect("a word in brackets")).collect()
    }

    /// Nothing that a script made for itself is left, in a folder that no other user may write to.
    #[track_caller]
    pub fn assert_tidy(&self) {
        assert_eq!(fs::read_dir(self.path(".cache/infergate/tmp")).expect("a folder").count(), 0);
    }
}

/// This repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// It ended with exit code 2 and this last line, and gave nothing.
#[track_caller]
pub fn assert_refused(output: &Output, line: &str) {
    let said = stderr(output);
    assert_eq!((output.status.code(), &*stdout(output)), (Some(2), ""), "{said}");
    assert_eq!(said.lines().last(), Some(line), "{said}");
}
