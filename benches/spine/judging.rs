//! 500 judge cells against a loopback server that takes 100 ms a reply, 20 at once. The ideal is the time that the server
//! took for its replies, from the last byte of a request on, as it measured it itself, over 20: 2.5 s and what its timer
//! adds.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::data;
use crate::measure::dicta;

const CELLS: usize = 500;
const AT_ONCE: usize = 20;
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
        let body: Arc<[u8]> = reply().into();
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&body), Arc::clone(&took)));
        }
    });
    let workspace = dir.join("judging");
    let file = data::transcripts(&dir.join("500.jsonl"), CELLS);
    data::workspace(&workspace, &file);
    std::fs::write(
        workspace.join("dicta.yaml"),
        format!(
            "transcripts: [{}]\nrubrics: [judged.yaml]\nruns: runs\njudge: mock\njudges:\n  mock: {{ provider: openai, \
             base_url: 'http://127.0.0.1:{port}/v1', model: m }}\nlimits: {{ concurrency: {AT_ONCE} }}\n",
            file.display()
        ),
    )
    .expect("written");
    std::fs::write(
        workspace.join("judged.yaml"),
        "id: judged\nevals:\n  - { id: polite, type: llm_judge, params: { criteria: The answer is polite. } }\n",
    )
    .expect("written");
    for n in 1..=3 {
        let run = dicta(
            &["run", "-q", "--format", "jsonl", "--no-cache"],
            &workspace,
            None,
        );
        let ideal = needed.swap(0, Ordering::SeqCst) as f64 / 1e6 / AT_ONCE as f64;
        let over = 100.0 * (run.wall.as_secs_f64() / ideal - 1.0);
        run.print(&format!(
            "{CELLS} cells, {AT_ONCE} at once, run {n}: ideal {ideal:.2} s, {over:+.1} %"
        ));
    }
}

fn reply() -> Vec<u8> {
    let verdict =
        r#"{\"citations\":[],\"reasoning\":\"It is polite.\",\"passed\":true,\"score\":1.0}"#;
    let chunk = |delta: &str, finish: &str| {
        format!(
            r#"data: {{"id":"c","choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}"#
        ) + "\n\n"
    };
    let mut sse = chunk(
        &format!(r#"{{"role":"assistant","content":"{verdict}"}}"#),
        "null",
    );
    sse += &chunk("{}", r#""stop""#);
    sse += "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":2000,\"completion_tokens\":40}}\n\n";
    sse += "data: [DONE]\n\n";
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        sse.len()
    );
    (head + &sse).into_bytes()
}

async fn serve(mut stream: TcpStream, reply: Arc<[u8]>, took: Arc<AtomicU64>) {
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
        buffer.drain(..length);
        let came = Instant::now();
        tokio::time::sleep(REPLY).await;
        if stream.write_all(&reply).await.is_err() {
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
