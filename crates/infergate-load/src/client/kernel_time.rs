//! When the system received what a connection's reads give, by the system's own time: what passes from then to the client's
//! stamp is the client's own delay, known for every read of a real run.
//!
//! Linux only: `SO_TIMESTAMPING` of a TCP socket gives with each read when the last of its bytes came
//! (Documentation/networking/timestamping.rst of the kernel). Elsewhere, and where the kernel refuses, nothing is known.

use std::cell::RefCell;
use std::rc::Rc;

use crate::client::stream::Stream;

/// The delays of one server's connections, nanoseconds.
pub type ReceiveDelays = Rc<RefCell<Vec<u32>>>;

#[cfg(target_os = "linux")]
pub use linux::timed;

/// `connection` as it is: this system says nothing.
#[cfg(not(target_os = "linux"))]
pub fn timed(connection: tokio::net::TcpStream, _delays: &ReceiveDelays) -> Box<dyn Stream> {
    Box::new(connection)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::mem::{MaybeUninit, zeroed};
    use std::os::fd::{AsRawFd as _, RawFd};
    use std::ptr;
    use std::task::{Context, Poll, ready};
    use std::time::{Duration, UNIX_EPOCH};

    use tokio::io::{Interest, ReadBuf};
    use tokio::net::TcpStream;

    use super::{ReceiveDelays, Stream};
    use crate::client::stream::ReadBy;

    /// What the kernel says beside the bytes, of a socket that was asked for times alone: three, the first by software.
    #[repr(C)]
    struct Control {
        _header: libc::cmsghdr,
        times: [libc::timespec; 3],
    }

    /// `connection`, whose reads add to `delays` where the kernel says when it received them.
    pub fn timed(connection: TcpStream, delays: &ReceiveDelays) -> Box<dyn Stream> {
        if ask_for_times(connection.as_raw_fd()).is_err() {
            return Box::new(connection);
        }
        let delays = delays.clone();
        Box::new(ReadBy::new(connection, move |connection, context, buffer| read(connection, &delays, context, buffer)))
    }

    fn ask_for_times(socket: RawFd) -> io::Result<()> {
        let flags: libc::c_uint = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
        let length = libc::socklen_t::try_from(size_of_val(&flags)).map_err(io::Error::other)?;
        // SAFETY: the pointer and the length are of `flags`, which the call only reads.
        let outcome = unsafe {
            libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, ptr::from_ref(&flags).cast(), length)
        };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn read(
        connection: &mut TcpStream,
        delays: &ReceiveDelays,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(connection.poll_read_ready(context))?;
            // SAFETY: nothing is written into it but by the read below.
            let room = unsafe { buffer.unfilled_mut() };
            let (socket, length) = (connection.as_raw_fd(), room.len());
            let mut read = Err(io::ErrorKind::WouldBlock.into());
            // Bytes that leave room have emptied the socket. Saying that it would block keeps tokio from reading once more
            // in vain, as its own streams do.
            let _ = connection.try_io(Interest::READABLE, || {
                read = receive(socket, room);
                match read {
                    Ok((0, _)) => Ok(()),
                    Ok((bytes, _)) if bytes == length => Ok(()),
                    _ => Err(io::ErrorKind::WouldBlock.into()),
                }
            });
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok((bytes, received)) => {
                    // SAFETY: the kernel has written so many.
                    unsafe { buffer.assume_init(bytes) };
                    buffer.advance(bytes);
                    let delay = received.and_then(|received| UNIX_EPOCH.elapsed().ok()?.checked_sub(received));
                    // One that does not fit was a step of the system's clock.
                    let delay_ns = delay.and_then(|delay| u32::try_from(delay.as_nanos()).ok());
                    delays.borrow_mut().extend(delay_ns);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    /// Reads what there is. Gives the number of bytes, none at the end, and when the last of them was received.
    fn receive(socket: RawFd, room: &mut [MaybeUninit<u8>]) -> io::Result<(usize, Option<Duration>)> {
        let mut part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
        // SAFETY: both may be all zeros: without pointers, lengths and times.
        let (mut control, mut message): (Control, libc::msghdr) = unsafe { zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<Control>() as _;
        // SAFETY: the header points at `part`, which points at `room`, and at `control`, with their lengths.
        let bytes = unsafe { libc::recvmsg(socket, &raw mut message, 0) };
        let bytes = usize::try_from(bytes).map_err(|_| io::Error::last_os_error())?;
        let time = control.times[0];
        // Where the kernel said nothing these are the zeros of before.
        Ok((bytes, (time.tv_sec > 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))))
    }
}
