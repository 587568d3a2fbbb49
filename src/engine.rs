//! What an inference engine has to do to be measured: [`Engine`].
//!
//! Three methods are enough: say who you are, start a sequence, give the next token. Everything else has a default that
//! says "I cannot", and whatever depends on it is then reported as missing (`None`), never guessed.
//!
//! Errors are [`anyhow::Error`]: they come from any library, `?` takes them as they are, and nothing here does more than show them.
//!
//! An engine that serves several requests at once is a [`Scheduler`]; any engine that can [`fork`](Engine::fork) is one
//! already, by taking turns.
//!
//! # A library behind a C interface
//!
//! The engine owns a pointer, and each method is one call into the library.
//!
//! ```
//! use anyhow::{Result, ensure};
//! use infergate::engine::{Engine, EngineInfo, TokenId};
//!
//! /// Stands for the library's header.
//! mod ffi {
//!     pub struct Model {
//!         pub last: u32,
//!     }
//!     pub unsafe extern "C" fn model_read(model: *mut Model, ids: *const u32, count: usize) -> u32 {
//!         // SAFETY: the caller gives a live model and `count` ids.
//!         unsafe {
//!             (*model).last = (0..count).fold(0, |sum, at| sum + *ids.add(at)) % 100;
//!             (*model).last
//!         }
//!     }
//!     pub unsafe extern "C" fn model_next(model: *mut Model) -> u32 {
//!         // SAFETY: the caller gives a live model.
//!         unsafe {
//!             (*model).last = ((*model).last * 7 + 1) % 100;
//!             (*model).last
//!         }
//!     }
//! }
//!
//! struct Foreign {
//!     model: *mut ffi::Model,
//! }
//!
//! // SAFETY: the library allows a model to be used from one thread at a time, whichever that is.
//! unsafe impl Send for Foreign {}
//!
//! impl Engine for Foreign {
//!     fn info(&self) -> EngineInfo {
//!         EngineInfo {
//!             name: "foreign".into(),
//!             version: "1".into(),
//!             model: "m".into(),
//!             dtype: "f32".into(),
//!             context_tokens: 64,
//!             vocab_tokens: 100,
//!             ..EngineInfo::default()
//!         }
//!     }
//!
//!     fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
//!         ensure!(prompt.len() < 64, "the prompt does not fit the context");
//!         // SAFETY: the model lives as long as this engine, and the slice as long as the call.
//!         Ok(unsafe { ffi::model_read(self.model, prompt.as_ptr(), prompt.len()) })
//!     }
//!
//!     fn next(&mut self) -> Result<TokenId> {
//!         // SAFETY: as above.
//!         Ok(unsafe { ffi::model_next(self.model) })
//!     }
//! }
//!
//! let mut engine = Foreign { model: Box::into_raw(Box::new(ffi::Model { last: 0 })) };
//! assert_eq!(engine.start(&[1, 2, 3]).expect("fits"), 6);
//! assert_eq!(engine.next().expect("goes on"), 43);
//! ```

mod contract;
mod factory;
pub mod scheduler;

use anyhow::{Result, bail};

pub use contract::check_contract;
pub use factory::EngineFactory;
pub use infergate_core::engine::{Cost, Device, EngineInfo, LoadRequest, Pacing, TokenId, ensure_fits};
pub use scheduler::{Event, RequestId, RoundRobin, Scheduler};

/// What an engine knows of the token it gave last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The token.
    pub token: TokenId,
    /// How far the two best logits behind it lay apart, in logits. `None`: not known.
    pub margin: Option<f32>,
    /// Nanoseconds spent turning logits into the token. `None`: not known.
    pub sample_ns: Option<u64>,
}

/// One engine with one model loaded and room for one sequence.
///
/// Rules, tested by [`check_contract`]:
/// - Decoding is greedy and ignores end-of-sequence: [`next`](Engine::next) always gives a token while the context has room.
/// - A token counts once its id is on the host: both methods return only when it is.
/// - [`start`](Engine::start) forgets all that came before. Clearing caches belongs to `start`, but an engine may do it
///   lazily; it must not depend on what ran before.
/// - Beyond [`EngineInfo::context_tokens`] both return an error; they never wrap, truncate or panic. Of `next` this is not tested.
///
/// One more that the gate sees: between two calls an engine computes nothing, since base and head take turns between tokens. One that
/// does, as with a thread that decodes ahead, says [`Pacing::Streaming`] in its [`info`](Engine::info).
pub trait Engine {
    /// Who this is. Cheap, and the same at every call.
    fn info(&self) -> EngineInfo;

    /// Empties the cache, reads `prompt` (at least one token) and gives the first output token.
    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId>;

    /// Appends the token given last and gives the next one.
    fn next(&mut self) -> Result<TokenId>;

    /// The token given last and what is known of it. `None`: nothing is, or no token was given yet.
    fn last_step(&self) -> Option<Step> {
        None
    }

    /// Puts the logits behind the token given last into `out`, one for each token of the vocabulary. `false`: this engine
    /// does not give them, and `out` is as it was.
    fn logits(&self, _out: &mut Vec<f32>) -> bool {
        false
    }

    /// The next [`next`](Engine::next) appends `token` in place of the token given last. `Ok(false)`: this engine cannot.
    ///
    /// Two engines whose numbers differ a little can so be asked about the same text, token by token.
    fn force(&mut self, _token: TokenId) -> Result<bool> {
        Ok(false)
    }

    /// Goes back to the state just after [`start`](Engine::start), so that the next step runs at the prompt's context
    /// again. `Ok(false)`: this engine cannot, and is started anew instead.
    fn rewind(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Text to tokens, without special tokens added. `None`: this model has no tokenizer.
    fn tokenize(&self, _text: &str) -> Result<Option<Vec<TokenId>>> {
        Ok(None)
    }

    /// Tokens to text. `None`: this model has no tokenizer.
    fn detokenize(&self, _tokens: &[TokenId]) -> Result<Option<String>> {
        Ok(None)
    }

    /// The work the hardware cannot avoid. `None`: not known, and no fraction of the hardware's limit is given.
    fn cost(&self) -> Option<Cost> {
        None
    }

    /// Devices it computes on besides the processor. They become part of the machine class: times taken on one device are
    /// not compared with times taken on another.
    fn devices(&self) -> Vec<Device> {
        Vec::new()
    }

    /// A second sequence over the same weights. It starts empty and is independent of this one.
    ///
    /// # Errors
    /// Where the engine cannot, in one sentence.
    fn fork(&self) -> Result<Box<dyn Engine + Send>> {
        bail!("{} cannot run a second sequence over the same weights", self.info().name)
    }

    /// Room for `requests` requests at once over the same weights, independent of this engine's own sequence. Without a
    /// scheduler of its own an engine takes turns between [`fork`](Engine::fork)s.
    ///
    /// # Errors
    /// Where the engine can do neither, in one sentence.
    fn scheduler(&self, requests: usize) -> Result<Box<dyn Scheduler + Send>> {
        Ok(Box::new(RoundRobin::of(self, requests)?))
    }
}
