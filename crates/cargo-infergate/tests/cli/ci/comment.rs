//! The scripts of `comment/`, with a `gh` that answers from files: whatever the gate's run left behind, the comment is about the commit
//! that is there now.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::ci::place::{Place, root, stderr, stdout};

/// The commits of the golden receipt, as GitHub has them of the pull request.
const SHA: &str = "0123456789abcdef0123456789abcdef01234567";
const BASE: &str = "fedcba9876543210fedcba9876543210fedcba98";

/// Answers each question from the file that it names, and keeps what is posted.
const GH: &str = r#"#!/bin/sh
case "$*" in
    *artifacts?name=gate*) cat "$HERE/artifacts.json" ;;
    */zip) cat "$HERE/gate.zip" ;;
    *PATCH*|*POST*) echo "$*" > "$HERE/asked.txt"; cat > "$HERE/posted.json" ;;
    */comments*) cat "$HERE/comments.json" ;;
    */pulls*) cat "$HERE/pulls.json" ;;
    */compare/*) echo "$*" > "$HERE/compared.txt"; cat "$HERE/compare.json" ;;
    *) echo "gh: $*" >&2; exit 1 ;;
esac
"#;

/// A pull request with a comment of before, and the real command.
struct Pull(Place);

impl Pull {
    fn new() -> Self {
        let place = Place::new();
        place.program("bin/gh", GH);
        place.program("command", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_cargo-infergate")));
        let pull = Self(place);
        pull.write(
            "comments.json",
            &json!([{"id": 7, "user": {"login": "github-actions[bot]"},
            "body": "<!-- infergate comment -->\n### infergate: pass"}]),
        );
        pull.write("pulls.json", &json!([{"number": 5, "head": {"sha": SHA}, "base": {"sha": "tip"}}]));
        pull.left_at(BASE);
        pull
    }

    /// The pull request left its target there.
    fn left_at(&self, commit: &str) {
        self.write("compare.json", &json!({"merge_base_commit": {"sha": commit}}));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    fn write(&self, name: &str, value: &Value) {
        self.0.write(name, value.to_string());
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

    /// The scripts in turn, as comment.yml has them: by the settings in `folder`, for the pull requests that the event names. Gives what
    /// they printed.
    fn run(&self, named: &str, folder: &str) -> String {
        self.run_against("", named, folder)
    }

    fn run_against(&self, against: &str, named: &str, folder: &str) -> String {
        // Each job starts with an empty one.
        fs::remove_dir_all(self.path("runner")).unwrap_or_default();
        let mut printed = String::new();
        let mut script = |name: &str, files: &[&str], folder: &str| {
            let mut bash = self.0.process("bash");
            bash.arg(root().join("comment").join(name)).args(files.iter().map(|file| self.path("runner").join(file)));
            bash.current_dir(self.path("work").join(folder)).env("GATE_COMMAND", self.path("command"));
            bash.envs([("REPOSITORY", "o/r"), ("RUN_ID", "9"), ("RUN_STARTED_AT", "2026-01-02T00:00:00Z")]);
            bash.envs([("CONCLUSION", "failure"), ("HEAD_SHA", SHA), ("HEAD_OWNER", "o"), ("HEAD_BRANCH", "b")]);
            bash.envs([("RUN_URL", "https://github.com/o/r/actions/runs/9"), ("PULL_REQUESTS", named)]);
            bash.env("AGAINST", against).env("GITHUB_SERVER_URL", "https://github.com").env("GITHUB_REPOSITORY", "o/r");
            let output = bash.output().expect("bash");
            printed += &(stdout(&output) + &stderr(&output));
            output.status.success()
        };
        if script("fetch.sh", &["incoming"], ".") {
            script("make.sh", &["incoming", "outgoing"], folder);
        }
        assert!(script("post.sh", &["outgoing/comment.md"], "."), "{printed}");
        printed
    }

    /// What was posted.
    fn comment(&self) -> String {
        self.comment_by(".")
    }

    fn comment_by(&self, folder: &str) -> String {
        let printed = self.run("5", folder);
        let asked = fs::read_to_string(self.path("asked.txt")).unwrap_or_else(|_| panic!("{printed}"));
        assert!(asked.contains("--method PATCH repos/o/r/issues/comments/7"), "{asked}");
        let body: Value = serde_json::from_str(&self.0.read("posted.json")).expect("JSON");
        fs::remove_file(self.path("asked.txt")).expect("a file");
        body["body"].as_str().expect("a text").to_owned()
    }
}

fn golden(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)).expect("a golden file")
}

#[track_caller]
fn assert_no_verdict(comment: &str, why: &str) {
    let head = "<!-- infergate comment -->\n### ⚠️ infergate: no verdict for 0123456789\n\nThere is no verdict for this commit: ";
    assert!(comment.starts_with(&format!("{head}{why}")), "{comment}");
    assert!(comment.contains("(https://github.com/o/r/actions/runs/9)") && !comment.contains("evil"), "{comment}");
}

#[test]
fn a_verdict_is_what_the_comment_says() {
    let pull = Pull::new();
    pull.keep("2026-01-02T00:10:00Z", &[("paired.json", &golden("paired-1.json")), ("report/comment.md", b"evil")]);
    let comment = pull.comment();
    assert!(comment.starts_with("<!-- infergate comment -->\n###") && !comment.contains("no verdict"), "{comment}");
    assert!(comment.contains("decode/p8") && !comment.contains("evil"), "{comment}");
    let run = "https://github.com/o/r/actions/runs/9";
    assert!(comment.contains(&format!("[run]({run}) · [report and receipts]({run}#artifacts)")), "{comment}");
}

/// A good receipt of an earlier commit, or of one against another base, is no word on this pull request.
#[test]
fn a_receipt_of_other_commits_is_no_verdict() {
    let receipt = String::from_utf8(golden("paired-1.json")).expect("JSON");
    let other = "a".repeat(40);
    let dirty = receipt.replace("\"dirty\": false", "\"dirty\": true");
    for text in [receipt.replace(SHA, &other), receipt.replace(BASE, &other), receipt.replace(BASE, SHA), dirty] {
        let pull = Pull::new();
        pull.keep("2026-01-02T00:10:00Z", &[("paired.json", text.as_bytes())]);
        assert_no_verdict(&pull.comment(), "what the gate's run wrote cannot be read as a verdict on it. ");
    }
}

#[test]
fn the_base_is_where_the_pull_request_left_its_target_or_what_the_repository_names() {
    let pull = Pull::new();
    pull.keep("2026-01-02T00:10:00Z", &[("paired.json", &golden("paired-1.json"))]);
    for (against, target) in [("", "tip"), ("origin/a/b", "a%2Fb"), ("v1", "v1")] {
        pull.run_against(against, "5", ".");
        assert_eq!(pull.0.read("compared.txt"), format!("api repos/o/r/compare/{target}...{SHA}\n"));
        assert!(!pull.0.read("posted.json").contains("no verdict"), "{against}");
    }
    pull.left_at(SHA);
    assert_no_verdict(&pull.comment(), "what the gate's run wrote cannot be read as a verdict on it. ");
}

#[test]
fn a_gate_that_broke_leaves_no_old_verdict_standing() {
    let nothing =
        "the gate's run ended with `failure` and kept no files; if only failed jobs ran again, run all of them. ";
    let pull = Pull::new();
    pull.artifacts(&json!([]));
    assert_no_verdict(&pull.comment(), nothing);
    // The build failed: the log was kept, and no verdict.
    pull.keep("2026-01-02T00:10:00Z", &[("report/comment.md", b"evil")]);
    assert_no_verdict(&pull.comment(), "the gate's run ended with `failure` and wrote no verdict. ");
    // What the first attempt of this run kept is no word on the second.
    pull.keep("2026-01-01T23:00:00Z", &[("paired.json", &golden("paired-1.json"))]);
    assert_no_verdict(&pull.comment(), nothing);
}

#[test]
fn what_cannot_be_read_is_no_verdict_and_none_of_its_words_are_repeated() {
    let pull = Pull::new();
    pull.keep("2026-01-02T00:10:00Z", &[("paired.json", b"{\"schema\": \"evil\"}")]);
    assert_no_verdict(&pull.comment(), "what the gate's run wrote cannot be read as a verdict on it. ");
    pull.keep("2026-01-02T00:10:00Z", &[("paired.json", &vec![b' '; (4 << 20) + 1])]);
    assert_no_verdict(&pull.comment(), "the gate's paired.json is longer than 4194304 bytes");
    pull.artifacts(&json!([{"id": 1, "size_in_bytes": 67_108_865, "created_at": "2026-01-02T00:10:00Z"}]));
    assert_no_verdict(&pull.comment(), "the gate's run kept 67108865 bytes");
    fs::write(pull.path("gate.zip"), "evil").expect("a file");
    pull.artifacts(&json!([{"id": 1, "size_in_bytes": 4, "created_at": "2026-01-02T00:10:00Z"}]));
    assert_no_verdict(&pull.comment(), "the gate's run ended with `failure` and wrote no verdict. ");
}

#[test]
fn a_step_that_fails_leaves_no_old_verdict_standing() {
    let pull = Pull::new();
    // GitHub does not answer what was kept.
    assert_no_verdict(&pull.comment(), "the workflow that makes this comment failed. ");
    pull.keep("2026-01-02T00:10:00Z", &[("paired.json", &golden("paired-1.json"))]);
    pull.0.program("command", "#!/bin/sh\nexit 101\n");
    assert_no_verdict(&pull.comment(), "what the gate's run wrote cannot be read as a verdict on it. ");
}

/// A new commit was pushed meanwhile: its own run comments.
#[test]
fn a_commit_that_is_no_longer_the_head_gets_no_comment() {
    let pull = Pull::new();
    pull.artifacts(&json!([]));
    pull.write("pulls.json", &json!([{"number": 5, "head": {"sha": "f".repeat(40)}}]));
    let printed = pull.run("5", ".");
    assert!(!pull.path("asked.txt").exists(), "{printed}");
}

/// One branch, asked to go to two others.
#[test]
fn of_two_pull_requests_with_one_head_that_which_the_event_names_gets_the_comment() {
    let pull = Pull::new();
    pull.artifacts(&json!([]));
    pull.write("pulls.json", &json!([{"number": 5, "head": {"sha": SHA}}, {"number": 12, "head": {"sha": SHA}}]));
    // A fork's are not in the event.
    for named in ["", "5 12", "1"] {
        let printed = pull.run(named, ".");
        assert!(!pull.path("asked.txt").exists() && printed.contains("pull requests 5 12 have this head"), "{printed}");
    }
    pull.write("comments.json", &json!([]));
    let printed = pull.run("12", ".");
    let asked = fs::read_to_string(pull.path("asked.txt")).unwrap_or_else(|_| panic!("{printed}"));
    assert!(asked.contains("--method POST repos/o/r/issues/12/comments"), "{asked}");
}

/// Whatever limits the receipt has in it.
#[test]
fn the_settings_of_the_default_branch_judge() {
    let pull = Pull::new();
    pull.keep("2026-01-02T00:10:00Z", &[("paired.json", &golden("paired-1.json"))]);
    assert!(pull.comment().contains("| +2.0 % |"), "{}", pull.comment());
    pull.0.write("work/engine/infergate.toml", "threshold = '20%'\nmean_threshold = '20%'\n");
    let comment = pull.comment_by("engine");
    assert!(comment.contains("| +20.0 % |") && !comment.contains("| +2.0 % |"), "{comment}");
}
