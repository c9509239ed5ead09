//! A workspace in a temporary folder, the program in it, and the program under `strace`. Doesn't measure.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::Campaign;

/// A folder in memory, if the system has one: hundreds of runs would otherwise wait for the disk at every sync.
const MEMORY: &str = "/dev/shm";

/// The longest time of a run with a failed call. The failed call may be one that wakes a thread, which blocks the program.
const MAX_BLOCKED_SECONDS: &str = "60";

/// The folder of a workspace, with its own data directory and no keys in the environment.
pub(crate) struct Sandbox {
    dir: TempDir,
    dicta: PathBuf,
}

impl Sandbox {
    pub(crate) fn new(campaign: &Campaign) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("dicta-campaign-")
            .tempdir_in(MEMORY)
            .or_else(|_| TempDir::new())
            .expect("a temporary folder");
        Self {
            dir,
            dicta: campaign.dicta.clone(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.path().join(".data")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("inside")).expect("folders");
        fs::write(&path, text).expect("written");
        path
    }

    /// Returns the content of a file, or None if it is missing.
    pub(crate) fn read(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.path().join(name)).ok()
    }

    /// Deletes a file or folder, if it exists.
    pub(crate) fn remove(&self, name: &str) {
        let path = self.path().join(name);
        let removed = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        if let Err(error) = removed {
            assert_eq!(
                error.kind(),
                std::io::ErrorKind::NotFound,
                "{name}: {error}"
            );
        }
    }

    /// Copies the files of a folder and of its folders.
    pub(crate) fn copy_folder(&self, from: &str, to: &str) {
        copy_files(&self.path().join(from), &self.path().join(to));
    }

    /// `transcripts` transcripts with a deterministic and a judged eval each. `config` ends dicta.yaml.
    pub(crate) fn workspace(&self, transcripts: usize, config: &str) {
        self.write(
            "dicta.yaml",
            &format!("transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\n{config}"),
        );
        self.write(
            "r.yaml",
            "id: r\nevals:\n  - { id: names, type: regex, params: { pattern: '\\d\\.\\d' } }\n  - { id: polite, type: llm_judge, params: { criteria: \"The answer contains `day`.\" } }\n",
        );
        let lines = (0..transcripts).map(|at| {
            format!(
                "{{\"id\":\"t{at}\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hello {at}\"}},{{\"role\":\"assistant\",\"content\":\"Good day {}.{at}\"}}]}}\n",
                at % 2
            )
        });
        self.write("t.jsonl", &lines.collect::<String>());
    }

    /// `dicta ARGS` in the folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_through(&[], args)
    }

    /// `PREFIX… dicta ARGS` in the folder.
    pub(crate) fn command_through(&self, prefix: &[&str], args: &[&str]) -> Command {
        let dicta = self.dicta.to_str().expect("a Unicode path");
        let mut words = prefix
            .iter()
            .copied()
            .chain([dicta])
            .chain(args.iter().copied());
        let mut command = Command::new(words.next().expect("the program"));
        command
            .args(words)
            .current_dir(self.path())
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .env("DICTA_DATA_DIR", self.data_dir())
            .env("TERM", "xterm");
        command
    }

    pub(crate) fn dicta(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    /// Runs the program, and injects an effect at its Nth call of `call`, for example `signal=KILL`.
    pub(crate) fn inject(&self, injection: &Injection, args: &[&str]) -> Output {
        let words = injection.words();
        let prefix: Vec<&str> = words.iter().map(String::as_str).collect();
        self.command_through(&prefix, args)
            .output()
            .expect("strace runs")
    }

    /// Runs the program with a failing call, and returns its output and strace's lines of the calls that failed.
    pub(crate) fn inject_error(
        &self,
        injection: &Injection,
        args: &[&str],
    ) -> (Output, Vec<String>) {
        let log = self.strace_log();
        let words = injection.words_with_log(&log);
        let mut prefix = vec!["timeout", "-s", "KILL", MAX_BLOCKED_SECONDS];
        prefix.extend(words.iter().map(String::as_str));
        let output = self.command_through(&prefix, args).output();
        let lines = text(&fs::read(&log).unwrap_or_default());
        let failed = lines.lines().filter(|line| line.contains("(INJECTED)"));
        let failed = failed.map(str::to_owned).collect();
        (output.expect("strace runs"), failed)
    }

    /// True if all these failed calls name a file of the folder.
    ///
    /// strace counts the calls of each thread. So the same number can also meet the wake-up of a thread, a library or
    /// the message. Such a run shows nothing about a disk alone.
    pub(crate) fn all_name_own_files(&self, failed: &[String]) -> bool {
        let folder = format!("{}/", self.path().display());
        failed.iter().all(|line| line.contains(&folder))
    }

    /// Runs the program, and returns the calls that change a disk and are not in [`DISK_CALLS`].
    pub(crate) fn find_unlisted_calls(&self, args: &[&str]) -> BTreeSet<String> {
        let log = self.strace_log();
        // strace ignores a name with a question mark that this processor doesn't have.
        let names: Vec<String> = CHANGING_CALLS
            .iter()
            .map(|call| format!("?{call}"))
            .collect();
        let trace = format!("trace={}", names.join(","));
        let prefix = ["strace", "-y", "-f", "-qq", "-o", &log, "-e", &trace, "--"];
        self.command_through(&prefix, args)
            .output()
            .expect("strace runs");
        let lines = text(&fs::read(&log).unwrap_or_default());
        // A line is the thread, the call, and its arguments with the path or the kind of a descriptor.
        let on_files = lines
            .lines()
            .filter(|line| !OTHER_DESCRIPTORS.iter().any(|kind| line.contains(kind)));
        let calls: BTreeSet<String> = on_files
            .filter_map(|line| line.split_whitespace().nth(1)?.split_once('('))
            .map(|(call, _)| call.to_owned())
            .collect();
        assert!(calls.contains("write"), "strace lists the calls: {calls:?}");
        let is_unlisted = |call: &String| !DISK_CALLS.contains(&call.as_str());
        calls.into_iter().filter(is_unlisted).collect()
    }

    /// The path of strace's log, without an earlier log.
    fn strace_log(&self) -> String {
        self.remove("strace.log");
        self.path().join("strace.log").display().to_string()
    }
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_files(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// An effect at the Nth call of one kind.
pub(crate) struct Injection {
    pub(crate) call: &'static str,
    /// From 1. strace counts the calls of each thread.
    pub(crate) at: usize,
    /// `signal=KILL` or `error=EIO`.
    pub(crate) effect: String,
}

impl Injection {
    pub(crate) fn kill(call: &'static str, at: usize) -> Self {
        Self {
            call,
            at,
            effect: "signal=KILL".to_owned(),
        }
    }

    /// The words of a command line before the program.
    pub(crate) fn words(&self) -> Vec<String> {
        self.words_with_log("/dev/null")
    }

    fn words_with_log(&self, log: &str) -> Vec<String> {
        let Self { call, at, effect } = self;
        let trace = format!("trace={call}");
        let inject = format!("inject={call}:{effect}:when={at}");
        let words = [
            "strace", "-y", "-f", "-qq", "-o", log, "-e", &trace, "-e", &inject, "--",
        ];
        words.map(str::to_owned).to_vec()
    }
}

/// Calls that change a disk, as far as dicta makes them. A kill at a call happens before the call has an effect.
/// [`Sandbox::find_unlisted_calls`] finds a call that is missing here.
pub(crate) const DISK_CALLS: &[&str] = &[
    "write",
    "fsync",
    "fdatasync",
    "syncfs",
    "mkdir",
    "mkdirat",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "ftruncate",
    "fchmod",
    "fchown",
    "flock",
];

/// The calls of Linux that change a disk or lock a file.
const CHANGING_CALLS: &[&str] = &[
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "sendfile",
    "copy_file_range",
    "splice",
    "fallocate",
    "truncate",
    "ftruncate",
    "fsync",
    "fdatasync",
    "syncfs",
    "sync",
    "sync_file_range",
    "msync",
    "creat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "mknod",
    "mknodat",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "chmod",
    "fchmod",
    "fchmodat",
    "chown",
    "lchown",
    "fchown",
    "fchownat",
    "utime",
    "utimes",
    "futimesat",
    "utimensat",
    "setxattr",
    "fsetxattr",
    "flock",
];

/// The kinds of descriptors that are not files, as strace prints them.
const OTHER_DESCRIPTORS: &[&str] = &["<pipe:", "<socket:", "<TCP", "<UNIX", "<anon_inode:"];

/// [`DISK_CALLS`], and the call that opens a file.
pub(crate) fn list_file_calls() -> impl Iterator<Item = &'static str> {
    DISK_CALLS.iter().copied().chain(["openat"])
}

/// The reason why this machine can't inject effects into calls, if there is one.
pub(crate) fn find_strace_problem() -> Option<String> {
    let tried = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=none", "true"])
        .output();
    match tried {
        Err(error) => Some(format!("strace doesn't start: {error}")),
        Ok(output) if !output.status.success() => Some(format!(
            "strace can't trace here: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Ok(_) => None,
    }
}

/// True if a signal killed the program; strace ends with the same signal.
pub(crate) fn is_killed(output: &Output) -> bool {
    output.status.signal() == Some(9)
}

/// True if the program panicked.
///
/// strace counts the calls of each thread. So an error at the first write of a run also meets the first write of the
/// thread that ends the runtime. That write wakes a thread, and its failure shows nothing about a disk.
pub(crate) fn has_panicked(output: &Output) -> bool {
    let stderr = text(&output.stderr);
    let mut lines = stderr.lines();
    let is_other = |line: &str| line.contains("panicked") && !line.contains("thread 'dicta-end'");
    let has_other = lines.any(is_other);
    output.status.code() == Some(101) || has_other
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The complete lines of JSON output whose type is `result`.
pub(crate) fn result_lines(stdout: &[u8]) -> Vec<String> {
    text(stdout)
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n') && line.contains("\"type\":\"result\""))
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// The outcome of each cell.
pub(crate) fn outcomes(stdout: &[u8]) -> BTreeMap<String, String> {
    result_lines(stdout)
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"))
        .map(|row| {
            let field = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            (field("cell"), field("outcome"))
        })
        .collect()
}

/// A number with commas between thousands.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
