//! Whatever text a model writes as arguments: no panic; what comes out is a strict JSON object and a fixed point; valid
//! JSON is not changed but for keys that stand twice.
#![no_main]

use dicta::tools::parse_arguments;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let raw = String::from_utf8_lossy(data);
    let Ok(read) = parse_arguments("t", &raw) else {
        return;
    };
    let canonical = read.canonical.get();
    assert!(canonical.starts_with('{'), "no object: {canonical}");
    let again = parse_arguments("t", canonical).expect("canonical arguments are read again");
    assert_eq!(again.canonical.get(), canonical);
    assert!(again.changes.is_empty() && !again.rewritten && !again.closed && !again.twice);
    if let Ok(valid @ Value::Object(_)) = serde_json::from_str::<Value>(&raw) {
        let same: Value = serde_json::from_str(canonical).expect("strict JSON");
        assert_eq!(valid, same);
        assert!(read.changes.is_empty() || read.twice);
        assert!(!read.closed);
    }
});
