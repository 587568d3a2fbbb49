//! Whether a level's medians are those of the load that stands beside them: users on a server that shares itself among the
//! requests in flight, so that a token takes 4 ms for each of them. With N users at full load a gap, and the first token, take
//! 4 N ms, and an answer of 20 tokens 80 N ms. Fails where a median is more than 3 % away from that.
//!
//! ```console
//! cargo build --release -p cargo-infergate --bin cargo-infergate --example load_truth
//! target/release/examples/load_truth target/release/cargo-infergate 80 1 8 32
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use infergate_core::load::Arrivals;
use infergate_load::client::audit::drive;
use infergate_load::client::script_server::Script;
use infergate_load::summary::summarise;
use infergate_load::target::live::Live;

const SCRIPT: Script = Script { ttft_ns: 0, itl_ns: 4_000_000, output_tokens: 20, is_shared: true };
const MOST_OFF: f64 = 0.03;

fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: load_truth PROGRAM REQUESTS USERS...";
    let program = PathBuf::from(arguments.next().context(usage)?);
    let requests: u64 = arguments.next().context(usage)?.parse().context(usage)?;
    let mut is_true = true;
    println!(
        "users  measured   sent  in flight    TTFT P50, truth, ratio      ITL P50, truth, ratio      E2E P50, truth, ratio"
    );
    for users in arguments {
        let users: u32 = users.parse().context(usage)?;
        let driven = drive(&program, Arrivals::Closed { users }, SCRIPT, (requests, 1), 1, &Arc::new(Live::default()))?;
        let summary = summarise(&driven.level);
        let gap_ms = SCRIPT.itl_ns as f64 / 1e6 * f64::from(users);
        let truths_ms = [gap_ms, gap_ms, gap_ms * f64::from(SCRIPT.output_tokens)];
        let mut line = format!(
            "{users:>5} {:>9} {:>6} {:>10.2}",
            summary.measured,
            summary.issued,
            summary.in_flight.unwrap_or(f64::NAN)
        );
        for (values, truth_ms) in [&summary.ttft_ns, &summary.itl_ns, &summary.e2e_ns].into_iter().zip(truths_ms) {
            let p50_ms = values.at(0.5).unwrap_or(f64::NAN) / 1e6;
            let ratio = p50_ms / truth_ms;
            is_true &= (ratio - 1.0).abs() <= MOST_OFF;
            line += &format!("  {p50_ms:>9.2} {truth_ms:>7.0} ms {ratio:.4}");
        }
        println!("{line}");
    }
    Ok(if is_true { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
