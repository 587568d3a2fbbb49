// A worker of protocol 2 by hand, as an engine in any language could be one: one answer a line, on a made-up clock.

use std::io::{self, BufRead, Write};

use engine::STEP_NS;

fn number(request: &str, key: &str) -> u64 {
    let after = request.split(&format!("\"{key}\":")).nth(1).unwrap_or("0");
    after.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
}

// SHA-256 of the ids 7, 7 as little-endian u32.
const SHA256: &str = "28625f27a2f3d7f965ec406e885f2f1050684660b9941c56e95d96c46bcb42f9";

fn main() {
    let build = r#"{"rustc":"","flags":"","opt_level":"","target":""}"#;
    let machine = r#"{"class":"c","os":"o","arch":"a","cpu_vendor":"v","cpu_model":"m","logical_cores":1,"memory_bytes":1}"#;
    let engine = r#"{"name":"by-hand","version":"1","model":"m","dtype":"none","context_tokens":64,"vocab_tokens":9}"#;
    for line in io::stdin().lock().lines() {
        let line = line.expect("a request");
        let answer = if line.contains("\"op\":\"hello\"") {
            format!(r#"{{"protocol":2,"capabilities":["ttft","prepare","sample","turn","memory","inference","count","locate"],"clock":"virtual","tool":"0","machine":{machine},"build":{build}}}"#)
        } else if line.contains("\"op\":\"load\"") {
            format!(r#"{{"engine":{engine},"load_ns":1}}"#)
        } else if line.contains("\"op\":\"prepare\"") {
            format!(r#"{{"output":{{"sha256":"{SHA256}","ids":[7,7]}}}}"#)
        } else {
            let count = number(&line, "count") as usize;
            format!(r#"{{"samples_ns":[{}]}}"#, vec![format!("[{STEP_NS}]"); count].join(","))
        };
        println!(r#"{{"ok":{answer}}}"#);
        io::stdout().flush().expect("a reader");
    }
}
