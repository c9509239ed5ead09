//! Disks that are full, broken or read-only, and files at their size limit, at every call (D5).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

use crate::model_server::ModelServer;
use crate::sandbox::{
    Injection, Sandbox, find_strace_problem, grouped, has_panicked, list_file_calls, outcomes,
    result_lines, text,
};
use crate::saves::{SAVES, SaveBench};
use crate::terminals::conclude;
use crate::{Campaign, Measured, Scale};

const RUN: &[&str] = &["run", "-q", "-j", "1", "--format", "jsonl"];
/// The errors of a full, broken, read-only or foreign disk, and of a file at its size limit.
const ERRORS: &[&str] = &["ENOSPC", "EIO", "EROFS", "EACCES", "EFBIG"];
/// The calls of a save that fail.
const SAVE_CALLS: &[&str] = &[
    "write",
    "fsync",
    "mkdir",
    "rename",
    "renameat",
    "renameat2",
    "fchmod",
    "flock",
];

/// Lets each call fail, and checks that nothing is lost, claimed or left half.
pub(crate) fn measure_disks(campaign: &Campaign) -> Measured {
    if let Some(problem) = find_strace_problem() {
        return Measured::Skipped(problem);
    }
    let server = ModelServer::start();
    let mut disks = Disks::new(campaign, &server);
    let calls = disks.count_faults("failed call", Disks::fail_at_every_call);
    let limits = disks.count_faults("size limit", Disks::limit_file_sizes);
    let small = disks.count_faults("full disk", Disks::fill_a_small_disk);
    let read_only = disks.count_faults("read-only disk", Disks::open_read_only);
    let saves = disks.count_faults("failed save", Disks::fail_saves);
    let figure = format!(
        "{} faults ({calls} at calls of a run, {limits} size limits, {small} small disks, {read_only} read-only disks, {saves} at calls of saves). {} ended with 74 or 2{}",
        grouped(disks.faults),
        grouped(disks.refused),
        disks.notes
    );
    match conclude(&figure, &disks.failures) {
        Measured::Reached(figure) if !disks.notes.is_empty() => Measured::Partly(figure),
        measured => measured,
    }
}

struct Disks<'c> {
    campaign: &'c Campaign,
    sandbox: Sandbox,
    expected: BTreeMap<String, String>,
    /// The letters of a run that was recorded before, and its results.
    earlier: (String, Vec<String>),
    faults: usize,
    refused: usize,
    failures: Vec<String>,
    notes: String,
}

impl<'c> Disks<'c> {
    fn new(campaign: &'c Campaign, server: &ModelServer) -> Self {
        let sandbox = Sandbox::new(campaign);
        sandbox.workspace(campaign.count(3, 6), &server.config());
        let output = sandbox.dicta(RUN);
        sandbox.remove("earlier");
        sandbox.copy_folder("runs", "earlier");
        let id = fs::read_dir(sandbox.path().join("earlier"))
            .expect("a run")
            .flatten()
            .next()
            .expect("a run")
            .file_name();
        Self {
            campaign,
            expected: outcomes(&output.stdout),
            earlier: (
                id.to_string_lossy().into_owned(),
                result_lines(&output.stdout),
            ),
            sandbox,
            faults: 0,
            refused: 0,
            failures: Vec::new(),
            notes: String::new(),
        }
    }

    /// Injects faults, and returns their number. If none of them ends the program, they hit nothing.
    fn count_faults(&mut self, kind: &str, inject: fn(&mut Self)) -> usize {
        let (faults, refused) = (self.faults, self.refused);
        inject(self);
        if self.faults > faults && self.refused == refused {
            self.failures.push(format!("no {kind} ends the program"));
        }
        self.faults - faults
    }

    fn reset(&self) {
        self.sandbox.remove("runs");
        self.sandbox.copy_folder("earlier", "runs");
    }

    /// Injects each error at each call of a run that names a file.
    fn fail_at_every_call(&mut self) {
        let (calls, most): (Vec<&'static str>, usize) = match self.campaign.scale {
            Scale::Full => (list_file_calls().collect(), 120),
            Scale::Short => (vec!["write", "fdatasync"], 2),
        };
        for call in calls {
            for at in 1..=most {
                let error = ERRORS[at % ERRORS.len()];
                self.reset();
                let injection = Injection {
                    call,
                    at,
                    effect: format!("error={error}"),
                };
                let (output, failed) = self.sandbox.inject_error(&injection, RUN);
                let Some(line) = failed.first() else {
                    break;
                };
                if self.sandbox.all_name_own_files(&failed) {
                    self.judge(&output, &format!("{error} at {call} {at}: {line}"), line);
                }
            }
        }
    }

    /// Runs with a limit on the size of files: the log reaches it at any byte.
    fn limit_file_sizes(&mut self) {
        // Verdicts of the earlier run shorten the log of a later one.
        self.reset();
        self.sandbox.dicta(RUN);
        let runs = fs::read_dir(self.sandbox.path().join("runs")).expect("runs");
        let mut later = runs
            .flatten()
            .filter(|run| *run.file_name() != *self.earlier.0)
            .filter_map(|run| fs::metadata(run.path().join("events.jsonl")).ok());
        let Some(size) = later.next() else {
            self.failures.push("no later log".to_owned());
            return;
        };
        let size = usize::try_from(size.len()).expect("a small log");
        let steps = self.campaign.count(1, 60);
        for step in 1..=steps {
            self.reset();
            let limit = (size * step / (steps + 1)).to_string();
            let prefix = ["prlimit", &format!("--fsize={limit}"), "--"];
            let output = self
                .sandbox
                .command_through(&prefix, RUN)
                .output()
                .expect("prlimit runs");
            self.judge(&output, &format!("a size limit of {limit} bytes"), "write");
        }
    }

    /// Runs with the runs folder on a small disk in memory. Each attempt has some KiB more.
    fn fill_a_small_disk(&mut self) {
        // The earlier run fits, and the new one gets from nothing to more than it needs.
        let base = count_pages(&self.sandbox.path().join("earlier")) * 4;
        let sizes: Vec<usize> = match self.campaign.scale {
            Scale::Short => Vec::new(),
            Scale::Full => (base + 4..=2 * base + 64).step_by(8).collect(),
        };
        for size in sizes {
            self.reset();
            // The results are read within the namespace, because the disk ends with it.
            let script = format!(
                "mkdir -p small && mount -t tmpfs -o size={size}k none small && cp -r earlier small/runs 2>/dev/null; \
                 sed -i 's/^runs: runs/runs: small\\/runs/' dicta.yaml; \"$@\" {}; code=$?; \
                 rm -rf kept; cp -r small/runs kept; exit $code",
                RUN.join(" ")
            );
            let prefix = ["unshare", "-Urm", "sh", "-c", &script, "sh"];
            let output = self.sandbox.command_through(&prefix, &[]).output();
            let config = text(&self.sandbox.read("dicta.yaml").unwrap_or_default());
            self.sandbox.write(
                "dicta.yaml",
                &config.replace("runs: small/runs", "runs: runs"),
            );
            let output = output.expect("unshare runs");
            if text(&output.stderr).contains("unshare:") || text(&output.stderr).contains("mount:")
            {
                "; no small disks, because this system has no user namespaces"
                    .clone_into(&mut self.notes);
                return;
            }
            self.sandbox.remove("runs");
            self.sandbox.copy_folder("kept", "runs");
            self.judge(&output, &format!("a disk of {size} KiB"), "write");
        }
    }

    /// Runs and saves on a read-only disk.
    fn open_read_only(&mut self) {
        self.reset();
        let commands: &[&[&str]] = &[
            RUN,
            &["import", "t.jsonl", "-o", "out.jsonl"],
            &["init", "new"],
        ];
        for args in &commands[..self.campaign.count(1, commands.len())] {
            let script = "mount --bind . . && cd . && mount -o remount,ro,bind \"$PWD\" && cd \"$PWD\" && exec \"$@\"";
            let prefix = ["unshare", "-Urm", "sh", "-c", script, "sh"];
            let output = self.sandbox.command_through(&prefix, args).output();
            let output = output.expect("unshare runs");
            let stderr = text(&output.stderr);
            if stderr.contains("unshare:") || stderr.contains("mount:") {
                "; no read-only disk, because this system has no user namespaces"
                    .clone_into(&mut self.notes);
                return;
            }
            self.faults += 1;
            let refused = matches!(output.status.code(), Some(74 | 2)) && !stderr.trim().is_empty();
            self.refused += usize::from(refused);
            if !refused || has_panicked(&output) || !output.stdout.is_empty() {
                self.failures.push(format!(
                    "`dicta {}` on a read-only disk: exit {:?}: {stderr}",
                    args.join(" "),
                    output.status.code()
                ));
            }
        }
    }

    /// Injects errors into the commands that save files.
    fn fail_saves(&mut self) {
        let saves = &SAVES[..self.campaign.count(1, SAVES.len())];
        let calls: &[&'static str] = match self.campaign.scale {
            Scale::Short => &["fsync"],
            Scale::Full => SAVE_CALLS,
        };
        for save in saves {
            let bench = SaveBench::new(self.campaign, save);
            let before = self.faults;
            for call in calls {
                for at in 1..=self.campaign.count(1, 12) {
                    let injection = Injection {
                        call,
                        at,
                        effect: format!("error={}", ERRORS[at % ERRORS.len()]),
                    };
                    bench.restore(save);
                    let (output, failed) = bench.sandbox.inject_error(&injection, save.args);
                    if failed.is_empty() {
                        break;
                    }
                    // The other calls are always about files, and may name them without their folder.
                    if *call == "write" && !bench.sandbox.all_name_own_files(&failed) {
                        continue;
                    }
                    self.faults += 1;
                    let is_refused = matches!(output.status.code(), Some(74 | 2));
                    self.refused += usize::from(is_refused);
                    let checked = if is_refused && output.stderr.trim_ascii().is_empty() {
                        Err("no message".to_owned())
                    } else {
                        let checked = bench.check(save, &output);
                        checked.and_then(|()| bench.check_again(save))
                    };
                    if let Err(problem) = checked {
                        self.failures.push(format!(
                            "{} with an error at {call} {at}: {problem}",
                            save.name
                        ));
                    }
                }
            }
            if self.faults == before {
                self.failures
                    .push(format!("no call of {} fails", save.name));
            }
        }
    }

    /// Checks a run whose disk failed. `line` names the failed call and its file.
    fn judge(&mut self, output: &Output, place: &str, line: &str) {
        self.faults += 1;
        if let Err(problem) = self.check(output, line) {
            self.failures.push(format!("{place}: {problem}"));
        }
        self.refused += usize::from(matches!(output.status.code(), Some(74 | 2)));
    }

    fn check(&self, output: &Output, line: &str) -> Result<(), String> {
        let stderr = text(&output.stderr);
        if has_panicked(output) || output.status.code().is_none() {
            return Err(format!("{:?}: {stderr}", output.status));
        }
        match output.status.code() {
            Some(74 | 2) if stderr.trim().is_empty() => return Err("no message".to_owned()),
            Some(74 | 2) => {}
            _ if outcomes(&output.stdout) == self.expected => {
                // A failed sync may be ignored only for a folder on a system that cannot sync folders.
                if line.contains("sync(") && line.contains("/runs/") && !line.contains("EROFS") {
                    return Err("a failed sync is ignored".to_owned());
                }
            }
            code => return Err(format!("exit {code:?} without all results: {stderr}")),
        }
        let (id, results) = &self.earlier;
        let earlier = self.sandbox.dicta(&["show", id, "--format", "jsonl"]);
        if result_lines(&earlier.stdout) != *results {
            return Err(format!(
                "the earlier run is not intact: {}",
                text(&earlier.stderr)
            ));
        }
        // Everything printed is in the recording, and the run continues once the disk works again.
        let mut recorded = Vec::new();
        for entry in fs::read_dir(self.sandbox.path().join("runs"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            let log = fs::metadata(entry.path().join("events.jsonl"));
            if name == *id || !log.is_ok_and(|log| log.len() > 0) {
                continue;
            }
            let shown = self.sandbox.dicta(&["show", &name, "--format", "jsonl"]);
            recorded.extend(result_lines(&shown.stdout));
            let resumed = [RUN, &["--resume", name.as_str()]].concat();
            let resumed = self.sandbox.dicta(&resumed);
            if outcomes(&resumed.stdout) != self.expected {
                return Err(format!(
                    "the run does not resume: {}",
                    text(&resumed.stderr)
                ));
            }
            break;
        }
        let printed = result_lines(&output.stdout);
        match printed.iter().find(|line| !recorded.contains(line)) {
            Some(lost) => Err(format!("printed and not recorded: {lost}")),
            None => Ok(()),
        }
    }
}

/// The number of 4 KiB pages that the files of a folder need.
fn count_pages(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            let path = entry.path();
            if path.is_dir() {
                1 + count_pages(&path)
            } else {
                let size = entry.metadata().map_or(0, |meta| meta.len());
                usize::try_from(size.div_ceil(4096)).unwrap_or(usize::MAX)
            }
        })
        .sum()
}
