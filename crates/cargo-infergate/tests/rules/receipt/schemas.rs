//! The committed JSON Schema is that of the code.

use std::path::Path;

use infergate_receipts::verdict_schema;

#[test]
fn the_committed_schema_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/verdict-1.schema.json");
    let schema = serde_json::to_string_pretty(&verdict_schema()).expect("a schema is plain JSON") + "\n";
    if std::env::var_os("INFERGATE_BLESS").is_some_and(|bless| bless == "1") {
        std::fs::write(&path, &schema).expect("a schema file");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == schema,
        "schemas/verdict-1.schema.json is stale; run `INFERGATE_BLESS=1 cargo test -p cargo-infergate --test rules schema` and commit it"
    );
}
