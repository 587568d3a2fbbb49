//! The hardware's limits ([`probes`]) and what makes it noisy ([`doctor`]). The bench target itself reports which machine it is:
//! [`infergate_core::machine`].

pub mod doctor;
pub mod probes;
