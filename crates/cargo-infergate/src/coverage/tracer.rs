//! The process between the gate and a watched worker: it starts the worker, and stops it where a function begins, once each.
//!
//! An `int3` in place of a function's first byte stops it (Intel SDM, volume 3, 6.4.4). The thread that runs into it stops after
//! that byte; the byte is put back, the thread set back by one, and all threads continue. See ptrace(2).

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{LineWriter, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use libc::{AT_ENTRY, c_int};
use nix::errno::Errno;
use nix::sys::ptrace::{self, Event, Options};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use object::Object;

use super::{AGAIN, STARTED, WATCHED};
use infergate_build::code;

const BREAKPOINT: u8 = 0xCC;

/// Whether the gate requested, by a signal, that all functions are watched again.
static IS_REQUESTED: AtomicBool = AtomicBool::new(false);

extern "C" fn request_watch(_: c_int) {
    IS_REQUESTED.store(true, Ordering::Relaxed);
}

/// The hidden command between the gate and a watched worker.
#[derive(clap::Args)]
pub struct Coverage {
    functions: PathBuf,
    seen: PathBuf,
    #[arg(long)]
    package: Option<PathBuf>,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the command, and appends to `seen` each of `functions` when it first begins, and again after each SIGUSR1. Gives the program's exit
/// code.
pub fn serve(coverage: &Coverage) -> Result<i32> {
    infergate_core::process::end_with_parent();
    let places = fs::read_to_string(&coverage.functions).context("the functions to watch cannot be read")?;
    let functions = places.lines().map(|line| u64::from_str_radix(line, 16)).collect::<Result<Vec<_>, _>>()?;
    let (program, arguments) = coverage.command.split_first().context("no program was named")?;
    let program = Path::new(program);
    let data = code::read(program)?;
    let entry = code::parse(&data).with_context(|| program.display().to_string())?.entry();
    let mut command = Command::new(program);
    command.args(arguments);
    match &coverage.package {
        Some(folder) => command.env("CARGO_MANIFEST_DIR", folder).current_dir(folder),
        None => command.env_remove("CARGO_MANIFEST_DIR"),
    };
    // SAFETY: between fork and exec it makes one system call, which allocates nothing.
    unsafe {
        command.pre_exec(|| Ok(ptrace::traceme()?));
    }
    let action = SigAction::new(SigHandler::Handler(request_watch), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler stores one flag; without SA_RESTART a wait for the program ends early.
    unsafe { sigaction(Signal::SIGUSR1, &action) }?;
    let child = command.spawn().with_context(|| format!("{}: cannot be started", program.display()))?;
    let process = Pid::from_raw(child.id().cast_signed());
    wait(Some(process), || Ok(()))?;
    let options = Options::PTRACE_O_EXITKILL
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC;
    ptrace::setoptions(process, options)?;
    let mut tracer = Tracer {
        process,
        program: identity(program)?,
        entry,
        moved: 0,
        functions: &functions,
        stops: HashMap::new(),
        threads: HashSet::from([process]),
        seen: LineWriter::new(File::create(&coverage.seen)?),
    };
    tracer.watch(process)?;
    ptrace::cont(process, None)?;
    tracer.follow()
}

struct Tracer<'a> {
    process: Pid,
    /// The file's device and inode.
    program: (u64, u64),
    /// Where the program begins, loaded at zero.
    entry: u64,
    /// How far it was moved when the first process last loaded it.
    moved: u64,
    functions: &'a [u64],
    /// The function and its first byte, by its address. A copy of a process has the same addresses. A process that starts the program again
    /// has others.
    stops: HashMap<u64, (u64, u8)>,
    /// Threads that stopped before.
    threads: HashSet<Pid>,
    /// Each line is written at once: it is read meanwhile.
    seen: LineWriter<File>,
}

impl Tracer<'_> {
    /// Lets all threads of all processes run until the first process ends.
    fn follow(&mut self) -> Result<i32> {
        loop {
            // The signal that a thread continues with: the one that stopped it, or none if this tracer did.
            let (thread, signal) = match wait(None, || self.watch_again())? {
                WaitStatus::Exited(thread, code) if thread == self.process => return Ok(code),
                WaitStatus::Signaled(thread, signal, _) if thread == self.process => return Ok(128 + signal as i32),
                WaitStatus::PtraceEvent(thread, _, event) => {
                    self.threads.insert(thread);
                    if event == Event::PTRACE_EVENT_EXEC as i32 {
                        self.started(thread)?;
                    }
                    (thread, None)
                }
                WaitStatus::Stopped(thread, signal) => {
                    let is_new = self.threads.insert(thread);
                    let is_ours =
                        signal == Signal::SIGSTOP && is_new || signal == Signal::SIGTRAP && self.began(thread)?;
                    (thread, Some(signal).filter(|_| !is_ours))
                }
                WaitStatus::Exited(thread, _) | WaitStatus::Signaled(thread, ..) => {
                    self.threads.remove(&thread);
                    continue;
                }
                _ => continue,
            };
            unless_gone(ptrace::cont(thread, signal))?;
        }
    }

    /// A process started a program: this one once more, or another one.
    fn started(&mut self, process: Pid) -> Result<()> {
        if identity(&file(process, "exe")).is_ok_and(|of| of == self.program) {
            return self.watch(process);
        }
        let name = fs::read_link(file(process, "exe")).unwrap_or_default();
        writeln!(self.seen, "{STARTED} {}", name.display().to_string().escape_debug())?;
        Ok(())
    }

    /// Whether a thread stopped because a function began. Then the function is written down, and the thread set back to its beginning.
    fn began(&mut self, thread: Pid) -> Result<bool> {
        let Some(mut registers) = unless_gone(ptrace::getregs(thread))? else { return Ok(false) };
        let at = registers.rip.wrapping_sub(1);
        let Some(&(function, byte)) = self.stops.get(&at) else { return Ok(false) };
        writeln!(self.seen, "{function:x}")?;
        put(&memory(thread)?, at, byte)?;
        registers.rip = at;
        ptrace::setregs(thread, registers)?;
        Ok(true)
    }

    /// Puts all stops back into the first process, if that was requested. It may be running.
    fn watch_again(&mut self) -> Result<()> {
        if IS_REQUESTED.swap(false, Ordering::Relaxed) {
            let memory = memory(self.process)?;
            for function in self.functions {
                put(&memory, function.wrapping_add(self.moved), BREAKPOINT)?;
            }
            writeln!(self.seen, "{AGAIN}")?;
        }
        Ok(())
    }

    /// Puts the stops into a process that has just started the program.
    fn watch(&mut self, process: Pid) -> Result<()> {
        let moved = start_of(process)?.wrapping_sub(self.entry);
        if process == self.process {
            self.moved = moved;
        }
        let memory = memory(process)?;
        for &function in self.functions {
            let at = function.wrapping_add(moved);
            let mut byte = [0];
            memory.read_exact_at(&mut byte, at).context("a function's code cannot be read")?;
            self.stops.insert(at, (function, byte[0]));
            put(&memory, at, BREAKPOINT)?;
        }
        writeln!(self.seen, "{WATCHED} {process}")?;
        Ok(())
    }
}

/// `None` if the thread was ended while it was stopped.
fn unless_gone<T>(found: nix::Result<T>) -> Result<Option<T>> {
    match found {
        Err(Errno::ESRCH) => Ok(None),
        found => Ok(Some(found?)),
    }
}

/// A file's device and inode.
fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

fn file(process: Pid, name: &str) -> PathBuf {
    Path::new("/proc").join(process.to_string()).join(name)
}

/// Where the program begins as it was loaded: see getauxval(3).
fn start_of(process: Pid) -> Result<u64> {
    let vector = fs::read(file(process, "auxv"))?;
    let mut pairs =
        vector.as_chunks::<16>().0.iter().filter_map(|pair| pair.first_chunk::<8>().zip(pair.last_chunk::<8>()));
    let found = pairs.find(|(kind, _)| u64::from_ne_bytes(**kind) == AT_ENTRY);
    found.map(|(_, value)| u64::from_ne_bytes(*value)).context("the system does not say where it was loaded")
}

/// The memory of a traced process.
fn memory(process: Pid) -> Result<File> {
    File::options().read(true).write(true).open(file(process, "mem")).context("code cannot be written")
}

/// Writes one byte of its code.
fn put(memory: &File, at: u64, byte: u8) -> Result<()> {
    memory.write_all_at(&[byte], at).context("code cannot be written")
}

/// Waits until a thread stops or ends, of one process or of any, and gives how. Calls `meanwhile` first, and after each signal to this
/// process.
fn wait(process: Option<Pid>, mut meanwhile: impl FnMut() -> Result<()>) -> Result<WaitStatus> {
    loop {
        meanwhile()?;
        match waitpid(process, Some(WaitPidFlag::__WALL)) {
            Ok(status) => return Ok(status),
            Err(Errno::EINTR) => {}
            Err(error) => bail!("the traced process is lost ({error})"),
        }
    }
}
