//! An author's evening in the workbench: edits of every kind, a paid judge that is busy, then broken, then dead, labels, a
//! restart.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::pty::Pty;
use crate::cli::{TestDir, text};
use crate::support::wire::{Dialect, Reply, WireServer};

/// The number of transcripts.
const COUNT: usize = 6;

/// The server answers.
const WORKING: usize = 0;
/// The server answers each request with an error.
const BROKEN: usize = 1;

/// A judge that is busy for the first request of each of its first cells. A strict question gets a low score.
fn judge_at(address: SocketAddr, busy: usize, mode: &Arc<AtomicUsize>) -> WireServer {
    let now = Arc::clone(mode);
    WireServer::answering_at(address, Dialect::Openai, move |request| {
        if request.number % 2 == 0 && request.number < 2 * busy {
            return Reply::status(429).header("retry-after", "0");
        }
        if now.load(Ordering::SeqCst) == BROKEN {
            return Reply::status(400).body("{\"error\":{\"message\":\"the disk is full\"}}");
        }
        let score = if request.body.contains("STRICT") {
            0.2
        } else {
            0.8
        };
        let verdict =
            json!({"citations": [], "reasoning": "It is.", "passed": score > 0.5, "score": score});
        Reply::text(verdict.to_string())
    })
}

/// Waits until the notice and the first row of the screen report the end of the run.
fn until_end(pty: &mut Pty) {
    pty.until_run().until("the end of the run", |pty| {
        let screen = pty.contents();
        !screen.lines().next().unwrap_or_default().contains(" live")
    });
}

fn eval(id: &str, criteria: &str, min_score: f64) -> String {
    format!(
        "  - {{ id: {id}, type: llm_judge, params: {{ criteria: {criteria}, min_score: {min_score} }} }}\n"
    )
}

/// Saves the rubric as editors do: in one step.
fn save(root: &Path, evals: &[String]) {
    save_text(root, &format!("id: r\nevals:\n{}", evals.concat()));
}

fn save_text(root: &Path, text: &str) {
    let new = root.join("r.yaml.new");
    std::fs::write(&new, text).expect("written");
    std::fs::rename(new, root.join("r.yaml")).expect("renamed");
}

fn open(test_dir: &TestDir) -> Pty {
    let mut pty = Pty::with(&[], |command| {
        command.cwd(test_dir.path());
        command.env("DICTA_DATA_DIR", test_dir.path().join(".data"));
    });
    pty.until_shown("1 cells");
    pty
}

/// Waits until the first row of the screen has this text and no cell is judged.
fn until_counts(pty: &mut Pty, counts: &str) {
    pty.until(counts, |pty| {
        let screen = pty.contents();
        let head = screen.lines().next().unwrap_or_default();
        head.contains(counts) && !head.contains(" live")
    });
}

/// Waits until the history has this number of states: dicta records a save that judges nothing when the user stops
/// saving.
fn until_states(pty: &mut Pty, test_dir: &TestDir, count: usize) {
    let list = || text(&test_dir.dicta(&["history", "--format", "jsonl"]).stdout);
    pty.until_true(&format!("the record of state {count}"), || {
        list().lines().count() == count
    });
}

/// Judges everything, and agrees to the cost.
fn judge_all(pty: &mut Pty) {
    pty.type_in("R")
        .until_shown("this run costs money")
        .type_in("y");
}

#[test]
fn evening_of_an_author_ends_with_a_history_of_every_edit() {
    let mode = Arc::new(AtomicUsize::new(WORKING));
    let server = judge_at(SocketAddr::from(([127, 0, 0, 1], 0)), 2, &mode);
    let test_dir = TestDir::new();
    let root = test_dir.path();
    let lines = (0..COUNT).map(|at| {
        json!({"id": format!("t{at}"), "messages": [
            {"role": "user", "content": format!("Hi {at}")},
            {"role": "assistant", "content": "Good day"},
        ]})
        .to_string()
            + "\n"
    });
    test_dir.write("t.jsonl", &lines.collect::<String>());
    test_dir.write("labels.jsonl", "");
    test_dir.write(
        "dicta.yaml",
        &format!(
            "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\nlabels: labels.jsonl\njudge: m\njudges:\n  m: {{ \
             provider: openai, base_url: '{}', model: m, max_attempts: 2, prices: {{ input: 1, output: 10 }} }}\nlimits: {{ confirm_usd: \
             0.00001, concurrency: 1 }}\n",
            server.base_url()
        ),
    );
    save(root, &[eval("kind", "It is kind.", 0.5)]);

    // A paid judge waits for consent. The server is busy twice, and then answers.
    let mut pty = open(&test_dir);
    pty.until_shown("6 not run");
    assert_eq!(server.requests().len(), 0);
    judge_all(&mut pty);
    until_counts(&mut pty, "✓ 6  ✗ 0");
    assert_eq!(server.requests().len(), COUNT + 2);

    // Two labels, of which one disagrees.
    pty.type_in("p").until_shown("= label ✓");
    pty.type_in("j").type_in("f").until_shown("≠ label ✗");

    // A threshold: every verdict flips by arithmetic, without a call.
    save(root, &[eval("kind", "It is kind.", 0.9)]);
    until_counts(&mut pty, "✓ 0  ✗ 6");
    pty.until_shown("0.80 < 0.90, was ≥ 0.50")
        .until_shown("6 flips: 1 towards your labels, 1 away");
    until_states(&mut pty, &test_dir, 2);
    assert_eq!(server.requests().len(), COUNT + 2);

    // A typo keeps the last valid version in use. Some editors truncate the file before they write it.
    save_text(root, "id: r\nevals:\n  - { id: kind, type: llm_jugde }\n");
    pty.until_shown("file does not load")
        .until_shown("did you mean `llm_judge`?");
    std::fs::write(root.join("r.yaml"), "").expect("written");
    save(root, &[eval("kind", "It is kind.", 0.9)]);
    pty.until_shown("r.yaml loads again");
    until_counts(&mut pty, "✓ 0  ✗ 6");
    // A comment changes no verdict, so it belongs to the edit before it.
    let comment = "# Kindness comes first.\n".to_owned();
    save(root, &[comment, eval("kind", "It is kind.", 0.9)]);
    pty.until_shown("+# Kindness comes first.");

    // A new name keeps verdicts, and moves the labels after one key.
    save(root, &[eval("gentle", "It is kind.", 0.9)]);
    pty.until_shown("kind → gentle: 6 verdicts")
        .until_shown("M moves them");
    pty.type_in("M")
        .until("the moved labels", |pty| {
            !pty.contents().contains("M moves them")
        })
        .until_shown("≠ label ✓");
    until_states(&mut pty, &test_dir, 3);
    assert_eq!(server.requests().len(), COUNT + 2);

    // Fewer transcripts, all of them again, and a weight: no judge is called.
    let gentle = eval("gentle", "It is kind.", 0.9);
    let setting = |text: &str| gentle.replace("type:", &format!("{text}, type:"));
    save(root, &[setting("applies_to: { ids: [t0, t1] }")]);
    pty.until_shown("4 cells are no longer planned: gentle 4");
    until_states(&mut pty, &test_dir, 4);
    save(root, std::slice::from_ref(&gentle));
    until_counts(&mut pty, "✓ 0  ✗ 6");
    until_states(&mut pty, &test_dir, 5);
    save(root, &[setting("weight: 2")]);
    until_states(&mut pty, &test_dir, 6);
    assert_eq!(server.requests().len(), COUNT + 2);

    // A new eval waits for R, which judges only its cells.
    let gentle = setting("weight: 2");
    save(root, &[gentle.clone(), eval("brief", "It is brief.", 0.5)]);
    pty.until_shown("6 not run");
    judge_all(&mut pty);
    until_counts(&mut pty, "✓ 6  ✗ 6");
    pty.until_shown("6 cells decided for the first time: ✓ 6");
    assert_eq!(server.requests().len(), 2 * COUNT + 2);

    // Removed evals are counted, and nothing is judged.
    save(root, std::slice::from_ref(&gentle));
    until_counts(&mut pty, "✓ 0  ✗ 6");
    pty.until_shown("6 cells are no longer planned: brief 6");
    until_states(&mut pty, &test_dir, 8);

    // Other criteria, and a server that fails: after five equal errors, dicta stops calling it.
    mode.store(BROKEN, Ordering::SeqCst);
    save(root, &[eval("gentle", "STRICT It is kind.", 0.1)]);
    pty.until_shown("judge the saved cell? it costs money")
        .type_in("n")
        .until("the closed question", |pty| {
            !pty.contents().contains("judge the saved cell?")
        });
    judge_all(&mut pty);
    pty.until_shown("the disk is full");
    until_end(&mut pty);

    // After a restart, the server is dead: dicta stops calling it too, and the earlier verdicts stay. Quitting asks if a
    // run is still active.
    pty.type_in("qy");
    assert_eq!(pty.ended().code, 0, "{}", pty.contents());
    let address = server.address();
    drop(server);
    let mut pty = open(&test_dir);
    pty.until_shown("the last edit, r.yaml")
        .until_true("the dead server", || TcpStream::connect(address).is_err());
    judge_all(&mut pty);
    pty.until_shown("m stopped: equal errors");
    until_counts(&mut pty, "✓ 6  ✗ 0  ! 5 re-runs failed");
    // The error is next to the verdict that stays.
    pty.until_shown("refused");
    let listed = test_dir.dicta(&["history", "--limit", "1", "--format", "json"]);
    let states: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(states[0]["judged"], 0, "{states}");

    // The server is back, and R judges what is pending.
    mode.store(WORKING, Ordering::SeqCst);
    let _server = judge_at(address, 0, &mode);
    judge_all(&mut pty);
    // Stale verdicts have the same counts, so all of them must be fresh.
    pty.until("six fresh verdicts", |pty| {
        let screen = pty.contents();
        let head = screen.lines().next().unwrap_or_default();
        let is_busy = [" live", "~", "failed", "stopped"]
            .iter()
            .any(|word| head.contains(word));
        head.contains("✓ 6  ✗ 0") && !is_busy
    });

    // The progress screen lists the evening.
    pty.type_in("H").until_shown("first state");
    for edit in [
        "kind: min_score 0.50 → 0.90",
        "renamed kind to gentle",
        "gentle: transcripts",
        "gentle: weight",
        "new eval brief",
        "removed eval brief",
        "gentle: criteria",
    ] {
        pty.until_shown(edit);
    }
    pty.type_in("qy");
    assert_eq!(pty.ended().code, 0);

    // The command line agrees with the screen.
    let listed = test_dir.dicta(&["history", "--format", "json"]);
    let states: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let states = states.as_array().expect("a list");
    assert_eq!(states.len(), 9, "{}", text(&listed.stdout));
    let flips: Vec<u64> = states
        .iter()
        .map(|state| state["flips"].as_u64().expect("a count"))
        .collect();
    // From the newest: criteria and weight, removed, new, weight, wider, narrower, renamed, threshold, the first.
    assert_eq!(
        flips,
        [6, 0, 0, 0, 0, 0, 0, 6, 0],
        "{}",
        text(&listed.stdout)
    );
    assert_eq!(states[0]["pending"], 0);
    // The labels moved with the name. They answer the earlier criteria, so a person must confirm them.
    let agreement = &states[0]["agreement"];
    assert_eq!(
        (&states[0]["labels"], &agreement["to_confirm"]),
        (&json!(0), &json!(2))
    );
    assert_eq!(states[1]["labels"], 2, "{}", text(&listed.stdout));

    // So do the comparison of the last edit, and the page.
    let compared = test_dir.dicta(&["compare", "--format", "json"]);
    let compared: Value = serde_json::from_slice(&compared.stdout).expect("JSON");
    assert_eq!(compared["summary"]["flips"], 6, "{compared}");
    let exported = test_dir.dicta(&["export", "@", "-o", "page.html"]);
    assert_eq!(
        exported.status.code(),
        Some(0),
        "{}",
        text(&exported.stderr)
    );
    let page = std::fs::read_to_string(root.join("page.html")).expect("a page");
    assert!(page.contains("renamed r/kind to r/gentle"), "{page}");
}
