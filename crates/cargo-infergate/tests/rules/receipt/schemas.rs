//! The committed JSON Schemas are those of the code.

use std::path::Path;

use infergate_receipts::json_schemas;

#[test]
fn committed_schemas_are_those_of_the_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    for (name, schema) in json_schemas() {
        let schema = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON") + "\n";
        let path = folder.join(name);
        if std::env::var_os("INFERGATE_BLESS").is_some_and(|bless| bless == "1") {
            std::fs::write(&path, &schema).expect("a schema file");
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == schema,
            "schemas/{name} is stale; run `INFERGATE_BLESS=1 cargo test -p cargo-infergate --test rules schemas` and commit it"
        );
    }
}
