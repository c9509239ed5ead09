//! A model server on loopback that says what a test tells it to, and misbehaves on command.
//!
//! Speaks OpenAI chat completions (`…/chat/completions`), Gemini (`…:streamGenerateContent`, `…:generateContent`) and
//! Anthropic Messages (`…/messages`, `…RawPredict`) and OpenAI Responses (`…/responses`), streamed or whole as the request
//! asks. Plain HTTP/1.1 on a thread of its own, so that blocking tests can use it too.
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

mod anthropic;
mod http;
mod render;
mod reply;
mod responses;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

pub(crate) use reply::Reply;

/// Which protocol `base_url` is for. The server itself looks at each request's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Openai,
    Gemini,
    Anthropic,
    Responses,
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

    /// The model of the body, or of a path such as `/models/NAME:streamGenerateContent`.
    pub(crate) fn model(&self) -> String {
        let of_path = || {
            let (_, rest) = self.path.split_once("/models/")?;
            rest.split([':', '?']).next().map(str::to_owned)
        };
        let body = self.json();
        let of_body = body["model"].as_str().map(str::to_owned);
        of_body
            .or_else(of_path)
            .unwrap_or_else(|| "scripted".to_owned())
    }

    /// The body as JSON; null where it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn dialect(&self) -> Dialect {
        if self.path.contains("enerateContent") {
            Dialect::Gemini
        } else if self.path.ends_with("/messages") || self.path.contains("awPredict") {
            Dialect::Anthropic
        } else if self.path.ends_with("/responses") {
            Dialect::Responses
        } else {
            Dialect::Openai
        }
    }

    /// Names of the declared functions.
    pub(crate) fn tools(&self) -> Vec<String> {
        let body = self.json();
        let tools = match self.dialect() {
            Dialect::Openai | Dialect::Anthropic | Dialect::Responses => body["tools"].clone(),
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

    /// An Anthropic server with these replies.
    pub(crate) fn anthropic(replies: Vec<Reply>) -> Self {
        Self::scripted(Dialect::Anthropic, replies)
    }

    /// An OpenAI server with these replies that is asked for Responses.
    pub(crate) fn responses(replies: Vec<Reply>) -> Self {
        Self::scripted(Dialect::Responses, replies)
    }

    /// A server of this dialect with these replies.
    pub(crate) fn scripted(dialect: Dialect, replies: Vec<Reply>) -> Self {
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
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::answering_at(free, dialect, script)
    }

    /// A server at this address, for example that of a server that was dropped.
    pub(crate) fn answering_at(
        address: SocketAddr,
        dialect: Dialect,
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            script: Box::new(script),
            requests: Mutex::default(),
            connections: watch::Sender::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let listener = std::net::TcpListener::bind(address).expect("loopback");
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
            Dialect::Openai | Dialect::Responses => format!("http://{}/v1", self.address),
            Dialect::Gemini | Dialect::Anthropic => format!("http://{}", self.address),
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
    while let Some((path, headers, body)) = http::read_request(&mut stream, &mut buffer).await? {
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
        let reply = if http::has_broken_arguments(&request) {
            Reply::status(500)
                .body(r#"{"error":{"code":500,"message":"past arguments are not JSON"}}"#)
        } else {
            (shared.script)(&request)
        };
        if !http::write_reply(&mut stream, &request, &reply).await? {
            return Ok(());
        }
        if let Some(last_words) = &reply.last_words {
            let _unrecorded = http::read_request(&mut stream, &mut buffer).await?;
            stream.write_all(last_words.as_bytes()).await?;
            return Ok(());
        }
    }
    Ok(())
}

impl Request {
    /// Whether the reply is to be streamed.
    pub(crate) fn wants_stream(&self) -> bool {
        match self.dialect() {
            Dialect::Gemini => self.path.contains("streamGenerateContent"),
            Dialect::Openai | Dialect::Anthropic | Dialect::Responses => {
                self.json()["stream"] == json!(true)
            }
        }
    }
}
