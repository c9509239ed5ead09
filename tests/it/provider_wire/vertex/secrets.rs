//! A whole run of the built program, against servers that repeat whatever secret they were sent.

use serde_json::json;

use super::{KEY, REFRESH, SECRET, account, bearer, cloud, user};
use crate::cli::{self, POLITE};
use crate::support::wire::Reply;

/// Everything a run leaves behind, and everything it prints, holds neither token nor key.
#[test]
fn google_credentials_are_written_nowhere() {
    for kind in ["service_account", "authorized_user"] {
        let line = KEY.lines().next().expect("a line");
        let own = match kind {
            "service_account" => line.to_owned(),
            _ => format!("{REFRESH} {SECRET}"),
        };
        let sent = own.clone();
        let server = cloud(move |request, given| {
            let leak = format!("{} {sent} {given}", bearer(request));
            if given == 1 && request.number < 2 {
                return Reply::status(401).body(json!({"error": {"message": leak}}).to_string());
            }
            let verdict = json!({"reasoning": leak, "passed": true, "score": 0.9});
            Reply::verdict(verdict).thinking(leak).piece_len(7)
        });
        let harness = cli::TestDir::new();
        let file = match kind {
            "service_account" => account(&server),
            _ => user(&server),
        };
        let path = harness.write(".secret/adc.json", &file);
        harness.workspace(
            &format!(
                "judge: v\njudges:\n  v: {{ provider: vertex, base_url: '{}', model: m, project: p, location: global }}\n",
                server.base_url()
            ),
            POLITE,
        );
        let command = |args: &[&str]| {
            let mut command = harness.command(args);
            command.env("GOOGLE_APPLICATION_CREDENTIALS", &path);
            command.output().expect("the program runs")
        };
        harness.trust();
        let run = command(&["run", "--format", "jsonl"]);
        let checked = command(&["check"]);
        let listed = command(&["judges"]);
        let mut all = Vec::new();
        for output in [&run, &checked, &listed] {
            all.extend([cli::text(&output.stdout), cli::text(&output.stderr)]);
        }
        assert!(all[0].contains("\"passed\":true"), "{kind}: {all:#?}");
        assert!(all[2].contains("can be read by others"), "{all:#?}");
        assert!(all[4].contains("in global, project p") && all[4].contains("adc.json"));
        for entry in walkdir::WalkDir::new(harness.path()) {
            let entry = entry.expect("readable");
            if entry.file_type().is_file() && entry.path() != path {
                let bytes = std::fs::read(entry.path()).expect("readable");
                all.push(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        assert!(
            all.iter().any(|text| text.contains("[redacted]")),
            "it was there to be found"
        );
        for text in &all {
            // A stream cuts a token into pieces of 7; none of 12 letters of it is left.
            for secret in own.split(' ').chain(["ya29.canary-t"]) {
                assert!(!text.contains(secret), "{kind}: {secret} in {text}");
            }
        }
    }
}
