//! The parts of HTTP/1.1 that the server needs.

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::reply::ReplyContent;
use super::{Dialect, Reply, Request, anthropic, render};

/// The path with its query, the headers with names in lower case, and the body of a request.
pub(super) type Head = (String, Vec<(String, String)>, String);

/// Reads the next request of a connection. Bytes after it stay in `buffer`. Returns `None` if the client closed the
/// connection.
pub(super) async fn read_request(
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
        if !buffer[0].is_ascii_uppercase() {
            // No method begins with such a byte, but a TLS handshake does. Servers answer 400 and close the connection.
            stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
                .await?;
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

/// Returns true if the arguments of a past call are not JSON: real servers answer 500 to such a request. In dialects that
/// have the arguments as JSON instead of text, they must be an object.
pub(super) fn has_broken_arguments(request: &Request) -> bool {
    let body = request.json();
    if request.dialect() == Dialect::Anthropic && anthropic::is_refused(&body) {
        return true;
    }
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let messages = list(&body["messages"]);
    let chat = messages.iter().flat_map(|m| list(&m["tool_calls"]));
    let chat = chat.map(|call| call["function"]["arguments"].clone());
    let items = list(&body["input"]).into_iter();
    let items = items.filter(|item| item["type"] == "function_call");
    let responses = items.map(|item| item["arguments"].clone());
    let as_text = |arguments: Value| {
        let text = arguments.as_str();
        text.is_none_or(|text| serde_json::from_str::<Value>(text).is_err())
    };
    let blocks = messages.iter().flat_map(|m| list(&m["content"]));
    let blocks = blocks.filter(|block| block["type"] == "tool_use");
    let anthropic = blocks.map(|block| block["input"].clone());
    let contents = list(&body["contents"]).into_iter();
    let parts = contents.flat_map(|content| list(&content["parts"]));
    let calls = parts.filter_map(|part| part.get("functionCall").cloned());
    let gemini = calls.filter_map(|call| call.get("args").cloned());
    chat.chain(responses).any(as_text) || anthropic.chain(gemini).any(|args| !args.is_object())
}

/// Writes a reply. Returns `false` if the connection must not be used again.
pub(super) async fn write_reply(
    stream: &mut TcpStream,
    request: &Request,
    reply: &Reply,
) -> std::io::Result<bool> {
    if reply.resets {
        // The connection closes when this function returns false. Without linger, the client gets a reset.
        stream.set_zero_linger()?;
    }
    if let Some(response) = &reply.response {
        stream.write_all(response).await?;
        return Ok(false);
    }
    if reply.silent {
        return Ok(false);
    }
    let streamed = reply.status == 200 && request.wants_stream();
    let pieces = match &reply.content {
        ReplyContent::Raw(body) => vec![body.clone()],
        ReplyContent::Turn => render::pieces(request, reply),
        ReplyContent::Verdict(verdict) => {
            render::pieces(request, &as_turn(request, reply, verdict))
        }
    };
    let mut pieces: Vec<Vec<u8>> = pieces
        .into_iter()
        .map(|piece| reply.escape_halves(piece).into_bytes())
        .collect();
    if reply.doubled {
        let twice = pieces.into_iter().flat_map(|piece| [piece.clone(), piece]);
        pieces = twice.collect();
    }
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
    let body_len: usize = pieces.iter().map(Vec::len).sum();
    let framing = match reply.length_error {
        None => "transfer-encoding: chunked".to_owned(),
        Some(error) => format!(
            "content-length: {}",
            i64::try_from(body_len).unwrap_or(i64::MAX) + error
        ),
    };
    let mut head = format!(
        "HTTP/1.1 {} Scripted\r\ncontent-type: {kind}\r\n{framing}\r\n",
        reply.status
    );
    for (name, value) in &reply.headers {
        head.extend([name.as_str(), ": ", value, "\r\n"]);
    }
    if reply.endless_head {
        stream.write_all(head.as_bytes()).await?;
        for n in 0_u64.. {
            let header = format!("x-{n}: {n}\r\n");
            stream.write_all(header.as_bytes()).await?;
        }
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    if reply.length_error.is_some() {
        stream.write_all(&pieces.concat()).await?;
        return Ok(false);
    }
    for (at, piece) in pieces.iter().enumerate() {
        for (_, pause) in reply.pause_before.iter().filter(|(n, _)| *n == at) {
            pause.wait().await;
        }
        write_chunk(stream, piece).await?;
        if !reply.chunk_delay.is_zero() {
            tokio::time::sleep(reply.chunk_delay).await;
        }
    }
    if reply.endless {
        let more = reply.endless_of.clone();
        let more = more.unwrap_or_else(|| render::more(request));
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
