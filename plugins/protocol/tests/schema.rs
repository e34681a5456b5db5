//! The schemas in `plugins/schema` are those of the types.

use std::fs;
use std::path::Path;

/// With UPDATE_SCHEMA set, writes them instead.
#[test]
fn the_schemas_in_the_tree_are_fresh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schema");
    for (name, schema) in [
        ("plugin-protocol-1.schema.json", segue_protocol::schema::protocol()),
        ("plugin-manifest-1.schema.json", segue_protocol::schema::manifest()),
    ] {
        let path = folder.join(name);
        let fresh = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            fs::write(&path, &fresh).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == fresh,
            "{name} is not what the types say: run `UPDATE_SCHEMA=1 cargo test -p segue-protocol --features schema`"
        );
    }
}
