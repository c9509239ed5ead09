//! Large contents of recordings at every kill, recordings of earlier versions, and a clock that jumps (D9, D10, A8).

use std::path::{Path, PathBuf};
use std::process::Command;

use dicta::model::Digest;
use serde_json::{Value, json};

use crate::goals::combine;
use crate::model_server::ModelServer;
use crate::sandbox::{
    Injection, Sandbox, find_strace_problem, grouped, is_killed, list_file_calls, outcomes,
    result_lines, text,
};
use crate::terminals::conclude;
use crate::{Campaign, Measured, Scale};

/// The largest line of a log, in bytes.
const MAX_RECORD: usize = 16 << 20;
const RUN: &[&str] = &["run", "-q", "-j", "1", "--no-cache", "--format", "jsonl"];
/// The runs of `sample-runs`, with the minor version of format 1 that recorded them.
const SAMPLES: [(&str, u64); 4] = [("page", 2), ("busy", 0), ("vote", 0), ("orders", 2)];

/// Writes transcripts whose messages have this size.
fn write_large_transcripts(sandbox: &Sandbox, count: usize, bytes: usize) {
    let lines = (0..count).map(|at| {
        let content = format!("number {at} ").repeat(bytes / 9);
        let record = json!({"id": format!("t{at}"), "messages": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": content},
        ]});
        format!("{record}\n")
    });
    sandbox.write("t.jsonl", &lines.collect::<String>());
}

/// Every file that a record names is complete, at every kill (D9).
pub(crate) fn measure_contents(campaign: &Campaign) -> Measured {
    let server = ModelServer::start();
    let sandbox = Sandbox::new(campaign);
    sandbox.workspace(0, &server.config());
    let mut problems = Vec::new();
    // One content that is larger than a record may be.
    let largest = campaign.count(1 << 20, 17 << 20);
    write_large_transcripts(&sandbox, 1, largest);
    let output = sandbox.dicta(RUN);
    let (longest, largest_file, _) = check_contents(&sandbox, &mut problems, "a whole run");
    if outcomes(&output.stdout).len() != 2 || largest_file < largest as u64 {
        problems.push(format!("a large content: {}", text(&output.stderr)));
    }
    if longest > MAX_RECORD {
        problems.push(format!("a record has {longest} bytes"));
    }
    if let Some(problem) = find_strace_problem() {
        return match conclude("no kills", &problems) {
            Measured::Reached(_) => Measured::Skipped(problem),
            other => other,
        };
    }
    write_large_transcripts(&sandbox, 3, 100_000);
    let (mut kills, mut named) = (0, 0);
    for call in list_file_calls().take(campaign.count(2, usize::MAX)) {
        for at in 1..=campaign.count(3, 2000) {
            sandbox.remove("runs");
            let output = sandbox.inject(&Injection::kill(call, at), RUN);
            if !is_killed(&output) {
                break;
            }
            kills += 1;
            let place = format!("{call} {at}");
            named += check_contents(&sandbox, &mut problems, &place).2;
        }
    }
    if kills == 0 || (campaign.scale == Scale::Full && named == 0) {
        problems.push(format!("{kills} kills, {named} named files"));
    }
    conclude(
        &format!(
            "a content of {} MiB is a file of its own, the longest record has {longest} bytes; {} kills, after which logs name {} complete files",
            largest_file >> 20,
            grouped(kills),
            grouped(named)
        ),
        &problems,
    )
}

/// Checks the files that the logs of all runs name. Returns the longest line, the largest file and the number of names.
fn check_contents(
    sandbox: &Sandbox,
    problems: &mut Vec<String>,
    place: &str,
) -> (usize, u64, usize) {
    let (mut longest, mut largest, mut count) = (0, 0, 0);
    let runs = std::fs::read_dir(sandbox.path().join("runs"));
    for run in runs.into_iter().flatten().flatten() {
        let log = text(&std::fs::read(run.path().join("events.jsonl")).unwrap_or_default());
        for line in log
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
        {
            longest = longest.max(line.len());
            let Ok(record) = serde_json::from_str::<Value>(line) else {
                problems.push(format!("{place}: a record is not JSON"));
                continue;
            };
            let mut names = Vec::new();
            collect_names(&record, &mut names);
            for (hash, bytes) in names {
                count += 1;
                let content = std::fs::read(run.path().join("blobs").join(&hash));
                let content = content.unwrap_or_default();
                largest = largest.max(content.len() as u64);
                let is_whole =
                    content.len() as u64 == bytes && Digest::hash_bytes(&content).0 == hash;
                if !is_whole && problems.len() < 5 {
                    problems.push(format!(
                        "{place}: {hash} has {} of {bytes} bytes",
                        content.len()
                    ));
                }
            }
        }
    }
    (longest, largest, count)
}

/// The files that a record names, each with its size.
fn collect_names(value: &Value, names: &mut Vec<(String, u64)>) {
    match value {
        Value::Object(map) => {
            if let (Some(Value::String(hash)), Some(bytes)) =
                (map.get("hash"), map.get("bytes").and_then(Value::as_u64))
            {
                names.push((hash.clone(), bytes));
            }
            map.values().for_each(|inner| collect_names(inner, names));
        }
        Value::Array(all) => all.iter().for_each(|inner| collect_names(inner, names)),
        _ => {}
    }
}

/// Recordings of earlier versions give the results that those versions gave, every time (D10).
pub(crate) fn measure_earlier_versions(campaign: &Campaign) -> Measured {
    let sandbox = Sandbox::new(campaign);
    sandbox.workspace(3, "judge: rules\n");
    let samples = campaign.repository.join("sample-runs/runs");
    copy_folder(&samples, &sandbox.path().join("runs"));
    let mut problems = Vec::new();
    let mut lines = 0;
    for (run, minor) in SAMPLES {
        let golden = campaign
            .repository
            .join(format!("tests/campaign/golden/{run}.jsonl"));
        let golden = read_rows(&std::fs::read(golden).unwrap_or_default());
        if golden.is_empty() {
            problems.push(format!("{run} has no golden results"));
        }
        for attempt in 0..campaign.count(2, 20) {
            let shown = sandbox.dicta(&["show", run, "--format", "jsonl"]);
            let rows = read_rows(&shown.stdout);
            lines += rows.len();
            // A later version may add keys and may not change one.
            let is_same = rows.len() == golden.len()
                && golden.iter().zip(&rows).all(|(old, new)| {
                    let keys = old.as_object().into_iter().flatten();
                    keys.into_iter().all(|(key, value)| new[key] == *value)
                });
            if !is_same {
                problems.push(format!(
                    "{run} of format 1.{minor} at attempt {attempt}: {}",
                    text(&shown.stderr)
                ));
                break;
            }
        }
        let replayed = sandbox.dicta(&["replay", run, "--print", "--speed", "0"]);
        let again = sandbox.dicta(&["replay", run, "--print", "--speed", "0"]);
        if !replayed.status.success()
            || replayed.stdout.is_empty()
            || replayed.stdout != again.stdout
        {
            problems.push(format!(
                "replays of {run} differ: {}",
                text(&replayed.stderr)
            ));
        }
    }
    // A run of this version: printed, shown and shown again.
    let live = sandbox.dicta(&["run", "-q", "--format", "jsonl"]);
    if result_lines(&live.stdout).len() != 6 {
        problems.push(format!("a run: {}", text(&live.stderr)));
    }
    for _ in 0..campaign.count(2, 20) {
        let shown = sandbox.dicta(&["show", "@", "--format", "jsonl"]);
        lines += result_lines(&shown.stdout).len();
        if result_lines(&shown.stdout) != result_lines(&live.stdout) {
            problems.push("a run of this version shows other results".to_owned());
            break;
        }
    }
    let here = conclude(
        &format!(
            "{} result lines of recordings in formats 1.0, 1.2 and of this version equal those of the run",
            grouped(lines)
        ),
        &problems,
    );
    // Only these have golden results. The tests read a recording of every format, and logs of newer ones.
    combine(
        campaign,
        here,
        &[
            (
                "it",
                &[
                    "every_minor_format_has_a_sample_that_folds_and_replays",
                    "samples_of_every_minor_format_are_shown_and_replayed_by_the_program",
                ],
            ),
            (
                "lib",
                &["newer_major_version_is_refused_and_newer_minor_is_read"],
            ),
        ],
    )
}

fn read_rows(stdout: &[u8]) -> Vec<Value> {
    text(stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from).into_iter().flatten() {
        let target = to.join(entry.path().strip_prefix(from).expect("inside"));
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(&target).expect("a folder");
        } else {
            std::fs::copy(entry.path(), &target).expect("a copy");
        }
    }
}

/// The source of a library that changes the wall time of a process by a day at each reading, forwards and back.
const JUMPING_CLOCK: &str = r"
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static unsigned readings;
    int code = (int)syscall(SYS_clock_gettime, id, at);
    if (id == CLOCK_REALTIME) at->tv_sec += (__sync_fetch_and_add(&readings, 1) % 2) ? 86400 : -86400;
    return code;
}
";

/// The day in the name of the only run.
fn read_day(sandbox: &Sandbox) -> String {
    let mut runs = std::fs::read_dir(sandbox.path().join("runs")).expect("a folder of runs");
    let run = runs.next().expect("a run").expect("a readable folder");
    run.file_name().to_string_lossy().chars().take(8).collect()
}

/// Runs under a wall clock that jumps by two days at each reading (A8).
pub(crate) fn measure_jumping_clock(campaign: &Campaign) -> Measured {
    let sandbox = Sandbox::new(campaign);
    let source = sandbox.write("clock.c", JUMPING_CLOCK);
    let library: PathBuf = sandbox.path().join("clock.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .output();
    match built {
        Ok(output) if output.status.success() => {}
        _ => return Measured::Skipped("no C compiler builds the library of the clock".to_owned()),
    }
    let server = ModelServer::start();
    let transcripts = campaign.count(3, 50);
    sandbox.workspace(transcripts, &server.config());
    let mut problems = Vec::new();
    sandbox.dicta(RUN);
    let today = read_day(&sandbox);
    let rounds = campaign.count(1, 10);
    let mut events = 0;
    for _ in 0..rounds {
        sandbox.remove("runs");
        let output = sandbox
            .command(&["run", "-q", "--no-cache", "--format", "jsonl"])
            .env("LD_PRELOAD", &library)
            .output()
            .expect("the program runs");
        // The system can ignore the library, for example in a folder without the right to execute.
        if read_day(&sandbox) == today {
            problems.push(format!("the time is right: {}", text(&output.stderr)));
        }
        let found = outcomes(&output.stdout);
        if found.len() != 2 * transcripts || found.values().any(|outcome| outcome != "pass") {
            problems.push(format!("{found:?}: {}", text(&output.stderr)));
        }
        let summary = read_rows(&output.stdout);
        let summary = summary.iter().find(|row| row["type"] == "summary");
        let duration = summary.and_then(|row| row["duration_ms"].as_u64());
        if duration.is_none_or(|duration| duration > 3_600_000) {
            problems.push(format!("the run took {duration:?} ms"));
        }
        for run in std::fs::read_dir(sandbox.path().join("runs"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let log = text(&std::fs::read(run.path().join("events.jsonl")).unwrap_or_default());
            let mut last = 0;
            for record in read_rows(log.as_bytes()) {
                let at = record["at"].as_u64().unwrap_or(u64::MAX);
                events += 1;
                if at < last || at > 3_600_000 {
                    problems.push(format!("an event at {at} after one at {last}"));
                    break;
                }
                last = at;
            }
        }
    }
    if campaign.scale == Scale::Full && events < 1000 {
        problems.push("too few events".to_owned());
    }
    conclude(
        &format!(
            "{rounds} runs whose wall time jumps by two days at each reading: {} recorded times in order, no time limit met",
            grouped(events)
        ),
        &problems,
    )
}
