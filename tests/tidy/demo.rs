//! The demo names no person and no company that exists.

use std::fs;

use crate::fail_with;
use crate::source::{line_of, root};

#[test]
fn every_host_of_the_demo_is_reserved() {
    let mut problems = Vec::new();
    let demo = root().join("sample-runs/demo");
    for entry in walkdir::WalkDir::new(&demo).sort_by_file_name() {
        let entry = entry.expect("the demo can be read");
        if !entry.file_type().is_file() {
            continue;
        }
        // A database holds its texts as they are: its bytes are looked through like any file's.
        let bytes = fs::read(entry.path()).expect("the demo can be read");
        let text = String::from_utf8_lossy(&bytes);
        let path = entry
            .path()
            .strip_prefix(root())
            .expect("found under it")
            .display()
            .to_string();
        if entry.path().extension().is_some_and(|e| e == "html")
            && !text.contains("written for the demo workspace of dicta")
        {
            problems.push(format!(
                "{path} does not say that it was written for the demo"
            ));
        }
        for (at, _) in text.match_indices("://") {
            let host = text[at + 3..]
                .split(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-'))
                .next()
                .unwrap_or("");
            let private = host == "127.0.0.1" || host == "10.20.30.40"; // a local judge; the refused redirect
            if !host.ends_with(".example") && !private {
                problems.push(format!(
                    "{path}:{} names the host {host}",
                    line_of(&text, at)
                ));
            }
        }
    }
    fail_with(
        &problems,
        "the demo names only hosts under .example (RFC 2606)",
    );
}
