//! A call of a server's tool, and the conversion of its result to text.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents};

use super::client_handler::shorten_text;
use super::connection::McpServer;
use super::number_limits::find_unsendable_number;
use super::secrets::{DigestedSetting, DigestedValue};
use crate::clock::BoxFuture;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, RawJson, ToolResponse};
use crate::tools::page_text::truncate_body;
use crate::tools::source::{ToolExecutor, hash_without_secrets, list_parts_with_secrets};
use crate::tools::{ValidatedCall, pretty_print_json};

/// The limit of the text for the language model, in bytes.
const MAX_RESULT_BYTES: usize = 50_000;

/// A tool of an MCP server.
pub(super) struct McpTool {
    server: Arc<McpServer>,
    remote_name: String,
    /// The value in the tools file; `None` uses the server's annotation.
    read_only: Option<bool>,
}

impl McpTool {
    pub(super) fn new(
        server: Arc<McpServer>,
        remote_name: String,
        read_only: Option<bool>,
    ) -> Self {
        Self {
            server,
            remote_name,
            read_only,
        }
    }
}

impl McpTool {
    /// Returns the texts that determine the responses, without the values whose names denote secrets.
    fn digest_parts(&self) -> Vec<String> {
        let config = &self.server.config;
        let mut parts = vec![
            "mcp".to_owned(),
            config.redacted_address(),
            self.remote_name.clone(),
        ];
        for DigestedSetting { name, value } in config.digested_settings() {
            parts.extend(name.map(str::to_owned));
            parts.push(match value {
                DigestedValue::Public(value) => value.to_owned(),
                // Anyone who reads a recording could test guesses of a secret against its digest.
                DigestedValue::Secret(_) => String::new(),
            });
        }
        parts
    }
}

impl ToolExecutor for McpTool {
    fn digest(&self) -> Digest {
        // The parts without secrets: digests are recorded.
        hash_without_secrets(self.digest_parts(), &self.server.config.env_secrets)
    }

    fn secrets_outside_digest(&self) -> Vec<(String, String)> {
        let config = &self.server.config;
        let mut found = config.secrets_outside_address();
        // A value of the environment may be a secret under any name, also in an argument such as `-pVALUE`.
        let secrets = &config.env_secrets;
        found.extend(list_parts_with_secrets(self.digest_parts(), secrets));
        found
    }

    fn is_read_only(&self) -> bool {
        self.read_only
            .unwrap_or_else(|| self.server.says_read_only(&self.remote_name))
    }

    fn remote_name(&self) -> Option<&str> {
        Some(&self.remote_name)
    }

    fn explain_unsendable(&self, values: &RawJson) -> Option<String> {
        let number = find_unsendable_number(values.get())?;
        Some(format!(
            "{} does not fit into 64 bits and would reach the server rounded; write a smaller number, or text where the tool takes text",
            shorten_text(number)
        ))
    }

    fn call<'a>(
        &'a self,
        prepared: &'a ValidatedCall,
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
            match self
                .server
                .call_tool(&self.remote_name, arguments, call, cx)
                .await
            {
                Ok(result) => to_tool_response(&result, cx).await,
                // A tool that changes data may have run before the failure, so a retry could run it twice.
                Err(failure) if failure.transient && self.is_read_only() => {
                    ToolResponse::error(failure).transient()
                }
                Err(failure) => ToolResponse::error(failure),
            }
        })
    }
}

async fn to_tool_response(result: &CallToolResult, cx: &CallCx) -> ToolResponse {
    let (text, is_complete) = result_to_text(result);
    let size = text.len();
    let is_error = result.is_error.unwrap_or(false);
    // The error texts of dicta's own tools begin with this word.
    let text = if is_error && !text.starts_with("Error") {
        format!("Error: {text}")
    } else {
        text
    };
    let (text, truncated) = truncate_body(text, MAX_RESULT_BYTES, None);
    // Keep the raw result if the text omits a part of it.
    let raw = match (truncated || !is_complete, serde_json::to_vec(result)) {
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

/// Converts a result to text. Returns false if the text omits a part of it.
fn result_to_text(result: &CallToolResult) -> (String, bool) {
    // Becomes false for content that has no text form.
    let mut is_complete = true;
    let parts: Vec<String> = result
        .content
        .iter()
        .map(|block| match block {
            ContentBlock::Text(text) => text.text.clone(),
            ContentBlock::Image(image) => {
                is_complete = false;
                describe_binary(&image.mime_type, &image.data)
            }
            ContentBlock::Audio(audio) => {
                is_complete = false;
                describe_binary(&audio.mime_type, &audio.data)
            }
            ContentBlock::Resource(resource) => match &resource.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    format!("[{}]\n{text}", shorten_text(uri))
                }
                ResourceContents::BlobResourceContents {
                    uri,
                    mime_type,
                    blob,
                    ..
                } => {
                    is_complete = false;
                    let kind = mime_type.as_deref().unwrap_or("no content type");
                    format!(
                        "[{}: {}",
                        shorten_text(uri),
                        // Removes the opening bracket of the inner text, which continues this one.
                        &describe_binary(kind, blob)[1..]
                    )
                }
                _ => {
                    is_complete = false;
                    "[a resource of an unknown kind]".to_owned()
                }
            },
            ContentBlock::ResourceLink(link) => format!("[link: {}]", shorten_text(&link.uri)),
            _ => {
                is_complete = false;
                "[content of an unknown kind]".to_owned()
            }
        })
        .collect();
    let text = parts.join("\n");
    if !text.is_empty() {
        return (text, is_complete);
    }
    // Only without content: by the protocol, servers should repeat structured content as text.
    match &result.structured_content {
        Some(value) => {
            let plain = value.to_string();
            (
                pretty_print_json(&plain, MAX_RESULT_BYTES * 2).unwrap_or(plain),
                true,
            )
        }
        None => ("[no content]".to_owned(), true),
    }
}

/// Formats `[image/png, 1234 bytes]` from base64.
fn describe_binary(kind: &str, base64: &str) -> String {
    // Four base64 digits encode three bytes; the padding encodes none.
    let digits = base64
        .bytes()
        .filter(|b| !b.is_ascii_whitespace() && *b != b'=')
        .count();
    format!("[{}, {} bytes]", shorten_text(kind), digits * 3 / 4)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(result: serde_json::Value) -> String {
        result_to_text(&serde_json::from_value(result).unwrap()).0
    }

    #[test]
    fn result_contains_texts_and_sizes_of_binary_content() {
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
