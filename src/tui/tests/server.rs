//! A model server on loopback that returns what a test specifies: `OpenAI` chat completions, streamed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

/// The response of the server to one request.
#[derive(Debug, Clone)]
pub(super) enum ServerReply {
    /// A text in one piece.
    Text(String),
    /// A tool call.
    Call(&'static str, Value),
    /// An error: status, a header line, body.
    Refuse(u16, &'static str, String),
    /// The beginning of a text; the rest never arrives.
    Hang(String),
}

impl ServerReply {
    /// Returns a verdict as a text.
    pub(super) fn verdict(passed: bool, reasoning: &str) -> Self {
        let verdict = json!({"citations": [], "reasoning": reasoning, "passed": passed, "score": f64::from(u8::from(passed))});
        Self::Text(verdict.to_string())
    }
}

/// The server. It runs until the process of the tests ends.
pub(super) struct Server {
    pub(super) base_url: String,
    asked: Arc<AtomicUsize>,
}

impl Server {
    /// Starts a server that answers the n-th request with `script(n)`.
    pub(super) fn new(script: impl Fn(usize) -> ServerReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("it is bound");
        let asked = Arc::new(AtomicUsize::new(0));
        let server = Self {
            base_url: format!("http://{address}/v1"),
            asked: Arc::clone(&asked),
        };
        let script = Arc::new(script);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, asked) = (Arc::clone(&script), Arc::clone(&asked));
                // Some tests cancel requests, so a closed connection is not an error.
                std::thread::spawn(move || {
                    serve(stream, || script(asked.fetch_add(1, Ordering::SeqCst)))
                });
            }
        });
        server
    }

    /// Returns the number of requests.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Returns the configuration of a judge in `dicta.yaml` that calls this server. On loopback it is free unless it
    /// has prices.
    pub(super) fn judge(&self, more: &str) -> String {
        let url = &self.base_url;
        format!("{{ provider: openai, model: m, base_url: \"{url}\", timeout_s: 80000{more} }}")
    }
}

fn serve(stream: TcpStream, next: impl Fn() -> ServerReply) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let chunk = |delta: Value, finish: Value| {
        let value = json!({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {value}\n\n")
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    match next() {
        ServerReply::Refuse(status, header, body) => {
            let length = body.len();
            write!(
                out,
                "HTTP/1.1 {status} no\r\ncontent-type: application/json\r\n{header}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )?;
        }
        ServerReply::Text(text) => {
            let (text, end) = (
                chunk(json!({"content": text}), Value::Null),
                chunk(json!({}), json!("stop")),
            );
            write!(out, "{head}{text}{end}data: [DONE]\n\n")?;
        }
        ServerReply::Call(name, arguments) => {
            let call = json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()}}]});
            let (call, end) = (
                chunk(call, Value::Null),
                chunk(json!({}), json!("tool_calls")),
            );
            write!(out, "{head}{call}{end}data: [DONE]\n\n")?;
        }
        ServerReply::Hang(text) => {
            write!(
                out,
                "{head}{}",
                chunk(json!({"content": text}), Value::Null)
            )?;
            out.flush()?;
            // Returns when the client has closed the connection.
            let _bytes = reader.read(&mut [0])?;
        }
    }
    Ok(())
}
