//! Two recorders in one folder, and the cost of recording (D7, D11).

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use dicta::clock::{Clock, SystemClock};
use dicta::event::{EventKind, RunHeader};
use dicta::model::{CellIx, RunId, WallTime};
use dicta::record::{Recorder, StartedRecording};

use crate::goals::combine;
use crate::sandbox::{Sandbox, grouped, result_lines, text};
use crate::terminals::conclude;
use crate::{Campaign, Measured, Scale};

const RUN: &[&str] = &["run", "-q", "--no-cache", "--format", "jsonl"];

/// Two processes record at once; a third one is killed (D7).
pub(crate) fn measure_two_recorders(campaign: &Campaign) -> Measured {
    let sandbox = Sandbox::new(campaign);
    let transcripts = campaign.count(20, 250);
    sandbox.workspace(transcripts, "judge: rules\n");
    let spawn = || {
        sandbox
            .command(RUN)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts")
    };
    let mut problems = Vec::new();
    let both = [spawn(), spawn()];
    let outputs = both.map(|child| child.wait_with_output().expect("it ends"));
    let mut events = Vec::new();
    let mut ids = BTreeSet::new();
    for output in &outputs {
        let printed = result_lines(&output.stdout);
        let summary = text(&output.stdout);
        let id = summary
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .find_map(|row| row["run"].as_str().map(str::to_owned))
            .unwrap_or_default();
        let shown = sandbox.dicta(&["show", &id, "--format", "jsonl"]);
        if printed.len() != 2 * transcripts || result_lines(&shown.stdout) != printed {
            problems.push(format!("run {id}: {} results printed", printed.len()));
        }
        let log = sandbox
            .read(&format!("runs/{id}/events.jsonl"))
            .unwrap_or_default();
        events.push(log.split(|byte| *byte == b'\n').count() - 1);
        ids.insert(id);
    }
    if ids.len() != 2 {
        problems.push("the two runs share one recording".to_owned());
    }
    if campaign.scale == Scale::Full && events.iter().any(|count| *count < 1000) {
        problems.push("fewer than 1,000 events".to_owned());
    }
    // A killed recorder leaves no lock: the next command lists its run as interrupted.
    let mut killed = spawn();
    let mut first = [0];
    let stdout = killed.stdout.as_mut().expect("a pipe");
    let read = std::io::Read::read(stdout, &mut first).unwrap_or(0);
    let is_named = names_process(&sandbox.path().join("runs"), killed.id());
    killed.kill().expect("a kill");
    let is_killed = killed.wait().expect("it ends").signal() == Some(9);
    // The results of the whole campaign are larger than the pipe, so that run cannot end before its kill.
    if read != 1 || (campaign.scale == Scale::Full && !is_killed) {
        problems.push("no recorder is killed".to_owned());
    }
    // A run of the short form can have ended.
    if campaign.scale == Scale::Full && !is_named {
        problems.push("no recording names the process that writes it".to_owned());
    }
    // A line for the names of the columns, and one for each run.
    let list = text(&sandbox.dicta(&["runs"]).stdout);
    if list.contains("running") || list.lines().count() != 4 {
        problems.push(format!("a killed run counts as running: {list}"));
    }
    let killed = if is_killed {
        ", and a killed recorder"
    } else {
        ""
    };
    conclude(
        &format!(
            "{} and {} events recorded at once{killed}",
            grouped(events[0]),
            grouped(events[1])
        ),
        &problems,
    )
}

/// True if the lock of a recording contains the id of a process.
fn names_process(runs: &Path, id: u32) -> bool {
    let locks = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let mut holders = locks.filter_map(|run| std::fs::read_to_string(run.path().join("lock")).ok());
    holders.any(|holder| holder.trim() == id.to_string())
}

/// The time to record 1,000 events, compared with the second in which a run sends them (D11).
pub(crate) fn measure_cost(campaign: &Campaign) -> Measured {
    let thousands = campaign.count(2, 50);
    let dir = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let begin = Instant::now();
    let recorded = runtime.block_on(record(dir.path(), thousands * 1000));
    let millis = begin.elapsed().as_secs_f64() * 1000.0 / thousands as f64;
    let figure = format!(
        "{millis:.1} ms for 1,000 events, which is {:.1}% of a second",
        millis / 10.0
    );
    let mut problems = Vec::new();
    if recorded < thousands * 1000 {
        problems.push(format!("{recorded} events recorded"));
    }
    // Only the whole campaign looks at the time: the short form runs next to other tests.
    if campaign.scale == Scale::Full && millis > 20.0 {
        problems.push("recording costs more than 2%".to_owned());
    }
    // The first test counts the syncs of a run of 5 s.
    combine(
        campaign,
        conclude(&figure, &problems),
        &[(
            "lib",
            &[
                "disk_error_at_any_call_is_final",
                "power_loss_loses_at_most_one_second",
            ],
        )],
    )
}

async fn record(runs: &Path, count: usize) -> usize {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let header = RunHeader::new(
        RunId("20260101T000000Z-kvqa".to_owned()),
        WallTime("1970-01-01T00:00:00.000+00:00".to_owned()),
        "/w".into(),
    );
    let StartedRecording {
        recorder,
        emitter,
        mut events,
        ..
    } = Recorder::start(runs, header, Arc::default(), clock).expect("a recording");
    let reader = tokio::spawn(async move {
        let mut seen = 0;
        while let Some(batch) = events.recv().await {
            seen += batch.len();
        }
        seen
    });
    for at in 0..count {
        let cell = Some(CellIx(u32::try_from(at).expect("few events")));
        let text = "A delta of a judge's reasoning, as long as most.".to_owned();
        emitter.send(EventKind::Note { cell, text }).await;
    }
    drop(emitter);
    let seen = reader.await.expect("the reader ends");
    recorder.finish().await.expect("recorded");
    seen
}
