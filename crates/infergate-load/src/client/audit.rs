//! The client's own accuracy: before a run it is driven against a server whose token times are known, as it will be in the run.

use std::sync::Arc;

use anyhow::Result;
use infergate_core::load::{Arrivals, RequestRecord, Stop};

use crate::api::body::{Api, RequestTemplate};
use crate::client::Client;
use crate::client::endpoint::{Endpoint, Limits};
use crate::client::script_server::{Log, Script, Server};
use crate::client::stamped::RunClock;
use crate::client::url::Url;
use crate::plan::shard::Shard;
use crate::plan::{LoadPlan, Prompts};
use crate::receipt::{AuditRecord, ErrorNs, LevelRecord, Scenario};
use crate::summary::is_given_up;
use crate::targets::live::Live;

/// As a fast server answers some users, and as one answers many.
const FAST: Script = Script { ttft_ns: 20_000_000, itl_ns: 5_000_000, output_tokens: 32 };
const MANY: Script = Script { ttft_ns: 50_000_000, itl_ns: 20_000_000, output_tokens: 32 };
/// Users from which the second one is driven: at 5 ms a token more would be beyond any server on one core.
const MANY_USERS: f64 = 50.0;
/// The fewest requests: with 32 tokens each enough for a p99.
const LEAST_REQUESTS: u64 = 12;

/// Drives a scripted server with `arrivals`. `None` where the run was asked to end.
pub fn audit(arrivals: Arrivals, seed: u64, live: &Arc<Live>) -> Result<Option<AuditRecord>> {
    // At a lower rate the fewest requests would take hours, and say nothing else.
    let mut driven = arrivals;
    if let Arrivals::Open { requests_per_s, .. } = &mut driven {
        *requests_per_s = requests_per_s.max(1.0);
    }
    let (script, requests) = script_for(driven);
    let clock = RunClock::start();
    let server = Server::start(script, clock)?;
    let url = Url::parse(&format!("http://127.0.0.1:{}", server.port), Api::Completions)?;
    let template = RequestTemplate {
        api: Api::Completions,
        model: "audit".into(),
        limit_field: "max_tokens",
        ..RequestTemplate::default()
    };
    let endpoint = Endpoint::over_network(&url, None, template, Limits::default())?;
    let client = Client { clock, ..Client::new(vec![endpoint])? };
    let plan = LoadPlan {
        scenario: 0,
        shape: Scenario::plain("audit", 1, script.output_tokens),
        arrivals: driven,
        stop: Stop::Requests { count: requests },
        warm_up_requests: 0,
        ramp_ns: 0,
        shard: Shard::WHOLE,
        seed,
        prompts: Prompts::Numbers,
        max_kept: u64::MAX,
    };
    let level = client.run_level(&plan, live).level;
    let record = AuditRecord { arrivals, ..compare(&level, script, &server.finish()?) };
    Ok((!live.is_cancelled()).then_some(record))
}

fn script_for(arrivals: Arrivals) -> (Script, u64) {
    let users = match arrivals {
        Arrivals::Closed { users } => f64::from(users),
        // As many as are in flight in the mean, at the fast script's latency.
        Arrivals::Open { requests_per_s, .. } => requests_per_s * 0.2,
    };
    let script = if users <= MANY_USERS { FAST } else { MANY };
    (script, ((2.0 * users).ceil() as u64).clamp(LEAST_REQUESTS, 20_000))
}

/// What the client recorded against what the server wrote down.
pub fn compare(level: &LevelRecord, script: Script, log: &Log) -> AuditRecord {
    let (mut stamps, mut gaps, mut wrong_requests) = (Vec::new(), Vec::new(), 0);
    // Those that were given up when the level was over have no end that could be compared.
    let requests: Vec<&RequestRecord> = level.requests.iter().filter(|record| !is_given_up(record)).collect();
    for record in &requests {
        match log.get(&record.request).filter(|written| is_same(record, written, script)) {
            None => wrong_requests += 1,
            Some(written) => {
                let pairs = record.chunk_ns.iter().zip(written);
                let errors: Vec<f64> = pairs.map(|(seen, written)| *seen as f64 - *written as f64).collect();
                gaps.extend(errors.windows(2).map(|pair| (pair[1] - pair[0]).abs()));
                stamps.extend(errors);
            }
        }
    }
    AuditRecord {
        shard: None,
        arrivals: level.arrivals,
        requests: requests.len() as u64,
        wrong_requests,
        tokens: stamps.len() as u64,
        stamp_error_ns: ErrorNs::of(&stamps),
        gap_error_ns: ErrorNs::of(&gaps),
        client_cpu_share: level.client_cpu_share(),
    }
}

fn is_same(record: &RequestRecord, written: &[u64], script: Script) -> bool {
    let all = script.output_tokens as usize;
    record.failure.is_none() && record.chunk_ns.len() == all && written.len() == all
}
