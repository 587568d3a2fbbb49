//! What the handler of the timers' signal writes: registers and stacks, into memory that is reserved before.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::raw::{c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering::SeqCst};

use anyhow::{Context, Result, ensure};
use infergate_core::worker::profile::{HEAD_BYTES, MOST_RECORDS, STACK_BYTES};

use crate::measure;

/// The signal of the timers.
pub const SIGNAL: c_int = libc::SIGPROF;

const SLOT_BYTES: usize = HEAD_BYTES + STACK_BYTES;

static ON: AtomicBool = AtomicBool::new(false);
/// Handlers that are under way.
static BUSY: AtomicUsize = AtomicUsize::new(0);
static SLOTS: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static NEXT: AtomicUsize = AtomicUsize::new(0);
static TIMED: AtomicU64 = AtomicU64::new(0);
static UNTIMED: AtomicU64 = AtomicU64::new(0);

/// Records are taken until this ends.
pub struct Records {
    slots: *mut u8,
}

impl Records {
    /// From now on the signal is recorded.
    ///
    /// # Errors
    /// Memory that cannot be had; a signal that the engine uses itself.
    pub fn begin() -> Result<Self> {
        ensure!(!ON.load(SeqCst), "worker: it is looked at already");
        // SAFETY: a new mapping of no file. It takes room as it is written.
        let slots = unsafe {
            libc::mmap(
                ptr::null_mut(),
                SLOT_BYTES * MOST_RECORDS,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        ensure!(slots != libc::MAP_FAILED, "worker: there is no memory for what is seen");
        let records = Self { slots: slots.cast() };
        listen()?;
        for count in [&TIMED, &UNTIMED] {
            count.store(0, SeqCst);
        }
        NEXT.store(0, SeqCst);
        SLOTS.store(records.slots, SeqCst);
        ON.store(true, SeqCst);
        Ok(records)
    }

    /// Writes what was seen to `file`: how often a thread was interrupted in timed regions, and elsewhere.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn end(self, file: &Path) -> Result<(u64, u64)> {
        stop();
        let written = NEXT.load(SeqCst).min(MOST_RECORDS);
        // SAFETY: the mapping of `begin`; nobody writes to it any more.
        let slots = unsafe { std::slice::from_raw_parts(self.slots, written * SLOT_BYTES) };
        let write = || -> std::io::Result<()> {
            let mut file = BufWriter::new(File::create(file)?);
            for slot in slots.chunks_exact(SLOT_BYTES) {
                let stack_bytes = slot[4..8].iter().rev().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
                file.write_all(&slot[..HEAD_BYTES + stack_bytes.min(STACK_BYTES)])?;
            }
            file.flush()
        };
        write().context("worker: what was seen cannot be written")?;
        Ok((TIMED.load(SeqCst), UNTIMED.load(SeqCst)))
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        stop();
        // SAFETY: what `begin` mapped, and no handler is under way.
        unsafe { libc::munmap(self.slots.cast(), SLOT_BYTES * MOST_RECORDS) };
    }
}

/// From now on nothing is recorded, and no handler is under way.
fn stop() {
    ON.store(false, SeqCst);
    while BUSY.load(SeqCst) > 0 {
        std::thread::yield_now();
    }
}

/// Installs the handler, once. It stays: a signal that comes late would end a process that has none.
fn listen() -> Result<()> {
    let handler = on_signal as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
    // SAFETY: both structures are plain data, and the handler does nothing that a handler may not.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        ensure!(
            libc::sigaction(SIGNAL, ptr::null(), &raw mut before) == 0,
            "worker: its signals cannot be asked about"
        );
        let is_free = [libc::SIG_DFL, libc::SIG_IGN, handler as usize].contains(&before.sa_sigaction);
        ensure!(is_free, "worker: the engine uses the signal SIGPROF itself");
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        ensure!(libc::sigaction(SIGNAL, &raw const action, ptr::null_mut()) == 0, "worker: it cannot take a signal");
    }
    Ok(())
}

extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    BUSY.fetch_add(1, SeqCst);
    if ON.load(SeqCst) {
        if measure::is_untimed() {
            UNTIMED.fetch_add(1, SeqCst);
        } else {
            TIMED.fetch_add(1, SeqCst);
            let at = NEXT.fetch_add(1, SeqCst);
            if at < MOST_RECORDS {
                // SAFETY: the slot is inside the mapping and nobody else's; the kernel gave the context.
                unsafe { record(SLOTS.load(SeqCst).add(at * SLOT_BYTES), context.cast()) };
            }
        }
    }
    BUSY.fetch_sub(1, SeqCst);
}

/// Registers and the top of the stack.
///
/// # Safety
/// `slot` has room for a record, and `context` is that of a signal.
unsafe fn record(slot: *mut u8, context: *const libc::ucontext_t) {
    // SAFETY: the caller's promise; the system stops copying where this process has no memory.
    unsafe {
        let registers = registers(context);
        let errno = *libc::__errno_location();
        let stack = slot.add(HEAD_BYTES);
        let local = libc::iovec { iov_base: stack.cast(), iov_len: STACK_BYTES };
        let remote = libc::iovec { iov_base: registers[1] as *mut c_void, iov_len: STACK_BYTES };
        // The kernel copies what is there, and stops where there is nothing.
        let copied = libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0);
        *libc::__errno_location() = errno;
        let copied = u32::try_from(copied).unwrap_or(0);
        let thread = libc::syscall(libc::SYS_gettid) as u32;
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&thread.to_le_bytes());
        head[4..8].copy_from_slice(&copied.to_le_bytes());
        for (place, register) in head[8..].chunks_exact_mut(8).zip(registers) {
            place.copy_from_slice(&register.to_le_bytes());
        }
        ptr::copy_nonoverlapping(head.as_ptr(), slot, HEAD_BYTES);
    }
}

/// Instruction pointer, stack pointer, frame pointer, link register.
///
/// # Safety
/// `context` is that of a signal.
#[cfg(target_arch = "x86_64")]
unsafe fn registers(context: *const libc::ucontext_t) -> [u64; 4] {
    // SAFETY: the caller's promise.
    let registers = unsafe { &(*context).uc_mcontext.gregs };
    let get = |register: c_int| registers[register as usize] as u64;
    [get(libc::REG_RIP), get(libc::REG_RSP), get(libc::REG_RBP), 0]
}

/// Instruction pointer, stack pointer, frame pointer, link register.
///
/// # Safety
/// `context` is that of a signal.
#[cfg(target_arch = "aarch64")]
unsafe fn registers(context: *const libc::ucontext_t) -> [u64; 4] {
    // SAFETY: the caller's promise.
    let machine = unsafe { &(*context).uc_mcontext };
    [machine.pc, machine.sp, machine.regs[29], machine.regs[30]]
}
