//! Every parser of the command and of a worker's client, against damaged bytes, within the limit on memory.

use std::path::Path;

use cargo_infergate::config::Config;
use cargo_infergate::receipt::{
    Baseline, Calibration, Format, LoadBaseline, LoadReceipt, MemoryReceipt, PairedReceipt, Receipt, Verdict, read,
};
use infergate_core::config::keys::commented_file;
use infergate_core::config::{MAX_FILE_BYTES, Settings as _};
use infergate_core::json;
use infergate_core::load::{LoadLevel, LoadWindow, RequestRecord};
use infergate_core::receipt::{CountedCase, InferenceMemory, LeakSite, RULES, TtftParts};
use infergate_core::worker::{
    Answer, CountedTokens, Hello, Loaded, MemoryState, PreparedReply, Reread, SampleReply, TextReply, TurnReply, Wire,
};
use infergate_load::api::stream::Completion;
use infergate_load::plan::dataset::Dataset;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use crate::files::golden;
use crate::hostile::{survives, within_memory};
use crate::swell::within_charge;

fn one_line(error: anyhow::Error) -> String {
    format!("{error:#}")
}

/// A parser of files, tried on damaged copies of `sound`.
fn of_files(name: &str, sound: &[&[u8]], parse: impl Fn(&Path) -> anyhow::Result<()>) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join(name);
    let taken = survives(name, sound, |bytes| {
        std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
        parse(&path).map_err(one_line)
    });
    println!("{name}: {taken} damaged inputs were read");
}

fn of_format<T: Format>(name: &str) {
    let text = std::fs::read(golden(name)).expect("a golden file");
    of_files(name, &[&text], |path| read::<T>(path).map(drop));
}

#[test]
fn formats() {
    of_format::<Receipt>("receipt-1.json");
    of_format::<Baseline>("baseline-1.json");
    of_format::<MemoryReceipt>("memory-1.json");
    of_format::<PairedReceipt>("paired-1.json");
    of_format::<Verdict>("verdict-2.json");
    of_format::<Calibration>("calibration-1.json");
}

#[test]
fn formats_of_load() {
    of_format::<LoadReceipt>("load-1.json");
    of_format::<LoadReceipt>("load-shard-1.json");
    of_format::<LoadBaseline>("load-baseline-1.json");
}

const DATASET: &[u8] = b"{\"prompt\": \"one \\u00e9\", \"output_tokens\": 64}\n\n{\"prompt\": \"two\"}\r\n";

#[test]
fn files_of_others() {
    of_files("dataset.jsonl", &[DATASET], |path| Dataset::read(path).map(drop));
}

#[test]
fn settings() {
    let file = commented_file();
    let set: String = file
        .lines()
        .map(|line| line.strip_prefix("# ").unwrap_or(line))
        .filter(|line| line.contains(" = ") || line.starts_with('['))
        .map(|line| format!("{line}\n"))
        .collect();
    let sound: Vec<&[u8]> =
        [set.as_bytes(), file.as_bytes()].into_iter().filter(|bytes| apply(bytes).is_ok()).collect();
    survives("infergate.toml", &sound, apply);
    let most = usize::try_from(MAX_FILE_BYTES).expect("small");
    for entry in ["a=0\n", "a.b={}\n", "[a]\n", "[[a]]\n", "[[scenario]]\n", "#\n", "\"\"=''\n"] {
        let mut text: String = (0..most / entry.len()).map(|at| entry.replace('a', &format!("a{at:x}"))).collect();
        text.truncate(most);
        let _ = within_memory("infergate.toml", text.len(), || apply(text.as_bytes()));
    }
    for (begin, entry, end) in
        [("x=[", "0,", "]"), ("x=[", "{},", "]"), ("x=[", "[],", "]"), ("scenario=[", "{a=0},", "]")]
    {
        let text = format!("{begin}{}{end}", entry.repeat(most / entry.len() - 8));
        let _ = within_memory("infergate.toml", text.len(), || apply(text.as_bytes()));
    }
}

fn apply(bytes: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    Config::default().apply_file(Path::new("infergate.toml"), text).map_err(one_line)
}

const STREAMS: [&[u8]; 2] = [
    b"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"a\"},\"finish_reason\":null}]}\r\n\r\n: ping\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\u00e9\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
    b"event: message\ndata: {\"choices\":[{\"text\":\"b\"}]}\n\ndata: {\"choices\":[{\"text\":[{\"text\":\"c\"}],\"finish_reason\":\"stop\"}],\"usage\":null}\n\ndata: [DONE]\n\n",
];

fn stream(bytes: &[u8]) -> Result<(), String> {
    let (mut completion, mut record) = (Completion::new(2), RequestRecord::default());
    // Split as a network might.
    for (at, piece) in bytes.chunks(7 + bytes.len() / 3).enumerate() {
        completion.read(at as u64, piece, &mut record).map_err(|failure| failure.detail)?;
    }
    completion.finish(9, false, &mut record).map_err(|failure| failure.detail)
}

#[test]
fn server_streams() {
    survives("a stream", &STREAMS, stream);
    // The largest event there is, of the smallest choices, calls, parts and errors.
    for (begin, entry, end) in [
        ("{\"choices\":[", "{}", "]}"),
        ("{\"choices\":[{\"delta\":{\"tool_calls\":[", "{}", "]}}]}"),
        ("{\"choices\":[{\"text\":[", "{}", "]}]}"),
        ("{\"error\":[", "{\"\":0}", "]}"),
        ("{\"error\":{\"code\":[", "[]", "]}}"),
        ("{\"x\":[", "[]", "]}"),
    ] {
        let entries = vec![entry; ((1 << 20) - 200) / (entry.len() + 1)].join(",");
        let event = format!("data: {begin}{entries}{end}\n\n");
        let _ = within_memory("an event", event.len(), || stream(event.as_bytes()));
    }
}

const HELLO: &str = r#"{"ok":{"protocol":2,"capabilities":["ttft","prepare"],"clock":"virtual","tool":"0","machine":{"class":"c","os":"o","arch":"a","cpu_vendor":"v","cpu_model":"m","logical_cores":1,"memory_bytes":1},"build":{"rustc":"","flags":"","opt_level":"","target":""}}}"#;
const LOADED: &str = r#"{"id":1,"ok":{"engine":{"name":"script","version":"1","model":"m","dtype":"none","context_tokens":64,"vocab_tokens":9,"settings":{"a":"b"}},"load_ns":1,"devices":[],"benches":["bench:fib/20"]}}"#;
const PREPARED: &str = r#"{"ok":{"output":{"sha256":"00","ids":[1,2],"top2_margins":[0.5,null]},"work":null,"throughput":{"unit":"bytes","per_iteration":1024}}}"#;
const SAMPLES: &str = r#"{"ok":{"samples_ns":[[1,2,3],[],[4]]}}"#;
const RECORD: &str = r#"{"request":0,"scenario":0,"user":0,"scheduled_ns":1,"sent_ns":2,"chunk_ns":[3,4],"ended_ns":5,"output_tokens":2}"#;

/// As a worker's client reads an answer.
fn answer<T: DeserializeOwned>(bytes: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    json::read::<Answer<T>>(text, json::Rules { text_bytes: text.len(), ..RULES })
        .map(drop)
        .map_err(|error| error.to_string())
}

fn of_answers<T: DeserializeOwned>(name: &str, sound: &str) {
    survives(name, &[sound.as_bytes()], answer::<T>);
    within_charge::<Answer<T>>(name, &serde_json::from_str(sound).expect("JSON"));
    for dense in ["{\"\":0}", "[]", "0"] {
        let junk = vec![dense; (2 << 20) / (dense.len() + 1)].join(",");
        for text in
            [format!("{{\"ok\":[{junk}]}}"), sound.replacen("{\"ok\":{", &format!("{{\"ok\":{{\"x\":[{junk}],"), 1)]
        {
            let _ = within_memory(name, text.len(), || answer::<T>(text.as_bytes()));
        }
    }
}

#[test]
fn answers_of_workers() {
    of_answers::<Hello>("hello", HELLO);
    of_answers::<Loaded>("load", LOADED);
    of_answers::<PreparedReply>("prepare", PREPARED);
    of_answers::<SampleReply>("sample", SAMPLES);
    of_answers::<TurnReply>("turn", r#"{"ok":{"step_ns":[9,1,1],"idle":{"cpu_ns":1,"wall_ns":2}}}"#);
    of_answers::<Reread>("reread", r#"{"ok":{"known_ns":[9,1],"new_ns":[9,9]}}"#);
    of_answers::<TextReply>("text", r#"{"ok":{"text":" the,"}}"#);
    of_answers::<CountedTokens>("count_tokens", r#"{"ok":{"tokens":[2,3]}}"#);
}

#[test]
fn answers_of_workers_about_memory_and_load() {
    of_answers::<TtftParts>(
        "ttft",
        r#"{"ok":{"prompt_tokens":8,"load_ns":1,"tokenize_ns":1,"prefill_ns":1,"sample_ns":1}}"#,
    );
    of_answers::<InferenceMemory>("inference", r#"{"ok":{}}"#);
    of_answers::<MemoryState>(
        "memory",
        r#"{"ok":{"sample":{"live_bytes":1,"live_blocks":1,"rss_bytes":1},"peak_live_bytes":1,"missing":["why"]}}"#,
    );
    of_answers::<CountedCase>(
        "count",
        r#"{"ok":{"id":"decode/p8","output_sha256":"00","counters":{"allocations_per_token":{"min":14,"max":14}}}}"#,
    );
    of_answers::<Vec<LeakSite>>("locate", r#"{"ok":[{"bytes_per_run":1.5,"blocks_per_run":1,"frames":["a"]}]}"#);
    of_answers::<LoadLevel>(
        "load_level",
        &format!(
            r#"{{"ok":{{"slots":1,"largest_batch":1,"began_ns":0,"wall_ns":9,"records":[{RECORD}],"compared":0}}}}"#
        ),
    );
    of_answers::<LoadWindow>("window", &format!(r#"{{"ok":{{"records":[{RECORD}]}}}}"#));
}

const REQUESTS: [&[u8]; 4] = [
    b"{\"op\":\"hello\"}\n",
    br#"{"op":"load","request":{"model":"m","dtype":null,"threads":2,"seed":1,"options":{"a":"b"}},"prompt_text":"x","id":3}"#,
    b"{\"op\":\"prepare\",\"case\":\"decode/p128\",\"known\":[1,2],\"id\":4}\n{\"op\":\"count_tokens\",\"texts\":[\"a\"]}\n",
    br#"{"op":"sample","case":"decode/p128","count":10,"slowdown":0}"#,
];

/// What a worker reads of whoever asks.
#[test]
fn requests_to_workers() {
    survives("a request", &REQUESTS, |bytes| {
        let mut wire = Wire::new(bytes, std::io::sink());
        while let Some(asked) = wire.receive().map_err(one_line)? {
            asked.request.map_err(one_line)?;
        }
        Ok::<(), String>(())
    });
}
