//! A workspace in a temporary folder, the program in it, and the program under `strace`. Doesn't measure.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::Campaign;

/// A folder in memory, if the system has one: hundreds of runs would otherwise wait for the disk at every sync.
const MEMORY: &str = "/dev/shm";

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
    pub(crate) at: String,
    /// `signal=KILL` or `error=EIO`.
    pub(crate) effect: String,
    /// Only calls on these files.
    pub(crate) paths: Vec<PathBuf>,
}

impl Injection {
    pub(crate) fn kill(call: &'static str, at: usize) -> Self {
        Self {
            call,
            at: at.to_string(),
            effect: "signal=KILL".to_owned(),
            paths: Vec::new(),
        }
    }

    /// The words of a command line before the program.
    pub(crate) fn words(&self) -> Vec<String> {
        let Self {
            call, at, effect, ..
        } = self;
        let mut words: Vec<String> = ["strace", "-f", "-qq", "-o", "/dev/null"]
            .map(str::to_owned)
            .to_vec();
        words.extend(["-e".to_owned(), format!("trace={call}")]);
        words.extend(["-e".to_owned(), format!("inject={call}:{effect}:when={at}")]);
        for path in &self.paths {
            words.extend(["-P".to_owned(), path.display().to_string()]);
        }
        words.push("--".to_owned());
        words
    }
}

/// Calls that change a disk, as far as dicta makes them. A kill at a call happens before the call has an effect.
pub(crate) const DISK_CALLS: &[&str] = &[
    "write",
    "fsync",
    "fdatasync",
    "syncfs",
    "mkdir",
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
/// strace counts the calls of each thread, so an error at the first write of a run also meets the first write of the
/// thread that ends the runtime. That write wakes a thread, and its failure says nothing about a disk.
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
