//! The fuzz targets of `tests/fuzz`: their seeds, their replay with every `cargo test`, and their runs under libFuzzer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::corpora::{self, Tally, Watch};
use crate::fuzz_runs::{FuzzAmount, FuzzRuns};
use crate::{Campaign, Measured, Scale, streams};

#[path = "../fuzz/targets.rs"]
mod targets;

use targets::{COPIES, Seeds, damage};
pub(crate) use targets::{Target, all as targets};

/// Longer inputs are slower and find little more.
const MAX_SEED: u64 = 16 << 10;
/// The runs of one target.
const RUNS: u64 = 10_000_000;
/// The seconds of one target, if it does not reach its runs before.
const SECONDS: u64 = 3600;
/// Sets fewer seconds for each target of this call. A further call continues; until then, targets miss the goal. With 0, this
/// call only reports the runs so far.
const SECONDS_VARIABLE: &str = "DICTA_FUZZ_SECONDS";

/// U1: no panic and no case over a second, for the corpora and every fuzz target.
pub(crate) fn judge_readers(campaign: &Campaign) -> Measured {
    let mut figures = Vec::new();
    let mut problems = Vec::new();
    for (name, tally) in corpora::run_all(campaign) {
        figures.push(format!("{} {name}", tally.inputs));
        problems.extend(tally.problems(campaign.scale));
    }
    let replayed = replay(campaign);
    figures.push(format!("{} seeds of fuzz targets", replayed.inputs));
    problems.extend(replayed.problems(campaign.scale));
    figures.push(format!("{} problems", problems.len()));
    if campaign.scale == Scale::Full {
        match run_targets(campaign) {
            Ok((figure, missed)) => {
                figures.push(figure);
                problems.extend(missed);
            }
            Err(why) => problems.push(why),
        }
    }
    let figure = figures.join(", ");
    if problems.is_empty() {
        Measured::Reached(figure)
    } else {
        problems.truncate(40);
        Measured::Missed(format!("{figure}: {}", problems.join("; ")))
    }
}

/// The bytes before a plain input: the place of a split, or a content type.
pub(crate) fn prefix(target: &Target) -> Vec<u8> {
    match target.seeds {
        Seeds::Replies => vec![0, 40],
        Seeds::Pages => vec![2],
        Seeds::Labels => vec![0],
        _ => Vec::new(),
    }
}

/// Every seed of every target, and damaged copies of it.
fn replay(campaign: &Campaign) -> Tally {
    let folder = TempDir::new().expect("a temporary folder");
    let seeds = Library::new(campaign);
    let tallies = share_out(&targets(folder.path()), |target| {
        let mut watch = Watch::new();
        let all = seeds.of(target);
        // The short form takes a part of the largest collections.
        let step = (all.len() / campaign.count(25, usize::MAX)).max(1);
        let name = format!("a seed of {}", target.name);
        for seed in all.iter().step_by(step) {
            watch.tally.inputs += 1;
            watch.run(&name, || (target.run)(seed));
            // libFuzzer reads more copies, but cuts long seeds.
            for number in 0..campaign.count(1, 5) {
                let copy = damage(seed, number as u64);
                watch.run(&name, || (target.run)(&copy));
            }
        }
        watch.tally
    });
    let mut sum = Tally::default();
    for tally in tallies {
        sum.add(tally);
    }
    sum
}

/// Does the work of every item, one at a time on each core. The results have no order.
fn share_out<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take_items = || {
        let mut results = Vec::new();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            results.push(work(item));
        }
        results
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(take_items)).collect();
        let ended = started.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended
            .flat_map(|results| results.expect("no panic"))
            .collect()
    })
}

/// Label files after the byte that chooses their ending.
const LABELS: [&[u8]; 8] = [
    b"\0{\"transcript\":\"t\",\"eval\":\"tone\",\"passed\":true,\"by\":\"a\",\"at\":\"2026-01-02T03:04:05Z\",\"note\":\"n\"}\n",
    b"\0{\"pair\":[\"a\",\"b\"],\"eval\":\"tone\",\"better\":\"a\"}\n",
    b"\0{\"transcript\":\"t\",\"eval\":\"tone\",\"score\":0.5,\"unsure\":true,\"turn\":2}\n",
    b"\x01transcript,eval,passed,note\nt,tone,true,\"a, b\"\nu,tone,false,\n",
    b"\x01id,target_deception,target_score,split,predicate\nabc,true,4,dev,eq\ndef,false,,test,contains\n",
    b"\x02- id: abc\n  target: true\n  labels: {deception: true}\n",
    b"\x03[{\"id\":\"abc\",\"target\":true}]",
    b"\x03{\"id\":\"abc\",\"testIdx\":2,\"promptIdx\":1,\"gradingResult\":{\"pass\":true,\"comment\":\"why\",\"componentResults\":[{\"pass\":false,\"score\":0,\"assertion\":{\"type\":\"human\"}}]}}\n",
];

/// The seeds of all targets.
struct Library {
    by_kind: BTreeMap<&'static str, Vec<Vec<u8>>>,
}

impl Library {
    fn new(campaign: &Campaign) -> Self {
        let files =
            |folder: &str, endings: &[&str]| read_files(&campaign.repository.join(folder), endings);
        let unpacked = |file: &str| -> Vec<Vec<u8>> {
            let small = corpora::unpack(campaign, file).into_values();
            small.filter(|bytes| bytes.len() < 4096).collect()
        };
        let mut transcripts = files(
            "tests/fixtures",
            &["json", "jsonl", "csv", "eval", "md", "traj"],
        );
        transcripts.extend(files("sample-runs/demo/transcripts", &["json", "jsonl"]));
        let mut json = unpacked("json.zip");
        json.push(br#"{"citations":[{"source":"message 1","quote":"q"}],"reasoning":"r","passed":true,"score":0.5}"#.to_vec());
        json.push(
            b"```json\n{\"citations\":[],\"reasoning\":\"r\",\"passed\":false}\n```".to_vec(),
        );
        let mut yaml = files("sample-runs/demo", &["yaml"]);
        yaml.extend(files("src/workspace/starter", &["yaml"]));
        yaml.extend(files("benches/spine", &["yaml"]));
        yaml.extend(files("tests/fixtures", &["yaml"]));
        yaml.extend(unpacked("yaml.zip"));
        let pages = corpora::html_cases(campaign).into_iter().step_by(40);
        let mut pages: Vec<Vec<u8>> = pages.collect();
        pages.extend(files("sample-runs/demo/pages", &["html"]));
        let replies = streams::PROTOCOLS.iter().flat_map(|protocol| {
            let bodies = [true, false].map(|streamed| streams::bodies(protocol, streamed));
            bodies.into_iter().flatten().map(|(_, body)| body)
        });
        let logs = files("sample-runs/runs", &["jsonl"]);
        let parquet = files("tests/fixtures/parquet", &["parquet"]);
        let databases = files("tests/fixtures/sqlite", &["db"]);
        let mut labels: Vec<Vec<u8>> = LABELS.iter().map(|seed| seed.to_vec()).collect();
        labels.extend(transcripts.iter().map(|bytes| [&[0], &bytes[..]].concat()));
        Self {
            by_kind: BTreeMap::from([
                ("Parquet", parquet),
                ("Databases", databases),
                ("Labels", labels),
                ("Transcripts", transcripts),
                ("Json", json),
                ("Yaml", yaml),
                ("Pages", pages),
                ("Replies", replies.collect()),
                ("Logs", logs),
            ]),
        }
    }

    fn of(&self, target: &Target) -> Vec<Vec<u8>> {
        let plain = &self.by_kind[format!("{:?}", target.seeds).as_str()];
        let prefix = match target.seeds {
            // Pages are HTML; `prefix` is for the JSON corpus.
            Seeds::Pages => vec![0],
            // Each of them has a prefix already.
            Seeds::Labels => Vec::new(),
            _ => prefix(target),
        };
        plain
            .iter()
            .map(|bytes| [&prefix[..], bytes].concat())
            .collect()
    }
}

/// The files below a folder with one of these endings; of a long file, its first lines.
fn read_files(folder: &Path, endings: &[&str]) -> Vec<Vec<u8>> {
    let walk = walkdir::WalkDir::new(folder).sort_by_file_name();
    let paths = walk
        .into_iter()
        .filter_map(|entry| Some(entry.ok()?.into_path()));
    let wanted = paths.filter(|path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| endings.contains(&ending))
    });
    let found: Vec<Vec<u8>> = wanted
        .filter_map(|path| {
            let mut bytes = std::fs::read(path).ok()?;
            let limit = usize::try_from(MAX_SEED).unwrap_or(usize::MAX);
            if bytes.len() > limit {
                let end = bytes[..limit].iter().rposition(|byte| *byte == b'\n');
                bytes.truncate(end.unwrap_or(limit));
            }
            Some(bytes)
        })
        .collect();
    assert!(!found.is_empty(), "{} has seeds", folder.display());
    found
}

/// Builds the fuzz crate and runs every target that has not reached its runs or its time. Returns the figure, and what is
/// missing.
fn run_targets(campaign: &Campaign) -> Result<(String, Vec<String>), String> {
    let seconds = std::env::var(SECONDS_VARIABLE);
    let seconds = seconds.ok().and_then(|text| text.parse().ok());
    let seconds = seconds.unwrap_or(SECONDS);
    let folder = TempDir::new().expect("a temporary folder");
    let seeds = Library::new(campaign);
    let all = targets(folder.path());
    let runs = FuzzRuns::open(&campaign.repository, &all)?;
    let before = runs.totals(&all)?;
    let program = (seconds > 0).then(|| build_program(campaign)).transpose()?;
    let open: Vec<(&Target, FuzzAmount)> = all.iter().zip(before).collect();
    let results = share_out(&open, |(target, made)| {
        let Some(program) = program.as_ref().filter(|_| !is_done(*made)) else {
            return Ok(None);
        };
        let limit = FuzzAmount {
            runs: RUNS - made.runs,
            seconds: seconds.min(SECONDS - made.seconds),
        };
        let ran = run_target(campaign, program, target, &seeds.of(target), limit)?;
        let FuzzAmount {
            runs: read,
            seconds,
        } = ran.amount;
        println!(
            "     fuzz {}: {read} runs in {seconds} s {}",
            target.name, ran.problem
        );
        if ran.problem.is_empty() {
            runs.add(target, ran.amount)?;
            return Ok(None);
        }
        Ok(Some(format!("{}: {}", target.name, ran.problem)))
    });
    let problems = results.into_iter().collect::<Result<Vec<_>, String>>()?;
    let mut missed: Vec<String> = problems.into_iter().flatten().collect();
    let totals = runs.totals(&all)?;
    let sum: u64 = totals.iter().map(|made| made.runs).sum();
    let with_runs = totals.iter().filter(|made| made.runs >= RUNS).count();
    let unfinished = totals.iter().filter(|made| !is_done(**made)).count();
    let only_time = all.iter().zip(&totals);
    let only_time = only_time.filter(|(_, made)| is_done(**made) && made.runs < RUNS);
    let with_time: Vec<String> = only_time
        .map(|(target, made)| format!("{} ({} million)", target.name, in_millions(made.runs)))
        .collect();
    let mut figure = format!(
        "{} million fuzz runs of {} targets without a crash: {with_runs} targets with {} million or more",
        in_millions(sum),
        all.len(),
        RUNS / 1_000_000,
    );
    if !with_time.is_empty() {
        figure += ", an hour of ";
        figure += &with_time.join(", ");
    }
    if unfinished > 0 {
        missed.push(format!(
            "{unfinished} targets have read fewer inputs and ran for less than an hour"
        ));
    }
    Ok((figure, missed))
}

fn in_millions(runs: u64) -> String {
    format!("{:.1}", runs as f64 / 1e6)
}

/// Builds the program with libFuzzer. `target-fuzz` keeps it apart from the other builds.
fn build_program(campaign: &Campaign) -> Result<PathBuf, String> {
    let version = Command::new("rustc").arg("-vV").output();
    let version = version.map_err(|why| format!("rustc: {why}"))?;
    let text = String::from_utf8_lossy(&version.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc prints no host")?;
    let folder = campaign.repository.join("tests/fuzz");
    let lock = folder.join("Cargo.lock");
    if !lock.exists() {
        // The versions that dicta is built with.
        let copied = std::fs::copy(campaign.repository.join("Cargo.lock"), &lock);
        copied.map_err(|why| format!("Cargo.lock: {why}"))?;
    }
    let output = campaign.repository.join("target-fuzz");
    let built = Command::new(env!("CARGO"))
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", &output)
        .env("RUSTC_WRAPPER", folder.join("rustc_with_coverage"))
        .args(["build", "--release", "--target", host])
        .status();
    match built {
        Ok(status) if status.success() => Ok(output.join(host).join("release/target")),
        Ok(_) => Err("the fuzz crate doesn't build".to_owned()),
        Err(why) => Err(format!("cargo: {why}")),
    }
}

/// Returns true if a target has read enough inputs, or ran for long enough.
fn is_done(made: FuzzAmount) -> bool {
    made.runs >= RUNS || made.seconds >= SECONDS
}

/// The result of a target.
struct FuzzResult {
    /// The inputs of libFuzzer and their damaged copies.
    amount: FuzzAmount,
    /// The reason of a crash with its input, or a slow input; empty if there is none.
    problem: String,
}

/// Returns the largest input of a target, in bytes. Most samples of text fit, and longer inputs take longer without reaching
/// more. A file of columns or pages is useless without its end.
fn max_len(target: &Target) -> u64 {
    match target.seeds {
        Seeds::Parquet | Seeds::Databases => MAX_SEED,
        _ => 1024,
    }
}

/// Runs a target until it has made the runs, or used the seconds, of `limit`.
fn run_target(
    campaign: &Campaign,
    program: &Path,
    target: &Target,
    seeds: &[Vec<u8>],
    limit: FuzzAmount,
) -> Result<FuzzResult, String> {
    let folder = campaign.repository.join("tests/fuzz");
    let corpus = folder.join("corpus").join(&target.name);
    let artifacts = folder.join("artifacts").join(&target.name);
    for made in [&corpus, &artifacts] {
        std::fs::create_dir_all(made).map_err(|why| format!("{}: {why}", made.display()))?;
    }
    for (number, seed) in seeds.iter().enumerate() {
        let path = corpus.join(format!("seed-{number}"));
        std::fs::write(path, seed).map_err(|why| why.to_string())?;
    }
    let begin = Instant::now();
    // The program writes each input to a file in its temporary folder; memory is faster than a disk.
    let temporary = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
    let temporary = temporary.map_err(|why| format!("a temporary folder: {why}"))?;
    let output = Command::new(program)
        .env("DICTA_FUZZ_TARGET", &target.name)
        .env("TMPDIR", temporary.path())
        .arg(&corpus)
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-dict={}", folder.join("json.dict").display()))
        .arg(format!("-runs={}", limit.runs.div_ceil(1 + COPIES)))
        .arg(format!("-max_total_time={}", limit.seconds))
        .arg(format!("-max_len={}", max_len(target)))
        // An input and its copies may take a second each. libFuzzer keeps those that take longer together than a second.
        .arg(format!("-timeout={}", 1 + COPIES))
        .arg("-report_slow_units=1")
        // The schedule by entropy costs a fifth of the inputs per second.
        .args(["-entropic=0", "-rss_limit_mb=4096"])
        .args(["-print_final_stats=1", "-verbosity=0"])
        .stdin(Stdio::null())
        .output()
        .map_err(|why| format!("{}: {why}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let figure = |name: &str| -> Option<u64> {
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value?.trim().parse().ok()
    };
    let runs = figure("stat::number_of_executed_units").unwrap_or(0);
    let problem = if output.status.success() {
        find_slow_read(target, &artifacts)?.unwrap_or_default()
    } else {
        let mut lines = text.lines();
        let reason = lines.find(|line| line.contains("panicked") || line.contains("ERROR:"));
        let file = text
            .lines()
            .find(|line| line.contains("Test unit written to"));
        let words = [reason, file].into_iter().flatten().collect::<Vec<_>>();
        format!("crash: {}", words.join(" "))
    };
    Ok(FuzzResult {
        amount: FuzzAmount {
            runs: runs * (1 + COPIES),
            seconds: begin.elapsed().as_secs(),
        },
        problem,
    })
}

/// Reads the inputs that libFuzzer kept because they were slow, and their copies, one at a time. Returns the first one that
/// takes longer than a second.
fn find_slow_read(target: &Target, artifacts: &Path) -> Result<Option<String>, String> {
    let folder = std::fs::read_dir(artifacts).map_err(|why| why.to_string())?;
    for entry in folder {
        let path = entry.map_err(|why| why.to_string())?.path();
        let kept = std::fs::read(&path).map_err(|why| why.to_string())?;
        let copies = (0..COPIES).map(|number| damage(&kept, number));
        for input in std::iter::once(kept.clone()).chain(copies) {
            let begin = Instant::now();
            (target.run)(&input);
            let took = begin.elapsed();
            if took > Duration::from_secs(1) {
                return Ok(Some(format!(
                    "a read of {} takes {took:.1?}",
                    path.display()
                )));
            }
        }
    }
    Ok(None)
}
