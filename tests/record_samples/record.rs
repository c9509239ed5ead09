//! Records `sample-runs/runs` again: `cargo run --example record-samples`, and only some of them with `-- page orders`.
//!
//! Runs dicta's own library over the demo, against a scripted judge (`tests/it/support/wire.rs`) and the demo's pages on a
//! TLS server (`web`), both on loopback. What comes out is what dicta recorded, with real time between the
//! events; every header says that no model was asked. Listens on port 443 of a loopback address, since judges may open
//! no other port: on Linux that needs root or `sysctl net.ipv4.ip_unprivileged_port_start=443`.
//!
//! An example and not a test: it writes into the repository. It lies in a folder, or cargo would take it for a test.

mod judge;
mod pages;
mod script;
#[path = "../it/support/mod.rs"]
#[expect(dead_code, reason = "the tests use the rest of the kit")]
mod support;
mod web;

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use dicta::clock::{BoxFuture, Clock, SystemClock};
use dicta::handlers::EvalTypeRegistry;
use dicta::model::{Millis, RunId, WallTime};
use dicta::net::{OverridingResolver, Resolver, SystemResolver};
use dicta::run::{self, CachePolicy, DecisionFilter, RunOptions};
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

    fn wall_time(&self) -> WallTime {
        self.wall.clone()
    }

    fn sleep(&self, d: Millis) -> BoxFuture<'_, ()> {
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

fn main() -> Result<(), Box<dyn Error>> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-runs");
    let pages = web::serve(pages::load(&samples.join("demo/pages")));
    let runtime = tokio::runtime::Runtime::new()?;
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |run: &str| wanted.is_empty() || wanted.iter().any(|name| run.ends_with(name));
    for recording in script::recordings() {
        if !is_wanted(recording.run) {
            continue;
        }
        runtime.block_on(record(&samples, &pages, recording))?;
    }
    Ok(())
}

/// Records one run into `sample-runs/runs`, in the place of an earlier one of that name.
async fn record(
    samples: &Path,
    web: &web::Web,
    mut recording: Recording,
) -> Result<(), Box<dyn Error>> {
    let judge = judge::serve(&mut recording);
    let scratch = tempfile::Builder::new()
        .prefix("dicta-record-samples-")
        .tempdir()?;
    let demo = scratch.path().join("demo");
    for folder in ["transcripts", "rubrics", "data"] {
        copy(&samples.join("demo").join(folder), &demo.join(folder))?;
    }
    fs::write(scratch.path().join("ca.pem"), web.ca_pem())?;
    let tools = fs::read_to_string(samples.join("demo/tools.yaml"))?;
    fs::write(demo.join("tools.yaml"), on_loopback(&tools)?)?;
    let runs = samples.join("runs");
    fs::write(
        demo.join("dicta.yaml"),
        config(&judge.base_url(), web.hosts(), &runs),
    )?;
    let earlier = runs.join(recording.run);
    if earlier.exists() {
        fs::remove_dir_all(&earlier)?;
    }

    // A data directory of its own: no past runs, no cache, and a marker secret that is thrown away afterwards.
    let data = scratch.path().join("data").display().to_string();
    let env = Env(HashMap::from([("DICTA_DATA_DIR".to_owned(), data)]));
    let registry = EvalTypeRegistry::builtin();
    let mut workspace = workspace::load(&demo, &env, &registry).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        problems.join("\n")
    })?;
    let system: Arc<dyn Resolver> = Arc::new(SystemResolver);
    let resolver: Arc<dyn Resolver> = Arc::new(OverridingResolver::new(&web.resolve(), system));
    // Once more, but with names that resolve to this program.
    workspace.tools = workspace::load_tools(&demo, &env, &resolver).0;
    let options = RunOptions {
        filter: Some(DecisionFilter::parse(recording.filter)?),
        repeat: (recording.repeat > 1).then_some(recording.repeat),
        cache: CachePolicy::Off,
        label: script::LABEL.to_owned(),
        id: Some(RunId(recording.run.to_owned())),
        tools: ToolDeps {
            host_overrides: web.resolve(),
            ..ToolDeps::default()
        },
        ..RunOptions::default()
    };
    let clock: Arc<dyn Clock> = Arc::new(Dated {
        clock: SystemClock::new(),
        wall: dated(recording.run),
    });
    let mut handle = run::start_run(Arc::new(workspace), &registry, &env, clock, options).await?;
    while handle.events.recv().await.is_some() {}
    let totals = handle.join.await??;
    // It names a process of this machine, and a finished run needs none.
    fs::remove_file(earlier.join("lock"))?;
    writeln!(
        std::io::stderr(),
        "{}: {} cells, {:?}",
        recording.run,
        totals.cells,
        totals.outcomes
    )?;
    Ok(())
}

/// The demo's dicta.yaml, but with the scripted judge and live tools.
fn config(base_url: &str, hosts: &[String], runs: &Path) -> String {
    format!(
        "transcripts: [transcripts/*.jsonl]\n\
         rubrics: [rubrics/*.yaml]\n\
         tools: [tools.yaml]\n\
         runs: '{}'\n\
         judge: scripted\n\
         judges:\n\
         \x20 scripted: # a scripted server, not a model\n\
         \x20   provider: openai\n\
         \x20   base_url: {base_url}\n\
         \x20   model: scripted\n\
         \x20   tools: [{{ fetch_url: {{ allow_hosts: [{}], ca_file: ../ca.pem }} }}, northwind]\n\
         limits: {{ concurrency: 1 }} # so that the script is told in order\n",
        runs.display(),
        hosts.join(", "),
    )
}

/// The demo's tools, but its API on the server of this program. Only what the guard lets through is another: evidence is
/// kept under what a tool declares and does.
fn on_loopback(tools: &str) -> Result<String, String> {
    const BASE: &str = "    baseUrl: https://parcels.northwind.example\n";
    if !tools.contains(BASE) {
        return Err(format!("tools.yaml holds no line `{}`", BASE.trim()));
    }
    let opened = format!("{BASE}    allowPrivate: true\n    caFile: ../ca.pem\n");
    Ok(tools.replace(BASE, &opened))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
