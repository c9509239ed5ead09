//! One call of a server's tool, and its result as text for a model.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents};

use super::link::Link;
use super::numbers::unsendable;
use super::us::short;
use crate::clock::BoxFuture;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, RawJson, ToolResponse};
use crate::tools::kinds::Work;
use crate::tools::page::cut;
use crate::tools::{Prepared, pretty};

/// Shown to the model, in bytes.
const MAX_SHOWN: usize = 50_000;

/// A tool of a server.
pub(super) struct Call {
    link: Arc<Link>,
    remote: String,
    /// What its definition says; else what the server said when it was asked for its tools.
    read_only: Option<bool>,
}

impl Call {
    pub(super) fn new(link: Arc<Link>, remote: String, read_only: Option<bool>) -> Self {
        Self {
            link,
            remote,
            read_only,
        }
    }
}

impl Work for Call {
    fn digest(&self) -> Digest {
        let at = self.link.settings.shown();
        Digest::hash_parts([b"mcp".as_slice(), at.as_bytes(), self.remote.as_bytes()])
    }

    fn read_only(&self) -> bool {
        self.read_only
            .unwrap_or_else(|| self.link.says_read_only(&self.remote))
    }

    fn remote(&self) -> Option<&str> {
        Some(&self.remote)
    }

    fn refuses(&self, values: &RawJson) -> Option<String> {
        let number = unsendable(values.get())?;
        Some(format!(
            "{} does not fit into 64 bits and would reach the server rounded; write a smaller number, or text where the tool takes text",
            short(number)
        ))
    }

    fn call<'a>(
        &'a self,
        prepared: &'a Prepared,
        call: CallIx,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        Box::pin(async move {
            let arguments: JsonObject = match serde_json::from_str(prepared.values.get()) {
                Ok(arguments) => arguments,
                Err(error) => {
                    return ToolResponse::error(format_args!(
                        "the arguments cannot be sent to an MCP server: {error}"
                    ));
                }
            };
            match self.link.call(&self.remote, arguments, call, cx).await {
                Ok(result) => answer(&result, cx).await,
                Err(failure) if failure.transient && self.read_only() => {
                    ToolResponse::error(failure).transient()
                }
                Err(failure) => ToolResponse::error(failure),
            }
        })
    }
}

async fn answer(result: &CallToolResult, cx: &CallCx) -> ToolResponse {
    let (text, whole) = text_of(result);
    let size = text.len();
    let is_error = result.is_error.unwrap_or(false);
    let text = if is_error && !text.starts_with("Error") {
        format!("Error: {text}")
    } else {
        text
    };
    let (text, truncated) = cut(text, MAX_SHOWN, None);
    // What the text leaves out is kept beside it.
    let raw = match (truncated || !whole, serde_json::to_vec(result)) {
        (true, Ok(bytes)) => Some(cx.out.store_blob(&bytes).await),
        _ => None,
    };
    ToolResponse {
        is_error,
        bytes: size as u64,
        truncated,
        raw,
        ..ToolResponse::ok(text)
    }
}

/// A result as text, and whether that is all of it.
fn text_of(result: &CallToolResult) -> (String, bool) {
    let mut whole = true;
    let parts: Vec<String> = result
        .content
        .iter()
        .map(|block| match block {
            ContentBlock::Text(text) => text.text.clone(),
            ContentBlock::Image(image) => {
                whole = false;
                measured(&image.mime_type, &image.data)
            }
            ContentBlock::Audio(audio) => {
                whole = false;
                measured(&audio.mime_type, &audio.data)
            }
            ContentBlock::Resource(resource) => match &resource.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    format!("[{}]\n{text}", short(uri))
                }
                ResourceContents::BlobResourceContents {
                    uri,
                    mime_type,
                    blob,
                    ..
                } => {
                    whole = false;
                    let kind = mime_type.as_deref().unwrap_or("no content type");
                    format!("[{}: {}", short(uri), &measured(kind, blob)[1..])
                }
                _ => {
                    whole = false;
                    "[a resource of an unknown kind]".to_owned()
                }
            },
            ContentBlock::ResourceLink(link) => format!("[link: {}]", short(&link.uri)),
            _ => {
                whole = false;
                "[content of an unknown kind]".to_owned()
            }
        })
        .collect();
    let text = parts.join("\n");
    if !text.is_empty() {
        return (text, whole);
    }
    match &result.structured_content {
        Some(value) => {
            let plain = value.to_string();
            (pretty(&plain, MAX_SHOWN * 2).unwrap_or(plain), true)
        }
        None => ("[no content]".to_owned(), true),
    }
}

/// `[image/png, 1234 bytes]`, of base64.
fn measured(kind: &str, base64: &str) -> String {
    let digits = base64
        .bytes()
        .filter(|b| !b.is_ascii_whitespace() && *b != b'=')
        .count();
    format!("[{}, {} bytes]", short(kind), digits * 3 / 4)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(result: serde_json::Value) -> String {
        text_of(&serde_json::from_value(result).unwrap()).0
    }

    #[test]
    fn a_result_is_its_texts_and_the_measures_of_what_is_none() {
        let png = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="});
        let words = json!({"type": "text", "text": "two\nlines"});
        let page = json!({"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "within"}});
        let blob = json!({"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}});
        let link = json!({"type": "resource_link", "uri": "file:///c", "name": "c"});
        assert_eq!(
            text(json!({"content": [words, png, page, blob, link], "structuredContent": {"a": 1}})),
            "two\nlines\n[image/png, 8 bytes]\n[file:///a.txt]\nwithin\n[file:///b: no content type, 3 bytes]\n[link: file:///c]"
        );
        assert_eq!(
            text(json!({"content": [], "structuredContent": {"a": [1]}})),
            "{\n  \"a\": [\n    1\n  ]\n}"
        );
        assert_eq!(text(json!({"content": []})), "[no content]");
    }
}
