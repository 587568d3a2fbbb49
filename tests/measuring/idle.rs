//! What a worker computes between two requests is measured by itself.

use std::collections::VecDeque;
use std::io::{BufReader, Read, Result};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use infergate::engine::{Engine, LoadRequest};
use infergate::worker::serve;
use infergate_core::process::processor_ns;
use infergate_core::receipt::Idle;
use serde_json::Value;

use crate::fake::{FakeEngine, FakeScript, VirtualClock};

/// Of each wait for a request.
const BURNT_NS: u64 = 20_000_000;

/// One request after the other. Before each another thread of this process computes for a while.
struct Requests {
    left: VecDeque<&'static str>,
    begin: SyncSender<()>,
    done: Receiver<()>,
}

impl Read for Requests {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        let Some(line) = self.left.pop_front() else { return Ok(0) };
        self.begin.send(()).expect("it listens");
        self.done.recv().expect("it answers");
        to[..line.len()].copy_from_slice(line.as_bytes());
        Ok(line.len())
    }
}

#[test]
fn what_threads_compute_after_a_timed_request_is_told_with_the_next() {
    let (begin, begun) = sync_channel(0);
    let (finish, done) = sync_channel(0);
    thread::spawn(move || {
        while begun.recv().is_ok() {
            let until_ns = processor_ns().expect("it is known here") + BURNT_NS;
            while processor_ns().is_some_and(|now_ns| now_ns < until_ns) {}
            let _ = finish.send(());
        }
    });
    let sample = "{\"op\":\"sample\",\"case\":\"decode/p1\",\"count\":1}\n";
    let left = [
        "{\"op\":\"load\",\"request\":{\"model\":\"m\",\"dtype\":null,\"threads\":1,\"seed\":1}}\n",
        "{\"op\":\"prepare\",\"case\":\"decode/p1\"}\n",
        sample,
        sample,
        "{\"op\":\"memory\"}\n",
        sample,
    ];
    let clock = VirtualClock::default();
    let engine_clock = clock.clone();
    let load = move |_: &LoadRequest| -> anyhow::Result<Box<dyn Engine + Send>> {
        Ok(Box::new(FakeEngine::new(FakeScript::default(), engine_clock.clone())))
    };
    let mut answers = Vec::new();
    serve(&load, &clock, BufReader::new(Requests { left: left.into(), begin, done }), &mut answers).expect("serves");
    let answers: Vec<Value> =
        answers.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let idle = |at: usize| -> Option<Idle> {
        assert!(answers[at]["ok"]["samples_ns"].is_array(), "{answers:?}");
        serde_json::from_value(answers[at]["ok"]["idle"].clone()).expect("its type, or none")
    };
    // What was computed before the first, while nothing was timed, is not counted, and neither is what is behind `memory`.
    assert_eq!(idle(2), None);
    let (one, two) = (idle(3).expect("one wait"), idle(5).expect("two waits"));
    assert!(one.cpu_ns >= BURNT_NS && one.wall_ns > 0, "{one:?}");
    assert!(two.cpu_ns >= one.cpu_ns + BURNT_NS && two.wall_ns > one.wall_ns, "{one:?} {two:?}");
}
