//! The scripts of the workflow that comments on a pull request, with a `gh` that answers from files: whatever the gate's run left
//! behind, the comment is about the commit that is there now.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

/// Answers each question from the file that it names, and keeps what is posted.
const GH: &str = r#"#!/bin/sh
case "$*" in
    *artifacts?name=gate*) cat "$HERE/artifacts.json" ;;
    */zip) cat "$HERE/gate.zip" ;;
    *PATCH*|*POST*) echo "$*" > "$HERE/asked.txt"; cat > "$HERE/posted.json" ;;
    */comments*) cat "$HERE/comments.json" ;;
    */pulls*) cat "$HERE/pulls.json" ;;
    *) echo "gh: $*" >&2; exit 1 ;;
esac
"#;

/// A folder with the programs that the scripts start, in which everything lies that GitHub would say.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a folder"));
        place.program("gh", GH);
        let command = env!("CARGO_BIN_EXE_cargo-infergate");
        place.program("cargo", &format!("#!/bin/sh\nshift\nexec '{command}' infergate \"$@\"\n"));
        place.write(
            "comments.json",
            &json!([{"id": 7, "user": {"login": "github-actions[bot]"},
            "body": "<!-- infergate comment -->\n### infergate: pass"}]),
        );
        place.write("pulls.json", &json!([{"number": 5, "head": {"sha": SHA}}]));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn program(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a program");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).expect("its own file");
    }

    fn write(&self, name: &str, value: &Value) {
        fs::write(self.path(name), value.to_string()).expect("a file");
    }

    /// The run kept an artifact of these files, made at this time.
    fn keep(&self, created: &str, files: &[(&str, &[u8])]) {
        let pack = "import json, sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED) as z:\n \
                    [z.write(path, name) for name, path in json.loads(sys.argv[2])]";
        let named: Vec<(String, PathBuf)> = files
            .iter()
            .enumerate()
            .map(|(at, (name, bytes))| {
                let path = self.path(&format!("packed-{at}"));
                fs::write(&path, bytes).expect("a file");
                ((*name).to_owned(), path)
            })
            .collect();
        let zip = self.path("gate.zip");
        let packed = Command::new("python3").args(["-c", pack]).arg(&zip).arg(json!(named).to_string()).status();
        assert!(packed.expect("python3").success());
        let bytes = fs::metadata(&zip).expect("an archive").len();
        self.artifacts(&json!([{"id": 1, "size_in_bytes": bytes, "created_at": created}]));
    }

    fn artifacts(&self, list: &Value) {
        self.write("artifacts.json", &json!({"artifacts": list}));
    }

    fn script(&self, name: &str, arguments: &[PathBuf]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci").join(name);
        let path = format!("{}:{}", self.path("").display(), std::env::var("PATH").expect("a path"));
        let mut bash = Command::new("bash");
        bash.arg(script).args(arguments).current_dir(self.path("")).env("PATH", path).env("HERE", self.path(""));
        bash.envs([("REPOSITORY", "o/r"), ("RUN_ID", "9"), ("CONCLUSION", "failure"), ("HEAD_SHA", SHA)]);
        bash.envs([("RUN_STARTED_AT", "2026-01-02T00:00:00Z"), ("RUN_URL", "https://github.com/o/r/actions/runs/9")]);
        bash.envs([("HEAD_OWNER", "o"), ("HEAD_BRANCH", "b")]);
        bash.output().expect("bash")
    }

    /// Runs the steps of the workflow, the last one also where one before failed; gives what was posted.
    fn comment(&self) -> String {
        let (incoming, outgoing) = (self.path("incoming"), self.path("outgoing"));
        let fetched = self.script("fetch-gate", std::slice::from_ref(&incoming));
        if fetched.status.success() {
            self.script("make-comment", &[incoming, outgoing.clone()]);
        }
        let posted = self.script("post-comment", &[outgoing.join("comment.md")]);
        assert!(posted.status.success(), "{}", String::from_utf8_lossy(&posted.stderr));
        let asked = fs::read_to_string(self.path("asked.txt")).expect("it was posted");
        assert!(asked.contains("--method PATCH repos/o/r/issues/comments/7"), "{asked}");
        let body = fs::read_to_string(self.path("posted.json")).expect("it was posted");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        body["body"].as_str().expect("a text").to_owned()
    }
}

fn golden(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)).expect("a golden file")
}

#[track_caller]
fn assert_no_verdict(comment: &str, why: &str) {
    let head = "<!-- infergate comment -->\n### ⚠️ infergate: no verdict for 0123456789\n\nThere is no verdict for this commit: ";
    assert!(comment.starts_with(&format!("{head}{why}")), "{comment}");
    assert!(comment.contains("(https://github.com/o/r/actions/runs/9)") && !comment.contains("evil"), "{comment}");
}

#[test]
fn a_verdict_is_what_the_comment_says() {
    let place = Place::new();
    place.keep("2026-01-02T00:10:00Z", &[("paired.json", &golden("paired-1.json")), ("report/comment.md", b"evil")]);
    let comment = place.comment();
    assert!(comment.starts_with("<!-- infergate comment -->\n###") && !comment.contains("no verdict"), "{comment}");
    assert!(comment.contains("decode/p8") && !comment.contains("evil"), "{comment}");
    let links = "\n[The run](https://github.com/o/r/actions/runs/9), and [its files](https://github.com/o/r/actions/runs/9#artifacts)";
    assert!(comment.contains(links), "{comment}");
}

#[test]
fn a_gate_that_broke_leaves_no_old_verdict_standing() {
    let place = Place::new();
    place.artifacts(&json!([]));
    assert_no_verdict(&place.comment(), "the gate's run ended with `failure` and kept no files. ");
    // The build failed: the log was kept, and no verdict.
    place.keep("2026-01-02T00:10:00Z", &[("report/comment.md", b"evil")]);
    assert_no_verdict(&place.comment(), "the gate's run ended with `failure` and wrote no verdict. ");
    // What the first attempt of this run kept is no word on the second.
    place.keep("2026-01-01T23:00:00Z", &[("paired.json", &golden("paired-1.json"))]);
    assert_no_verdict(&place.comment(), "the gate's run ended with `failure` and kept no files. ");
}

#[test]
fn what_cannot_be_read_is_no_verdict_and_none_of_its_words_are_said() {
    let place = Place::new();
    place.keep("2026-01-02T00:10:00Z", &[("paired.json", b"{\"schema\": \"evil\"}")]);
    assert_no_verdict(&place.comment(), "what the gate's run wrote cannot be read as a verdict. ");
    place.keep("2026-01-02T00:10:00Z", &[("paired.json", &vec![b' '; (16 << 20) + 1])]);
    assert_no_verdict(&place.comment(), "the gate's paired.json is longer than 16777216 bytes");
    place.artifacts(&json!([{"id": 1, "size_in_bytes": 16_777_217, "created_at": "2026-01-02T00:10:00Z"}]));
    assert_no_verdict(&place.comment(), "the gate's run kept 16777217 bytes");
    fs::write(place.path("gate.zip"), "evil").expect("a file");
    place.artifacts(&json!([{"id": 1, "size_in_bytes": 4, "created_at": "2026-01-02T00:10:00Z"}]));
    assert_no_verdict(&place.comment(), "the gate's run ended with `failure` and wrote no verdict. ");
}

#[test]
fn a_step_that_fails_leaves_no_old_verdict_standing() {
    let place = Place::new();
    // GitHub does not answer what was kept.
    assert_no_verdict(&place.comment(), "the workflow that makes this comment failed. ");
    place.keep("2026-01-02T00:10:00Z", &[("paired.json", &golden("paired-1.json"))]);
    place.program("cargo", "#!/bin/sh\nexit 101\n");
    assert_no_verdict(&place.comment(), "what the gate's run wrote cannot be read as a verdict. ");
}

/// A new commit was pushed meanwhile: its own run comments.
#[test]
fn a_commit_that_is_no_longer_the_head_gets_no_comment() {
    let place = Place::new();
    place.artifacts(&json!([]));
    place.write("pulls.json", &json!([{"number": 5, "head": {"sha": "f".repeat(40)}}]));
    let posted = place.script("post-comment", &[place.path("none.md")]);
    assert!(posted.status.success() && !place.path("asked.txt").exists());
}

#[test]
fn the_workflow_runs_these_scripts() {
    let workflow = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.github/workflows/comment.yml");
    let workflow = fs::read_to_string(workflow).expect("a workflow");
    for line in [
        "run: bash .ci/fetch-gate target/incoming\n",
        "run: bash .ci/make-comment target/incoming target/outgoing\n",
        "if: ${{ !cancelled() }}\n        run: bash .ci/post-comment target/outgoing/comment.md\n",
    ] {
        assert!(workflow.contains(line), "{line}");
    }
}
