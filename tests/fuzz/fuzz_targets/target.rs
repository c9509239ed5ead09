//! One fuzz target under libFuzzer, chosen by the variable `DICTA_FUZZ_TARGET`.
//!
//! One program for all targets, because each program would link the whole of dicta again. The target reads each input of
//! libFuzzer and some damaged copies of it. libFuzzer's own work takes longer than the reading of a short input, so copies
//! give many more inputs per second; what they reach also guides libFuzzer.
#![no_main]

#[path = "../targets.rs"]
#[expect(dead_code, reason = "the campaign finds the seeds of a target")]
mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mimalloc::MiMalloc;
use targets::Target;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("DICTA_FUZZ_TARGET").unwrap_or_default();
    let folder = std::env::temp_dir().join(format!("dicta-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let mut all = targets::all(&folder);
    let names: Vec<String> = all.iter().map(|target| target.name.clone()).collect();
    let found = all.iter().position(|target| target.name == name);
    let at = found.unwrap_or_else(|| panic!("DICTA_FUZZ_TARGET is one of {names:?}"));
    if name == targets::PARQUET {
        // The hook of libFuzzer ends the program also at a panic that dicta catches. It still ends at any other panic.
        std::panic::set_hook(Box::new(|_| {}));
    }
    all.swap_remove(at)
});

fuzz_target!(|data: &[u8]| {
    (TARGET.run)(data);
    for number in 0..targets::COPIES {
        (TARGET.run)(&targets::damage(data, number));
    }
});
