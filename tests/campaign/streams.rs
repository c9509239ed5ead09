//! Faults of model replies, in four dialects, streamed and whole: none becomes a verdict.
//!
//! A loopback server plays each fault of `faults.rs` to the built binary. The outcome is an error with a reason, in the
//! run, in the recording (`show`), in a replay and in every report. Cuts at every byte are read in the process.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

use dicta::model::ProviderKind;
use dicta::untrusted;
use serde_json::Value;
use tempfile::TempDir;

use crate::faults::{self, Fault, Subject};
use crate::support::wire::{Dialect, Reply, Request, WireServer};
use crate::{Campaign, Measured, Scale};

/// A dialect with its spelling in dicta.yaml.
pub(crate) struct Protocol {
    pub(crate) provider: &'static str,
    pub(crate) kind: ProviderKind,
    pub(crate) dialect: Dialect,
    /// The finish reason of a reply that hit its token limit.
    pub(crate) length: &'static str,
    /// The finish reason of a reply that a filter stopped.
    pub(crate) filtered: &'static str,
}

pub(crate) const PROTOCOLS: [Protocol; 4] = [
    Protocol {
        provider: "openai",
        kind: ProviderKind::Openai,
        dialect: Dialect::Openai,
        length: "length",
        filtered: "content_filter",
    },
    Protocol {
        provider: "openai-responses",
        kind: ProviderKind::OpenaiResponses,
        dialect: Dialect::Responses,
        length: "max_output_tokens",
        filtered: "content_filter",
    },
    Protocol {
        provider: "anthropic",
        kind: ProviderKind::Anthropic,
        dialect: Dialect::Anthropic,
        length: "max_tokens",
        filtered: "refusal",
    },
    Protocol {
        provider: "gemini",
        kind: ProviderKind::Gemini,
        dialect: Dialect::Gemini,
        length: "MAX_TOKENS",
        filtered: "SAFETY",
    },
];

/// A1: no fault becomes a verdict, and the run, the recording, the replay and the reports agree.
pub(crate) fn judge_faults(campaign: &Campaign) -> Measured {
    let mut names = BTreeSet::new();
    let (mut cells, mut problems) = (0, Vec::new());
    for protocol in &PROTOCOLS {
        for streamed in [true, false] {
            // The short form plays the faults of one dialect; `cargo test` has the matrix of `tests/it`.
            let is_left_out = protocol.kind != ProviderKind::Anthropic || !streamed;
            if campaign.scale == Scale::Short && is_left_out {
                continue;
            }
            for subject in [Subject::Text, Subject::Criteria, Subject::Calls] {
                let mut faults = faults::of(protocol, streamed, subject);
                if campaign.scale == Scale::Short {
                    faults.retain(|fault| !fault.is_slow);
                }
                names.extend(faults.iter().map(|fault| fault.name));
                cells += faults.len();
                let workspace = FaultWorkspace::new(campaign, protocol, streamed, subject, faults);
                problems.extend(workspace.problems());
            }
        }
    }
    let expected = campaign.count(50, 60);
    let figure = format!(
        "{} faults, {cells} replies: {} became a verdict or were reported differently",
        names.len(),
        problems.len()
    );
    if problems.is_empty() && names.len() >= expected {
        Measured::Reached(figure)
    } else {
        Measured::Missed(format!("{figure}; {}", problems.join("; ")))
    }
}

/// A workspace in which each fault is an eval, and its server.
struct FaultWorkspace<'c> {
    campaign: &'c Campaign,
    folder: TempDir,
    faults: Vec<Fault>,
    server: WireServer,
    /// For messages.
    name: String,
    judge: String,
}

impl<'c> FaultWorkspace<'c> {
    fn new(
        campaign: &'c Campaign,
        protocol: &Protocol,
        streamed: bool,
        subject: Subject,
        faults: Vec<Fault>,
    ) -> Self {
        let mut evals = String::from("id: r\nevals:\n");
        let mut replies = vec![("good.".to_owned(), subject.good())];
        evals.push_str(&subject.eval("good"));
        for (n, fault) in faults.iter().enumerate() {
            evals.push_str(&subject.eval(&format!("f{n:03}")));
            replies.push((format!("f{n:03}."), fault.reply.clone()));
        }
        let server = WireServer::answering(protocol.dialect, move |request: &Request| {
            let asked = replies.iter().find(|(mark, _)| request.mentions(mark));
            asked.map_or_else(|| Reply::status(418), |(_, reply)| reply.clone())
        });
        let folder = TempDir::new().expect("a temporary folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("the folder takes files");
        };
        write("r.yaml", &evals);
        write(
            "t.jsonl",
            "{\"id\":\"t\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"},\
             {\"role\":\"assistant\",\"content\":\"Good day\"}]}\n",
        );
        let judge = format!(
            "{{ provider: {}, model: m, base_url: '{}', stream: {streamed}, max_attempts: 1, timeout_s: 3{} }}",
            protocol.provider,
            server.base_url(),
            subject.settings()
        );
        let how = if streamed { "streamed" } else { "whole" };
        Self {
            campaign,
            folder,
            faults,
            server,
            name: format!("{}, {how}, {subject:?}", protocol.provider),
            judge,
        }
    }

    fn use_judge(&self, judge: &str) {
        let text = format!(
            "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\njudge: m\njudges:\n  m: {judge}\n\
             limits: {{ concurrency: 6 }}\n"
        );
        let path = self.folder.path().join("dicta.yaml");
        std::fs::write(path, text).expect("the folder takes files");
    }

    fn dicta(&self, args: &[&str]) -> Output {
        let mut command = Command::new(&self.campaign.dicta);
        command.args(args).current_dir(self.folder.path());
        command.env_clear().stdin(Stdio::null());
        command.env("DICTA_DATA_DIR", self.folder.path().join(".data"));
        for key in ["OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"] {
            command.env(key, "sk-test-4711-abcdef");
        }
        command.output().expect("the program runs")
    }

    /// Everything that is not as it should be.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        self.use_judge(&self.judge);
        let trusted = self.dicta(&["trust", "."]);
        let live = self.dicta(&["run", "-q", "--no-cache", "--format", "jsonl"]);
        self.check("live", &live, &mut problems);
        if live.status.code() == Some(0) || !trusted.status.success() {
            problems.push(format!(
                "{}: the run ends with {:?}",
                self.name, live.status
            ));
        }
        let shown = self.dicta(&["show", "@", "--format", "jsonl"]);
        if shown.stdout != live.stdout {
            problems.push(format!("{}: `show` differs from the run", self.name));
        }
        self.check_reports(&mut problems);
        self.use_judge("{ provider: replay, run: '@' }");
        let replayed = self.dicta(&["run", "-q", "--no-cache", "--format", "jsonl"]);
        self.check("replayed", &replayed, &mut problems);
        let requests = self.server.requests().len();
        if requests < self.faults.len() {
            problems.push(format!("{}: only {requests} requests", self.name));
        }
        problems
    }

    fn check(&self, how: &str, output: &Output, problems: &mut Vec<String>) {
        let text = String::from_utf8_lossy(&output.stdout);
        let lines = text.lines().map(|line| {
            serde_json::from_str::<Value>(line).unwrap_or_else(|why| panic!("{why}: {line}"))
        });
        let lines: Vec<Value> = lines.filter(|line| line["type"] == "result").collect();
        if lines.len() != self.faults.len() + 1 {
            let stderr = String::from_utf8_lossy(&output.stderr);
            problems.push(format!("{}: {} results: {stderr}", self.name, lines.len()));
            return;
        }
        if lines[0]["outcome"] != "pass" {
            problems.push(format!("{}, {how}: a good reply: {}", self.name, lines[0]));
        }
        for (fault, line) in self.faults.iter().zip(&lines[1..]) {
            let outcome = line["outcome"].as_str().unwrap_or_default();
            let is_error = faults::ERROR_OUTCOMES.contains(&outcome)
                && line["passed"].is_null()
                && line["score"].is_null()
                && line["error"].as_str().is_some_and(|why| !why.is_empty());
            // A stream that repeats itself, and still ends with the server's whole reply, is that reply.
            let is_same = fault.may_be_whole && line["explanation"] == lines[0]["explanation"];
            let is_whole = is_same && outcome == "pass";
            if !is_error && !is_whole {
                problems.push(format!("{}, {how}, {}: {line}", self.name, fault.name));
            }
        }
    }

    /// The other reports count the same verdicts.
    fn check_reports(&self, problems: &mut Vec<String>) {
        let shown = self.dicta(&["show", "@", "--format", "jsonl"]);
        let text = String::from_utf8_lossy(&shown.stdout);
        let passed = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|line| line["type"] == "result" && line["outcome"] == "pass")
            .count();
        let errors = self.faults.len() + 1 - passed;
        let junit = self.dicta(&["show", "@", "--format", "junit"]);
        let junit = String::from_utf8_lossy(&junit.stdout);
        let listed = junit.matches("<error").count();
        if listed != errors || junit.contains("<failure") {
            problems.push(format!(
                "{}: junit has {listed} of {errors} errors",
                self.name
            ));
        }
        let counts_fail =
            regex::Regex::new(r"\b[1-9]\d* fail\b|\bfail \| [1-9]").expect("a pattern");
        for format in ["human", "markdown"] {
            let report = self.dicta(&["show", "@", "--format", format]);
            let report = String::from_utf8_lossy(&report.stdout);
            if counts_fail.is_match(&report) {
                problems.push(format!("{}: {format} counts a fail", self.name));
            }
        }
    }
}

/// A2: a reply that ends at any byte is an error or the identical reply.
pub(crate) fn judge_cuts(campaign: &Campaign) -> Measured {
    let (mut cuts, mut whole_count, mut wrong) = (0_usize, 0_usize, Vec::new());
    for protocol in &PROTOCOLS {
        for streamed in [true, false] {
            for (name, body) in bodies(protocol, streamed) {
                let whole = untrusted::read_reply(protocol.kind, streamed, &[&body]);
                let Ok(whole) = whole.map(|reply| format!("{reply:?}")) else {
                    wrong.push(format!("{} {name} is not a reply", protocol.provider));
                    continue;
                };
                for at in (0..body.len()).step_by(campaign.count(5, 1)) {
                    cuts += 1;
                    match untrusted::read_reply(protocol.kind, streamed, &[&body[..at]]) {
                        Err(_) => {}
                        Ok(reply) if format!("{reply:?}") == whole => whole_count += 1,
                        Ok(reply) => wrong.push(format!(
                            "{} {name}, cut at {at} of {}: {reply:?}",
                            protocol.provider,
                            body.len()
                        )),
                    }
                    let (one, two) = body.split_at(at);
                    let joined = untrusted::read_reply(protocol.kind, streamed, &[one, two]);
                    if !joined.is_ok_and(|reply| format!("{reply:?}") == whole) {
                        wrong.push(format!("{} {name}, split at {at}", protocol.provider));
                    }
                }
            }
        }
    }
    let figure = format!(
        "{cuts} cuts: {} errors, {whole_count} identical replies, {} different",
        cuts - whole_count,
        wrong.len()
    );
    if wrong.is_empty() {
        Measured::Reached(figure)
    } else {
        wrong.truncate(5);
        Measured::Missed(format!("{figure}; {}", wrong.join("; ")))
    }
}

/// The bodies that are cut: a text, and calls with thinking, as the server of the tests writes them.
pub(crate) fn bodies(protocol: &Protocol, streamed: bool) -> Vec<(&'static str, Vec<u8>)> {
    let replies = [
        ("text", Reply::text(faults::verdict().to_string())),
        (
            "calls",
            Reply::call("submit_verdict", faults::verdict())
                .and_call(
                    "fetch_url",
                    serde_json::json!({"url": "https://a.example/é🚀"}),
                )
                .saying("Let me look 🚀.")
                .thinking("It greets. Is that polite?"),
        ),
    ];
    let replies = replies.into_iter();
    replies
        .map(|(name, reply)| (name, fetch_body(protocol, streamed, reply)))
        .collect()
}

/// Asks a scripted server for its body.
fn fetch_body(protocol: &Protocol, streamed: bool, reply: Reply) -> Vec<u8> {
    let server = WireServer::scripted(protocol.dialect, vec![reply]);
    let path = match (protocol.dialect, streamed) {
        (Dialect::Openai, _) => "/v1/chat/completions",
        (Dialect::Responses, _) => "/v1/responses",
        (Dialect::Anthropic, _) => "/v1/messages",
        (Dialect::Gemini, true) => "/v1beta/models/m:streamGenerateContent?alt=sse",
        (Dialect::Gemini, false) => "/v1beta/models/m:generateContent",
    };
    let body = format!("{{\"stream\":{streamed},\"model\":\"m\"}}");
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(server.address()).expect("loopback");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).expect("a header");
    }
    // The server writes chunks: a length in hexadecimal, the bytes, a line end.
    let mut whole = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).expect("a chunk");
        let length = usize::from_str_radix(line.trim(), 16).expect("a length");
        let mut chunk = vec![0; length + 2];
        reader.read_exact(&mut chunk).expect("a whole chunk");
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&chunk[..length]);
    }
}
