//! 1,000 judge cells against a loopback server that takes 100 ms a reply, 20 and 200 at once, without tools and with one
//! tool round. The ideal is the time of the server for its replies, divided by the number of cells at once: 5 s or 0.5 s
//! a turn. The server measures it from the last byte of a request, and its timer adds a little. The server shares the
//! machine's processors with what it measures.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::data;
use crate::measure::dicta;

const CELLS: usize = 1000;
const REPLY: Duration = Duration::from_millis(100);

pub(crate) fn judging(dir: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let listener = runtime
        .block_on(TcpListener::bind("127.0.0.1:0"))
        .expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let took = Arc::new(AtomicU64::new(0));
    let needed = Arc::clone(&took);
    runtime.spawn(async move {
        let replies = Arc::new(Replies::new());
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&replies), Arc::clone(&took)));
        }
    });
    let workspace = dir.join("judging");
    let file = data::transcripts(&dir.join("1000.jsonl"), CELLS);
    data::workspace(&workspace, &file);
    std::fs::write(
        workspace.join("dicta.yaml"),
        format!(
            "transcripts: [{}]\nrubrics: [judged.yaml]\nruns: runs\njudge: plain\njudges:\n  plain: {{ provider: openai, \
             base_url: 'http://127.0.0.1:{port}/v1', model: m }}\n  tool: {{ provider: openai, base_url: \
             'http://127.0.0.1:{port}/v1', model: m, tools: [fetch_url] }}\n",
            file.display()
        ),
    )
    .expect("written");
    std::fs::write(
        workspace.join("judged.yaml"),
        "id: judged\nevals:\n  - { id: polite, type: llm_judge, params: { criteria: The answer is polite. } }\n",
    )
    .expect("written");
    for (judge, at_once) in [("plain", 20), ("plain", 200), ("tool", 20), ("tool", 200)] {
        for n in 1..=3 {
            let j = at_once.to_string();
            let run = dicta(
                &[
                    "run",
                    "-q",
                    "--format",
                    "jsonl",
                    "--no-cache",
                    "--judge",
                    judge,
                    "-j",
                    &j,
                ],
                &workspace,
                None,
            );
            let ideal = needed.swap(0, Ordering::SeqCst) as f64 / 1e6 / f64::from(at_once);
            let over = 100.0 * (run.wall.as_secs_f64() / ideal - 1.0);
            run.print(&format!(
                "{CELLS} cells, {judge}, {at_once} at once, run {n}: ideal {ideal:.2} s, {over:+.1}%"
            ));
        }
    }
}

/// The replies that the server may send.
struct Replies {
    text: Vec<u8>,
    fetch: Vec<u8>,
    verdict: Vec<u8>,
}

impl Replies {
    fn new() -> Self {
        let verdict =
            r#"{\"citations\":[],\"reasoning\":\"It is polite.\",\"passed\":true,\"score\":1.0}"#;
        let call = |name: &str, arguments: &str| {
            format!(
                r#"{{"role":"assistant","tool_calls":[{{"index":0,"id":"call_1","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}]}}"#
            )
        };
        Self {
            text: reply(
                &format!(r#"{{"role":"assistant","content":"{verdict}"}}"#),
                "stop",
            ),
            // The guard refuses it without a packet: what is measured is a round of the trace, not a fetch.
            fetch: reply(
                &call("fetch_url", r#"{\"url\":\"https://localhost/\"}"#),
                "tool_calls",
            ),
            verdict: reply(&call("submit_verdict", verdict), "tool_calls"),
        }
    }

    fn to(&self, request: &[u8]) -> &[u8] {
        let holds = |what: &str| memchr::memmem::find(request, what.as_bytes()).is_some();
        match (holds(r#""submit_verdict""#), holds(r#""role":"tool""#)) {
            (false, _) => &self.text,
            (true, false) => &self.fetch,
            (true, true) => &self.verdict,
        }
    }
}

fn reply(delta: &str, finish: &str) -> Vec<u8> {
    let chunk = |delta: &str, finish: &str| {
        format!(
            r#"data: {{"id":"c","choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}"#
        ) + "\n\n"
    };
    let mut sse = chunk(delta, "null");
    sse += &chunk("{}", &format!("\"{finish}\""));
    sse += "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":2000,\"completion_tokens\":40}}\n\n";
    sse += "data: [DONE]\n\n";
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        sse.len()
    );
    (head + &sse).into_bytes()
}

async fn serve(mut stream: TcpStream, replies: Arc<Replies>, took: Arc<AtomicU64>) {
    let mut buffer = Vec::new();
    loop {
        let Some(length) = request_length(&buffer) else {
            let mut more = [0; 16 * 1024];
            match stream.read(&mut more).await {
                Ok(n) if n > 0 => buffer.extend_from_slice(&more[..n]),
                _ => return,
            }
            continue;
        };
        let came = Instant::now();
        let reply = replies.to(&buffer[..length]);
        buffer.drain(..length);
        tokio::time::sleep(REPLY).await;
        if stream.write_all(reply).await.is_err() {
            return;
        }
        let micros = u64::try_from(came.elapsed().as_micros()).unwrap_or(u64::MAX);
        took.fetch_add(micros, Ordering::SeqCst);
    }
}

/// The length of the first request, once all of it is there.
fn request_length(buffer: &[u8]) -> Option<usize> {
    let head = buffer.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&buffer[..head])
        .ok()?
        .to_ascii_lowercase();
    let body = text.lines().find_map(|l| {
        l.strip_prefix("content-length:")?
            .trim()
            .parse::<usize>()
            .ok()
    })?;
    (buffer.len() >= head + body).then_some(head + body)
}
