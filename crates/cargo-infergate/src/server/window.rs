//! Many users at once on a server, for the worker that measures it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use infergate_core::load::{LoadWindow, RequestRecord, WindowPlan};

use infergate_load::client::endpoint::Client;
use infergate_load::plan::LevelPlan;
use infergate_load::target::live::Live;

/// Runs `level`, which is that of `plan`.
pub fn run(client: &Client, level: &LevelPlan, plan: WindowPlan) -> LoadWindow {
    let outcome = until(Duration::from_nanos(plan.give_up_ns), |live| client.run_level(level, live));
    let began_ns = outcome.level.began_ns;
    let records = outcome.level.requests.into_iter().map(|record| since(began_ns, record)).collect();
    LoadWindow { records, full: outcome.is_full }
}

/// Does `work`, which is told to end when it takes longer than `limit`.
fn until<T>(limit: Duration, work: impl FnOnce(&Arc<Live>) -> T) -> T {
    let late = Arc::new(AtomicBool::new(false));
    let live = Arc::new(Live::new(late.clone()));
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            late.store(is_done.recv_timeout(limit) == Err(RecvTimeoutError::Timeout), Ordering::Relaxed);
        });
        let given = work(&live);
        drop(done);
        given
    })
}

/// The same request, its times counted from the begin of its window.
fn since(began_ns: u64, record: RequestRecord) -> RequestRecord {
    let since = |ns: u64| ns.saturating_sub(began_ns);
    RequestRecord {
        scheduled_ns: since(record.scheduled_ns),
        sent_ns: since(record.sent_ns),
        connected_ns: record.connected_ns.map(since),
        first_byte_ns: record.first_byte_ns.map(since),
        first_answer_ns: record.first_answer_ns.map(since),
        chunk_ns: record.chunk_ns.iter().copied().map(since).collect(),
        ended_ns: since(record.ended_ns),
        ..record
    }
}
