//! The file of a load run: read as it was written.

use infergate_receipts::{LoadReceipt, Price, read, write_json};
use serde_json::{json, to_value};
use tempfile::TempDir;

use crate::gate::load_runs::run;

/// A run of one scenario with two users.
pub fn sound() -> LoadReceipt {
    run(1, 100)
}

#[test]
fn what_is_written_is_read_the_same_and_unknown_fields_do_no_harm() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("load.json");
    write_json(&path, &sound()).expect("a file");
    assert_eq!(read::<LoadReceipt>(&path).expect("a receipt"), sound());
    let mut value = to_value(sound()).expect("JSON");
    value["later"] = json!(3);
    value["scenarios"][0]["later"] = json!(3);
    std::fs::write(&path, value.to_string()).expect("a file");
    assert_eq!(read::<LoadReceipt>(&path).expect("a newer receipt"), sound());
}

#[test]
fn a_price_is_two_numbers() {
    let price: Price = "0.5, 2".parse().expect("a price");
    assert_eq!((price.input_per_million, price.output_per_million), (0.5, 2.0));
    for text in ["", "1", "1,x", "1,-1", "inf,1", "NaN,1", "1,2,3"] {
        let error = text.parse::<Price>().expect_err(text).to_string();
        assert!(error.contains("price") || error.contains("for example 0.15,0.60"), "{text}: {error}");
    }
}
