//! No code path but `src/net` opens a socket: no other code names such a type, and no crate is built with a way out of its
//! own where a feature decides.

use std::process::Command;

use super::source::{Source, ends_in_word, is_word, line_of, root, sources};
use super::{fail_with, source};

/// The types that open a connection or send a datagram, and the crates that do.
const OPENERS: &[&str] = &[
    "TcpStream",
    "TcpSocket",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "UnixDatagram",
    "UnixListener",
    "std::net::*",
    "tokio::net::*",
    "socket2",
    "libc::connect",
    "libc::socket",
    "libc::*",
    "getaddrinfo",
    "lookup_host",
    "to_socket_addrs",
    "ToSocketAddrs",
    "reqwest",
    "hyper::client",
    "hyper::{",
    "hyper::*",
    "hyper as ",
    "hyper_util",
    "hyper_rustls",
    "tokio_rustls",
    "ureq",
    "native_tls",
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
            let goes_on = source.code[at + opener.len()..].starts_with(is_word);
            // `reqwest as r`, `{reqwest}`: a crate is found by its whole name, whatever follows.
            let whole = !(goes_on && opener.ends_with(is_word));
            if whole && !ends_in_word(&source.code[..at]) && !is_test(source, at) {
                let line = line_of(&source.code, at);
                found.push(format!("{}:{line} names {opener}", source.path));
            }
        }
    }
    found
}

/// Tests may act as a server. A module of tests is the end of its file; one that is declared there is another file.
fn is_test(source: &Source, at: usize) -> bool {
    let path = &source.path;
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let of_tests = file == "tests.rs"
        || file.ends_with("_tests.rs")
        || folder.split('/').any(|f| f == "tests");
    of_tests || in_module_of_tests(&source.code[..at])
}

/// True if a module of tests is open at the end of this text.
fn in_module_of_tests(before: &str) -> bool {
    before.match_indices("#[cfg(test)]\nmod ").any(|(at, _)| {
        let rest = &before[at..];
        let Some(open) = rest
            .find(['{', ';'])
            .filter(|n| rest[*n..].starts_with('{'))
        else {
            return false;
        };
        // It ends at a brace at the beginning of a line.
        !rest[open..].contains("\n}")
    })
}

#[test]
fn only_net_opens_a_socket() {
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
    // Attempts to get past it.
    for text in [
        "use reqwest as web;",
        "use {serde, reqwest};",
        "extern crate reqwest;",
        "use std::net::*;",
        "use std::{io, net::{TcpStream as T, IpAddr}};",
        "let fd = unsafe { libc::socket(2, 1, 0) };",
        "use socket2::Socket;",
        "#[cfg(test)]\nmod tests;\nfn f() { TcpStream::connect(a) }",
        "#[cfg(test)]\nmod tests {\n    fn f() {}\n}\nfn f() { TcpStream::connect(a) }",
    ] {
        assert!(!at("src/tools/x.rs", text).is_empty(), "{text}");
        assert!(!at("src/tools/contests.rs", text).is_empty(), "{text}");
    }
    let inside = "#[cfg(test)]\nmod tests {\n    fn f() { TcpStream::connect(a) }\n}";
    assert!(at("src/tools/x.rs", inside).is_empty());
    assert!(at("src/tools/x/tests.rs", text).is_empty());
    assert!(at("src/tools/x.rs", "let hyperlink = 1; // reqwest").is_empty());
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
