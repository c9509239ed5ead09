//! A model server on loopback that says what a test tells it to, and misbehaves on command.
//!
//! Speaks OpenAI chat completions (`…/chat/completions`) and Gemini (`…:streamGenerateContent`, `…:generateContent`),
//! streamed or whole as the request asks. Plain HTTP/1.1 on a thread of its own, so that blocking tests can use it too.
//!
//! ```ignore
//! let server = WireServer::openai(vec![
//!     Reply::status(429).header("retry-after", "1"),
//!     Reply::call("fetch_url", json!({"url": "https://a.example"})),
//!     Reply::verdict(json!({"passed": true, "score": 1.0})),
//! ]);
//! // … a judge with base_url: server.base_url() …
//! assert_eq!(server.requests().len(), 3);
//! ```
//!
//! Replies are given in order; `WireServer::answering` asks a closure instead. A list that has run out answers 418, which
//! nobody retries. As real servers do, it answers 500 to any past call whose arguments are not JSON, whatever the script.
//! It never sleeps on its own: slow parts wait for [`Pause::go`]; `chunk_delay` is for recorded samples.

#![expect(dead_code, reason = "each test module uses its own part of the kit")]

mod render;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

/// Which protocol `base_url` is for. The server itself looks at each request's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Openai,
    Gemini,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// From 0.
    pub(crate) number: usize,
    /// With its query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null where it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn dialect(&self) -> Dialect {
        if self.path.contains("enerateContent") {
            Dialect::Gemini
        } else {
            Dialect::Openai
        }
    }

    /// Names of the declared functions.
    pub(crate) fn tools(&self) -> Vec<String> {
        let body = self.json();
        let tools = match self.dialect() {
            Dialect::Openai => body["tools"].clone(),
            Dialect::Gemini => body["tools"][0]["functionDeclarations"].clone(),
        };
        let names = tools.as_array().into_iter().flatten();
        let names = names.map(|tool| {
            let name = tool.pointer("/function/name").or(tool.get("name"));
            name.and_then(Value::as_str).unwrap_or_default().to_owned()
        });
        names.collect()
    }

    /// Whether this text stands anywhere in the body.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        self.body.contains(text)
    }
}

/// A place where a reply stands still until the test lets it go.
#[derive(Debug, Clone)]
pub(crate) struct Pause {
    state: Arc<watch::Sender<(bool, bool)>>,
}

impl Pause {
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::new(watch::Sender::new((false, false))),
        }
    }

    /// Returns once the server stands here.
    pub(crate) async fn reached(&self) {
        let mut seen = self.state.subscribe();
        seen.wait_for(|(reached, _)| *reached)
            .await
            .expect("the pause holds its sender");
    }

    /// Lets the server go on, now or when it comes.
    pub(crate) fn go(&self) {
        self.state.send_modify(|(_, go)| *go = true);
    }

    async fn stand(&self) {
        self.state.send_modify(|(reached, _)| *reached = true);
        let mut seen = self.state.subscribe();
        seen.wait_for(|(_, go)| *go)
            .await
            .expect("the pause holds its sender");
    }
}

/// A function call the model makes.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// As sent, valid or not (Gemini: must be JSON).
    pub(crate) arguments: String,
    /// Byte positions at which the arguments are split over deltas; empty: by `piece_len`.
    pub(crate) split_at: Vec<usize>,
}

/// What is said.
#[derive(Debug, Clone)]
enum Say {
    /// A turn of a model, in the request's dialect.
    Turn,
    /// JSON that is a verdict: a call of `submit_verdict` where the request declares it, else text.
    Verdict(Value),
    /// These bytes.
    Raw(String),
}

/// One scripted reply. The makers begin it, the other methods change it.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    say: Say,
    status: u16,
    headers: Vec<(String, String)>,
    pub(crate) thought: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) finish: Option<String>,
    pub(crate) signature: Option<String>,
    pub(crate) usage: Option<(u64, u64)>,
    /// Raw text sent after the content, in the place of finish and end mark.
    pub(crate) tail: Option<String>,
    pub(crate) error_tail: Option<Value>,
    pub(crate) done: bool,
    pub(crate) piece_len: usize,
    endless: bool,
    split_every: Option<usize>,
    cut_at: Option<usize>,
    end_at: Option<usize>,
    pause_before: Vec<(usize, Pause)>,
    chunk_delay: Duration,
}

impl Reply {
    fn new(say: Say) -> Self {
        Self {
            say,
            status: 200,
            headers: Vec::new(),
            thought: String::new(),
            text: String::new(),
            calls: Vec::new(),
            finish: None,
            signature: None,
            usage: Some((100, 20)),
            tail: None,
            error_tail: None,
            done: true,
            piece_len: 12,
            endless: false,
            split_every: None,
            cut_at: None,
            end_at: None,
            pause_before: Vec::new(),
            chunk_delay: Duration::ZERO,
        }
    }

    /// A text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::new(Say::Turn)
        }
    }

    /// A function call with valid arguments.
    pub(crate) fn call(name: &str, arguments: impl Into<Value>) -> Self {
        Self::raw_call(name, arguments.into().to_string())
    }

    /// A function call with these arguments, broken ones too.
    pub(crate) fn raw_call(name: &str, arguments: impl Into<String>) -> Self {
        Self::new(Say::Turn).and_raw_call(name, arguments)
    }

    /// A verdict: `submit_verdict` where the request declares it, else JSON as text.
    pub(crate) fn verdict(verdict: impl Into<Value>) -> Self {
        Self::new(Say::Verdict(verdict.into()))
    }

    /// A status with an error body in the dialect's shape.
    pub(crate) fn status(status: u16) -> Self {
        let error = json!({"error": {"code": status, "message": format!("scripted {status}")}});
        Self {
            status,
            ..Self::new(Say::Raw(error.to_string()))
        }
    }

    /// 200 and exactly this body, as an event stream.
    pub(crate) fn raw(body: impl Into<String>) -> Self {
        Self::new(Say::Raw(body.into()))
    }

    /// Another body for a status or a raw reply.
    pub(crate) fn body(mut self, body: impl Into<String>) -> Self {
        self.say = Say::Raw(body.into());
        self
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Text before the calls.
    pub(crate) fn saying(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// Thinking before the text.
    pub(crate) fn thinking(mut self, thought: impl Into<String>) -> Self {
        self.thought = thought.into();
        self
    }

    /// One more call.
    pub(crate) fn and_call(self, name: &str, arguments: impl Into<Value>) -> Self {
        self.and_raw_call(name, arguments.into().to_string())
    }

    /// One more call, with these arguments.
    pub(crate) fn and_raw_call(mut self, name: &str, arguments: impl Into<String>) -> Self {
        self.calls.push(Call {
            name: name.to_owned(),
            arguments: arguments.into(),
            split_at: Vec::new(),
        });
        self
    }

    /// Splits the last call's arguments at these byte positions.
    pub(crate) fn split_args_at(mut self, at: &[usize]) -> Self {
        if let Some(call) = self.calls.last_mut() {
            call.split_at = at.to_vec();
        }
        self
    }

    /// Gemini: a thought signature on the first call (or the text).
    pub(crate) fn signed(mut self, signature: &str) -> Self {
        self.signature = Some(signature.to_owned());
        self
    }

    /// Another finish reason, in the dialect's spelling; empty: none at all.
    pub(crate) fn finish(mut self, reason: &str) -> Self {
        self.finish = Some(reason.to_owned());
        self
    }

    pub(crate) fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Some((input, output));
        self
    }

    pub(crate) fn no_usage(mut self) -> Self {
        self.usage = None;
        self
    }

    /// No `[DONE]`.
    pub(crate) fn no_done(mut self) -> Self {
        self.done = false;
        self
    }

    /// After the content comes this text, then the end.
    pub(crate) fn then_raw(mut self, text: impl Into<String>) -> Self {
        self.tail = Some(text.into());
        self
    }

    /// After the content comes an event that is half a JSON object.
    pub(crate) fn then_malformed(self) -> Self {
        self.then_raw("data: {\"choices\":[{\"delta\":{\"content\":\n\n")
    }

    /// After the content comes an error: a frame (OpenAI), or a bare JSON object outside SSE (Gemini).
    pub(crate) fn then_error(mut self, error: Value) -> Self {
        self.error_tail = Some(error);
        self
    }

    /// The text never ends.
    pub(crate) fn endless(mut self) -> Self {
        self.endless = true;
        self
    }

    /// Size of the pieces in which text and arguments are streamed, in characters.
    pub(crate) fn piece_len(mut self, chars: usize) -> Self {
        self.piece_len = chars.max(1);
        self
    }

    /// Sends the body in pieces of this many bytes, wherever that cuts.
    pub(crate) fn split_every(mut self, bytes: usize) -> Self {
        self.split_every = Some(bytes.max(1));
        self
    }

    /// Breaks the connection after this many bytes of the body.
    pub(crate) fn cut_at(mut self, bytes: usize) -> Self {
        self.cut_at = Some(bytes);
        self
    }

    /// Ends the body after this many bytes, as if it were complete.
    pub(crate) fn end_at(mut self, bytes: usize) -> Self {
        self.end_at = Some(bytes);
        self
    }

    /// Stands still before this piece of the body (from 0: before its first; headers are out by then).
    pub(crate) fn pause_before(mut self, piece: usize, pause: &Pause) -> Self {
        self.pause_before.push((piece, pause.clone()));
        self
    }

    /// Real time between pieces: for recorded samples only.
    pub(crate) fn chunk_delay(mut self, delay: Duration) -> Self {
        self.chunk_delay = delay;
        self
    }
}

type Answering = Box<dyn Fn(&Request) -> Reply + Send + Sync>;

struct Shared {
    script: Answering,
    requests: Mutex<Vec<Request>>,
    connections: watch::Sender<usize>,
}

/// The server. Stops when dropped.
pub(crate) struct WireServer {
    address: SocketAddr,
    dialect: Dialect,
    shared: Arc<Shared>,
    _stop: oneshot::Sender<()>,
}

impl WireServer {
    /// An OpenAI server with these replies.
    pub(crate) fn openai(replies: Vec<Reply>) -> Self {
        Self::scripted(Dialect::Openai, replies)
    }

    /// A Gemini server with these replies.
    pub(crate) fn gemini(replies: Vec<Reply>) -> Self {
        Self::scripted(Dialect::Gemini, replies)
    }

    fn scripted(dialect: Dialect, replies: Vec<Reply>) -> Self {
        let left = Mutex::new(VecDeque::from(replies));
        Self::answering(dialect, move |_| {
            let next = left.lock().expect("no test panics here").pop_front();
            next.unwrap_or_else(|| {
                Reply::status(418).body(r#"{"error":{"message":"the script has run out"}}"#)
            })
        })
    }

    /// A server that asks a closure for each reply.
    pub(crate) fn answering(
        dialect: Dialect,
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            script: Box::new(script),
            requests: Mutex::default(),
            connections: watch::Sender::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
        listener.set_nonblocking(true).expect("a plain socket");
        let address = listener.local_addr().expect("bound");
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a plain socket");
                tokio::select! {
                    _ = stopped => {}
                    () = accept(listener, serving) => {}
                }
            });
        });
        Self {
            address,
            dialect,
            shared,
            _stop: stop,
        }
    }

    /// What a judge's `base_url` is set to.
    pub(crate) fn base_url(&self) -> String {
        match self.dialect {
            Dialect::Openai => format!("http://{}/v1", self.address),
            Dialect::Gemini => format!("http://{}", self.address),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().expect("no panic").clone()
    }

    /// Returns once no connection is open: what is left after a cancel is what a test counts.
    pub(crate) async fn all_closed(&self) {
        let mut open = self.shared.connections.subscribe();
        open.wait_for(|n| *n == 0)
            .await
            .expect("the server holds its sender");
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            shared.connections.send_modify(|n| *n += 1);
            // A client that went away is what some tests are about.
            let _gone = serve(stream, &shared).await;
            shared.connections.send_modify(|n| *n -= 1);
        });
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some((path, headers, body)) = read_request(&mut stream, &mut buffer).await? {
        let request = {
            let mut all = shared.requests.lock().expect("no panic");
            let request = Request {
                number: all.len(),
                path,
                headers,
                body,
            };
            all.push(request.clone());
            request
        };
        let reply = if has_broken_arguments(&request) {
            Reply::status(500)
                .body(r#"{"error":{"code":500,"message":"past arguments are not JSON"}}"#)
        } else {
            (shared.script)(&request)
        };
        if !write_reply(&mut stream, &request, &reply).await? {
            return Ok(());
        }
    }
    Ok(())
}

type Head = (String, Vec<(String, String)>, String);

async fn read_request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> std::io::Result<Option<Head>> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, n)| n.parse().ok()).unwrap_or(0);
    let body_at = end + 4;
    while buffer.len() < body_at + length {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = String::from_utf8_lossy(&buffer[body_at..body_at + length]).into_owned();
    buffer.drain(..body_at + length);
    Ok(Some((path, headers, body)))
}

fn has_broken_arguments(request: &Request) -> bool {
    let body = request.json();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let calls = messages.iter().filter_map(|m| m["tool_calls"].as_array());
    calls.flatten().any(|call| {
        let arguments = call["function"]["arguments"].as_str();
        arguments.is_none_or(|text| serde_json::from_str::<Value>(text).is_err())
    })
}

/// Writes a reply; `false` if the connection must not be used again.
async fn write_reply(
    stream: &mut TcpStream,
    request: &Request,
    reply: &Reply,
) -> std::io::Result<bool> {
    let streamed = reply.status == 200 && request.wants_stream();
    let pieces = match &reply.say {
        Say::Raw(body) => vec![body.clone()],
        Say::Turn => render::pieces(request, reply),
        Say::Verdict(verdict) => render::pieces(request, &as_turn(request, reply, verdict)),
    };
    let mut pieces: Vec<Vec<u8>> = pieces.into_iter().map(String::into_bytes).collect();
    let keep = reply.cut_at.or(reply.end_at);
    if keep.is_some() || reply.split_every.is_some() {
        let mut all = pieces.concat();
        all.truncate(keep.unwrap_or(usize::MAX));
        let size = reply
            .split_every
            .unwrap_or(usize::MAX)
            .min(all.len().max(1));
        pieces = all.chunks(size).map(<[u8]>::to_vec).collect();
    }
    let kind = if streamed {
        "text/event-stream"
    } else {
        "application/json"
    };
    let mut head = format!(
        "HTTP/1.1 {} Scripted\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n",
        reply.status
    );
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    for (at, piece) in pieces.iter().enumerate() {
        for (_, pause) in reply.pause_before.iter().filter(|(n, _)| *n == at) {
            pause.stand().await;
        }
        write_chunk(stream, piece).await?;
        if !reply.chunk_delay.is_zero() {
            tokio::time::sleep(reply.chunk_delay).await;
        }
    }
    if reply.endless {
        let more = render::more(request);
        loop {
            write_chunk(stream, more.as_bytes()).await?;
        }
    }
    if reply.cut_at.is_some() {
        return Ok(false);
    }
    stream.write_all(b"0\r\n\r\n").await?;
    Ok(true)
}

fn as_turn(request: &Request, reply: &Reply, verdict: &Value) -> Reply {
    if request.tools().iter().any(|name| name == "submit_verdict") {
        reply.clone().and_call("submit_verdict", verdict.clone())
    } else {
        reply.clone().saying(verdict.to_string())
    }
}

async fn write_chunk(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    stream.write_all(&chunk).await
}

impl Request {
    /// Whether the reply is to be streamed.
    pub(crate) fn wants_stream(&self) -> bool {
        match self.dialect() {
            Dialect::Gemini => self.path.contains("streamGenerateContent"),
            Dialect::Openai => self.json()["stream"] == json!(true),
        }
    }
}
