//! Engines that a test has in its hand.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use anyhow::Result;
use infergate::clock::VirtualClock;
use infergate::engine::fake::FakeScript;
use infergate::engine::{Engine, EngineInfo, FakeEngine, TokenId};
use infergate_serve::{Server, Settings};

pub fn fake(script: FakeScript) -> FakeEngine {
    FakeEngine::new(script, VirtualClock::default())
}

/// What the fake engine says to `prompt`.
pub fn alone(prompt: &[TokenId], tokens: usize) -> Vec<TokenId> {
    let mut engine = fake(FakeScript::default());
    let mut ids = vec![engine.start(prompt).expect("starts")];
    while ids.len() < tokens {
        ids.push(engine.next().expect("steps"));
    }
    ids
}

/// Token ids as a server without a tokenizer writes them.
pub fn written(ids: &[TokenId]) -> String {
    ids.iter().map(|id| format!("t{id} ")).collect()
}

pub fn start(engine: impl Engine + Send + 'static, settings: Settings) -> Server {
    Server::start(Box::new(engine), settings).expect("serves")
}

/// A server of fake sequences that take turns, as fast as they can.
pub fn server() -> Server {
    start(fake(FakeScript::default()), Settings::default())
}

/// Lets tokens through, one by one.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<usize>, Condvar)>);

impl Gate {
    pub fn let_through(&self, tokens: usize) {
        let (left, changed) = &*self.0;
        let mut left = left.lock().expect("no test panicked");
        *left = left.saturating_add(tokens);
        changed.notify_all();
    }

    fn wait(&self) {
        let (left, changed) = &*self.0;
        let mut left = changed.wait_while(left.lock().expect("no test panicked"), |left| *left == 0).expect("no panic");
        *left -= 1;
    }
}

/// A fake that gives each token when its gate lets it through.
pub struct Gated {
    pub fake: FakeEngine,
    pub gate: Gate,
}

impl Gated {
    pub fn new(gate: &Gate) -> Self {
        Self { fake: fake(FakeScript::default()), gate: gate.clone() }
    }
}

impl Engine for Gated {
    fn info(&self) -> EngineInfo {
        self.fake.info()
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.gate.wait();
        self.fake.start(prompt)
    }

    fn next(&mut self) -> Result<TokenId> {
        self.gate.wait();
        self.fake.next()
    }

    fn fork(&self) -> Result<Box<dyn Engine + Send>> {
        Ok(Box::new(Self::new(&self.gate)))
    }
}

/// Speaks bytes, and says the bytes of a text over and over.
pub struct Bytes {
    pub says: &'static str,
    pub given: usize,
}

impl Bytes {
    fn say(&mut self) -> TokenId {
        let byte = self.says.as_bytes()[self.given % self.says.len()];
        self.given += 1;
        TokenId::from(byte)
    }
}

impl Engine for Bytes {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "bytes".into(),
            version: "1".into(),
            model: "bytes".into(),
            dtype: "u8".into(),
            context_tokens: 64,
            vocab_tokens: 256,
            ..EngineInfo::default()
        }
    }

    fn start(&mut self, _prompt: &[TokenId]) -> Result<TokenId> {
        self.given = 0;
        Ok(self.say())
    }

    fn next(&mut self) -> Result<TokenId> {
        Ok(self.say())
    }

    fn tokenize(&self, text: &str) -> Result<Option<Vec<TokenId>>> {
        Ok(Some(text.bytes().map(TokenId::from).collect()))
    }

    fn detokenize(&self, tokens: &[TokenId]) -> Result<Option<String>> {
        let bytes: Vec<u8> = tokens.iter().map(|id| u8::try_from(*id).unwrap_or(b'?')).collect();
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn fork(&self) -> Result<Box<dyn Engine + Send>> {
        Ok(Box::new(Self { says: self.says, given: 0 }))
    }
}

/// Speaks bytes, and reads a text as soon as its gate lets it through.
pub struct Reader {
    bytes: Bytes,
    gate: Gate,
    /// Texts that it began to read.
    pub read: Arc<AtomicUsize>,
}

impl Reader {
    pub fn new(gate: &Gate) -> Self {
        Self { bytes: Bytes { says: "abc", given: 0 }, gate: gate.clone(), read: Arc::default() }
    }
}

impl Engine for Reader {
    fn info(&self) -> EngineInfo {
        self.bytes.info()
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.bytes.start(prompt)
    }

    fn next(&mut self) -> Result<TokenId> {
        self.bytes.next()
    }

    fn tokenize(&self, text: &str) -> Result<Option<Vec<TokenId>>> {
        // A server tries its tokenizer on one letter.
        if text.len() > 1 {
            self.read.fetch_add(1, Ordering::Relaxed);
            self.gate.wait();
        }
        self.bytes.tokenize(text)
    }

    fn detokenize(&self, tokens: &[TokenId]) -> Result<Option<String>> {
        self.bytes.detokenize(tokens)
    }

    fn fork(&self) -> Result<Box<dyn Engine + Send>> {
        Ok(Box::new(Self { read: self.read.clone(), ..Self::new(&self.gate) }))
    }
}
