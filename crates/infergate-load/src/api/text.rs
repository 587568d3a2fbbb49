//! Texts of answers, kept until their tokens are counted.

use std::cell::{Cell, RefCell};

/// What is kept of one target's answers at once, bytes: some ten million tokens. Of later answers nothing is kept, and where one is
/// missing a level's tokens are counted by pieces.
const MOST_TEXT_BYTES: usize = 256 << 20;

/// What a request was answered.
#[derive(Debug)]
pub struct AnswerText {
    /// The request's number.
    pub request: u64,
    /// Each piece of it, reasoning included.
    pub pieces: Vec<String>,
    /// The number of tokens asked for, where the server says that the answer was ended by it.
    pub limit_tokens: Option<u64>,
}

/// The texts of one target's answers.
#[derive(Debug, Default)]
pub struct Texts {
    answers: RefCell<Vec<AnswerText>>,
    kept_bytes: Cell<usize>,
}

impl Texts {
    /// Whether one more may be kept.
    pub fn has_room(&self) -> bool {
        self.kept_bytes.get() < MOST_TEXT_BYTES
    }

    /// Keeps one more.
    pub fn add(&self, answer: AnswerText) {
        let bytes = answer.pieces.iter().map(|piece| size_of::<String>() + piece.len()).sum::<usize>();
        self.kept_bytes.set(self.kept_bytes.get() + bytes);
        self.answers.borrow_mut().push(answer);
    }

    /// Gives all of them away.
    pub fn take(&self) -> Vec<AnswerText> {
        self.kept_bytes.set(0);
        self.answers.take()
    }
}
