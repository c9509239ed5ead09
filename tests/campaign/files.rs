//! Secrets and modes of written files, unusual files among the transcripts, and damaged logs (D3, K2, K3, U10).

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::model_server::ModelServer;
use crate::sandbox::{Sandbox, find_strace_problem, grouped, outcomes, result_lines, text};
use crate::terminals::conclude;
use crate::{Campaign, Measured};

const RUN: &[&str] = &["run", "-q", "-j", "2", "--format", "jsonl"];
/// The planted key. The model server receives it in a header; each reply repeats it.
const KEY: &str = "planted-secret-4711-nine-times";

/// No write to a file contains a key that the server repeats (K2).
pub(crate) fn measure_writes(campaign: &Campaign) -> Measured {
    if let Some(problem) = find_strace_problem() {
        return Measured::Skipped(problem);
    }
    let server = ModelServer::start_repeating(KEY);
    let sandbox = Sandbox::new(campaign);
    let config = server
        .config()
        .replace(" }", ", api_key_env: PLANTED_KEY }");
    sandbox.workspace(campaign.count(2, 20), &config);
    let mut trust = sandbox.command(&["trust", "."]);
    trust.env("PLANTED_KEY", KEY).output().expect("it runs");
    let log = sandbox.path().join("strace.log");
    let log_name = log.display().to_string();
    let prefix = [
        "strace",
        "-f",
        "-qq",
        "-y",
        "-s",
        "65535",
        "-o",
        &log_name,
        "-e",
        "trace=write,pwrite64,writev,sendto,sendmsg",
        "--",
    ];
    let mut command = sandbox.command_through(
        &prefix,
        &[
            "run",
            "--format",
            "jsonl",
            "-o",
            "out.jsonl",
            "-o",
            "out.xml",
        ],
    );
    let output = command
        .env("PLANTED_KEY", KEY)
        .output()
        .expect("strace runs");
    let log = text(&fs::read(&log).unwrap_or_default());
    let folder = format!("<{}", sandbox.path().display());
    let (mut writes, mut sent, mut leaks) = (0, 0, Vec::new());
    for line in log.lines() {
        // Only a request to the server may contain it.
        let is_socket = line.contains("<socket:") || line.contains("<TCP");
        writes += usize::from(line.contains(&folder));
        if line.contains(KEY) {
            if is_socket {
                sent += 1;
            } else {
                leaks.push(line.chars().take(200).collect());
            }
        }
    }
    let is_repeated = text(&output.stdout).contains("[redacted]") || has_redacted_text(&sandbox);
    if sent == 0 || writes == 0 || !is_repeated {
        return Measured::Missed(format!(
            "{writes} writes, {sent} requests with the key, a reply with the key: {is_repeated}: {}",
            text(&output.stderr)
        ));
    }
    conclude(
        &format!("{writes} writes to files; {sent} requests contained the key"),
        &leaks,
    )
}

/// True if a recording contains a redacted text, so the server did repeat the key.
fn has_redacted_text(sandbox: &Sandbox) -> bool {
    all_files(&sandbox.path().join("runs"))
        .iter()
        .any(|path| text(&fs::read(path).unwrap_or_default()).contains("[redacted]"))
}

fn all_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(all_files(&path));
        }
        found.push(path);
    }
    found
}

/// Modes of what dicta writes, with two umasks, and planted links and open folders (K3).
pub(crate) fn measure_private_files(campaign: &Campaign) -> Measured {
    let mut problems = Vec::new();
    let mut checked = 0;
    for umask in ["000", "077"] {
        let sandbox = Sandbox::new(campaign);
        sandbox.workspace(2, "judge: rules\n");
        let script = format!("umask {umask}; exec \"$@\"");
        let prefix = ["sh", "-c", &script, "sh"];
        for args in [RUN, &["trust", "."][..], &["demo"][..]] {
            let mut command = sandbox.command_through(&prefix, args);
            command.output().expect("sh runs");
        }
        let mut paths = all_files(&sandbox.path().join("runs"));
        paths.extend([sandbox.path().join("runs"), sandbox.data_dir()]);
        paths.extend(all_files(&sandbox.data_dir()).into_iter().filter(|path| {
            // The demo in the private folder is the user's to edit.
            path.parent() == Some(&sandbox.data_dir())
                && !path
                    .file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with("demo-"))
        }));
        for path in paths {
            let meta = fs::symlink_metadata(&path).expect("it is there");
            let mode = meta.permissions().mode() & 0o777;
            let wanted = if meta.is_dir() { 0o700 } else { 0o600 };
            checked += 1;
            if mode & !wanted != 0 {
                problems.push(format!("{} has mode {mode:03o}", path.display()));
            }
        }
    }
    // Planted by another program before the first run.
    let sandbox = Sandbox::new(campaign);
    sandbox.workspace(2, "judge: rules\n");
    fs::create_dir(sandbox.path().join("runs")).expect("a folder");
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(sandbox.path().join("runs"), open).expect("a mode");
    let output = sandbox.dicta(RUN);
    checked += 1;
    if output.status.code() != Some(74) {
        problems.push("a folder that every user can write receives a run".to_owned());
    }
    sandbox.remove("runs");
    fs::create_dir(sandbox.data_dir()).unwrap_or_default();
    sandbox.remove(".data/secret");
    fs::write(sandbox.path().join("planted"), [7; 32]).expect("written");
    symlink(
        sandbox.path().join("planted"),
        sandbox.data_dir().join("secret"),
    )
    .expect("a link");
    let output = sandbox.dicta(RUN);
    checked += 1;
    if !text(&output.stderr).contains("symbolic link") {
        problems.push(format!(
            "a planted secret is used: {}",
            text(&output.stderr)
        ));
    }
    conclude(
        &format!("{checked} files, folders and planted cases"),
        &problems,
    )
}

/// Unusual files among the transcripts (U10).
pub(crate) fn measure_unusual_files(campaign: &Campaign) -> Measured {
    let sandbox = Sandbox::new(campaign);
    sandbox.workspace(2, "judge: rules\n");
    let count = campaign.count(500, 100_000);
    let folder = sandbox.path().join("t");
    fs::create_dir(&folder).expect("a folder");
    for at in 0..count {
        fs::write(folder.join(format!("{at}.txt")), "x").expect("written");
    }
    fs::rename(sandbox.path().join("t.jsonl"), folder.join("real.jsonl")).expect("moved");
    let link = |target: &str, name: &str| {
        symlink(target, folder.join(name)).expect("a link");
    };
    link("loop-b.jsonl", "loop-a.jsonl");
    link("loop-a.jsonl", "loop-b.jsonl");
    link("..", "up");
    link("missing", "gone.jsonl");
    link("/dev/zero", "zero.jsonl");
    link("/dev/stdin", "stdin.jsonl");
    fs::create_dir(folder.join("folder.jsonl")).expect("a folder");
    let pipe = folder.join("pipe.jsonl");
    let made = Command::new("mkfifo").arg(&pipe).status();
    let mut problems = Vec::new();
    if !made.is_ok_and(|status| status.success()) {
        problems.push("mkfifo makes no pipe".to_owned());
    }
    let config = text(&sandbox.read("dicta.yaml").expect("a file"));
    let config = config.replace("[t.jsonl]", "[\"t/**/*.jsonl\"]");
    sandbox.write("dicta.yaml", &config);
    for args in [&["check"][..], RUN] {
        // A program that blocks is killed by `timeout`, with 124.
        let output = sandbox
            .command_through(&["timeout", "120"], args)
            .stdin(Stdio::piped())
            .output()
            .expect("timeout runs");
        let stderr = text(&output.stderr) + &text(&output.stdout);
        if !matches!(output.status.code(), Some(0..=4)) {
            problems.push(format!("`dicta {}`: {:?}", args[0], output.status));
        }
        for name in [
            "pipe.jsonl",
            "zero.jsonl",
            "gone.jsonl",
            "loop-a.jsonl",
            "stdin.jsonl",
            "/up",
        ] {
            if !stderr.contains(name) {
                problems.push(format!("`dicta {}` doesn't name {name}", args[0]));
            }
        }
        if args == RUN && outcomes(&output.stdout).len() != 4 {
            problems.push(format!("the readable file is not judged: {stderr}"));
        }
    }
    // The system states the size 0 for its own files, so they count as empty transcripts.
    link("/proc/kmsg", "kernel.jsonl");
    link("/proc/self/mem", "memory.jsonl");
    let output = sandbox
        .command_through(&["timeout", "120"], RUN)
        .output()
        .expect("timeout runs");
    // A run skips them, reports them and ends with 3.
    let stderr = text(&output.stderr) + &text(&output.stdout);
    if output.status.code() != Some(3)
        || !stderr.contains("kernel.jsonl")
        || !stderr.contains("memory.jsonl")
    {
        problems.push(format!("files of the system: {:?} {stderr}", output.status));
    }
    conclude(
        &format!("10 unusual files next to {} others", grouped(count)),
        &problems,
    )
}

/// Changed bytes in a log (D3).
pub(crate) fn measure_damage(campaign: &Campaign) -> Measured {
    let sandbox = Sandbox::new(campaign);
    sandbox.workspace(campaign.count(3, 8), "judge: rules\n");
    let output = sandbox.dicta(RUN);
    let results = result_lines(&output.stdout).len();
    let id = fs::read_dir(sandbox.path().join("runs"))
        .expect("a folder")
        .flatten()
        .next()
        .expect("a run")
        .file_name()
        .to_string_lossy()
        .into_owned();
    let path = sandbox.path().join("runs").join(&id).join("events.jsonl");
    let whole = fs::read(&path).expect("a log");
    let lines = whole.split(|byte| *byte == b'\n').count() - 1;
    let parse = |bytes: Vec<u8>| dicta::record::parse_log(std::io::Cursor::new(bytes), &path);
    let sound = parse(whole.clone()).expect("a sound log");
    let mut random = fastrand::Rng::with_seed(3);
    let mut problems = Vec::new();
    let count = campaign.count(500, 100_000);
    for _ in 0..count {
        let at = random.usize(..whole.len());
        let mut damaged = whole.clone();
        damaged[at] ^= random.u8(1..=255);
        match parse(damaged) {
            Err(_) if at < whole.iter().position(|byte| *byte == b'\n').unwrap_or(0) + 1 => {}
            Err(error) => problems.push(format!("byte {at}: the log is unreadable: {error}")),
            Ok(log) => {
                let is_reported = !log.warnings.is_empty() || log.integrity != sound.integrity;
                // A changed line end damages two records.
                let damaged = if whole[at] == b'\n' { 2 } else { 1 };
                let mut expected = sound.events.iter();
                if log.events.len() + damaged < sound.events.len() {
                    problems.push(format!(
                        "byte {at}: {} of {} events",
                        log.events.len(),
                        sound.events.len()
                    ));
                } else if !log
                    .events
                    .iter()
                    .all(|event| expected.any(|other| other == event))
                {
                    problems.push(format!("byte {at}: an event has another content"));
                } else if !is_reported {
                    problems.push(format!("byte {at} of {}: unnoticed", whole.len()));
                }
            }
        }
        if problems.len() > 4 {
            break;
        }
    }
    // The first line is the header, without which the log is unreadable.
    let shown = campaign.count(3, 30);
    for _ in 0..shown {
        let line = random.usize(1..lines);
        let before = whole.split_inclusive(|byte| *byte == b'\n').take(line);
        let at: usize = before.map(<[u8]>::len).sum();
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&path, damaged).expect("written");
        let notes = text(&sandbox.dicta(&["show", &id]).stderr);
        if !notes.contains(&format!("line {}:", line + 1)) {
            problems.push(format!("damage in line {} is not named: {notes}", line + 1));
        }
    }
    conclude(
        &format!(
            "{} changed bytes in a log of {lines} records and {results} results; `dicta show` names {shown} damaged lines",
            grouped(count)
        ),
        &problems,
    )
}
