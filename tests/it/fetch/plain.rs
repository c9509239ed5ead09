//! A plain http server on loopback: what an opened origin may be, and a cheap place to be redirected from.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use dicta::clock::BoxFuture;
use dicta::model::Hop;
use dicta::net::HopObserver;

/// A request's head and body as they came.
pub(crate) type Heard = Arc<Mutex<Vec<String>>>;

/// Answers every request with what the closure makes of it, until the test ends. One request a connection.
pub(crate) fn serve(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> (u16, Heard) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
    let port = listener.local_addr().expect("bound").port();
    let heard = Heard::default();
    let keep = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let request = read(&mut stream);
            let reply = answer(&request);
            keep.lock().expect("no panic").push(request);
            let _gone = stream.write_all(&reply);
        }
    });
    (port, heard)
}

/// A reply with this status, these header lines and this body.
pub(crate) fn reply(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn read(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&all).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split_once("content-length: ").map_or(0, |(_, rest)| {
                let line = rest.lines().next().unwrap_or_default();
                line.trim().parse().unwrap_or(0)
            });
            if body.len() >= length {
                break;
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(n) => all.extend_from_slice(&piece[..n]),
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// A listener that must never be called on; `None` where this machine does not allow it.
pub(crate) fn canary(address: IpAddr, port: u16) -> Option<TcpListener> {
    let listener = TcpListener::bind(SocketAddr::new(address, port)).ok()?;
    listener.set_nonblocking(true).ok()?;
    Some(listener)
}

/// Keeps the events of the guard.
#[derive(Default)]
pub(crate) struct RecordedHops(pub(crate) Mutex<Vec<Hop>>);

impl HopObserver for RecordedHops {
    fn record_hop(&self, hop: Hop) -> BoxFuture<'_, ()> {
        self.0.lock().expect("no panic").push(hop);
        Box::pin(std::future::ready(()))
    }
}
