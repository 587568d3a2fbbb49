//! What a pull request's job uploads: read, judged again, and shown in every format.
#![no_main]

use infergate_judge::paired::{Limits, Policy, judge};
use infergate_receipts::parse_uploaded;
use infergate_report::export::chosen;
use infergate_report::inputs::Inputs;
use infergate_report::topics;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(receipt) = parse_uploaded(bytes) else { return };
    let receipt = Limits::default().set_in(receipt);
    let verdict = judge(&receipt, &Policy::default());
    let inputs =
        Inputs { paired: Some(receipt), verdict: Some(verdict), pull_request: true, ..Inputs::new("cargo infergate") };
    let report = topics::report(&inputs);
    for exporter in chosen(&[], &inputs).expect("the usual formats") {
        // One that lacks what it needs says so.
        let _ = exporter.files(&inputs, &report);
    }
});
