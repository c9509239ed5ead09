//! Records `sample-runs/runs` anew: `cargo run --example record-samples`.
//!
//! Runs dicta's own library over the demo, against a scripted judge (`it/support/wire.rs`) and the demo's pages on a
//! TLS server (`it/support/tls.rs`), both on loopback. What comes out is what dicta recorded, with real time between the
//! events; every header says that no model was asked. Listens on port 443 of a loopback address, since judges may open
//! no other port: on Linux that needs root or `sysctl net.ipv4.ip_unprivileged_port_start=443`.

#[path = "record_samples/judge.rs"]
mod judge;
#[path = "record_samples/pages.rs"]
mod pages;
#[path = "record_samples/script.rs"]
mod script;
#[path = "it/support/mod.rs"]
mod support;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dicta::clock::{Clock, Fut, SystemClock};
use dicta::handlers::Registry;
use dicta::model::{Millis, RunId, WallTime};
use dicta::run::{CachePolicy, Filter, RunOptions};
use dicta::tools::ToolDeps;
use dicta::workspace::{self, Env};

use script::Recording;

/// Real time, but the wall shows the day a recording is dated.
struct Dated {
    clock: SystemClock,
    wall: WallTime,
}

impl Clock for Dated {
    fn now(&self) -> Millis {
        self.clock.now()
    }

    fn wall(&self) -> WallTime {
        self.wall.clone()
    }

    fn sleep(&self, d: Millis) -> Fut<'_, ()> {
        self.clock.sleep(d)
    }
}

/// `20261022T090000Z-page` was recorded at 2026-10-22T09:00:00.
fn dated(run: &str) -> WallTime {
    let d = |range: std::ops::Range<usize>| &run[range];
    let (date, time) = (
        (d(0..4), d(4..6), d(6..8)),
        (d(9..11), d(11..13), d(13..15)),
    );
    WallTime(format!(
        "{}-{}-{}T{}:{}:{}.000+00:00",
        date.0, date.1, date.2, time.0, time.1, time.2
    ))
}
