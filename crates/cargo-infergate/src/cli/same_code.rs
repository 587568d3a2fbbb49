//! Before anything is timed: whether base and head are the same program, and if not, what changed.

mod other_inputs;

use std::path::Path;

use super::gate_options::Paired;
use super::sides::BuiltPair;
use crate::config::Config;
use crate::paired::Program;
use crate::why::names::{last_part, shown_names};
use infergate_build::code::{Changed, Comparison};
use infergate_build::edited::Edited;
use infergate_build::output;
use infergate_build::sources::Sources;
use infergate_receipts::{CodeRecord, Note};

#[derive(Default)]
pub struct CodeDifference {
    /// How the code of both differs; `None` where it was not compared.
    pub code: Option<CodeRecord>,
    /// What differs, where it could be read and nothing else can change what a case does.
    pub changed: Option<Changed>,
    /// The program that counts and is followed for leaks is the same, too.
    pub is_same_memory: bool,
    /// Notes for the verdict: why cases are timed although their code is the same, and what was skipped.
    pub notes: Vec<Note>,
}

/// Compares the object files of both sides. If they are the same, no case is timed, unless another input differs or a target limits a time.
/// What cannot be compared is timed.
pub fn compare_code(flags: &Paired, config: &Config, sides: &BuiltPair) -> CodeDifference {
    let is_program = sides.base.launcher.is_none() && sides.head.launcher.is_none();
    if !is_program || flags.time_same_code {
        return CodeDifference::default();
    }
    let compared = match sides.sources.compare(&sides.base, &sides.head) {
        Ok(compared) => compared,
        Err(error) => {
            output::warn("machine code was not compared", &error);
            return CodeDifference::default();
        }
    };
    // Why the same code is timed: something else can change its time, or a target asks for it.
    let target = config.policy.targets.iter().find(|target| !target.metric.is_counted());
    let commit = sides.base.commit.as_deref().filter(|_| flags.against.is_some());
    let why = target
        .map(|target| format!("the target '{target}' asks for a time"))
        .or_else(|| other_inputs::difference((&sides.base, &sides.head), commit, Path::new(".")));
    if let Comparison::Differ(mut changed) = compared {
        let edited = commit.and_then(|commit| Edited::between(Path::new("."), commit, None).ok());
        if let (Some(changed), Some(edited)) = (&mut changed, edited) {
            changed.functions.sort_by_key(|function| !edited.has(last_part(&function.name)));
        }
        let notes = why.iter().map(|why| Note::from(format!("every case is timed, whatever it runs, because {why}")));
        return CodeDifference { notes: notes.collect(), ..differ(changed, why.is_some()) };
    }
    // Where code differs, tracing notices that a case starts another program; the same code is not traced.
    let other = || other_inputs::other_program(&sides.base.programs, &sides.head.programs);
    if let Some(why) = why.or_else(other) {
        let note = Note::from(format!("base and head are the same machine code, and timed because {why}"));
        return CodeDifference { notes: vec![note], ..CodeDifference::default() };
    }
    let is_same_memory = is_same_memory(sides);
    let text = "leaks are not checked: the machine code is the same";
    let notes = Vec::from_iter((is_same_memory && sides.head_memory.is_some()).then(|| Note::from(text)));
    CodeDifference { code: Some(CodeRecord::same()), is_same_memory, notes, ..CodeDifference::default() }
}

/// What changed between two builds of checkouts; the files of `head` lie in `folder`, those of base are of `commit`, where that is another.
pub fn of_checkouts(
    (base, head): (&Program, &Program),
    sources: &Sources,
    commit: Option<&str>,
    folder: &Path,
) -> CodeDifference {
    let Ok(Comparison::Differ(changed)) = sources.compare(base, head) else { return CodeDifference::default() };
    differ(changed, other_inputs::difference((base, head), commit, folder).is_some())
}

/// What differs. With `times_all` every case is timed, whatever it runs of it.
fn differ(changed: Option<Changed>, times_all: bool) -> CodeDifference {
    let functions = changed.as_ref().map(|changed| changed.functions.iter().collect::<Vec<_>>());
    let named = shown_names(functions.as_deref().unwrap_or_default());
    let count = functions.map(|functions| functions.len());
    CodeDifference {
        code: Some(CodeRecord { changed: count, named, ..CodeRecord::default() }),
        changed: changed.filter(|_| !times_all),
        ..CodeDifference::default()
    }
}

/// Whether what is followed for leaks is the same program in base. Where there is no program for that, the timed one is followed.
fn is_same_memory(sides: &BuiltPair) -> bool {
    match (&sides.base_memory, &sides.head_memory) {
        (None, None) => true,
        (Some(_), None) => false,
        (Some(base), Some(head)) => {
            matches!(sides.sources.of_memory().compare(base, &head.program), Ok(Comparison::Same))
        }
        (None, Some(head)) => head.is_timed,
    }
}
