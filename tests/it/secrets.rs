//! Forty secrets, planted in every place that accepts one, and servers that repeat them in several spellings. None is
//! in a recording, an output, a prompt, the screen or the environment of another program.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::{PASSES, POLITE, TestDir, of_type, rows, text};
use crate::screen;
use crate::support::wire::{Dialect, Reply, Request, WireServer};

/// The number of planted secrets that servers repeat.
const PLANTED: usize = 40;
/// Secrets of the environment that dicta uses nowhere.
const AMBIENT: [(&str, usize); 4] = [
    ("AWS_SECRET_ACCESS_KEY", 50),
    ("GITHUB_TOKEN", 51),
    ("UNUSED_BY_DICTA", 52),
    ("SSH_ASKPASS_ANSWER", 53),
];

/// The part of a secret that occurs nowhere else.
fn word(n: usize) -> String {
    let n = u32::try_from(n).expect("a small number");
    format!("{:08x}", (n + 1).wrapping_mul(2_654_435_761))
}

/// A secret with characters that JSON, URLs and base64 write in several ways.
fn secret(n: usize) -> String {
    format!("Kn{n:02}/x+{}q==", word(n))
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        let _infallible = write!(out, "{byte:02x}");
        out
    })
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0_usize, |bits, at| {
            bits << 8 | usize::from(*group.get(at).unwrap_or(&0))
        });
        for at in 0..=group.len() {
            out.push(char::from(ALPHABET[bits >> (18 - 6 * at) & 63]));
        }
    }
    out
}

/// A text in the spellings in which a server may repeat it.
pub(crate) fn in_all_spellings(text: &str) -> String {
    let hex = hex(text);
    let mut all = vec![text.to_owned(), hex.to_ascii_uppercase(), hex];
    for before in ["", "a", "ab"] {
        let standard = base64(format!("{before}{text}").as_bytes());
        all.push(standard.replace('+', "-").replace('/', "_"));
        all.push(standard);
    }
    all.join(" ")
}

fn repeat_planted() -> String {
    let all: Vec<String> = (0..PLANTED).map(|n| in_all_spellings(&secret(n))).collect();
    all.join("\n")
}

/// Returns the spellings of secret number `n` in a text. Half a secret counts as well.
fn find_spellings(text: &str, n: usize) -> Vec<String> {
    let word = word(n);
    let mut needles = vec![word.clone(), hex(&word)];
    for before in 0..3 {
        let padded = [vec![0; before], word.clone().into_bytes()].concat();
        // Only these characters depend on the word alone.
        let own = (before * 8_usize).div_ceil(6)..padded.len() * 8 / 6;
        needles.push(base64(&padded)[own].to_owned());
    }
    let lower = text.to_ascii_lowercase();
    needles.retain(|needle| text.contains(needle) || lower.contains(needle));
    needles
}

/// The judge's server: asks for all tools, then gives a verdict that repeats all secrets.
fn judge_server() -> WireServer {
    WireServer::answering(Dialect::Openai, |request: &Request| {
        let leak = repeat_planted();
        let body = request.json();
        if body["model"] == "refuses" {
            let error = json!({"error": {"message": leak}});
            return Reply::status(401).body(error.to_string());
        }
        let tools = request.tools();
        let offered = |name: &&&str| tools.iter().any(|tool| tool == **name);
        let mut calls = ["stock", "leak", "guarded"].iter().filter(offered);
        let has_called = request.mentions("\"role\":\"tool\"") || request.mentions("tool_result");
        if let (false, Some(first)) = (has_called, calls.next()) {
            let first = Reply::call(first, json!({})).thinking(leak);
            return calls.fold(first, |reply, name| reply.and_call(name, json!({})));
        }
        let verdict = json!({"citations": [], "reasoning": leak, "passed": true, "score": 0.9});
        Reply::verdict(verdict).thinking(leak).piece_len(7)
    })
}

/// The server of the `http` source, which repeats its requests and all secrets.
fn api_server() -> WireServer {
    WireServer::answering(Dialect::Openai, |request: &Request| {
        let got = format!("{} {:?} {}", request.path, request.headers, request.body);
        let reply = format!("{got}\n{}\n{}", hex(&got), repeat_planted());
        Reply::raw(json!({"data": reply}).to_string())
    })
}

fn plant(test_dir: &TestDir, judges: &WireServer, api: &WireServer) {
    let s = secret;
    let program = std::env::current_exe().expect("this program");
    let script = "LEAK=\"$*\" exec \"$0\" --exact mcp::serve --nocapture --test-threads=1";
    let private = |name: &str, text: &str| {
        let path = test_dir.write(name, text);
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(path, mode).expect("ours");
    };
    let url = judges.base_url();
    let inline = json!({
        "command": "sh", "args": ["-c", script, program, "${INLINE_ARG}"],
        "env": {"DICTA_TEST_SERVER": "plain", "INLINE_PLAIN": "${INLINE_ENV}"},
    });
    let config = json!({
        "tools": ["tools.yaml"],
        "allow_scripts": true,
        "judge": "m",
        "judges": {
            "m": {"provider": "openai", "base_url": url, "model": "m", "api_key_env": "KEY_0",
                  "tools": ["stock", "guarded", "prog"]},
            "file": {"provider": "openai", "base_url": url, "model": "m", "api_key_file": ".secret/key"},
            "x": {"provider": "openai", "base_url": url, "model": "m", "api_key_env": null,
                  "headers": {"Authorization": format!("Bearer {}", s(2)), "X-Portal": s(3),
                              "Cookie": format!("sid={}; theme=dark", s(4)), "User-Agent": s(5)},
                  "extra_body": {"api_key": s(6), "gateway": {"auth": {"pin": s(7)}}, "user": "me"}},
            "a": {"provider": "anthropic", "base_url": url.trim_end_matches("/v1"), "model": "m",
                  "api_key_env": "KEY_8", "headers": {"X-Gateway": format!("Token {}", s(9))}},
            "bad": {"provider": "openai", "base_url": url, "model": "refuses", "api_key_env": "KEY_8"},
            "i": {"provider": "openai", "base_url": url, "model": "m", "api_key_env": "KEY_0",
                  "tools": [{"mcp": inline}]},
            "team": "judges/team.yaml",
        },
    });
    // JSON is YAML, and the harness writes the first lines.
    let lines: Vec<String> = config
        .as_object()
        .expect("a mapping")
        .iter()
        .map(|(key, value)| format!("{key}: {value}\n"))
        .collect();
    let criteria = "params: { criteria: The answer is polite. }";
    let evals: String = ["m", "file", "x", "a", "bad", "i"]
        .iter()
        .map(|judge| {
            format!("  - {{ id: by-{judge}, type: llm_judge, judge: {judge}, {criteria} }}\n")
        })
        .collect::<Vec<_>>()
        .concat();
    test_dir.workspace(
        &lines.concat(),
        &format!(
            "{evals}  - {{ id: by-team, type: llm_judge, judge: team, enabled: false, {criteria} }}\n\
             \x20 - {{ id: environment, type: script, params: {{ command: [./env.sh] }} }}\n"
        ),
    );
    private(".secret/key", &s(1));
    private(".env", &format!("DOT_ENV_KEY={}\n", secret(54)));
    test_dir.write(
        "judges/team.yaml",
        "generator: gcp_vertex_gemini\nvertex_model: m\nbase_prompt: 'Team ${TEAM_PROMPT} ${TEAM_14}'\nteam: { a: [\"${TEAM_OTHER}\"], b: \"${TEAM_15}\" }\n",
    );
    let env = test_dir.write(
        "env.sh",
        "#!/bin/sh\nenv > env.out\nprintf '{\"passed\": true, \"reason\": \"%s\"}' \"$(env | tr -d '\"\\\\\\n')\"\n",
    );
    std::fs::set_permissions(env, std::fs::Permissions::from_mode(0o755)).expect("ours");
    test_dir.write("keys.json", r#"{"keys": []}"#);
    let address = api.address();
    let tools = json!({
        "sources": {
            "api": {"kind": "http", "baseUrl": format!("http://{address}/base"), "allowPrivate": true,
                "headers": {"Authorization": "Bearer ${API_16}", "X-Tenant": "${TENANT}", "X-Literal-Key": s(18)},
                "queryParams": {"sig": "${SIG}", "appid": "${APP}", "code": "x-${CODE}", "sid": "${SID}",
                    "pass": "${PASS_23}", "pat": "${PAT_24}"}},
            "prog": {"kind": "mcp", "command": "sh",
                "args": ["-c", script, program, "-e", format!("API_KEY={}", s(25)), format!("A_TOKEN=b={}", s(26)),
                    format!("--env=PASSWORD={}", s(27)), "${ARG_28}", format!("postgres://me:{}@h/db", word(29))],
                "env": {"DICTA_TEST_SERVER": "plain", "GIT_TOKEN": "${GIT_30}", "PLAIN": "${PLAIN_31}",
                    "LITERAL_SECRET": s(32)}},
            "far": {"kind": "mcp", "url": format!("http://{address}/mcp?api_key={}&tenant=${{FAR_34}}", word(33)),
                "allowPrivate": true, "startTimeout": "5s", "headers": {"X-Any": s(35)}},
            "pg": {"kind": "postgres", "host": "127.0.0.1", "port": address.port(), "database": "d", "user": "u",
                "password": "${PG_36}", "queryParams": {"sslmode": "disable"}},
        },
        "authServices": {
            "team": {"kind": "generic", "audience": "judges", "issuer": "https://id.example.org",
                "jwks": "keys.json", "tokenEnv": "TEAM_37"},
        },
        "tools": {
            "stock": {"kind": "http", "source": "api", "method": "POST", "path": "/p", "description": "Stock.",
                "requestBody": "{\"k\": \"${BODY_38}\"}", "headers": {"X-Tool": "${TOOL_39}"}},
            "guarded": {"kind": "http", "source": "api", "method": "GET", "path": "/g", "description": "Guarded.",
                "authRequired": ["team"]},
        },
    });
    test_dir.write("tools.yaml", &tools.to_string());
}

/// The variables in which the files above find their secrets.
const VARIABLES: [(&str, usize); 24] = [
    ("KEY_0", 0),
    ("KEY_8", 8),
    ("INLINE_ARG", 10),
    ("INLINE_ENV", 11),
    ("TEAM_PROMPT", 12),
    ("TEAM_OTHER", 13),
    ("TEAM_14", 14),
    ("TEAM_15", 15),
    ("API_16", 16),
    ("TENANT", 17),
    ("SIG", 19),
    ("APP", 20),
    ("CODE", 21),
    ("SID", 22),
    ("PASS_23", 23),
    ("PAT_24", 24),
    ("ARG_28", 28),
    ("GIT_30", 30),
    ("PLAIN_31", 31),
    ("FAR_34", 34),
    ("PG_36", 36),
    ("TEAM_37", 37),
    ("BODY_38", 38),
    ("TOOL_39", 39),
];

fn environment() -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> = VARIABLES
        .iter()
        .chain(&AMBIENT)
        .map(|(name, n)| ((*name).to_owned(), secret(*n)))
        .collect();
    for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY"] {
        // No one listens there, so a request through it would fail.
        let proxy = format!("http://me:{}@127.0.0.1:9", word(55));
        env.push((name.to_owned(), proxy));
    }
    env.push((
        "PATH".to_owned(),
        std::env::var("PATH").expect("a search path"),
    ));
    env
}

/// The texts of all files below a folder, except those in which the test planted secrets.
fn written_files(folder: &Path) -> Vec<(String, String)> {
    let planted = ["dicta.yaml", "tools.yaml", ".env", "key"];
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry.expect("readable");
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().is_file() && !planted.contains(&&*name) {
            let bytes = std::fs::read(entry.path()).expect("readable");
            let path = entry.path().display().to_string();
            found.push((path, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    found
}

#[test]
fn forty_planted_secrets_appear_nowhere() {
    let (judges, api) = (judge_server(), api_server());
    let test_dir = TestDir::new();
    plant(&test_dir, &judges, &api);
    let mut all = Vec::new();
    let mut dicta = |args: &[&str]| {
        let mut command = test_dir.command(args);
        let output = command.envs(environment()).output().expect("it runs");
        all.push((format!("{args:?} stdout"), text(&output.stdout)));
        all.push((format!("{args:?} stderr"), text(&output.stderr)));
        output
    };
    let trusted = dicta(&["trust", "."]);
    assert!(trusted.status.success(), "{}", text(&trusted.stderr));
    let run = dicta(&["run", "--format", "jsonl", "-o", "out.md"]);
    let results = rows(&run);
    let outcomes: Vec<&Value> = of_type(&results, "result")
        .iter()
        .map(|row| &row["outcome"])
        .collect();
    let count = |word: &str| outcomes.iter().filter(|outcome| **outcome == word).count();
    // Two transcripts by five judges that answer and one that refuses, the script, and the disabled eval.
    assert_eq!(
        (count("pass"), count("judge_error"), count("skipped")),
        (12, 2, 2),
        "{outcomes:?} {}",
        text(&run.stderr)
    );
    for args in [
        &["check"][..],
        &["check", "--connect"],
        &["run", "--dry-run"],
        &["run", "--format", "junit", "-o", "out.html"],
        &["judges"],
        &["judges", "--format", "json"],
        &["tools"],
        &["tools", "--format", "json"],
        &["tool", "stock", "{}"],
        &["tool", "leak", "{}", "--format", "json"],
        &["tool", "guarded", "{}"],
        &["runs"],
        &["show", "@"],
        &["show", "@2", "--format", "jsonl"],
        &["show", "@2", "--format", "markdown"],
        &["show", "@2", "one/r/by-m~m"],
        &["show", "@2", "one/r/by-x~x"],
        &["replay", "@2", "--print", "--speed", "0"],
        &["compare", "@2", "@"],
        &["prompt", "one/r/by-x~x"],
        &["prompt", "one/r/by-m~m"],
        &["prompt", "--key", "one/r/by-x~x"],
        &["prompt", "one/r/by-x", "--judge", "team"],
    ] {
        dicta(args);
    }
    let shown = screen::run_and_browse(test_dir.path(), &environment());
    assert!(shown.contains("by-m"), "the screen shows the evals");
    all.push(("the screen".to_owned(), shown));
    let files = written_files(test_dir.path());
    let redacted = |texts: &[(String, String)]| {
        let texts = texts.iter().filter(|(_, text)| text.contains("[redacted]"));
        texts.count()
    };
    assert!(redacted(&files) > 3, "servers repeated them in recordings");
    assert!(redacted(&all) > 5, "and in outputs");
    let is_prompt = |place: &str| place.starts_with("[\"prompt\"") && place.ends_with("stdout");
    let prompts = all.iter().filter(|(place, _)| is_prompt(place));
    let prompts: Vec<(String, String)> = prompts.cloned().collect();
    assert_eq!(redacted(&prompts), 2, "of `extra_body` and `base_prompt`");
    assert!(
        files
            .iter()
            .any(|(path, text)| path.ends_with("env.out") && text.contains("PATH=")),
        "the script printed its environment"
    );
    all.extend(files);
    let mut leaks = Vec::new();
    for (place, text) in &all {
        for n in (0..PLANTED).chain(50..56) {
            for found in find_spellings(text, n) {
                let at = text.to_ascii_lowercase().find(&found.to_ascii_lowercase());
                let at = at.unwrap_or_default();
                let from = text.floor_char_boundary(at.saturating_sub(60));
                let until = text.ceil_char_boundary((at + 40).min(text.len()));
                leaks.push(format!("{n} in {place}: {}", &text[from..until]));
            }
        }
    }
    assert!(leaks.is_empty(), "{} leaks: {leaks:#?}", leaks.len());
    // What a program or a model gets: its own settings, and nothing of the environment.
    for request in judges.requests().iter().chain(&api.requests()) {
        for n in 50..56 {
            assert_eq!(find_spellings(&request.body, n), Vec::<String>::new());
        }
    }
    let environment_of_program = judges
        .requests()
        .iter()
        .filter_map(|request| {
            let body = request.body.as_str();
            let from = body.find("LEAK=")?;
            let rest = &body[from..];
            Some(rest[..rest.find("END-OF-ENVIRONMENT")?].to_owned())
        })
        .collect::<Vec<_>>();
    assert!(
        environment_of_program
            .iter()
            .any(|environment| environment.contains("[redacted]")),
        "the MCP server told its environment, without its secret"
    );
    for environment in environment_of_program {
        for n in [0, 1, 8, 12, 16, 19, 31, 36, 37] {
            assert_eq!(find_spellings(&environment, n), Vec::<String>::new());
        }
    }
}

#[test]
fn password_that_is_a_number_is_not_recorded() {
    const PASSWORD: &str = "4711471147114711";
    let verdict = || Reply::verdict(serde_json::from_str::<Value>(PASSES).expect("JSON"));
    let server = WireServer::openai(vec![verdict(), verdict()]);
    let test_dir = TestDir::new();
    test_dir.workspace(
        &format!(
            "judge: m\njudges:\n  m: {{ provider: openai, base_url: '{}', model: m, api_key_env: null, \
             extra_body: {{ password: {PASSWORD} }} }}\n",
            server.base_url()
        ),
        POLITE,
    );
    assert_eq!(test_dir.dicta(&["run", "-q"]).status.code(), Some(0));
    assert!(
        server
            .requests()
            .iter()
            .all(|sent| sent.body.contains(PASSWORD))
    );
    let files = written_files(test_dir.path());
    assert!(files.iter().any(|(name, _)| name.ends_with("events.jsonl")));
    for (name, text) in files {
        assert!(!text.contains(PASSWORD), "{name}");
    }
}

#[test]
fn keys_in_files_of_other_tools_are_neither_recorded_nor_shown() {
    let test_dir = TestDir::new();
    test_dir.write(
        "dicta.yaml",
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\njudges: { team: team.yaml }\n",
    );
    test_dir.write(
        "t.jsonl",
        r#"{"id":"one","messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Good day"}]}"#,
    );
    test_dir.write(
        "r.yaml",
        "providers: [{ id: 'http://h.example/?key=hush-hush-1', config: { apiKey: hush-hush-2 } }]\n\
         assert:\n\
         \x20 - { type: contains, value: day, provider: { config: { headers: { X-Tenant: hush-hush-3 } } } }\n",
    );
    test_dir.write(
        "team.yaml",
        "generator: gcp_vertex_gemini\nvertex_model: m\nbase_prompt: p\napi_key: hush-hush-4\n",
    );
    // It has no assertions, so the warning shows its first line.
    test_dir.write(
        "none.yaml",
        "providers: [{ id: a, config: { apiKey: hush-hush-5 } }]\nprompts: [x]\n",
    );
    // Its second line is not YAML, so the error shows it.
    test_dir.write(
        "broken.yaml",
        "config: { apiKey: hush-hush-6 }\nassert: [{ type: contains, token: hush-hush-7 ]\n",
    );
    let mut shown = String::new();
    let mut dicta = |args: &[&str], code: i32| {
        let output = test_dir.dicta(args);
        shown.push_str(&text(&output.stdout));
        shown.push_str(&text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{args:?} {shown}");
    };
    dicta(&["run"], 0);
    dicta(&["check", "none.yaml"], 0);
    dicta(&["check", "broken.yaml"], 2);
    assert!(shown.contains("providers: [{ id: a, config: { apiKey: *"));
    let recorded = written_files(&test_dir.path().join("runs"));
    let has = |word: &str| recorded.iter().any(|(_, text)| text.contains(word));
    assert!(has("providers:") && has("generator:"), "the files are kept");
    for (name, text) in recorded.iter().chain([&("the output".to_owned(), shown)]) {
        assert!(!text.contains("hush-hush"), "{name}: {text}");
    }
}
