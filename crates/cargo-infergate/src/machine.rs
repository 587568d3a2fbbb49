//! What the hardware gives ([`probes`]) and what makes it noisy ([`doctor`]). Which machine it is, the bench target says itself:
//! [`infergate_core::machine`].

pub mod doctor;
pub mod probes;
