//! Runs that are killed at every call that changes the disk, and at random times (D1).

use std::collections::BTreeMap;
use std::fs;
use std::process::{Output, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::model_server::ModelServer;
use crate::sandbox::{
    DISK_CALLS, Injection, Sandbox, find_strace_problem, grouped, has_panicked, is_killed,
    outcomes, result_lines, text,
};
use crate::{Campaign, Measured, Scale};

/// The command of each run. One cell at a time, so that there are many writes.
const RUN: &[&str] = &["run", "-q", "-j", "1", "--format", "jsonl"];
/// A measurement stops after so many failures.
const MAX_FAILURES: usize = 5;

/// Kills runs, and checks after each kill that nothing printed is lost and that work goes on.
pub(crate) fn measure_kills(campaign: &Campaign) -> Measured {
    if let Some(problem) = find_strace_problem() {
        return Measured::Skipped(problem);
    }
    let server = ModelServer::start();
    let mut kills = Kills::new(campaign, &server);
    let unlisted = kills.sandbox.find_unlisted_calls(RUN);
    if !unlisted.is_empty() {
        kills
            .failures
            .push(format!("a run also makes {unlisted:?}"));
    }
    let mut count = [0; 4];
    kills.at_every_call(Kills::kill_alone);
    count[0] = kills.killed;
    kills.interrupt_a_run();
    kills.at_every_call(Kills::kill_resumed);
    count[1] = kills.killed - count[0];
    kills.at_every_call(Kills::kill_next_to_another);
    count[2] = kills.killed - count[0] - count[1];
    kills.at_random_times();
    count[3] = kills.killed - count[0] - count[1] - count[2];
    let figure = format!(
        "{} kills ({} at calls of a run, {} of a resumed run, {} of a run next to another one, {} at random times): {} printed results, {} failures",
        grouped(kills.killed),
        count[0],
        count[1],
        count[2],
        count[3],
        grouped(kills.printed),
        kills.failures.len()
    );
    match kills.failures.first() {
        None if kills.killed >= campaign.count(10, 1000) => Measured::Reached(figure),
        None => Measured::Partly(figure),
        Some(first) => Measured::Missed(format!("{figure}; the first: {first}")),
    }
}

struct Kills<'c> {
    campaign: &'c Campaign,
    sandbox: Sandbox,
    /// The outcomes of a run without a kill.
    expected: BTreeMap<String, String>,
    /// The time of such a run.
    duration: Duration,
    /// The id of a run that was interrupted after its first results. The folder `interrupted` contains it.
    interrupted: Option<String>,
    killed: usize,
    printed: usize,
    failures: Vec<String>,
}

impl<'c> Kills<'c> {
    fn new(campaign: &'c Campaign, server: &ModelServer) -> Self {
        let sandbox = Sandbox::new(campaign);
        sandbox.workspace(campaign.count(4, 15), &server.config());
        let begin = Instant::now();
        let expected = outcomes(&sandbox.dicta(RUN).stdout);
        assert_eq!(expected.len(), 2 * campaign.count(4, 15), "a run works");
        Self {
            campaign,
            sandbox,
            expected,
            duration: begin.elapsed(),
            interrupted: None,
            killed: 0,
            printed: 0,
            failures: Vec::new(),
        }
    }

    /// Kills at the first, second, … call of each kind until a run ends before its kill.
    fn at_every_call(&mut self, kill: fn(&mut Self, &Injection) -> bool) {
        // The short form takes a few calls of the kinds that every run makes.
        let (calls, points): (&[&'static str], &[usize]) = match self.campaign.scale {
            Scale::Full => (DISK_CALLS, &[]),
            Scale::Short => (&["write", "fdatasync"], &[1, 4]),
        };
        for call in calls {
            for at in 1.. {
                if !points.is_empty() && !points.contains(&at) {
                    if points.iter().all(|point| *point < at) {
                        break;
                    }
                    continue;
                }
                if self.failures.len() >= MAX_FAILURES {
                    return;
                }
                let injection = Injection::kill(call, at);
                if !kill(self, &injection) {
                    break;
                }
            }
        }
    }

    /// Returns true if the run was killed.
    fn kill_alone(&mut self, injection: &Injection) -> bool {
        self.sandbox.remove("runs");
        let output = self.sandbox.inject(injection, RUN);
        self.judge(&output, None, &place(injection, "run"))
    }

    fn kill_resumed(&mut self, injection: &Injection) -> bool {
        let Some(interrupted) = self.interrupted.clone() else {
            return false;
        };
        self.sandbox.remove("runs");
        self.sandbox.copy_folder("interrupted", "runs");
        let resumed = [RUN, &["--resume", interrupted.as_str()]].concat();
        let output = self.sandbox.inject(injection, &resumed);
        self.judge(
            &output,
            Some(&interrupted),
            &place(injection, "resumed run"),
        )
    }

    /// Keeps a run whose log ends in the middle, for [`Self::kill_resumed`].
    fn interrupt_a_run(&mut self) {
        self.sandbox.remove("runs");
        self.sandbox.dicta(RUN);
        let id = self.find_runs(None).pop().expect("a run");
        let name = format!("runs/{id}/events.jsonl");
        let log = text(&self.sandbox.read(&name).expect("a log"));
        let lines: Vec<&str> = log.split_inclusive('\n').collect();
        self.sandbox
            .write(&name, &lines[..lines.len() / 2].concat());
        self.sandbox.copy_folder("runs", "interrupted");
        self.interrupted = Some(id);
    }

    fn kill_next_to_another(&mut self, injection: &Injection) -> bool {
        self.sandbox.remove("runs");
        let other = self
            .sandbox
            .command(RUN)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let output = self.sandbox.inject(injection, RUN);
        let other = other.wait_with_output().expect("it ends");
        let place = place(injection, "run next to another one");
        if outcomes(&other.stdout) != self.expected {
            self.failures
                .push(format!("{place}: the other run lost results"));
        }
        let summary = text(&other.stdout);
        let id = summary
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .find_map(|row| {
                (row["type"] == "summary").then(|| row["run"].as_str().map(str::to_owned))
            })
            .flatten();
        let Some(id) = id else {
            self.failures
                .push(format!("{place}: the other run prints no summary"));
            return is_killed(&output);
        };
        self.judge(&output, Some(&id), &place)
    }

    /// Kills runs at random moments, until the goal's count is reached.
    fn at_random_times(&mut self) {
        let goal = match self.campaign.scale {
            Scale::Short => self.killed + 4,
            // The exact points come first; random ones fill the count.
            Scale::Full => (self.killed + 50).max(1000),
        };
        let mut random = fastrand::Rng::with_seed(15);
        let mut tries = 0;
        while self.killed < goal && tries < 2 * goal && self.failures.len() < MAX_FAILURES {
            tries += 1;
            self.sandbox.remove("runs");
            let mut child = self
                .sandbox
                .command(RUN)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the program starts");
            let mut stdout = child.stdout.take().expect("a pipe");
            let (ended, waiting) = channel();
            let reader = std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let read = std::io::Read::read_to_end(&mut stdout, &mut bytes);
                let _gone = ended.send(());
                read.map(|_| bytes)
            });
            let most = u64::try_from(self.duration.as_micros()).unwrap_or(u64::MAX);
            let wait = Duration::from_micros(random.u64(0..=most));
            if waiting.recv_timeout(wait).is_err() {
                child.kill().expect("a kill");
            }
            let status = child.wait().expect("it ends");
            let output = Output {
                status,
                stdout: reader.join().expect("no panic").expect("a pipe"),
                stderr: Vec::new(),
            };
            self.judge(&output, None, &format!("a run after {wait:?}"));
        }
    }

    /// The ids of recorded runs that have a log, without `other`.
    fn find_runs(&self, other: Option<&str>) -> Vec<String> {
        let mut ids: Vec<String> = fs::read_dir(self.sandbox.path().join("runs"))
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| {
                fs::metadata(entry.path().join("events.jsonl")).is_ok_and(|log| log.len() > 0)
            })
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|id| Some(id.as_str()) != other)
            .collect();
        ids.sort();
        ids
    }

    /// Checks what a kill left. Returns true if there was a kill.
    fn judge(&mut self, output: &Output, other: Option<&str>, place: &str) -> bool {
        if text(&output.stderr).contains("invalid system call") {
            // Another processor has no such call.
            return false;
        }
        let killed = is_killed(output);
        self.killed += usize::from(killed);
        self.printed += result_lines(&output.stdout).len();
        let checked = if killed {
            self.check(output, other)
        } else if outcomes(&output.stdout) == self.expected {
            Ok(())
        } else {
            Err(format!(
                "not killed and incomplete: {}",
                text(&output.stderr)
            ))
        };
        if let Err(problem) = checked {
            self.failures.push(format!("{place}: {problem}"));
        }
        killed
    }

    fn check(&self, output: &Output, other: Option<&str>) -> Result<(), String> {
        let printed = result_lines(&output.stdout);
        let listed = self.sandbox.dicta(&["runs"]);
        let list = text(&listed.stdout);
        if !listed.status.success() || list.contains("unreadable") {
            return Err(format!("`dicta runs`: {list}{}", text(&listed.stderr)));
        }
        let runs = self.find_runs(other);
        let Some(id) = runs.first() else {
            // The kill came before the header of the recording.
            return match printed.len() {
                0 => self.check_next_run(RUN),
                n => Err(format!("{n} results printed, and no recording")),
            };
        };
        let shown = self.sandbox.dicta(&["show", id, "--format", "jsonl"]);
        if has_panicked(&shown) || matches!(shown.status.code(), None | Some(2 | 74)) {
            return Err(format!("`dicta show`: {}", text(&shown.stderr)));
        }
        let recorded = result_lines(&shown.stdout);
        if let Some(lost) = printed.iter().find(|line| !recorded.contains(line)) {
            return Err(format!("printed and not recorded: {lost}"));
        }
        self.check_next_run(&[RUN, &["--resume", id.as_str()]].concat())?;
        self.check_next_run(RUN)
    }

    fn check_next_run(&self, args: &[&str]) -> Result<(), String> {
        let next = self.sandbox.dicta(args);
        if outcomes(&next.stdout) == self.expected {
            Ok(())
        } else {
            Err(format!(
                "`dicta {}`: {}",
                args.join(" "),
                text(&next.stderr)
            ))
        }
    }
}

fn place(injection: &Injection, what: &str) -> String {
    format!("a {what} at {} {}", injection.call, injection.at)
}
