//! A judge's `tools:`. The reader looks up every entry and reports unknown ones at their place.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::super::{paths, tools_files::with_read_cx};
use super::JudgeCx;
use crate::diag::yaml::{DiagnosticCollector, MappingDecoder, YamlDoc, describe_value};
use crate::diag::{Diagnostic, find_nearest};
use crate::model::JudgeTool;
use crate::tools::toolbox::INLINE_SERVER;
use crate::tools::{self, ToolDeps};

/// Reads the tools. A missing key, null and `[]` mean no tools. An entry is a name, or one name with settings.
pub(in crate::workspace) fn read_tool_uses(
    fields: &mut MappingDecoder<'_>,
    doc: &YamlDoc,
    problems: &DiagnosticCollector,
    cx: &JudgeCx<'_>,
) -> Vec<JudgeTool> {
    if fields.value("tools").is_none_or(Value::is_null) {
        return Vec::new();
    }
    let mut uses: Vec<JudgeTool> = Vec::new();
    let mut is_good = true;
    let entries = fields.list("tools").unwrap_or_default();
    for (index, (pointer, entry)) in entries.into_iter().enumerate() {
        let key = format!("tools/{index}");
        let tool = match parse_tool_use(entry, cx) {
            Ok(tool) => tool,
            Err(why) => {
                fields.error_at(&key, "tools", why);
                is_good = false;
                continue;
            }
        };
        // The server goes into the toolbox first, because the checks below look it up there.
        if tool.name == INLINE_SERVER {
            add_server(
                &tool,
                doc,
                &format!("{pointer}/{INLINE_SERVER}"),
                problems,
                cx,
            );
        }
        // A judge's own server may have changed the toolbox since the last entry.
        let deps = tool_deps(cx);
        let mut found = Vec::new();
        let known = tools::list_tool_names(&deps.toolbox);
        // The name of a source selects all tools of that server.
        let is_known = tool.name == INLINE_SERVER
            || known.contains(&tool.name)
            || deps.toolbox.sources.contains_key(&tool.name);
        if !is_known && deps.toolbox.has_unreadable_file {
            // The tool may be in a file that could not be read; its problem has already been reported.
            is_good = false;
            continue;
        }
        if !is_known {
            let (message, help) = explain_unknown_tool(&tool.name, &known);
            let problem = Diagnostic::error("tools", &doc.path, message);
            let problem = problem.with_span(fields.inner_span(&key), &doc.source);
            problems.push(match help {
                Some(help) => problem.help(help),
                None => problem,
            });
            is_good = false;
            continue;
        }
        if tool.name != INLINE_SERVER && uses.iter().any(|other| other.name == tool.name) {
            found.push(format!("the tool `{}` is listed twice", tool.name));
        } else if tool.name != INLINE_SERVER || deps.toolbox.inline_server(&tool.settings).is_some()
        {
            found = tools::check_tool_entry(&tool, &deps);
            uses.push(tool);
        } else {
            // The server's problem has already been reported.
            is_good = false;
        }
        is_good &= found.is_empty();
        for why in found {
            fields.error_at(&key, "tools", why);
        }
    }
    let deps = tool_deps(cx);
    // The problem of a broken tool is reported in the tool's own file.
    let all_tools_valid = deps
        .toolbox
        .tools
        .values()
        .all(|tool| tool.errors.is_empty());
    // The joint check would repeat or hide the problems of single tools, so it needs correct ones.
    if is_good && all_tools_valid {
        for why in tools::check_tools(&uses, &deps) {
            fields.error("tools", "tools", why);
        }
    }
    uses
}

fn tool_deps(cx: &JudgeCx<'_>) -> ToolDeps {
    ToolDeps {
        toolbox: Arc::clone(&cx.toolbox.borrow()),
        ..ToolDeps::default()
    }
}

fn explain_unknown_tool(name: &str, known: &[String]) -> (String, Option<String>) {
    let listed = known.join(", ");
    match find_nearest(name, known.iter().map(String::as_str)) {
        Some(near) => (
            format!("unknown tool `{name}`; did you mean `{near}`?"),
            Some(format!("available: {listed}")),
        ),
        None => (format!("unknown tool `{name}`; known: {listed}"), None),
    }
}

fn parse_tool_use(entry: &Value, cx: &JudgeCx<'_>) -> Result<JudgeTool, String> {
    match entry {
        Value::String(name) => Ok(JudgeTool {
            name: name.clone(),
            settings: IndexMap::new(),
        }),
        Value::Object(map) if map.len() == 1 => {
            let (name, written) = map.iter().next().expect("it has one entry");
            let settings = read_settings(written, cx).ok_or_else(|| {
                let got = describe_value(written);
                format!("the settings of `{name}` must be a mapping (got {got})")
            })?;
            Ok(JudgeTool {
                name: name.clone(),
                settings,
            })
        }
        other => Err(format!(
            "a tool is a name, or one name with its settings (got {})",
            describe_value(other)
        )),
    }
}

/// Adds a server that the judge declares itself to the toolbox.
fn add_server(
    tool: &JudgeTool,
    doc: &YamlDoc,
    at: &str,
    problems: &DiagnosticCollector,
    cx: &JudgeCx<'_>,
) {
    let mut toolbox = cx.toolbox.borrow_mut();
    with_read_cx(cx.root, cx.env, cx.resolver, |read| {
        Arc::make_mut(&mut toolbox).read_inline_server(doc, at, &tool.settings, problems, read);
    });
}

/// Returns a tool's settings as written, except file paths, which become relative to the workspace.
fn read_settings(settings: &Value, cx: &JudgeCx<'_>) -> Option<IndexMap<String, Value>> {
    match settings {
        Value::Null => Some(IndexMap::new()),
        Value::Object(map) => {
            let absolute = |(key, value): (&String, &Value)| match value {
                Value::String(path) if key.ends_with("_file") && !path.is_empty() => {
                    let path = paths::resolve(cx.root, path, cx.env);
                    (key.clone(), path.to_string_lossy().into_owned().into())
                }
                other => (key.clone(), other.clone()),
            };
            Some(map.iter().map(absolute).collect())
        }
        _ => None,
    }
}
