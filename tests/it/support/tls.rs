//! An https server on loopback with its own certificate authority. A test scripts its responses.
//!
//! ```ignore
//! let server = TlsServer::serving(&["wiki.test"], vec![
//!     ("/", Response::page("text/html", "<p>hello")),
//!     ("/old", Response::redirect(301, "/")),
//! ]);
//! // … a fetch_url with allow_hosts: ["wiki.test:PORT"] and ca_file: server.ca_file() …
//! assert_eq!(server.accepts(), 2);
//! ```
//!
//! The server speaks HTTP/1.1 on its own thread. It accepts one request per connection, so a test counts hops as
//! connections. It never sleeps: slow parts wait for a [`Hold`].

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, oneshot};
use tokio_rustls::TlsAcceptor;

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The host header without its port.
    pub(crate) host: String,
    /// The path with its query.
    pub(crate) path: String,
    /// The headers, with names in lower case.
    pub(crate) headers: Vec<(String, String)>,
}

/// A point at which a response waits until the test releases it. It works for one or several responses.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    reached: Notify,
    go: Notify,
}

impl Hold {
    /// Returns when the server waits at this point.
    pub(crate) async fn reached(&self) {
        self.reached.notified().await;
    }

    /// Releases the server, now or when it reaches this point.
    pub(crate) fn go(&self) {
        self.go.notify_one();
    }
}

/// A part of a response.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Bytes(Vec<u8>),
    Hold(Arc<Hold>),
    /// Bytes that the server repeats until the client closes the connection.
    Forever(Vec<u8>),
}

/// The response to a request.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    head: String,
    body: Vec<u8>,
    /// Steps that replace head and body.
    raw: Option<Vec<Step>>,
}

impl Response {
    pub(crate) fn status(status: u16) -> Self {
        Self {
            head: format!("HTTP/1.1 {status} Scripted\r\nconnection: close\r\n"),
            body: Vec::new(),
            raw: None,
        }
    }

    /// Returns a response with status 200 and this body.
    pub(crate) fn page(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::status(200)
            .header("content-type", content_type)
            .body(body)
    }

    pub(crate) fn redirect(status: u16, to: &str) -> Self {
        Self::status(status).header("location", to)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head += name;
        self.head += ": ";
        self.head += value;
        self.head += "\r\n";
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Returns a response that consists of these steps, including the status line.
    pub(crate) fn raw(steps: Vec<Step>) -> Self {
        Self {
            raw: Some(steps),
            ..Self::status(200)
        }
    }

    async fn write(self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let steps = self.raw.unwrap_or_else(|| {
            let length = format!("content-length: {}\r\n\r\n", self.body.len());
            vec![Step::Bytes(
                [self.head.into_bytes(), length.into_bytes(), self.body].concat(),
            )]
        });
        for step in steps {
            match step {
                Step::Bytes(bytes) => stream.write_all(&bytes).await?,
                Step::Hold(hold) => {
                    stream.flush().await?;
                    hold.reached.notify_one();
                    hold.go.notified().await;
                }
                Step::Forever(bytes) => loop {
                    stream.write_all(&bytes).await?;
                },
            }
        }
        stream.shutdown().await
    }
}

type Answering = Box<dyn Fn(&Request) -> Response + Send + Sync>;

struct Shared {
    answer: Answering,
    accepts: AtomicUsize,
    requests: Mutex<Vec<Request>>,
}

/// The server. It stops when it is dropped.
pub(crate) struct TlsServer {
    address: SocketAddr,
    ca: NamedTempFile,
    shared: Arc<Shared>,
    _stop: oneshot::Sender<()>,
}

impl TlsServer {
    /// Starts a server that answers these paths, and 404 to any other. Its certificate is for `hosts`: names, or addresses
    /// as text.
    pub(crate) fn serving(hosts: &[&str], routes: Vec<(&str, Response)>) -> Self {
        let routes: Vec<(String, Response)> = routes
            .into_iter()
            .map(|(path, response)| (path.to_owned(), response))
            .collect();
        Self::answering(hosts, move |request| {
            let found = routes.iter().find(|(path, _)| *path == request.path);
            found.map_or_else(|| Response::status(404), |(_, response)| response.clone())
        })
    }

    /// Starts a server that calls a closure for each response.
    pub(crate) fn answering(
        hosts: &[&str],
        answer: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Self {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self::at(any_port, hosts, answer).expect("a port of loopback")
    }

    /// Starts such a server at an address. Fails if it may not listen there.
    pub(crate) fn at(
        address: SocketAddr,
        hosts: &[&str],
        answer: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (config, ca_pem) = certificates(hosts).expect("certificates can be made");
        let ca = NamedTempFile::new()?;
        std::fs::write(ca.path(), ca_pem)?;
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            accepts: AtomicUsize::new(0),
            requests: Mutex::default(),
        });
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = accept(listener, config, serving) => {}
                }
            });
        });
        Ok(Self {
            address,
            ca,
            shared,
            _stop: stop,
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the file with the certificate of the server's authority, as PEM.
    pub(crate) fn ca_file(&self) -> &Path {
        self.ca.path()
    }

    /// Returns the number of accepted connections, including those without a request.
    pub(crate) fn accepts(&self) -> usize {
        self.shared.accepts.load(Ordering::SeqCst)
    }

    /// Returns all requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().expect("no panic").clone()
    }
}

fn certificates(hosts: &[&str]) -> Result<(ServerConfig, String), Box<dyn std::error::Error>> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name = DistinguishedName::new();
    authority
        .distinguished_name
        .push(DnType::CommonName, "dicta tests");
    let authority_key = KeyPair::generate()?;
    let ca_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate()?;
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let leaf = CertificateParams::new(hosts)?.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)?;
    Ok((config, ca_pem))
}

async fn accept(listener: TcpListener, config: ServerConfig, shared: Arc<Shared>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a plain socket");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    while let Ok((stream, _)) = listener.accept().await {
        shared.accepts.fetch_add(1, Ordering::SeqCst);
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            // Some tests use a client that trusts no authority, or that closes the connection early.
            if let Ok(mut stream) = acceptor.accept(stream).await
                && let Ok(Some(request)) = read_request(&mut stream).await
            {
                let response = (shared.answer)(&request);
                shared.requests.lock().expect("no panic").push(request);
                let _gone = response.write(&mut stream).await;
            }
        });
    }
}

async fn read_request(
    stream: &mut (impl tokio::io::AsyncRead + Unpin),
) -> io::Result<Option<Request>> {
    let mut head = Vec::new();
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    }
    let head = String::from_utf8_lossy(&head);
    let method = head.split(' ').next().unwrap_or_default().to_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let host = headers.iter().find(|(name, _)| name == "host");
    let host = host.map_or("", |(_, host)| host.as_str());
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    Ok(Some(Request {
        method,
        host: host.to_owned(),
        path,
        headers,
    }))
}
