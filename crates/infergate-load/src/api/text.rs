//! Texts of answers, kept until their tokens are counted: within a budget, for a server says as much as it likes.

use std::cell::Cell;
use std::rc::Rc;

/// What is kept of one target's answers at once, bytes: some ten million tokens. Of an answer that does not fit nothing is kept,
/// and where one is missing a level's tokens are counted by pieces.
pub const MOST_TEXT_BYTES: u64 = 256 << 20;

/// What an answer takes by itself.
const ANSWER_BYTES: u64 = 256;
/// A text and a list that grow by doubling have room for as much again.
const GROWTH: u64 = 2;

/// Room for texts.
#[derive(Debug, Clone)]
pub struct Room(Rc<Cell<u64>>);

impl Default for Room {
    fn default() -> Self {
        Self::of(MOST_TEXT_BYTES)
    }
}

impl Room {
    /// Of so many bytes.
    pub fn of(bytes: u64) -> Self {
        Self(Rc::new(Cell::new(bytes)))
    }

    fn take(&self, bytes: u64) -> bool {
        let left = self.0.get().checked_sub(bytes);
        self.0.set(left.unwrap_or(self.0.get()));
        left.is_some()
    }
}

/// The pieces of one answer. What they take is given back to their room when this is dropped.
#[derive(Debug)]
pub struct Pieces {
    text: String,
    /// Where each ends in the text.
    ends: Vec<u32>,
    room: Room,
    taken_bytes: u64,
}

impl Pieces {
    /// None yet; `None` where there is no room for more.
    pub fn new(room: &Room) -> Option<Self> {
        let has_room = room.take(ANSWER_BYTES);
        has_room.then(|| Self { text: String::new(), ends: Vec::new(), room: room.clone(), taken_bytes: ANSWER_BYTES })
    }

    /// With one more; `None` where there is no room for it.
    pub fn with(mut self, piece: &str) -> Option<Self> {
        let bytes = GROWTH * (piece.len() + size_of::<u32>()) as u64;
        let end = u32::try_from(self.text.len() + piece.len()).ok().filter(|_| self.room.take(bytes))?;
        self.taken_bytes += bytes;
        self.text += piece;
        self.ends.push(end);
        Some(self)
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(from, to)| &self.text[from as usize..*to as usize])
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.room.0.set(self.room.0.get() + self.taken_bytes);
    }
}

/// What a request was answered.
#[derive(Debug)]
pub struct AnswerText {
    /// The request's number.
    pub request: u64,
    /// Each piece of it, reasoning and tool calls included.
    pub pieces: Pieces,
    /// The number of tokens asked for, where the server says that the answer was ended by it.
    pub limit_tokens: Option<u64>,
}
