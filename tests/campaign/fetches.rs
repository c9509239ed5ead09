//! Pages that a judge fetches from the built program: bombs, limits, connections, refused hops and recorded pages (S5, S9,
//! S12, S13, J7).

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use dicta::model::Digest;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::goals::combine;
use crate::sandbox::{Sandbox, outcomes, text};
use crate::support::tls::{Response, TlsServer};
use crate::support::wire::{Dialect, Reply, WireServer};
use crate::terminals::conclude;
use crate::{Campaign, Measured};

/// The most memory for a bomb, in KiB.
const MAX_BOMB_KIB: u64 = 32 << 10;
/// The most calls of `fetch_url` for a verdict.
const MAX_FETCHES: usize = 20;
/// The lines of a page that is larger than an event holds, and smaller than the tool cuts.
const PAGE_LINES: usize = 1000;

/// A workspace with one judged eval, whose judge has `fetch_url` and may open `127.0.0.1` on the page server's port.
fn write_workspace(sandbox: &Sandbox, judge: &str, pages: &TlsServer, transcript: &str) {
    let settings = json!({
        "allow_hosts": [format!("127.0.0.1:{}", pages.port())],
        "ca_file": pages.ca_file(),
    });
    sandbox.workspace(
        0,
        &format!(
            "judge: m\njudges:\n  m: {{ provider: openai, base_url: '{judge}', model: m, max_turns: 6, tools: [{{ fetch_url: {settings} }}] }}\n"
        ),
    );
    sandbox.write(
        "r.yaml",
        "id: r\nevals:\n  - { id: grounded, type: llm_judge, params: { criteria: The page says so. } }\n",
    );
    let lines = ["one", "two"].map(|id| {
        let record = json!({"id": id, "messages": [
            {"role": "user", "content": "Which one?"},
            {"role": "assistant", "content": transcript},
        ]});
        format!("{record}\n")
    });
    sandbox.write("t.jsonl", &lines.concat());
}

fn verdict() -> Reply {
    Reply::verdict(
        json!({"citations": [], "reasoning": "It says so.", "passed": true, "score": 1.0}),
    )
}

/// A reply that calls `fetch_url` with each of these addresses.
fn fetch_all(urls: &[String]) -> Reply {
    let mut urls = urls.iter().map(|url| json!({ "url": url }));
    let first = urls.next().expect("an address");
    urls.fold(Reply::call("fetch_url", first), |reply, url| {
        reply.and_call("fetch_url", url)
    })
}

/// Runs a command to its end, and returns its output and the most memory that it had, in KiB.
pub(crate) fn run_measured(command: &mut Command) -> (Output, u64) {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    // The value only grows, so the last one before the end is the most.
    while child.try_wait().expect("a child").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        most = most.max(read_peak(&text));
        std::thread::yield_now();
    }
    assert!(most > 0, "the memory of the program is not readable");
    (child.wait_with_output().expect("it ended"), most)
}

fn read_peak(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}

/// The memory for a bomb of 300 MiB (S5).
pub(crate) fn measure_bombs(campaign: &Campaign) -> Measured {
    if !std::path::Path::new("/proc/self/status").exists() {
        return Measured::Skipped("this system has no /proc, where the memory is read".to_owned());
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    for _ in 0..campaign.count(64, 300) {
        encoder.write_all(&zeros).expect("memory");
    }
    let bomb = encoder.finish().expect("memory");
    let size = bomb.len();
    let coded = |coding: &str, body: Vec<u8>| {
        Response::page("text/plain", body).header("content-encoding", coding)
    };
    let pages = TlsServer::serving(
        &["127.0.0.1"],
        vec![
            ("/small", Response::page("text/plain", "small")),
            ("/gzip", coded("gzip", bomb.clone())),
            (
                "/plain",
                Response::page("text/plain", vec![b'x'; 300 << 20]),
            ),
            ("/deflate", coded("deflate", bomb.clone())),
            ("/br", coded("br", bomb.clone())),
            ("/zstd", coded("zstd", bomb.clone())),
            (
                "/twice",
                coded("gzip", bomb).header("content-encoding", "gzip"),
            ),
        ],
    );
    let sandbox = Sandbox::new(campaign);
    write_workspace(&sandbox, "http://127.0.0.1:9/v1", &pages, "x");
    let fetch = |path: &str| {
        let url = json!({ "url": format!("https://127.0.0.1:{}{path}", pages.port()) });
        let words = ["tool", "fetch_url", &url.to_string(), "--judge", "m"];
        run_measured(&mut sandbox.command(&words))
    };
    let (output, small) = fetch("/small");
    let mut problems = Vec::new();
    if !text(&output.stdout).contains("small") {
        problems.push(format!("the small page: {}", text(&output.stderr)));
    }
    let mut most = 0;
    for (path, expected) in [
        ("/gzip", "expands more than 100-fold"),
        ("/plain", "[truncated at 50000 bytes]"),
        ("/deflate", "was not asked for"),
        ("/br", "was not asked for"),
        ("/zstd", "was not asked for"),
        ("/twice", "was not asked for"),
    ] {
        let (output, peak) = fetch(path);
        if !text(&output.stdout).contains(expected) {
            problems.push(format!("{path}: {}", text(&output.stdout)));
        }
        let growth = peak.saturating_sub(small);
        most = most.max(growth);
        if growth > MAX_BOMB_KIB {
            problems.push(format!("{path} costs {growth} KiB"));
        }
    }
    let here = conclude(
        &format!(
            "a gzip bomb of {} MiB in {} KiB, three other codings, two layers and a plain body of 300 MiB. Each costs at most {most} KiB more than a page of 5 bytes",
            campaign.count(64, 300),
            size >> 10
        ),
        &problems,
    );
    // The memory does not show the limits of 2 MiB and 8 MiB.
    combine(
        campaign,
        here,
        &[(
            "it",
            &[
                "long_page_is_truncated_with_a_note",
                "endless_body_is_truncated_at_the_limit",
                "large_gzip_page_is_truncated_at_eight_mebibytes",
            ],
        )],
    )
}

/// Each fetch has a connection of its own, also in runs at the same time (S9).
pub(crate) fn measure_connections(campaign: &Campaign) -> Measured {
    let pages = TlsServer::answering(&["127.0.0.1"], |request| {
        let page = match request.path.as_str() {
            "/go" => Response::redirect(302, "/page"),
            _ => Response::page("text/plain", "the page"),
        };
        // An offer of another protocol on another port, which a browser would accept.
        page.header("alt-svc", "h3=\":443\", h2=\":443\"")
            .header("upgrade", "h2")
            .header("connection", "keep-alive")
    });
    let url = format!("https://127.0.0.1:{}/go", pages.port());
    let asked = url.clone();
    let judge = WireServer::answering(Dialect::Openai, move |request| {
        match request.body.matches("the page").count() {
            0 => fetch_all(std::slice::from_ref(&asked)),
            _ => verdict(),
        }
    });
    let sandbox = Sandbox::new(campaign);
    write_workspace(&sandbox, &judge.base_url(), &pages, &format!("See {url}"));
    let mut problems = Vec::new();
    let rounds = campaign.count(1, 20);
    for _ in 0..rounds {
        let runs: Vec<_> = (0..2)
            .map(|_| {
                let mut command =
                    sandbox.command(&["run", "-q", "--no-cache", "--format", "jsonl"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                command.spawn().expect("the program starts")
            })
            .collect();
        for run in runs {
            let output = run.wait_with_output().expect("it ends");
            let found: Vec<String> = outcomes(&output.stdout).into_values().collect();
            if found != ["pass", "pass"] {
                problems.push(format!("{found:?}: {}", text(&output.stderr)));
            }
        }
    }
    let (accepts, requests) = (pages.accepts(), pages.requests());
    let expected = rounds * 2 * 2 * 2;
    if (accepts, requests.len()) != (expected, expected) {
        problems.push(format!(
            "{accepts} connections for {} requests of {expected} hops",
            requests.len()
        ));
    }
    let upgrades = |name: &str| ["upgrade", "http2-settings", "cookie"].contains(&name);
    let mut headers = requests.iter().flat_map(|request| &request.headers);
    if headers.any(|(name, _)| upgrades(name)) {
        problems.push("a request offers another protocol".to_owned());
    }
    conclude(
        &format!("{accepts} connections for {expected} hops of {rounds} times two runs at once"),
        &problems,
    )
}

/// Refused hops are recorded and replayed (S12).
pub(crate) fn measure_refused_hops(campaign: &Campaign) -> Measured {
    const TARGETS: [(&str, &str); 6] = [
        ("https://10.0.0.1/", "address: "),
        ("https://[::1]/", "address: "),
        ("https://169.254.169.254/latest/meta-data/", "address: "),
        ("http://127.0.0.1/", "scheme: "),
        ("https://u:p@127.0.0.1/", "userinfo: "),
        ("https://localhost/", "name: "),
    ];
    let pages = TlsServer::answering(&["127.0.0.1"], |request| {
        let number: usize = request.path[1..].parse().unwrap_or(0);
        Response::redirect(302, TARGETS[number].0)
    });
    let urls: Vec<String> = (0..TARGETS.len())
        .map(|number| format!("https://127.0.0.1:{}/{number}", pages.port()))
        .collect();
    let asked = urls.clone();
    let judge = WireServer::answering(Dialect::Openai, move |request| {
        match request.body.matches("Error: ").count() {
            0 => fetch_all(&asked),
            _ => verdict(),
        }
    });
    let sandbox = Sandbox::new(campaign);
    write_workspace(&sandbox, &judge.base_url(), &pages, &urls.join(" "));
    let live = sandbox.dicta(&["run", "--stream", "-j", "1", "--format", "jsonl"]);
    let replayed = sandbox.dicta(&["replay", "@", "--print", "--speed", "0"]);
    let shown = sandbox.dicta(&["show", "@", "one/"]);
    let mut problems = Vec::new();
    let refused = |output: &Output| -> Vec<String> {
        let both = [text(&output.stdout), text(&output.stderr)].concat();
        let lines = both.lines().filter(|line| line.contains(" refused: "));
        let mut lines: Vec<String> = lines
            .map(|line| line[line.find("http").unwrap_or(0)..].trim().to_owned())
            .collect();
        // Calls of one turn run at once.
        lines.sort();
        lines
    };
    let (first, again) = (refused(&live), refused(&replayed));
    if first.len() != 2 * TARGETS.len() || first != again {
        problems.push(format!("live {first:?}, replayed {again:?}"));
    }
    for (url, rule) in TARGETS {
        let part = format!(" refused: {rule}");
        if !first
            .iter()
            .any(|line| line.starts_with(url) && line.contains(&part))
        {
            problems.push(format!("no line for {url}: {first:?}"));
        }
        if !text(&shown.stdout).contains(url) {
            problems.push(format!("`dicta show` lacks {url}"));
        }
    }
    let recorded = read_hops(&sandbox);
    for (url, rule) in TARGETS {
        let with_reason = |hop: &&Value| {
            let why = hop["refused"].as_str().unwrap_or_default();
            hop["url"] == url && why.starts_with(rule)
        };
        let found: Vec<&Value> = recorded.iter().filter(with_reason).collect();
        if found.len() != 2 {
            problems.push(format!("{} recorded hops to {url}", found.len()));
        }
        if rule == "address: " && !found.iter().all(|hop| hop["address"].is_string()) {
            problems.push(format!("no address for {url}"));
        }
    }
    conclude(
        &format!(
            "{} refused hops of two cells, live, recorded, replayed and shown",
            first.len()
        ),
        &problems,
    )
}

/// The hops in the logs of all runs.
fn read_hops(sandbox: &Sandbox) -> Vec<Value> {
    fn collect(value: &Value, found: &mut Vec<Value>) {
        match value {
            Value::Object(map) => {
                if let Some(hop) = map.get("hop") {
                    found.push(hop.clone());
                }
                map.values().for_each(|inner| collect(inner, found));
            }
            Value::Array(all) => all.iter().for_each(|inner| collect(inner, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    let runs = std::fs::read_dir(sandbox.path().join("runs"));
    for run in runs.into_iter().flatten().flatten() {
        let log = std::fs::read_to_string(run.path().join("events.jsonl")).unwrap_or_default();
        for line in log.lines() {
            if let Ok(value) = serde_json::from_str::<Value>(line) {
                collect(&value, &mut found);
            }
        }
    }
    found
}

/// Composed addresses are never requested, and a verdict has at most 20 requests (S13).
pub(crate) fn measure_composed_addresses(campaign: &Campaign) -> Measured {
    let mut problems = Vec::new();
    let mut count = |composed: bool| {
        let pages = TlsServer::answering(&["127.0.0.1"], |_| Response::page("text/plain", "page"));
        let origin = format!("https://127.0.0.1:{}", pages.port());
        let urls: Vec<String> = if composed {
            let compose = |number: usize| match number % 4 {
                0 => format!("{origin}/known?secret={number}"),
                1 => format!("{origin}/{number}"),
                2 => format!("{origin}/known/{number}"),
                _ => format!("{origin}/KNOWN?{number}"),
            };
            (0..100).map(compose).collect()
        } else {
            (0..30).map(|number| format!("{origin}/{number}")).collect()
        };
        let listed = if composed {
            format!("{origin}/known")
        } else {
            urls.join(" ")
        };
        let judge = WireServer::answering(Dialect::Openai, move |request| {
            match request.body.matches("tool_call_id").count() {
                0 => fetch_all(&urls),
                _ => verdict(),
            }
        });
        let sandbox = Sandbox::new(campaign);
        write_workspace(&sandbox, &judge.base_url(), &pages, &listed);
        let output = sandbox.dicta(&["run", "-q", "-j", "1", "--limit", "1", "--format", "jsonl"]);
        let found: Vec<String> = outcomes(&output.stdout).into_values().collect();
        if found != ["pass"] {
            problems.push(format!("{found:?}: {}", text(&output.stderr)));
        }
        pages.accepts()
    };
    let (composed, listed) = (count(true), count(false));
    if composed != 0 || listed != MAX_FETCHES {
        problems.push("the rule does not hold".to_owned());
    }
    conclude(
        &format!(
            "{composed} requests for 100 composed addresses; {listed} requests for 30 addresses of the transcript in one verdict"
        ),
        &problems,
    )
}

/// The recording has the whole page that the judge read, in a file that its digest names (J7).
pub(crate) fn measure_recorded_pages(campaign: &Campaign) -> Measured {
    let lines: Vec<String> = (1..=PAGE_LINES)
        .map(|number| format!("line {number} of the page."))
        .collect();
    let body = lines.join("\n");
    let size = body.len();
    let pages = TlsServer::answering(&["127.0.0.1"], move |_| {
        Response::page("text/plain", body.clone())
    });
    let url = format!("https://127.0.0.1:{}/lines", pages.port());
    let asked = url.clone();
    let judge = WireServer::answering(Dialect::Openai, move |request| {
        match request.body.matches("line 1 of the page").count() {
            0 => fetch_all(std::slice::from_ref(&asked)),
            _ => verdict(),
        }
    });
    let sandbox = Sandbox::new(campaign);
    write_workspace(&sandbox, &judge.base_url(), &pages, &format!("See {url}"));
    let output = sandbox.dicta(&["run", "-q", "-j", "1", "--format", "jsonl"]);
    let mut problems = Vec::new();
    let found: Vec<String> = outcomes(&output.stdout).into_values().collect();
    if found != ["pass", "pass"] {
        problems.push(format!("{found:?}: {}", text(&output.stderr)));
    }
    let is_whole = |text: &str| lines.iter().all(|line| text.contains(line.as_str()));
    let requests = judge.requests();
    let read = requests.iter().filter(|request| is_whole(&request.body));
    let read = read.count();
    let mut recorded = 0;
    let runs = std::fs::read_dir(sandbox.path().join("runs"));
    for run in runs.into_iter().flatten().flatten() {
        let log = std::fs::read_to_string(run.path().join("events.jsonl")).unwrap_or_default();
        // The request contains the page, too, but the tool's response is the record of it.
        let responses: Vec<&str> = log
            .lines()
            .filter(|line| line.contains(r#""kind":{"tool":"#))
            .collect();
        let contents = std::fs::read_dir(run.path().join("blobs"));
        for file in contents.into_iter().flatten().flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let content = std::fs::read(file.path()).unwrap_or_default();
            if is_whole(&text(&content)) && Digest::hash_bytes(&content).0 == name {
                let named = format!(r#""text":{{"blob":{{"hash":"{name}""#);
                recorded += responses
                    .iter()
                    .filter(|line| line.contains(&named))
                    .count();
            }
        }
    }
    if (read, recorded) != (2, 2) {
        problems.push("a page is not whole".to_owned());
    }
    let here = conclude(
        &format!(
            "a page of {size} bytes, which {read} requests and {recorded} recorded responses contain"
        ),
        &problems,
    );
    combine(
        campaign,
        here,
        &[(
            "lib",
            &[
                "a_blob_is_stored_once_and_read_back_by_its_digest",
                "changed_blobs_and_symlinks_are_refused",
            ],
        )],
    )
}
