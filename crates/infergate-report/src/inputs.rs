//! What a report is made from: files of the formats in `receipt`, read by whoever asks for the report.

use crate::load::View;
use infergate_core::engine::EngineInfo;
use infergate_receipts::{
    Build, LoadReceipt, Machine, MemoryReceipt, MemoryRecord, PairedReceipt, Receipt, TargetRecord, Verdict,
};

#[derive(Clone, Default)]
pub struct Inputs {
    /// How this program was started, for commands to be repeated: `cargo infergate`.
    pub program: String,
    /// The earlier run, where two are compared.
    pub base: Option<Receipt>,
    pub head: Option<Receipt>,
    pub paired: Option<PairedReceipt>,
    pub memory: Option<MemoryReceipt>,
    pub load: Option<View>,
    pub verdict: Option<Verdict>,
    /// The text that prompts of `head` were cut from, where the report is to show them.
    pub prompt_text: Option<String>,
    /// Whoever is judged wrote the files; the verdict was reached here.
    pub pull_request: bool,
    /// Where this run stands on the web.
    pub links: Option<Links>,
}

/// Addresses of a repository and of a run of its CI.
#[derive(Clone)]
pub struct Links {
    /// What `/commit/ID` and `/blob/ID/FILE` follow.
    pub repository: String,
    pub run: String,
    /// What the run kept.
    pub files: String,
}

pub struct Subject<'a> {
    pub engine: &'a EngineInfo,
    pub machine: &'a Machine,
    pub build: &'a Build,
    pub threads: usize,
    pub seed: u64,
    pub created: &'a str,
    pub tool: &'a str,
}

impl Inputs {
    /// Nothing yet, for a program started as `program`.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }

    /// Who was measured: head, where two sides were. `None` for a verdict alone, which does not say, and for servers under load.
    pub fn subject(&self) -> Option<Subject<'_>> {
        if let Some(Receipt { engine, machine, build, threads, seed, created, tool, .. }) = &self.head {
            return Some(Subject { engine, machine, build, threads: *threads, seed: *seed, created, tool });
        }
        if let Some(PairedReceipt { machine, threads, seed, created, tool, head, .. }) = &self.paired {
            let (engine, build) = (&head.engine, &head.build);
            return Some(Subject { engine, machine, build, threads: *threads, seed: *seed, created, tool });
        }
        if let Some(MemoryReceipt { engine, machine, build, threads, seed, created, tool, .. }) = &self.memory {
            return Some(Subject { engine, machine, build, threads: *threads, seed: *seed, created, tool });
        }
        let LoadReceipt { targets, machine, seed, created, tool, .. } = &self.load.as_ref()?.receipt;
        let TargetRecord::Local { engine, build, threads, .. } = targets.first()? else { return None };
        Some(Subject { engine, machine, build, threads: *threads, seed: *seed, created, tool })
    }

    pub fn memory_record(&self) -> Option<&MemoryRecord> {
        let alone = self.memory.as_ref().map(|receipt| &receipt.memory);
        let beside = self.head.as_ref().and_then(|receipt| receipt.memory.as_ref());
        alone.or(beside).or_else(|| self.paired.as_ref()?.memory.as_ref())
    }

    /// Where a build's commit stands on the web.
    pub fn commit_link(&self, build: &Build) -> Option<String> {
        Some(format!("{}/commit/{}", self.links.as_ref()?.repository, commit(build)?))
    }

    pub fn base_build(&self) -> Option<&Build> {
        let earlier = self.base.as_ref().map(|receipt| &receipt.build);
        earlier.or_else(|| self.paired.as_ref().map(|receipt| &receipt.base.build))
    }
}

/// A commit's id that may stand in a command: 7 to 64 hexadecimal digits. What a file says instead may be anything.
pub fn commit(build: &Build) -> Option<&str> {
    let commit = build.commit.as_deref()?;
    let is_id = (7..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then_some(commit)
}
