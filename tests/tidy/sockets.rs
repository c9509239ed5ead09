//! No code path but `src/net` opens a socket: nobody else names what could, and no crate is built with a way out of its
//! own where a feature decides.

use std::process::Command;

use super::source::{Source, ends_in_word, line_of, root, sources};
use super::{fail_with, source};

/// What opens a connection or sends a datagram, and the crates that do.
const OPENERS: &[&str] = &[
    "TcpStream",
    "TcpSocket",
    "UdpSocket",
    "UnixStream",
    "UnixDatagram",
    "lookup_host",
    "to_socket_addrs",
    "ToSocketAddrs",
    "reqwest::",
    "hyper::client",
    "hyper_util::",
    "tokio_rustls::",
    "rustix::net",
    "tokio_postgres::connect",
    "StreamableHttpClientTransport::from_uri",
    "connect_tcp",
];

fn openers(source: &Source) -> Vec<String> {
    if !source.path.starts_with("src/") || source.path.starts_with("src/net/") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for opener in OPENERS {
        for (at, _) in source.code.match_indices(opener) {
            if !ends_in_word(&source.code[..at]) && !is_test(source, at) {
                let line = line_of(&source.code, at);
                found.push(format!("{}:{line} names {opener}", source.path));
            }
        }
    }
    found
}

/// Tests may stand in for a server.
fn is_test(source: &Source, at: usize) -> bool {
    let path = &source.path;
    let of_tests = ["tests.rs", "/tests/", "/stories/"]
        .iter()
        .any(|part| path.contains(part));
    of_tests || source.code[..at].contains("#[cfg(test)]\nmod ")
}

#[test]
fn nobody_but_net_opens_a_socket() {
    let problems: Vec<String> = sources().iter().flat_map(openers).collect();
    fail_with(&problems, "the ways out are in src/net");
}

#[test]
fn a_socket_elsewhere_is_found_and_one_in_a_comment_or_at_home_is_not() {
    let at = |path: &str, text: &str| openers(&source(path, text));
    let text = "fn f() {\n    std::net::TcpStream::connect(a);\n}";
    assert_eq!(
        at("src/tools/x.rs", text),
        ["src/tools/x.rs:2 names TcpStream"]
    );
    assert!(at("src/net/x.rs", text).is_empty());
    assert!(at("src/tools/x.rs", "// TcpStream\nlet a = \"reqwest::get\";").is_empty());
}

#[test]
fn no_crate_is_built_with_a_way_out_of_its_own() {
    let asked = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--locked",
            "--all-features",
            "--prefix",
            "none",
        ])
        .args(["-e", "features,no-dev", "-f", "{p} {f}"])
        .current_dir(root())
        .output();
    let tree = match asked {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        Ok(output) => {
            println!("skipped: {}", String::from_utf8_lossy(&output.stderr));
            return;
        }
        Err(error) => {
            println!("skipped: cargo cannot be asked: {error}");
            return;
        }
    };
    let features = |name: &str| -> Vec<String> {
        let start = format!("{name} v");
        let lines = tree.lines().filter(|line| line.starts_with(&start));
        let words = lines.flat_map(|line| line.split([' ', ',']).skip(2).map(str::to_owned));
        words.collect()
    };
    let shut = [
        (
            "jsonschema",
            ["resolve-http", "resolve-file", "resolve-async"].as_slice(),
        ),
        (
            "rmcp",
            &[
                "reqwest",
                "transport-streamable-http-client-reqwest",
                "auth",
            ],
        ),
        (
            "reqwest",
            &[
                "system-proxy",
                "socks",
                "hickory-dns",
                "http2",
                "http3",
                "cookies",
                "gzip",
                "brotli",
                "zstd",
                "deflate",
            ],
        ),
    ];
    let mut problems = Vec::new();
    for (name, closed) in shut {
        let built = features(name);
        if built.is_empty() && name != "jsonschema" {
            assert!(
                tree.contains(&format!("{name} v")),
                "{name} is no longer built"
            );
        }
        for feature in closed.iter().filter(|f| built.iter().any(|b| b == *f)) {
            problems.push(format!("{name} is built with {feature}"));
        }
    }
    fail_with(&problems, "features that open a way out");
}
