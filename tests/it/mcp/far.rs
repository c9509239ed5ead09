//! Streamable HTTP over real sockets: sessions, both forms of a reply, and what a server does wrong.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{describe_output, server, tool, workspace};
use crate::cli::TestDir;

/// The behaviour of the server.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Json,
    Events,
    /// Forgets its session after the list of tools.
    Forgets,
    /// Ends the stream of a call without an answer.
    Ends,
    /// Points elsewhere on a call.
    Points,
}

struct Far {
    url: String,
    /// Methods, each with the session it came in.
    heard: Arc<Mutex<Vec<(String, String)>>>,
}

impl Far {
    fn start(way: Way) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let heard = Arc::<Mutex<Vec<(String, String)>>>::default();
        let log = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away is not a fault of the server.
                let _gone = serve(stream, way, &log);
            }
        });
        Self { url, heard }
    }

    fn count(&self, method: &str) -> usize {
        let heard = self.heard.lock().expect("whole");
        heard.iter().filter(|(m, _)| m == method).count()
    }

    fn test_dir(&self) -> TestDir {
        let source =
            json!({"kind": "mcp", "url": self.url, "allowPrivate": true, "timeout": "20s"});
        workspace(&format!("sources:\n  far: {source}\n"), "")
    }
}

fn serve(stream: TcpStream, way: Way, log: &Mutex<Vec<(String, String)>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut length, mut session, mut line) = (0, String::new(), String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            // The program ended while it sent the request.
            return Ok(());
        }
        let Some((name, value)) = line.trim().split_once(':') else {
            if line.trim().is_empty() {
                break;
            }
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "mcp-session-id" => value.trim().clone_into(&mut session),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or("none").to_owned();
    let begun = {
        let mut heard = log.lock().expect("whole");
        heard.push((method.clone(), session.clone()));
        heard.iter().filter(|(m, _)| m == "initialize").count()
    };
    let is_call = method == "tools/call";
    let mut head = String::new();
    let (status, body) = match server::answer("plain", &message) {
        _ if is_call && way == Way::Forgets && session == "s1" => {
            ("404 Not Found", "no such session".to_owned())
        }
        _ if is_call && way == Way::Points => {
            head.push_str("location: http://169.254.169.254/mcp\r\n");
            ("307 Temporary Redirect", String::new())
        }
        None => ("202 Accepted", String::new()),
        Some(answer) if way == Way::Json || way == Way::Forgets => {
            head.push_str("content-type: application/json\r\n");
            ("200 OK", answer.to_string())
        }
        Some(answer) => {
            head.push_str("content-type: text/event-stream\r\n");
            let progress = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
            let mut events = format!(": hello\n\ndata: {progress}\n\n");
            if way != Way::Ends || !is_call {
                events = format!("{events}event: message\ndata: {answer}\n\n");
            }
            ("200 OK", events)
        }
    };
    if method == "initialize" {
        head = format!("{head}mcp-session-id: s{begun}\r\n");
    }
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{head}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn mcp_session_reads_json_and_event_stream_replies() {
    for way in [Way::Json, Way::Events] {
        let far = Far::start(way);
        let test_dir = far.test_dir();
        let (report, output) = tool(&test_dir, "echo", r#"{"text": "far"}"#);
        assert_eq!(report["text"], "far", "{}", describe_output(&output));
        assert_eq!(report["hops"][0]["status"], 200, "{report:#}");
        assert!(
            describe_output(&output).contains("may be private"),
            "{}",
            describe_output(&output)
        );
        let heard = far.heard.lock().expect("whole");
        assert!(
            heard
                .iter()
                .all(|(method, session)| (method == "initialize") == session.is_empty()),
            "{heard:?}"
        );
        assert!(
            heard
                .iter()
                .any(|(method, _)| method == "notifications/initialized")
        );
    }
}

#[test]
fn expired_mcp_session_is_started_again() {
    let far = Far::start(Way::Forgets);
    let (report, output) = tool(&far.test_dir(), "echo", r#"{"text": "again"}"#);
    assert_eq!(report["text"], "again", "{}", describe_output(&output));
    assert_eq!((far.count("initialize"), far.count("tools/call")), (2, 2));
}

#[test]
fn mcp_protocol_error_is_reported_at_once() {
    for (way, name, says) in [
        (
            Way::Json,
            "huge",
            "the server sent a message of more than 1048576 bytes",
        ),
        (
            Way::Events,
            "huge",
            "the server sent a message of more than 1048576 bytes",
        ),
        (
            Way::Ends,
            "echo",
            "the server's reply ended without an answer",
        ),
        (Way::Points, "echo", "redirects are not followed"),
    ] {
        let far = Far::start(way);
        let (report, output) = tool(&far.test_dir(), name, r#"{"text": "x"}"#);
        let why = report["error"]
            .as_str()
            .unwrap_or_else(|| panic!("{says}: {report:#} {}", describe_output(&output)));
        assert!(why.contains(says), "{why}");
        assert!(report["duration_ms"].as_u64() < Some(15_000), "{report:#}");
    }
}
