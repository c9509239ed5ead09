//! A small MCP server: what it answers to each message, and its life as a program.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

/// Its answer to a message, if it has one.
pub(super) fn answer(kind: &str, message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let any = json!({"type": "object"});
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "small", "version": "1"}
        }),
        "tools/list" if kind == "empty" => json!({"tools": []}),
        "tools/list" => json!({"tools": [
            {"name": "echo", "description": "Says it again.", "annotations": {"readOnlyHint": true}, "inputSchema":
                {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
            {"name": "where", "inputSchema": any},
            {"name": "hang", "inputSchema": any},
            {"name": "huge", "inputSchema": any},
            {"name": "leak", "inputSchema": any},
        ]}),
        "tools/call" => {
            let tool_result = match message["params"]["name"].as_str()? {
                "echo" => message["params"]["arguments"]["text"].as_str()?.to_owned(),
                "where" => {
                    let names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
                    let here = std::env::current_dir().ok()?;
                    format!("{}\n{}", here.display(), names.join(" "))
                }
                "leak" => {
                    let vars = std::env::vars().map(|(name, value)| format!("{name}={value}\n"));
                    let mut vars: Vec<String> = vars.collect();
                    // Arguments come first, as a mark of where the environment begins.
                    vars.sort_by_key(|line| !line.starts_with("LEAK="));
                    format!("{}END-OF-ENVIRONMENT", vars.concat())
                }
                "huge" => "x".repeat(2 << 20),
                _ => return None,
            };
            json!({"content": [{"type": "text", "text": tool_result}]})
        }
        _ => json!({}),
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Lives as a program until its standard input ends; `stubborn`: longer, with a process of its own.
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::zombie_processes,
    reason = "it is a program of its own, and leaves a process behind on purpose"
)]
pub(super) fn live(kind: &str) {
    // The test runner has begun a line.
    println!();
    if kind == "refuses" {
        eprintln!("no licence");
        end(2);
    }
    if kind == "mute" {
        println!("Welcome to the mute server!");
    }
    if kind.starts_with("stubborn") {
        std::thread::spawn(ignore_the_end);
        std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .expect("it sleeps");
    }
    if let Ok(file) = std::env::var("DICTA_TEST_PID") {
        std::fs::write(file, std::process::id().to_string()).expect("written");
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line.expect("text")) else {
            continue;
        };
        if kind.ends_with("mute") {
            continue;
        }
        if let (Ok(file), "tools/call") = (
            std::env::var("DICTA_TEST_CALLED"),
            message["method"].as_str().unwrap_or_default(),
        ) {
            std::fs::write(file, "").expect("written");
        }
        if let Some(answer) = answer(kind, &message) {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{answer}").expect("written");
            out.flush().expect("written");
        }
    }
    while kind.starts_with("stubborn") {
        std::thread::park();
    }
    end(0);
}

#[expect(clippy::exit, reason = "it is a program of its own here")]
fn end(code: i32) -> ! {
    std::process::exit(code)
}

fn ignore_the_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut asked = signal(SignalKind::terminate()).expect("it listens");
        while asked.recv().await.is_some() {}
    });
}
