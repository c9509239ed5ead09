//! A model server on loopback that passes everything, one connection at a time per thread. Doesn't misbehave.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

const VERDICT: &str =
    r#"{\"citations\":[],\"reasoning\":\"REASONING\",\"passed\":true,\"score\":0.9}"#;

/// Serves until the campaign ends.
pub(crate) struct ModelServer {
    address: SocketAddr,
}

impl ModelServer {
    pub(crate) fn start() -> Self {
        Self::start_repeating("It greets the user.")
    }

    /// A server whose verdicts have this reasoning.
    pub(crate) fn start_repeating(reasoning: &str) -> Self {
        let verdict = VERDICT.replace("REASONING", reasoning);
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A killed client closes its connection in the middle of a request.
                let verdict = verdict.clone();
                std::thread::spawn(move || drop(serve(&stream, &verdict)));
            }
        });
        Self { address }
    }

    /// The end of a dicta.yaml whose judge is this server.
    pub(crate) fn config(&self) -> String {
        format!(
            "judge: m\njudges:\n  m: {{ provider: openai, base_url: 'http://{}/v1', model: m }}\n",
            self.address
        )
    }
}

fn serve(stream: &TcpStream, verdict: &str) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let half = verdict.len() / 2;
        let chunk = |delta: &str, reason: &str| {
            format!(
                "data: {{\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{delta}\"}},\"finish_reason\":{reason}}}]}}\n\n"
            )
        };
        let events = [
            chunk(&verdict[..half], "null"),
            chunk(&verdict[half..], "null"),
            chunk("", "\"stop\""),
            "data: [DONE]\n\n".to_owned(),
        ]
        .concat();
        let mut stream = stream;
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{events}",
            events.len()
        )?;
    }
}
