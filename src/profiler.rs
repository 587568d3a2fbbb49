//! Where this process's threads are while it takes samples.
//!
//! A timer on each thread's processor time interrupts it every millisecond of that, or as often as the kernel looks (each 4 ms at
//! 250 Hz). The handler takes the registers and lets the kernel copy the top of the stack into memory that was reserved before, so
//! it allocates nothing and reads nothing that may not be there. Whoever asked unwinds the stacks later, by the programs' own tables:
//! neither frame pointers nor another build are needed. It takes no rights and works in a container. Threads that end within some
//! milliseconds get no timer in time, and are not seen.

#[cfg_attr(
    not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))),
    path = "profiler/elsewhere.rs"
)]
mod timers;

pub use timers::profile;
