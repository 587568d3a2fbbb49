//! How accurate the load client is, and how many tokens a core of it takes, against a server whose token times are known.
//!
//! ```console
//! cargo build --release -p cargo-infergate --bin cargo-infergate --example load_accuracy
//! printf '#!/bin/sh\nexec taskset -c 1 target/release/cargo-infergate "$@"\n' > server.sh && chmod +x server.sh
//! taskset -c 0 target/release/examples/load_accuracy ./server.sh 1 50 200 500
//! ```

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use infergate_core::load::Arrivals;
use infergate_core::stats::quantile;
use infergate_load::client::audit::drive;
use infergate_load::client::cpu::raise_connection_limit;
use infergate_load::client::script_server::Script;
use infergate_load::target::live::Live;

const SCRIPT: Script = Script { ttft_ns: 200_000_000, itl_ns: 20_000_000, output_tokens: 50, is_shared: false };

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let program = PathBuf::from(arguments.next().context("usage: load_accuracy PROGRAM USERS...")?);
    raise_connection_limit();
    println!(
        "users  requests  tokens   TTFT late p50/p99/max ms   gap off p50/p99/max ms   CPU   tokens per CPU-second"
    );
    for users in arguments {
        let users: u32 = users.parse().context("a number of users")?;
        let requests = (2 * u64::from(users)).max(if users == 1 { 50 } else { 400 });
        let arrivals = Arrivals::Closed { users };
        let driven = drive(&program, arrivals, SCRIPT, (requests, 0), 1, &Arc::new(Live::default()))?;
        let (mut first, mut gaps, mut tokens) = (Vec::new(), Vec::new(), 0);
        for record in driven.level.requests.iter().filter(|record| record.measured || record.failure.is_none()) {
            let written = driven.log.get(&record.request).context("a request without a log")?;
            anyhow::ensure!(record.failure.is_none() && written.len() == record.chunk_ns.len(), "a token is missing");
            let late = record.chunk_ns.iter().zip(written);
            let late: Vec<f64> =
                late.map(|(seen, at)| (i128::from(*seen) + driven.offset_ns - i128::from(*at)) as f64 / 1e6).collect();
            first.push(late[0]);
            gaps.extend(late.windows(2).map(|pair| (pair[1] - pair[0]).abs()));
            tokens += late.len();
        }
        let at = |values: &[f64], p| quantile(values, p).unwrap_or(f64::NAN);
        let shown = |values: &[f64]| format!("{:.2} {:.2} {:.2}", at(values, 0.5), at(values, 0.99), at(values, 1.0));
        let cpu_s = driven.level.client_cpu_ns.context("no processor time here")? as f64 / 1e9;
        println!(
            "{users:>5} {requests:>9} {tokens:>7}   {:<24}   {:<22}   {:>3.0} %   {:.0}",
            shown(&first),
            shown(&gaps),
            100.0 * cpu_s * 1e9 / driven.level.wall_ns as f64,
            tokens as f64 / cpu_s
        );
    }
    Ok(())
}
