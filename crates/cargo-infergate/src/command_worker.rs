//! A worker for a plain executable: it runs a command once a sample; the output is what the command prints.
//!
//! The time of a sample is from just before the command is started until it has ended and its last output was read: the start of
//! the process and the load of a model are part of it. Processes that a command leaves running are ended with it, and what they
//! would still print is not waited for.

use std::io::{BufReader, BufWriter, Read, stdin, stdout};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use infergate_build::watcher::{end_children, remove_own_variables, take_over};
use infergate_core::case::Case;
use infergate_core::engine::{EngineInfo, LoadRequest};
use infergate_core::outcome::InvariantBroken;
use infergate_core::process::Group;
use infergate_core::sha256;
use infergate_core::worker::{Capability, Hello, Ids, Loaded, Measured, PreparedReply, Sampling, Wire, ending, hello};
use infergate_receipts::Build;

/// How long the output may stay open after the command and all that it left running were ended.
const OUTPUT_ENDS: Duration = Duration::from_secs(5);

const CAPABILITIES: [Capability; 3] = [Capability::Prepare, Capability::Sample, Capability::RequestId];

#[derive(Serialize, Deserialize)]
pub struct Job {
    /// Its only case.
    pub case: Case,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Whether it has to print the same each time.
    pub check_output: bool,
}

/// Answers requests on stdin until it ends.
///
/// # Errors
/// A pipe that breaks. That a command fails is an answer.
pub fn serve(job: Job) -> Result<()> {
    answer(&mut Worker { job, prepared: None })
}

/// Answers requests on stdin until it ends. All that this process started ends with it.
///
/// # Errors
/// A pipe that breaks.
pub fn answer(measured: &mut dyn Measured) -> Result<()> {
    infergate_core::process::end_with_parent();
    take_over();
    Wire::new(BufReader::new(stdin()), BufWriter::new(stdout())).serve(measured)
}

struct Worker {
    job: Job,
    /// The words of the output's SHA-256; empty if it is not compared.
    prepared: Option<Vec<u32>>,
}

impl Measured for Worker {
    fn hello(&self) -> Result<Hello> {
        Ok(hello(&CAPABILITIES, Build::default(), false))
    }

    fn load(&mut self, _request: &LoadRequest, _prompt_text: Option<String>) -> Result<Loaded> {
        let engine = EngineInfo {
            name: "command".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            model: self.job.case.to_string(),
            dtype: "none".into(),
            ..EngineInfo::default()
        };
        Ok(Loaded { engine, load_ns: 0, devices: Vec::new(), cost: None, benches: vec![self.job.case] })
    }

    fn prepare(&mut self, case: Case, known: Ids, _: Ids) -> Result<PreparedReply> {
        self.ensure_own(case)?;
        let ids = self.run()?.1;
        let before = match known {
            Some(known) => known,
            None => self.run()?.1,
        };
        self.ensure_same(&ids, &before)?;
        self.prepared = Some(ids.clone());
        Ok(PreparedReply::of_ids(ids))
    }

    fn sample(&mut self, case: Case, Sampling { count, iterations, .. }: Sampling) -> Result<Vec<Vec<u64>>> {
        self.ensure_own(case)?;
        ensure!(iterations == 1, "worker: a sample is one run; ask for more samples");
        let known = self.prepared.as_ref().context("worker: nothing is prepared; send prepare first")?;
        let sample = |_| {
            let (took, ids) = self.run()?;
            self.ensure_same(&ids, known)?;
            Ok(vec![took.as_nanos() as u64])
        };
        (0..count).map(sample).collect()
    }
}

impl Worker {
    fn ensure_own(&self, case: Case) -> Result<()> {
        let own = self.job.case;
        ensure!(case == own, "worker: there is no case {case} here, only {own}");
        Ok(())
    }

    fn ensure_same(&self, ids: &[u32], known: &[u32]) -> Result<()> {
        if ids == known {
            return Ok(());
        }
        let text = format!(
            "{}: prints something else in another run; make it repeatable, or set worker.check_output = false where it prints times",
            self.job.case
        );
        Err(InvariantBroken(text).into())
    }

    /// One run: how long it took, and the words of the SHA-256 of what it printed.
    fn run(&self) -> Result<(Duration, Vec<u32>)> {
        let name = self.job.case;
        let mut command = Command::new(&self.job.program);
        remove_own_variables(&mut command);
        command.args(&self.job.arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Ready before the clock starts.
        let (hand_over, words) = reader();
        let start = Instant::now();
        let mut process = Group::spawn(&mut command).with_context(|| format!("{name}: cannot be started"))?;
        let (_, printed, _) = process.take_pipes();
        let _ = hand_over.send(printed.with_context(|| format!("{name}: has no output"))?);
        process.wait();
        let ended = Instant::now();
        let status = process.end().with_context(|| format!("{name}: cannot be waited for"))?;
        end_children().with_context(|| name.to_string())?;
        let words = words
            .recv_timeout(OUTPUT_ENDS)
            .ok()
            .with_context(|| format!("{name}: something that it started holds its output open"))?;
        let Printed { sha256, last } = words.with_context(|| format!("{name}: its output cannot be read"))?;
        ensure!(status.success(), "{name}: the command failed ({}); run it by hand to see why", ending(status));
        let took = last.map_or(ended, |last| last.max(ended)) - start;
        Ok((took, if self.job.check_output { sha256::words(&sha256) } else { Vec::new() }))
    }
}

struct Printed {
    sha256: [u8; 32],
    /// When its last output was read.
    last: Option<Instant>,
}

/// A thread that reads the pipe it is given to its end.
fn reader() -> (Sender<ChildStdout>, Receiver<std::io::Result<Printed>>) {
    let (hand_over, given) = channel::<ChildStdout>();
    let (done, words) = channel();
    thread::spawn(move || {
        if let Ok(pipe) = given.recv() {
            let _ = done.send(read(pipe));
        }
    });
    (hand_over, words)
}

fn read(mut pipe: ChildStdout) -> std::io::Result<Printed> {
    let (mut hash, mut buffer, mut last) = (Sha256::new(), [0; 1 << 14], None);
    loop {
        match pipe.read(&mut buffer)? {
            0 => return Ok(Printed { sha256: hash.finalize().into(), last }),
            bytes => {
                last = Some(Instant::now());
                hash.update(&buffer[..bytes]);
            }
        }
    }
}
