//! What a worker writes: lines, each read as any answer.
#![no_main]

use infergate_core::load::{LoadLevel, LoadWindow};
use infergate_core::receipt::{AllocationSite, CountedCase, InferenceMemory, LeakSite, TtftParts};
use infergate_core::worker::{
    Answer, CountedTokens, Hello, LineEvent, Loaded, MemoryState, PreparedReply, Profile, Reread, SampleReply,
    TextReply, TurnReply, next_line,
};
use libfuzzer_sys::fuzz_target;
use serde_json::from_str;

fuzz_target!(|bytes: &[u8]| {
    let mut reader = std::io::BufReader::new(bytes);
    while let Ok(LineEvent::Line { text, .. }) = next_line(&mut reader) {
        if let Ok(Answer { ok: Some(Loaded { engine, .. }), .. }) = from_str(&text) {
            let _ = engine.unsound();
        }
        let _ = from_str::<Answer<CountedCase>>(&text);
        let _ = from_str::<Answer<Hello>>(&text);
        let _ = from_str::<Answer<PreparedReply>>(&text);
        let _ = from_str::<Answer<SampleReply>>(&text);
        let _ = from_str::<Answer<TurnReply>>(&text);
        let _ = from_str::<Answer<Reread>>(&text);
        let _ = from_str::<Answer<TextReply>>(&text);
        let _ = from_str::<Answer<CountedTokens>>(&text);
        let _ = from_str::<Answer<TtftParts>>(&text);
        let _ = from_str::<Answer<InferenceMemory>>(&text);
        let _ = from_str::<Answer<MemoryState>>(&text);
        let _ = from_str::<Answer<Vec<LeakSite>>>(&text);
        let _ = from_str::<Answer<Vec<AllocationSite>>>(&text);
        let _ = from_str::<Answer<Profile>>(&text);
        let _ = from_str::<Answer<LoadLevel>>(&text);
        let _ = from_str::<Answer<LoadWindow>>(&text);
    }
});
