//! What a server streams, in pieces as a network makes them.
#![no_main]

use infergate_core::load::RequestRecord;
use infergate_load::api::body::Api;
use infergate_load::api::completion::Completion;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&size, bytes)) = bytes.split_first() else { return };
    let (_, api) = Api::ALL[usize::from(size) % Api::ALL.len()];
    let (mut completion, mut record) = (Completion::new(api, 2), RequestRecord::default());
    for (at, piece) in bytes.chunks(usize::from(size) + 1).enumerate() {
        if completion.read(at as u64, piece, &mut record).is_err() {
            return;
        }
    }
    let _ = completion.finish(u64::MAX, false, &mut record);
});
