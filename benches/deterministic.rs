//! The deterministic path without the run around it: 10,000 transcripts (about 78 MB) read and parsed, ten checks each,
//! and a result line written for every one. The budget of all of it, with recording, is 0.5 CPU seconds.
//!
//! `cargo bench --bench deterministic [-- FILE.jsonl]`; one thread, the best of five rounds. Without a file it makes its
//! own. With data of the lab's `gen.py` the counts are those of `gen.py --expect FILE`.
#![expect(clippy::print_stdout, reason = "a bench reports on stdout")]

use std::hint::black_box;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dicta::handlers::{Check, Compiled, Registry, Subject};
use dicta::transcript::{TranscriptFile, parse};
use serde_json::{Value, json};

const ROUNDS: usize = 5;

/// What the ten assertions of the lab's first workload are as evals. `contains` here ignores case and looks at the
/// output alone, so the case-sensitive ones are patterns.
fn checks() -> Vec<(&'static str, &'static str, Value)> {
    let schema = json!({"type": "object", "required": ["status", "order_id", "total"], "properties": {
        "status": {"enum": ["resolved", "pending", "escalated"]},
        "order_id": {"type": "string", "pattern": "^ORD-[0-9]{4,6}$"},
        "total": {"type": "number", "minimum": 0}, "notes": {"type": "string"}}});
    let leak = r"(?i)\b(?:password|api[_-]?key|ssn)\s*[:=]\s*\S+";
    vec![
        ("contains", "regex", json!({"pattern": "order"})),
        (
            "icontains-any",
            "regex",
            json!({"pattern": "(?i)refund|invoice|escalation"}),
        ),
        (
            "not-contains",
            "content_excludes",
            json!({"patterns": ["As an AI language model"]}),
        ),
        ("regex", "regex", json!({"pattern": r"\bORD-\d{4,6}\b"})),
        (
            "not-regex",
            "regex",
            json!({"pattern": leak, "expect_match": false}),
        ),
        (
            "contains-all",
            "regex",
            json!({"pattern": "(?s)status.*total|total.*status"}),
        ),
        ("is-json", "json_valid", json!({})),
        ("json-schema", "json_schema", json!({"schema": schema})),
        ("max-length", "max_length", json!({"max": 700})),
        (
            "tools-called",
            "tools_called",
            json!({"tool_names": ["get_order"]}),
        ),
    ]
}

fn main() {
    let given = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let dir = tempfile::tempdir().expect("a folder");
    let path = given.map_or_else(|| made(dir.path()), PathBuf::from);
    let registry = Registry::builtin();
    let names: Vec<&str> = checks().iter().map(|(name, ..)| *name).collect();
    let compiled: Vec<Box<dyn Check>> = checks()
        .into_iter()
        .map(|(_, kind, params)| match registry.compile(kind, &params) {
            Ok(Compiled::Check(check)) => check,
            other => panic!("{kind}: {other:?}"),
        })
        .collect();

    report("read and index", || walk(&path, |_, _| {}));
    report("… and parse", || {
        walk(&path, |record, number| {
            black_box(parse(record, number, "t").expect("a good record"));
        })
    });
    let mut passed = vec![0_u64; compiled.len()];
    report("… and ten checks", || {
        passed.fill(0);
        walk(&path, |record, number| {
            let transcript = parse(record, number, "t").expect("a good record");
            let subject = Subject::new(&transcript);
            for (check, passed) in compiled.iter().zip(&mut passed) {
                *passed +=
                    u64::from(black_box(check.check(&subject)).outcome.passed() == Some(true));
            }
        })
    });
    report("… and a result line each", || {
        let mut out = std::io::BufWriter::with_capacity(
            1 << 16,
            std::fs::File::create("/dev/null").expect("a sink"),
        );
        walk(&path, |record, number| {
            let transcript = parse(record, number, "t").expect("a good record");
            let subject = Subject::new(&transcript);
            for (check, name) in compiled.iter().zip(&names) {
                let finding = check.check(&subject);
                let line = json_line(&transcript.id, name, &finding);
                serde_json::to_writer(&mut out, &line).expect("written");
                out.write_all(b"\n").expect("written");
            }
        })
    });
    for (name, passed) in names.iter().zip(&passed) {
        println!("{name:>14} {passed}");
    }
    println!("{:>14} {}", "checks passed", passed.iter().sum::<u64>());
}

/// Something of the size and shape of a result line.
#[derive(serde::Serialize)]
struct Line<'a> {
    r#type: &'a str,
    transcript: &'a str,
    rubric: &'a str,
    eval: &'a str,
    kind: &'a str,
    message: Option<u32>,
    judge: Option<&'a str>,
    outcome: dicta::model::Outcome,
    passed: Option<bool>,
    score: Option<f64>,
    explanation: &'a str,
    error: Option<&'a str>,
    cost_usd: Option<f64>,
    duration_ms: u64,
    cached: bool,
}

fn json_line<'a>(
    transcript: &'a str,
    eval: &'a str,
    finding: &'a dicta::handlers::Finding,
) -> Line<'a> {
    Line {
        r#type: "result",
        transcript,
        rubric: "bench",
        eval,
        kind: eval,
        message: None,
        judge: None,
        outcome: finding.outcome,
        passed: finding.outcome.passed(),
        score: finding.score,
        explanation: &finding.explanation,
        error: None,
        cost_usd: None,
        duration_ms: 0,
        cached: false,
    }
}

fn walk(path: &Path, mut each: impl FnMut(&[u8], u64)) -> u64 {
    let mut file = TranscriptFile::open(path).expect("transcripts");
    let mut count = 0;
    while let Some(block) = file.next_block().expect("a block") {
        for (span, record) in block.records() {
            each(record, span.number);
            count += 1;
        }
    }
    count
}

fn report(what: &str, mut work: impl FnMut() -> u64) {
    let (mut wall, mut cpu, mut count) = (Duration::MAX, None, 0);
    for _ in 0..ROUNDS {
        let (start, before) = (Instant::now(), cpu_time());
        count = work();
        wall = wall.min(start.elapsed());
        let used = before.and_then(|before| cpu_time()?.checked_sub(before));
        cpu = [cpu, used].into_iter().flatten().min();
    }
    let cpu = cpu.map_or_else(String::new, |cpu| {
        format!("{:.3} CPU s, ", cpu.as_secs_f64())
    });
    println!(
        "{what:>26}: {cpu}{:.3} s wall for {count} transcripts",
        wall.as_secs_f64()
    );
}

/// What this thread has had of a processor: on a machine with other work, wall time says nothing. Linux only.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ')
        .next()?
        .parse()
        .ok()
        .map(Duration::from_nanos)
}

/// Ten thousand transcripts of about 7.8 KB: a system prompt, tool rounds with HTML and JSON results, an answer that is
/// JSON in every second one.
fn made(dir: &Path) -> PathBuf {
    let path = dir.join("made.jsonl");
    let mut out = std::io::BufWriter::new(std::fs::File::create(&path).expect("a file"));
    let mut rng = fastrand::Rng::with_seed(1);
    let words = [
        "order", "refund", "status", "the", "of", "naïve", "customer", "total", "→", "invoice",
        "with", "carrier",
    ];
    let mut prose = move |n: usize| -> String {
        let picked: Vec<&str> = (0..n).map(|_| words[rng.usize(..words.len())]).collect();
        picked.join(" ")
    };
    for n in 0..10_000_u32 {
        let order = format!("ORD-{}", 1000 + n);
        let mut messages = vec![
            json!({"role": "system", "content": prose(130)}),
            json!({"role": "user", "content": format!("My {order}: {}", prose(40))}),
        ];
        for round in 0..5 {
            let id = format!("call_{n}_{round}");
            let name = if (n + round).is_multiple_of(8) {
                "get_order"
            } else {
                "search_orders"
            };
            let arguments = json!({"order_id": order, "note": prose(4)}).to_string();
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]}));
            let content = if round % 2 == 0 {
                format!("<p>{}</p>\n<p>{}</p>", prose(60), prose(60))
            } else {
                json!({"ok": true, "rows": [{"id": order, "note": prose(40)}, {"id": order, "note": prose(40)}]}).to_string()
            };
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        }
        let answer = if n.is_multiple_of(2) {
            json!({"status": "resolved", "order_id": order, "total": f64::from(n) / 7.0, "notes": prose(30)}).to_string()
        } else {
            format!("{} Reference {order}.", prose(80))
        };
        messages.push(json!({"role": "assistant", "content": answer}));
        let record =
            json!({"id": format!("t{n:06}"), "messages": messages, "usage": {"prompt_tokens": n}});
        writeln!(out, "{record}").expect("written");
    }
    out.flush().expect("written");
    path
}
