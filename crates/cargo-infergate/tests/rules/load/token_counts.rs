//! Tokens of answers, counted by a tokenizer where the server does not, and beside its own count where it does.

use std::io::Write;

use infergate_core::load::{Failure, FailureClass, RequestRecord};
use infergate_core::metric::Metric;
use infergate_load::api::text::AnswerText;
use infergate_load::client::endpoint::Limits;
use infergate_load::client::stamped::RunClock;
use infergate_load::summary::token_counts::{TokenCounts, compare};
use infergate_load::summary::{Counted, summarise};
use infergate_load::targets::live::Live;
use infergate_load::validity;
use infergate_receipts::LoadReceipt;

use crate::load::command::Place;
use crate::load::faults::{answer, next_request, server};
use crate::load::receipt::sound;
use crate::load::script::{Act, END, HEAD, Script, chunk, done, endpoint, in_made_up_time, send, token};
use crate::load::text;
use crate::support;

#[test]
fn the_texts_of_whole_answers_are_kept_where_they_are_asked_for() {
    let piece = |text: &str| send(chunk(&format!("data: {{\"choices\":[{{\"delta\":{{{text}}}}}]}}\n\n")));
    let whole = vec![send(HEAD), piece("\"reasoning\":\"a \""), piece("\"content\":\"\u{e9}\""), done(2)];
    let cut = vec![send(HEAD), token(), send(END), Act::Close];
    for keeps in [true, false] {
        let script = Script::new([cut.clone(), whole.clone()]);
        let texts = in_made_up_time(async {
            let mut endpoint = endpoint(&script, Limits::default());
            if keeps {
                endpoint.keep_texts();
            }
            let (clock, live) = (RunClock::start(), Live::default());
            for number in 0..2 {
                let mut record = RequestRecord { request: number, ..RequestRecord::default() };
                let body = endpoint.template.body("1", 4);
                let outcome = endpoint.request(body, 4, &mut None, &mut record, (clock, &live)).await;
                assert_eq!(outcome.is_ok(), number == 1, "{outcome:?}");
            }
            let texts = endpoint.take_texts();
            assert!(endpoint.take_texts().is_empty(), "they are given once");
            texts
        });
        let pieces = vec!["a ".to_owned(), "\u{e9}".to_owned()];
        let read = |answer: &AnswerText| (answer.request, answer.pieces.clone(), answer.limit_tokens);
        let expected: Vec<(u64, Vec<String>, _)> = if keeps { vec![(1, pieces, Some(4))] } else { Vec::new() };
        assert_eq!(texts.iter().map(read).collect::<Vec<_>>(), expected);
    }
}

fn counted(usage: Option<u64>, text: Option<u64>) -> RequestRecord {
    RequestRecord { output_tokens: usage, text_tokens: text, ..RequestRecord::default() }
}

#[test]
fn answers_with_both_counts_are_compared() {
    assert_eq!(compare(&[counted(Some(4), None), counted(None, Some(4))]), None);
    let failed = Failure { class: FailureClass::CutStream, status: None, detail: "why".into() };
    let records = [
        counted(Some(4), Some(4)),
        counted(Some(4), Some(3)),
        counted(Some(4), Some(9)),
        counted(None, Some(2)),
        RequestRecord { failure: Some(failed), ..counted(Some(1), Some(9)) },
    ];
    assert_eq!(compare(&records), Some(TokenCounts { both: 3, same: 1, apart: 1, most_apart: 5 }));
}

/// A run whose 40 answers have 4 tokens by the tokenizer, and what `change` makes of them.
fn run(change: impl Fn(usize, &mut RequestRecord)) -> LoadReceipt {
    let mut receipt = sound();
    for (number, record) in receipt.levels[0].requests.iter_mut().enumerate() {
        record.text_tokens = Some(4);
        change(number, record);
    }
    receipt
}

#[test]
fn a_tokenizer_counts_where_the_server_does_not() {
    let receipt = run(|_, record| {
        record.output_tokens = None;
        record.text_tokens = Some(7);
    });
    let summary = summarise(&receipt.levels[0]);
    assert_eq!(summary.counted, Some(Counted::Tokenizer));
    assert_eq!(summary.values(Metric::Tpot).at(0.5), Some(10e6), "60 ms for the six tokens behind the first");
    let shown = text(&receipt);
    assert!(
        shown.contains("No usable count of tokens came from the server; they were counted in the texts of the answers by a tokenizer"),
        "{shown}"
    );
    assert!(!shown.contains("counted as pieces"), "{shown}");
    // One answer that nobody counted: no number may look like a whole count.
    let partly = run(|number, record| {
        record.output_tokens = None;
        record.text_tokens = record.text_tokens.filter(|_| number != 5);
    });
    assert_eq!(summarise(&partly.levels[0]).counted, Some(Counted::Pieces));
}

#[test]
fn the_servers_own_count_comes_first_and_both_have_to_agree() {
    let one_end_counted = run(|_, record| record.text_tokens = Some(3));
    assert_eq!(validity::reasons(&one_end_counted), Vec::<String>::new());
    let summary = summarise(&one_end_counted.levels[0]);
    assert_eq!((summary.counted, summary.values(Metric::Tpot).at(0.5)), (Some(Counted::Usage), Some(20e6)));
    let shown = text(&run(|_, _| {}));
    assert!(shown.contains("the same number in 40 of 40 answers, more than one apart in 0"), "{shown}");
    let another_model = run(|number, record| record.text_tokens = Some(if number == 0 { 9 } else { 4 }));
    let reasons = validity::reasons(&another_model);
    assert!(reasons[0].contains("more than one token apart on 1 of 40 answers, by up to 5"), "{reasons:?}");
}

#[test]
fn prompt_tokens_of_a_cache_are_shown_where_the_server_counts_them() {
    let mut receipt = sound();
    receipt.levels[0].requests.iter_mut().for_each(|record| record.input_tokens = Some(100));
    assert_eq!(summarise(&receipt.levels[0]).cached_share, None);
    assert!(!text(&receipt).contains("cached"));
    // A server can leave out a count of none.
    receipt.levels[0].requests.iter_mut().step_by(2).for_each(|record| record.cached_tokens = Some(50));
    assert_eq!(summarise(&receipt.levels[0]).cached_share, Some(0.25));
    let shown = text(&receipt);
    assert!(shown.contains("cached prompt") && shown.contains("25 %"), "{shown}");
}

/// A server whose answers are two pieces of two letters and another one of one, without usage, which end for `reason`.
fn without_usage(reason: &str) -> String {
    let piece = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let end = format!("data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\ndata: [DONE]\n\n");
    let answer = HEAD.to_owned() + &chunk(&(piece("ab") + &piece("ab") + &piece("c") + &end)) + END;
    let port = server(move |_, connection| {
        while next_request(connection).is_some() {
            let _ = connection.write_all(answer.as_bytes());
        }
    });
    format!("http://127.0.0.1:{port}")
}

/// One whose seven pieces are a letter each, with usage.
fn with_usage() -> String {
    let port = server(|_, connection| {
        while next_request(connection).is_some() {
            let _ = connection.write_all(answer(7).as_bytes());
        }
    });
    format!("http://127.0.0.1:{port}")
}

const SMALL: [&str; 5] = ["--model=m", "--users=2", "--requests=40", "--input-tokens=8", "--output-tokens=7"];

/// The fake's tokens are characters. An answer that its limit of 7 ended can hide two of them, one that the model ended none.
#[test]
fn a_run_counts_by_the_tokenizer_of_the_bench_target() {
    let place = Place::new();
    let worker = format!("--worker={}", support::example("fake_load").display());
    let targets = [
        format!("--target=A={}", without_usage("length")),
        format!("--target=B={}", with_usage()),
        format!("--target=C={}", without_usage("stop")),
    ];
    let [a, b, c] = &targets;
    let (_, said, error) =
        place.run(&[&["--tokenizer=fake", "--out=load.json", a, b, c, &worker], &SMALL[..]].concat());
    assert!(said.contains("No usable count of tokens came from A"), "{said}{error}");
    assert!(said.contains("the same number in"), "{said}");
    let level = &place.receipt("load.json").levels[0];
    assert_eq!(level.requests.iter().filter(|record| record.measured).count(), 40);
    for record in &level.requests {
        let expected = [(None, Some(7)), (Some(7), Some(7)), (None, Some(5))][record.target as usize];
        assert_eq!((record.output_tokens, record.text_tokens), expected, "{record:?}");
    }
    let text = std::fs::read_to_string(place.folder.path().join("load.json")).expect("a receipt");
    assert!(!text.contains("\"ab"), "answers are in no receipt");
}

#[test]
fn a_tokenizer_that_is_none_is_refused_before_the_run() {
    let place = Place::new();
    let fake = format!("--worker={}", support::example("fake_load").display());
    let url = format!("--target={}", without_usage("stop"));
    let line = place.refused(&[&["--tokenizer=fake:wordless", &url, &fake], &SMALL[..]].concat());
    assert!(line.contains("this model has no tokenizer"), "{line}");
    let line = place.refused(&["--target=local:fake", &fake, "--tokenizer=fake"]);
    assert!(line.contains("--tokenizer: a local engine takes none"), "{line}");
}

/// Workers that are scripts.
#[cfg(unix)]
mod scripts {
    use std::path::{Path, PathBuf};
    use std::sync::atomic::AtomicBool;

    use infergate_core::engine::LoadRequest;
    use infergate_core::worker::{Client, Timeouts, WorkerError, WorkerFile};
    use tempfile::TempDir;

    use super::{SMALL, without_usage};
    use crate::load::command::Place;

    fn script(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/workers").join(format!("{name}.sh"))
    }

    #[test]
    fn an_old_worker_is_refused_before_the_run() {
        let place = Place::new();
        let (target, old) =
            (format!("--target={}", without_usage("stop")), format!("--worker={}", script("forgets").display()));
        let line = place.refused(&[&["--tokenizer=m", &target, &old], &SMALL[..]].concat());
        assert!(line.contains("does not know \"count_tokens\"; build it with a newer infergate"), "{line}");
    }

    #[test]
    fn counts_that_cannot_be_are_refused() {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let count = |answer: &str| {
            let folder = TempDir::new().expect("a folder");
            let path = folder.path().join("answer.json");
            std::fs::write(&path, format!("{{\"ok\":{{\"tokens\":{answer}}}}}\n")).expect("a file");
            let load = LoadRequest { model: path.display().to_string(), ..LoadRequest::default() };
            let file = WorkerFile::open(&script("level")).expect("a file");
            let (mut client, _) = Client::spawn(&file, &load, Timeouts::default(), &NEVER).expect("says hello");
            client.load(&load, None).expect("loads");
            client.count_tokens(&["one two".to_owned(), String::new()])
        };
        assert_eq!(count("[2,0]").expect("counts"), [2, 0]);
        let error = count("[2]").expect_err("one text of two");
        let why = "of 1 texts where 2 were given";
        assert!(matches!(error, WorkerError::Unusable(_)) && error.to_string().contains(why), "{error:?}");
    }
}
