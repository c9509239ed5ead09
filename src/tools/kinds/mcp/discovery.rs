//! The conversion of a server's tools to definitions.
//!
//! A server's names, descriptions and schemas are untrusted. They are measured, checked and shown as text. A tool
//! that fails a check is listed as broken, with the reason.

use std::sync::Arc;

use rmcp::model::Tool;
use serde_json::{Value, json};

use super::client_handler::shorten_text;
use super::connection::McpServer;
use super::mcp_tool::McpTool;
use crate::diag::find_nearest;
use crate::model::{SUBMIT_VERDICT, ToolDeclaration};
use crate::schema::CompiledSchema;
use crate::tools::source::{OwnToolDecl, ToolDefinition, ToolInput};

/// The length at which a description is cut for the language model, in bytes.
const MAX_DESCRIPTION: usize = 4096;
/// The size limit of a schema, in bytes of JSON.
const MAX_SCHEMA: usize = 64 << 10;
/// The length of the longest tool name that every provider accepts.
const MAX_NAME: usize = 64;

/// Converts these tools in the server's order. The second tool with the same name is broken.
pub(super) fn to_tool_definitions(
    link: &Arc<McpServer>,
    tools: Vec<Tool>,
) -> Vec<Arc<ToolDefinition>> {
    let mut known: Vec<String> = Vec::with_capacity(tools.len());
    tools
        .into_iter()
        .map(|tool| {
            let made = to_tool_definition(link, &tool, &known);
            known.push(made.decl.name.clone());
            Arc::new(made)
        })
        .collect()
}

fn to_tool_definition(link: &Arc<McpServer>, tool: &Tool, known: &[String]) -> ToolDefinition {
    let remote = tool.name.to_string();
    let mut why = Vec::new();
    // All faults are collected; a broken tool stays in the list and explains itself.
    let (name, fault) = build_tool_name(&link.config.name_prefix, &remote);
    why.extend(fault);
    if known.contains(&name) {
        why.push(format!("a second tool is called `{name}`"));
    }
    let schema = Value::Object(tool.input_schema.as_ref().clone());
    let (schema, input) = match compile_input_schema(schema) {
        Ok(both) => both,
        Err(fault) => {
            why.push(fault);
            // A tool without a usable schema still needs one, since its declaration may be listed.
            let any = json!({"type": "object"});
            match CompiledSchema::compile(&any) {
                Ok(input) => (any, input),
                Err(error) => unreachable!("the schema of any object compiles: {error}"),
            }
        }
    };
    let decl = ToolDeclaration {
        name,
        description: tool_description(tool),
        schema,
    };
    let read_only = tool.annotations.as_ref().and_then(|a| a.read_only_hint);
    let work = McpTool::new(
        Arc::clone(link),
        remote.clone(),
        // Without the annotation, the tool may change data.
        Some(read_only.unwrap_or(false)),
    );
    let broken = why
        .into_iter()
        .map(|why| {
            format!(
                "tool `{}` of MCP server `{}`: {why}",
                shorten_text(&remote),
                link.name
            )
        })
        .collect();
    ToolDefinition {
        decl,
        input: ToolInput::Schema(input),
        executor: Some(Arc::new(work)),
        errors: broken,
        ..ToolDefinition::default()
    }
}

/// Returns the server's declaration of a tool, for one that a file declares under another name.
pub(super) fn find_own_tool_decl(tools: &[Tool], remote: &str) -> Result<OwnToolDecl, String> {
    let Some(tool) = tools.iter().find(|tool| tool.name == remote) else {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        let near = find_nearest(remote, names.iter().copied());
        let hint = near.map_or_else(
            || format!("it has {}", shorten_text(&names.join(", "))),
            |near| format!("did you mean `{}`?", shorten_text(near)),
        );
        return Err(format!("it has no tool `{remote}`; {hint}"));
    };
    let schema = Value::Object(tool.input_schema.as_ref().clone());
    let (schema, input) =
        compile_input_schema(schema).map_err(|why| format!("its tool `{remote}`: {why}"))?;
    Ok(OwnToolDecl {
        description: tool_description(tool),
        schema,
        input,
    })
}

fn tool_description(tool: &Tool) -> String {
    // By the protocol, the title is for people, but it is better than nothing.
    let description = tool.description.as_deref().or(tool.title.as_deref());
    truncate_description(description.unwrap_or_default())
}

/// Returns the name for the language model, and its problem if providers do not accept it.
fn build_tool_name(prefix: &str, remote: &str) -> (String, Option<String>) {
    let full = format!("{prefix}{remote}");
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let fault = if full.is_empty() {
        Some("it has no name".to_owned())
    } else if !full.chars().all(fits) {
        Some("models cannot call it: names hold letters, digits, `_` and `-` alone (`kind: mcp` with `tool:` in tools.yaml gives it one)".to_owned())
    } else if full.len() > MAX_NAME {
        Some(format!(
            "models cannot call it: its name is longer than {MAX_NAME} characters (`kind: mcp` with `tool:` in tools.yaml gives it a shorter one)"
        ))
    // The providers' rules for names are stricter than those of the protocol.
    } else if full.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        Some("models cannot call it: names begin with a letter or `_` (the source's `prefix` gives it one)".to_owned())
    } else if full == SUBMIT_VERDICT {
        Some(format!(
            "`{SUBMIT_VERDICT}` is how a judge submits its verdict (the source's `prefix` makes it another)"
        ))
    } else {
        None
    };
    // The name of a broken tool must be printable too.
    let printable: String = full
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .take(MAX_NAME)
        .collect();
    (
        if printable.is_empty() {
            "_".to_owned()
        } else {
            printable
        },
        fault,
    )
}

fn compile_input_schema(mut schema: Value) -> Result<(Value, CompiledSchema), String> {
    if schema.to_string().len() > MAX_SCHEMA {
        return Err(format!("its inputSchema is longer than {MAX_SCHEMA} bytes"));
    }
    if let Value::Object(map) = &mut schema {
        match map.get("type") {
            // The protocol requires the type; a schema without it is completed.
            None => drop(map.insert("type".to_owned(), "object".into())),
            Some(Value::String(of)) if of == "object" => {}
            Some(_) => return Err("its inputSchema is not one of an object".to_owned()),
        }
    }
    let compiled = CompiledSchema::compile(&schema)
        .map_err(|why| format!("its inputSchema cannot be used: {why}"))?;
    Ok((schema, compiled))
}

fn truncate_description(text: &str) -> String {
    let mut text = text.trim().to_owned();
    if text.len() > MAX_DESCRIPTION {
        text.truncate(text.floor_char_boundary(MAX_DESCRIPTION));
        text.push_str(" [cut]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_tool_name_is_refused_with_a_fix() {
        for (prefix, remote, shown, word) in [
            ("", "echo", "echo", None),
            ("fs_", "1st", "fs_1st", None),
            ("", "1st", "1st", Some("prefix")),
            ("", "a.b/c", "a_b_c", Some("tool:")),
            ("", "", "_", Some("no name")),
            ("", "submit_verdict", "submit_verdict", Some("verdict")),
            ("", "\u{1b}[31mred", "__31mred", Some("letters")),
        ] {
            let (name, fault) = build_tool_name(prefix, remote);
            assert_eq!(name, shown);
            assert_eq!(fault.is_some(), word.is_some(), "{remote}: {fault:?}");
            assert!(word.is_none_or(|word| fault.unwrap_or_default().contains(word)));
        }
        assert!(
            build_tool_name("", &"x".repeat(65))
                .1
                .is_some_and(|why| why.contains("64"))
        );
    }

    #[test]
    fn schema_is_compiled_unchanged_and_external_references_are_refused() {
        assert_eq!(
            compile_input_schema(json!({})).unwrap().0,
            json!({"type": "object"})
        );
        let remote =
            json!({"type": "object", "properties": {"a": {"$ref": "https://x.example/s.json"}}});
        assert!(
            compile_input_schema(remote)
                .unwrap_err()
                .contains("cannot be used")
        );
        assert!(
            compile_input_schema(json!({"type": "array"}))
                .unwrap_err()
                .contains("object")
        );
        let long = json!({"description": "x".repeat(MAX_SCHEMA)});
        assert!(compile_input_schema(long).unwrap_err().contains("longer"));
    }
}
