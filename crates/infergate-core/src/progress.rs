//! How far a long piece of work is, for whoever shows it.

/// One step of a suite, a paired run or a memory phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is being done.
    pub label: String,
    /// Steps done.
    pub done_steps: usize,
    /// Steps in all.
    pub total_steps: usize,
}
