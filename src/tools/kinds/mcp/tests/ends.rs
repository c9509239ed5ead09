//! However dicta ends, the servers it started end too, with all that they started.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::*;
use crate::process::ProcessReaper;

/// Not a test: a program that uses a server and ends in some way, where a test starts this program as one.
#[test]
fn host() {
    let Ok(way) = std::env::var("DICTA_TEST_MCP_HOST") else {
        return;
    };
    // As in `cli::main`.
    let _children = ProcessReaper;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let world = World::new();
        let source = source(if way == "killed" { "plain" } else { "stubborn" });
        let found = source.discover_tools(&world.cx).await.unwrap();
        let pid = world.call(&found, "pid", json!({})).await.text;
        println!("\nserver {pid}");
        match way.as_str() {
            "panic" => panic!("as asked"),
            "quit" => {}
            _ => std::future::pending().await,
        }
    });
    runtime.shutdown_timeout(Duration::from_millis(200));
}

/// A host, its output still to be read (or its last words would fail), and its server.
fn start(way: &str) -> (Child, impl Iterator<Item = std::io::Result<String>>, u32) {
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "tools::kinds::mcp::tests::ends::host",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("DICTA_TEST_MCP_HOST", way)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(host.stdout.take().unwrap()).lines();
    let pid = out
        .find_map(|line| line.unwrap().strip_prefix("server ")?.parse().ok())
        .expect("the host has a server");
    (host, out, pid)
}

/// Returns the running processes of a group, without those that ended and wait for init.
fn running(group: u32) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        // `pid (name) state ppid pgrp …`
        let Some((name, rest)) = stat.rsplit_once(')') else {
            continue;
        };
        let fields: Vec<&str> = rest.split_whitespace().collect();
        if fields.get(2) == Some(&group.to_string().as_str()) && fields[0] != "Z" {
            found.push(name.to_owned());
        }
    }
    found
}

fn send(host: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(host.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn server_processes_end_after_signal_panic_and_return() {
    if !Path::new("/proc/self/stat").exists() {
        println!("skipped: no /proc here to look for children in");
        return;
    }
    for (way, signal, code) in [
        ("wait", Some(Signal::TERM), 143),
        ("wait", Some(Signal::INT), 130),
        ("wait", Some(Signal::HUP), 129),
        ("panic", None, 101),
        ("quit", None, 0),
    ] {
        let (mut host, out, server) = start(way);
        if let Some(signal) = signal {
            assert_eq!(running(server).len(), 2, "the server and what it started");
            send(&host, signal);
        }
        let _rest: Vec<_> = out.collect();
        let ended = host.wait().unwrap();
        assert_eq!(ended.code(), Some(code), "{way}");
        assert_eq!(running(server), Vec::<String>::new(), "{way} {code}");
    }
}

#[test]
fn killed_host_closes_stdin_of_its_server() {
    if !Path::new("/proc/self/stat").exists() {
        println!("skipped: no /proc here to look for children in");
        return;
    }
    let (mut host, _out, server) = start("killed");
    send(&host, Signal::KILL);
    host.wait().unwrap();
    wait_until_gone(server);
}

/// The longest wait for the end of a process, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(40);

/// Waits until no process of a group runs.
fn wait_until_gone(group: u32) {
    let begun = Instant::now();
    while !running(group).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "it still runs");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn dropped_source_ends_its_server_with_closed_stdin() {
    if !Path::new("/proc/self/stat").exists() {
        println!("skipped: no /proc here to look for children in");
        return;
    }
    let world = World::new();
    let source = source("plain");
    let found = source.discover_tools(&world.cx).await.unwrap();
    let pid: u32 = world
        .call(&found, "pid", json!({}))
        .await
        .text
        .parse()
        .unwrap();
    assert_eq!(running(pid).len(), 1);
    drop((source, found));
    let begun = Instant::now();
    while !running(pid).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "it still runs");
        tokio::task::yield_now().await;
    }
}
