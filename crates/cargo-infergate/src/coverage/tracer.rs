//! The process between the gate and a watched worker: it starts the worker, and stops it where a function begins, once each.
//!
//! A function is stopped at by an `int3` in place of its first byte (Intel SDM, volume 3, 6.4.4). The thread that runs into it is
//! behind that byte then; the byte is put back, the thread set back by one, and all go on. See ptrace(2).

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use libc::{c_int, c_long, c_uint, c_void, pid_t, user_regs_struct};
use object::Object;
use object::read::elf::ElfFile64;

use super::{AGAIN, STARTED, WATCHED};
use infergate_build::code;

const BREAKPOINT: u8 = 0xCC;

/// Whether the gate asked, by a signal, that all functions are watched again.
static IS_ASKED_AGAIN: AtomicBool = AtomicBool::new(false);

extern "C" fn ask_again(_: c_int) {
    IS_ASKED_AGAIN.store(true, Ordering::Relaxed);
}

/// Runs `program` with `arguments`, and appends to `seen` each of `functions` when it first begins, and again after each SIGUSR1. Gives the
/// program's exit code.
pub fn trace(
    program: &Path,
    arguments: &[OsString],
    package: Option<&OsStr>,
    functions: &[u64],
    seen: &Path,
) -> Result<i32> {
    let data = code::read(program)?;
    let entry = ElfFile64::<object::LittleEndian>::parse(&*data).map(|file| file.entry());
    let entry = entry.with_context(|| format!("{}: is no ELF executable", program.display()))?;
    let mut command = Command::new(program);
    command.args(arguments);
    match package {
        Some(folder) => command.env("CARGO_MANIFEST_DIR", folder).current_dir(folder),
        None => command.env_remove("CARGO_MANIFEST_DIR"),
    };
    // SAFETY: between fork and exec it makes one system call, which allocates nothing.
    unsafe {
        command.pre_exec(|| ask(libc::PTRACE_TRACEME, 0, 0, ptr::null_mut()).map(drop));
    }
    // SAFETY: the handler stores one flag; without SA_RESTART a wait for the program ends early.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ask_again as extern "C" fn(c_int) as usize;
        libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut());
    }
    let child = command.spawn().with_context(|| format!("{}: cannot be started", program.display()))?;
    let process = pid_t::try_from(child.id()).context("its number is none of this system's")?;
    let (waited, _) = wait(process, || Ok(()))?;
    let options = libc::PTRACE_O_EXITKILL
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC;
    ask(libc::PTRACE_SETOPTIONS, waited, 0, number(options.unsigned_abs().into()))?;
    let identity = |path: &Path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
    let mut tracer = Tracer {
        process,
        program: identity(program)?,
        entry,
        functions,
        stops: HashMap::new(),
        threads: HashSet::from([process]),
        seen: File::create(seen)?,
    };
    tracer.watch(process)?;
    ask(libc::PTRACE_CONT, process, 0, ptr::null_mut())?;
    tracer.follow()
}

struct Tracer<'a> {
    process: pid_t,
    /// The file's device and inode.
    program: (u64, u64),
    /// Where the program begins, loaded at zero.
    entry: u64,
    functions: &'a [u64],
    /// By where it lies: the function, and its first byte. A copy of a process has the same.
    stops: HashMap<u64, (u64, u8)>,
    /// Threads that stopped before.
    threads: HashSet<pid_t>,
    seen: File,
}

impl Tracer<'_> {
    /// Lets all threads of all processes run until the first process ends.
    fn follow(&mut self) -> Result<i32> {
        loop {
            let (thread, status) = wait(-1, || self.watch_again())?;
            if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
                self.threads.remove(&thread);
                if thread == self.process {
                    return Ok(if libc::WIFEXITED(status) {
                        libc::WEXITSTATUS(status)
                    } else {
                        128 + libc::WTERMSIG(status)
                    });
                }
                continue;
            }
            let signal = self.stopped(thread, status)?;
            match ask(libc::PTRACE_CONT, thread, 0, number(signal.unsigned_abs().into())) {
                Err(error) if is_gone(&error) => {}
                other => drop(other?),
            }
        }
    }

    /// What a stopped thread is told when it goes on: the signal that stopped it, or none where the stop is ours.
    fn stopped(&mut self, thread: pid_t, status: c_int) -> Result<c_int> {
        let signal = libc::WSTOPSIG(status);
        let is_new = self.threads.insert(thread);
        match (signal, status >> 16) {
            (libc::SIGTRAP, libc::PTRACE_EVENT_EXEC) => {
                if fs::metadata(file(thread, "exe")).is_ok_and(|of| (of.dev(), of.ino()) == self.program) {
                    self.watch(thread)?;
                } else {
                    let name = fs::read_link(file(thread, "exe")).unwrap_or_default();
                    writeln!(self.seen, "{STARTED} {}", name.display().to_string().escape_debug())?;
                }
                Ok(0)
            }
            (libc::SIGTRAP, event) if event != 0 => Ok(0),
            (libc::SIGSTOP, _) if is_new => Ok(0),
            (libc::SIGTRAP, _) if self.began(thread)? => Ok(0),
            _ => Ok(signal),
        }
    }

    /// Whether a thread stopped because a function began. Then that is noted, and it is set back to where it was.
    fn began(&mut self, thread: pid_t) -> Result<bool> {
        // SAFETY: it is made of numbers, of which all can be zero.
        let mut registers: user_regs_struct = unsafe { std::mem::zeroed() };
        match ask(libc::PTRACE_GETREGS, thread, 0, ptr::from_mut(&mut registers).cast()) {
            Err(error) if is_gone(&error) => return Ok(false),
            other => drop(other?),
        }
        let at = registers.rip.wrapping_sub(1);
        let Some(&(function, byte)) = self.stops.get(&at) else { return Ok(false) };
        writeln!(self.seen, "{function:x}")?;
        put(thread, at, byte)?;
        registers.rip = at;
        ask(libc::PTRACE_SETREGS, thread, 0, ptr::from_mut(&mut registers).cast())?;
        Ok(true)
    }

    /// Puts all stops back into the first process, where that was asked for. It may be running.
    fn watch_again(&mut self) -> Result<()> {
        if IS_ASKED_AGAIN.swap(false, Ordering::Relaxed) {
            for &at in self.stops.keys() {
                put(self.process, at, BREAKPOINT)?;
            }
            writeln!(self.seen, "{AGAIN}")?;
        }
        Ok(())
    }

    /// Puts the stops into a process that has just started the program.
    fn watch(&mut self, process: pid_t) -> Result<()> {
        let moved = start_of(process)?.wrapping_sub(self.entry);
        let memory = File::open(file(process, "mem"))?;
        for &function in self.functions {
            let at = function.wrapping_add(moved);
            let mut byte = [0];
            memory.read_exact_at(&mut byte, at).context("a function's code cannot be read")?;
            self.stops.insert(at, (function, byte[0]));
            put(process, at, BREAKPOINT)?;
        }
        writeln!(self.seen, "{WATCHED} {process}")?;
        Ok(())
    }
}

/// Whether a thread was ended while it was stopped.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

fn file(process: pid_t, name: &str) -> PathBuf {
    Path::new("/proc").join(process.to_string()).join(name)
}

/// Where the program begins as it was loaded: see getauxval(3).
fn start_of(process: pid_t) -> Result<u64> {
    let vector = fs::read(file(process, "auxv"))?;
    let mut pairs =
        vector.as_chunks::<16>().0.iter().filter_map(|pair| pair.first_chunk::<8>().zip(pair.last_chunk::<8>()));
    let found = pairs.find(|(kind, _)| u64::from_ne_bytes(**kind) == libc::AT_ENTRY);
    found.map(|(_, value)| u64::from_ne_bytes(*value)).context("the system does not say where it was loaded")
}

/// Writes one byte of a traced process's code.
fn put(process: pid_t, at: u64, byte: u8) -> Result<()> {
    let memory = File::options().write(true).open(file(process, "mem")).context("code cannot be written")?;
    memory.write_all_at(&[byte], at).context("code cannot be written")
}

/// The next thread that stopped or ended, and how; -1 asks for any. A signal to this process has `meanwhile` called.
fn wait(process: pid_t, mut meanwhile: impl FnMut() -> Result<()>) -> Result<(pid_t, c_int)> {
    let mut status = 0;
    loop {
        meanwhile()?;
        // SAFETY: `status` is one number that lives through the call.
        let found = unsafe { libc::waitpid(process, &raw mut status, libc::__WALL) };
        if found > 0 {
            return Ok((found, status));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            bail!("the traced process is lost ({error})");
        }
    }
}

/// A number where a request to ptrace(2) has room for a pointer.
fn number(number: u64) -> *mut c_void {
    ptr::without_provenance_mut(number as usize)
}

/// One request to ptrace(2). `data` is a number, or registers.
fn ask(request: c_uint, process: pid_t, address: u64, data: *mut c_void) -> io::Result<c_long> {
    // SAFETY: the only pointers that are given are to registers of this process, which live through the call.
    let answer = unsafe { libc::ptrace(request, process, number(address), data) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
