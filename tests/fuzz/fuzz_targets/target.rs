//! One fuzz target under libFuzzer, chosen by the variable `DICTA_FUZZ_TARGET`.
//!
//! One program for all targets, because each program would link the whole of dicta again.
#![no_main]

#[path = "../targets.rs"]
#[expect(dead_code, reason = "the campaign finds the seeds of a target")]
mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use targets::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("DICTA_FUZZ_TARGET").unwrap_or_default();
    let folder = std::env::temp_dir().join(format!("dicta-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let mut all = targets::all(&folder);
    let names: Vec<String> = all.iter().map(|target| target.name.clone()).collect();
    let found = all.iter().position(|target| target.name == name);
    let at = found.unwrap_or_else(|| panic!("DICTA_FUZZ_TARGET is one of {names:?}"));
    all.swap_remove(at)
});

fuzz_target!(|data: &[u8]| (TARGET.run)(data));
