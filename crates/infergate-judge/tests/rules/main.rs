//! What a verdict is, by which evidence, and how often it is wrong.

mod calibration;
mod gate;
mod gate_looks;
