//! Finds the changed functions that each case runs, before anything is timed: its worker is started under a tracer (ptrace), which stops it
//! where one of those functions begins.
//!
//! The tracer stops the process the first time a function begins in a case, then removes the breakpoint. So a watched
//! process runs at about full speed. The tracer sees every thread and every copy of the process. It does not watch other
//! programs that the process starts, nor code from libraries of its own: then what the case runs is unknown. Linux on
//! x86-64; elsewhere it is always unknown.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tracer;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, bail, ensure};

use crate::config::current_folder;
use crate::paired::PairedRequest;
use crate::why::names::shown_names;
use infergate_build::code::{Changed, ChangedFunction};
use infergate_build::progress;
use infergate_core::case::Case;
use infergate_core::process::this_program;
use infergate_core::worker::{Launcher, Program, Sampling, Timeouts};
use infergate_receipts::{CodeRuns, PairedCase, clause};

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use tracer::{Coverage, serve};

/// The hidden command that traces.
pub const COMMAND: &str = "__coverage";

/// How long the tracer may take to watch all functions again.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// How often its file is read meanwhile.
const POLL: Duration = Duration::from_millis(1);

/// A watched case runs one sixteenth of a block's pairs.
const PAIRS_DIVISOR: usize = 16;

/// The word of a line that says that all functions are watched, with the process's number.
const WATCHED: &str = "watched";
/// The word of a line that says that all functions are watched again.
const AGAIN: &str = "again";
/// The word of a line that says that another program was started, with its name.
const STARTED: &str = "started";

const UNREADABLE: &str = "what was seen cannot be read";

/// The changed functions that each of `cases` runs, in either build; unknown if not all that changed is known.
///
/// # Errors
/// The user ended it.
pub fn functions_run(cases: &[PairedCase], request: &PairedRequest, changed: &Changed) -> Result<Vec<CodeRuns>> {
    let side = |program, of_side: fn(&ChangedFunction) -> Option<u64>| {
        ensure!(changed.is_complete, "something differs that is in no function of a name");
        let functions: BTreeSet<u64> = changed.functions.iter().filter_map(of_side).collect();
        watch(program, request, &functions, cases)
    };
    let base = side(&request.base, |function| function.base).context("base");
    let seen = base.and_then(|base| Ok((base, side(&request.head, |function| function.head).context("head")?)));
    progress::ensure_not_cancelled()?;
    let of_case = |case: &PairedCase| {
        let (functions, named, why) = match &seen {
            Ok((base, head)) => {
                let is_in = |side: &BTreeMap<Case, BTreeSet<u64>>, at: Option<u64>| {
                    side.get(&case.id).zip(at).is_some_and(|(seen, at)| seen.contains(&at))
                };
                let runs = |function: &&ChangedFunction| is_in(base, function.base) || is_in(head, function.head);
                let functions: Vec<&ChangedFunction> = changed.functions.iter().filter(runs).collect();
                (Some(functions.len()), shown_names(&functions), None)
            }
            Err(error) => (None, Vec::new(), Some(clause(error))),
        };
        CodeRuns { id: case.id, functions, changed: None, named, why }
    };
    Ok(cases.iter().map(of_case).collect())
}

/// For each case: which of `functions` run while a process loads, prepares and runs it. A function is its address in
/// `program` loaded at zero. Two processes run the cases, the second in reverse order: what a case does in one of them
/// alone is done once, whichever case comes first, so it counts for all.
///
/// # Errors
/// Why that is unknown, as a clause.
fn watch(
    program: &Program,
    request: &PairedRequest,
    functions: &BTreeSet<u64>,
    cases: &[PairedCase],
) -> Result<BTreeMap<Case, BTreeSet<u64>>> {
    ensure!(cfg!(all(target_os = "linux", target_arch = "x86_64")), "functions are watched on Linux for x86-64 alone");
    let folder = tempfile::tempdir().context("a folder for what is seen cannot be made")?;
    let (list, seen) = (folder.path().join("functions"), folder.path().join("seen"));
    let lines: Vec<String> = functions.iter().map(|at| format!("{at:x}")).collect();
    fs::write(&list, lines.join("\n")).context("the functions to watch cannot be written")?;
    let mut words: Vec<OsString> = vec![COMMAND.into(), list.into(), seen.clone().into()];
    if let Some(package) = &program.package {
        words.extend(["--package".into(), package.clone().into()]);
    }
    words.extend(["--".into(), std::path::absolute(&program.path)?.into()]);
    let launcher = Launcher { program: this_program()?, arguments: words, folder: current_folder()? };
    let file = program.open()?.behind(launcher);
    let (mut found, mut once): (BTreeMap<Case, BTreeSet<u64>>, BTreeSet<u64>) = <_>::default();
    let mut order: Vec<&PairedCase> = cases.iter().collect();
    for _ in 0..2 {
        let mut client = request.start(&file, Timeouts::default())?;
        // Each read continues after the last one: thousands of cases can run thousands of functions each.
        let mut seen = File::open(&seen).context(UNREADABLE)?;
        let mut new = || {
            let mut text = String::new();
            seen.read_to_string(&mut text).context(UNREADABLE).map(|_| text)
        };
        let begun = new()?;
        let process = process(&begun)?;
        let loading = places(process, &begun)?;
        for case in &order {
            progress::ensure_not_cancelled()?;
            let mut written = watch_again(client.process_id(), &mut new)?;
            client.prepare(case.id, None)?;
            // With the untimed warm-up iteration before it, the timed one also shows what a bench does only from its
            // second iteration on.
            let sampling = Sampling { warm_up: case.warm_up, ..Sampling::of(1, case.iterations_per_sample) };
            for _ in 0..case.pairs.div_ceil(PAIRS_DIVISOR).max(1) {
                client.sample(case.id, sampling)?;
            }
            written += &new()?;
            let ran: BTreeSet<u64> = loading.iter().copied().chain(places(process, &written)?).collect();
            if let Some(before) = found.get(&case.id) {
                once.extend(before.symmetric_difference(&ran));
            }
            found.entry(case.id).or_default().extend(ran);
        }
        order.reverse();
    }
    found.values_mut().for_each(|seen| seen.extend(&once));
    Ok(found)
}

/// Has the tracer watch all functions again. Gives what it wrote until then.
fn watch_again(tracer: u32, new: &mut dyn FnMut() -> Result<String>) -> Result<String> {
    // SAFETY: a signal to a child of this process, which handles it.
    unsafe {
        libc::kill(libc::pid_t::try_from(tracer).context("its number is none of this system's")?, libc::SIGUSR1);
    }
    let (begun, mut written) = (Instant::now(), String::new());
    loop {
        written += &new()?;
        if written.contains(AGAIN) {
            return Ok(written);
        }
        ensure!(begun.elapsed() < READY_WITHIN, "the tracer does not answer");
        thread::sleep(POLL);
    }
}

/// The number of the watched process. The first is the worker: divan's starts itself once more to list its benches.
fn process(written: &str) -> Result<&Path> {
    let number = written.lines().find_map(|line| line.strip_prefix(WATCHED)?.strip_prefix(' '));
    let why = "its process could not be traced; allow ptrace (seccomp, kernel.yama.ptrace_scope)";
    number.map(Path::new).context(why)
}

/// The functions that a process ran since all are watched, from what the tracer wrote. The process still runs.
fn places(process: &Path, written: &str) -> Result<Vec<u64>> {
    let started = written.lines().find_map(|line| line.strip_prefix(STARTED)?.strip_prefix(' '));
    if let Some(program) = started {
        bail!("it starts another program, '{}'", program.escape_debug());
    }
    if let Some(library) = own_library(process)? {
        bail!("it runs code of '{}', which was not compared", library.escape_debug());
    }
    let since = written.rsplit(AGAIN).next().unwrap_or(written);
    let place = |line| u64::from_str_radix(line, 16).context("the tracer wrote something else than a place");
    since.lines().filter(|line| !line.is_empty() && !line.contains(' ')).map(place).collect()
}

/// A file with loaded code that is neither the program nor the system's.
fn own_library(process: &Path) -> Result<Option<String>> {
    let folder = Path::new("/proc").join(process);
    let program = fs::read_link(folder.join("exe")).context("its process ended early")?;
    let maps = fs::read_to_string(folder.join("maps")).context("its process ended early")?;
    let files = maps.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let is_code = words.nth(1)?.contains('x');
        line.find('/').filter(|_| is_code).map(|at| &line[at..])
    });
    let mut others = files.filter(|file| Path::new(file) != program && !is_of_the_system(file));
    Ok(others.next().map(str::to_owned))
}

/// Whether a file is where systems keep their libraries: both sides load the same one. A checkout can lie anywhere else, also in
/// `/opt` or `/libs`.
fn is_of_the_system(file: &str) -> bool {
    const FOLDERS: [&str; 7] =
        ["/lib/", "/lib32/", "/lib64/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/", "/nix/store/"];
    FOLDERS.iter().any(|folder| file.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{is_of_the_system, places, process};

    /// As divan's benches do, to list themselves.
    #[test]
    fn a_process_that_starts_its_own_program_is_the_first_one() {
        let own = std::process::id().to_string();
        let written = format!("watched {own}\n4d2\nwatched 0\n");
        assert_eq!(process(&written).expect("it is watched"), Path::new(&own));
        assert_eq!(places(Path::new(&own), &written).expect("it lives"), [1234]);
        assert_eq!(places(Path::new(&own), &format!("{written}again\n4d3\n")).expect("it lives"), [1235]);
    }

    #[test]
    fn a_checkout_next_to_the_systems_folders_is_not_the_systems() {
        for file in ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/lib/libm.so.6"] {
            assert!(is_of_the_system(file), "{file}");
        }
        for file in ["/libs/engine/libwork.so", "/opt/ci/target/libwork.so", "/usr/library/libwork.so"] {
            assert!(!is_of_the_system(file), "{file}");
        }
    }
}
