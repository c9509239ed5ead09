//! However the program ends, its servers end too, with all that they started.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{as_server, workspace};
use crate::cli::{TestDir, text};
use crate::support::wire::{Dialect, Reply, WireServer};

const PATIENCE: Duration = Duration::from_secs(40);

/// The running processes of a group, without those that have ended and wait for init.
fn running(group: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").expect("it was there before");
    let stats = all
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    // `pid (name) state ppid pgrp …`
    let of_group = stats.filter(|stat| {
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<&str> = rest.split_whitespace().collect();
        fields.get(2) == Some(&group) && fields[0] != "Z"
    });
    of_group.collect()
}

fn until(what: &str, enough: impl Fn() -> bool) {
    let begun = Instant::now();
    while !enough() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not come");
        std::thread::yield_now();
    }
}

struct Busy {
    test_dir: TestDir,
    child: Child,
    group: String,
}

/// The program at something that its server does not let end.
fn busy(args: &[&str], kind: &str, wire: &WireServer) -> Busy {
    let judges = format!(
        "judge: j\njudges:\n  j: {{provider: openai, base_url: '{}', model: m, tools: [{{small: {{allow: [hang]}}}}]}}\n",
        wire.base_url()
    );
    let test_dir = workspace("sources: {}\n", &judges);
    let (pid, called) = (test_dir.path().join("pid"), test_dir.path().join("called"));
    let more = json!({"env": {"DICTA_TEST_SERVER": kind, "DICTA_TEST_PID": pid, "DICTA_TEST_CALLED": called}});
    test_dir.write(
        "tools.yaml",
        &format!("sources:\n  small: {}\n", as_server("plain", &more)),
    );
    let child = test_dir
        .command(args)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let waits_for = if kind.ends_with("mute") {
        &pid
    } else {
        &called
    };
    until("the server", || std::fs::read(waits_for).is_ok());
    until("its number", || {
        std::fs::read_to_string(&pid).is_ok_and(|pid| !pid.is_empty())
    });
    let group = std::fs::read_to_string(&pid).expect("written");
    Busy {
        test_dir,
        child,
        group,
    }
}

#[test]
fn signal_leaves_no_child_process() {
    if !Path::new("/proc/self/stat").exists() {
        println!("skipped: no /proc here to look for processes in");
        return;
    }
    let wire = WireServer::answering(Dialect::Openai, |_| Reply::call("hang", json!({})));
    for (args, kind) in [
        (&["tool", "hang", "{}"][..], "stubborn"),
        (&["run", "--where", "transcript:two"], "stubborn"),
        (&["check", "--connect"], "stubborn mute"),
        (&["tools"], "stubborn mute"),
        (&["prompt", "two/r/polite"], "stubborn mute"),
    ] {
        for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
            let busy = busy(args, kind, &wire);
            assert_eq!(
                running(&busy.group).len(),
                2,
                "{args:?}: the server and what it started"
            );
            let pid = i32::try_from(busy.child.id()).ok().and_then(Pid::from_raw);
            kill_process(pid.expect("a process"), signal).expect("sent");
            let output = busy.child.wait_with_output().expect("it ends");
            assert_eq!(
                output.status.code(),
                Some(code),
                "{args:?}: {}: {}",
                output.status,
                text(&output.stderr)
            );
            assert_eq!(
                running(&busy.group),
                Vec::<String>::new(),
                "{args:?} {code}"
            );
            busy.test_dir.write("done", "");
        }
    }
}

#[test]
fn finished_command_leaves_no_child_process() {
    if !Path::new("/proc/self/stat").exists() {
        println!("skipped: no /proc here to look for processes in");
        return;
    }
    let wire = WireServer::answering(Dialect::Openai, |request| {
        if request.mentions("no answer after") {
            Reply::verdict(
                json!({"citations": [], "reasoning": "It waits.", "passed": true, "score": 1.0}),
            )
        } else {
            Reply::call("hang", json!({}))
        }
    });
    let judges = format!(
        "judge: j\njudges:\n  j: {{provider: openai, base_url: '{}', model: m, tools: [small]}}\n",
        wire.base_url()
    );
    for args in [
        &["run", "--where", "transcript:two"][..],
        &["tool", "hang", "{}"],
        &["run", "--dry-run"],
    ] {
        let test_dir = workspace("sources: {}\n", &judges);
        let pid = test_dir.path().join("pid");
        let more = json!({"timeout": "500ms", "env": {"DICTA_TEST_SERVER": "stubborn", "DICTA_TEST_PID": pid}});
        test_dir.write(
            "tools.yaml",
            &format!("sources:\n  small: {}\n", as_server("plain", &more)),
        );
        let mut command = test_dir.command(args);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let output = command.output().expect("the program runs");
        let group = std::fs::read_to_string(&pid)
            .unwrap_or_else(|_| panic!("{args:?}: no server: {}", text(&output.stderr)));
        assert_eq!(running(&group), Vec::<String>::new(), "{args:?}");
    }
}
