//! A model server on loopback. A test scripts its replies and failures.
//!
//! The server speaks OpenAI chat completions (`…/chat/completions`), Gemini (`…:streamGenerateContent`,
//! `…:generateContent`), Anthropic Messages (`…/messages`, `…RawPredict`) and OpenAI Responses (`…/responses`). It streams
//! a reply if the request asks for that. It uses HTTP/1.1 on its own thread, so blocking tests can use it, too.
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
//! The server sends the replies in order; `WireServer::answering` calls a closure instead. After the last reply, it
//! answers 418, which dicta does not retry. As real servers do, it answers 500 to a past call whose arguments are not JSON,
//! independent of the script. The server never sleeps: slow parts wait for [`Pause::go`]. Only recorded samples use
//! `chunk_delay`.

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

/// The protocol of `base_url`. The server recognizes the protocol of each request by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Openai,
    Gemini,
    Anthropic,
    Responses,
}

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The number of the request, counted from 0.
    pub(crate) number: usize,
    /// The path with its query.
    pub(crate) path: String,
    /// The headers, with names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the model of the body, or of a path such as `/models/NAME:streamGenerateContent`.
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

    /// Returns the body as JSON, or null if it is not JSON.
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

    /// Returns the names of the declared functions.
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

    /// Returns true if the body contains this text.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        self.body.contains(text)
    }
}

/// A point at which a reply waits until the test releases it.
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

    /// Returns when the server waits at this point.
    pub(crate) async fn reached(&self) {
        let mut seen = self.state.subscribe();
        seen.wait_for(|(reached, _)| *reached)
            .await
            .expect("the pause holds its sender");
    }

    /// Releases the server, now or when it reaches this point.
    pub(crate) fn go(&self) {
        self.state.send_modify(|(_, go)| *go = true);
    }

    /// Waits at this point until the test releases the server.
    async fn wait(&self) {
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

/// The server. It stops when it is dropped.
pub(crate) struct WireServer {
    address: SocketAddr,
    dialect: Dialect,
    shared: Arc<Shared>,
    _stop: oneshot::Sender<()>,
}

impl WireServer {
    /// Starts an OpenAI server with these replies.
    pub(crate) fn openai(replies: Vec<Reply>) -> Self {
        Self::scripted(Dialect::Openai, replies)
    }

    /// Starts a Gemini server with these replies.
    pub(crate) fn gemini(replies: Vec<Reply>) -> Self {
        Self::scripted(Dialect::Gemini, replies)
    }

    /// Starts an Anthropic server with these replies.
    pub(crate) fn anthropic(replies: Vec<Reply>) -> Self {
        Self::scripted(Dialect::Anthropic, replies)
    }

    /// Starts a server of OpenAI's Responses API with these replies.
    pub(crate) fn responses(replies: Vec<Reply>) -> Self {
        Self::scripted(Dialect::Responses, replies)
    }

    /// Starts a server of this dialect with these replies.
    pub(crate) fn scripted(dialect: Dialect, replies: Vec<Reply>) -> Self {
        let left = Mutex::new(VecDeque::from(replies));
        Self::answering(dialect, move |_| {
            let next = left.lock().expect("no test panics here").pop_front();
            next.unwrap_or_else(|| {
                Reply::status(418).body(r#"{"error":{"message":"the script has run out"}}"#)
            })
        })
    }

    /// Starts a server that calls a closure for each reply.
    pub(crate) fn answering(
        dialect: Dialect,
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::answering_at(free, dialect, script)
    }

    /// Starts a server at this address, for example that of a server that was dropped.
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

    /// Returns the `base_url` for a judge of this server.
    pub(crate) fn base_url(&self) -> String {
        match self.dialect {
            Dialect::Openai | Dialect::Responses => format!("http://{}/v1", self.address),
            Dialect::Gemini | Dialect::Anthropic => format!("http://{}", self.address),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns all requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().expect("no panic").clone()
    }

    /// Returns when no connection is open. A test then counts the requests after a cancellation.
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
            // Some tests use a client that closes the connection early.
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
    /// Returns true if the client asks for a streamed reply.
    pub(crate) fn wants_stream(&self) -> bool {
        match self.dialect() {
            Dialect::Gemini => self.path.contains("streamGenerateContent"),
            Dialect::Openai | Dialect::Anthropic | Dialect::Responses => {
                self.json()["stream"] == json!(true)
            }
        }
    }
}
