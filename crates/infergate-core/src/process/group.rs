//! A process in a group of its own, which ends as a whole.
//!
//! The number of a process, and of the group it leads, is given to another one soon after somebody waited for it. So nobody waits
//! for a leader here before its group is ended: until then it is still there, if only as an entry, and a signal meets no stranger.

use std::io;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(10);

/// A process and all that it started, as far as that stayed in its group. They end when this is dropped. Where there are no
/// process groups (elsewhere than on Unix) it is the process alone.
#[derive(Debug)]
pub struct Group {
    leader: Child,
    /// Set once the group was ended and its leader waited for: no signal is sent from then on.
    ended: Option<ExitStatus>,
}

impl Group {
    /// Starts `command` as the leader of a new group.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        Ok(Self { leader: command.spawn()?, ended: None })
    }

    /// The number of the group, which is that of its leader.
    pub fn id(&self) -> u32 {
        self.leader.id()
    }

    /// The leader's pipes, where there are some that nobody took yet.
    pub fn take_pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.leader.stdin.take(), self.leader.stdout.take(), self.leader.stderr.take())
    }

    /// Whether the leader has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.ended.is_some() || self.look(false)
    }

    /// Waits until the leader has ended by itself.
    pub fn wait(&mut self) {
        while !self.has_ended() && !self.look(true) {}
    }

    /// Asks all of the group to end, and gives the leader so long: it may have processes of its own to end.
    pub fn ask_to_end(&mut self, within: Duration) {
        if self.has_ended() {
            return;
        }
        if self.signal(Signal::End) {
            self.wait_for(within);
        }
    }

    /// Waits so long at the most until the leader has ended by itself.
    pub fn wait_for(&mut self, within: Duration) {
        let begun = Instant::now();
        while !self.has_ended() && begun.elapsed() < within {
            thread::sleep(LOOK);
        }
    }

    /// Ends all of the group, and says how the leader ended.
    ///
    /// # Errors
    /// When the system cannot say.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        if !self.signal(Signal::Kill) {
            let _ = self.leader.kill();
        }
        let status = self.leader.wait()?;
        self.ended = Some(status);
        Ok(status)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[derive(Clone, Copy)]
enum Signal {
    End,
    Kill,
}

#[cfg(unix)]
impl Group {
    /// Whether the leader has ended; it is not waited for, and stays an entry of the system's table.
    fn look(&mut self, waiting: bool) -> bool {
        let flags = libc::WEXITED | libc::WNOWAIT | if waiting { 0 } else { libc::WNOHANG };
        // SAFETY: an integer and a structure of integers, for which zero is a value; the system writes into it and keeps nothing.
        unsafe {
            let mut seen: libc::siginfo_t = std::mem::zeroed();
            let found = libc::waitid(libc::P_PID, self.leader.id(), &raw mut seen, flags);
            // Of a process that cannot be waited for there is nothing to wait for.
            let gone = found != 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EINTR);
            gone || found == 0 && seen.si_pid() != 0
        }
    }

    /// Whether the group could be told.
    fn signal(&mut self, signal: Signal) -> bool {
        let number = match signal {
            Signal::End => libc::SIGTERM,
            Signal::Kill => libc::SIGKILL,
        };
        let Ok(group) = i32::try_from(self.leader.id()) else { return false };
        // SAFETY: takes no pointers; the leader was not waited for, so the number is still that of its group.
        let told = self.ended.is_none() && unsafe { libc::kill(-group, number) } == 0;
        if told {
            // SAFETY: as above. One that is suspended hears nothing until it goes on.
            unsafe {
                libc::kill(-group, libc::SIGCONT);
            }
        }
        told
    }
}

#[cfg(not(unix))]
impl Group {
    fn look(&mut self, waiting: bool) -> bool {
        if waiting { self.leader.wait().is_ok() } else { !matches!(self.leader.try_wait(), Ok(None)) }
    }

    fn signal(&mut self, _signal: Signal) -> bool {
        false
    }
}
