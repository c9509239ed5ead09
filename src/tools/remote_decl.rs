//! The completion of tools that leave their description or arguments to their source.

use std::collections::HashMap;
use std::sync::Arc;

use super::source::{SourceProvided, ToolDefinition, ToolInput};
use super::toolbox::Toolbox;
use crate::event::CallCx;

/// Asks the sources for the missing parts. Returns every problem as a sentence, and leaves a broken tool unchanged.
pub(super) async fn fetch_remote_decls(
    tools: impl Iterator<Item = &mut Arc<ToolDefinition>>,
    toolbox: &Toolbox,
    cx: &CallCx,
) -> Vec<String> {
    let mut problems = Vec::new();
    // Two toolsets may share a tool: the map keeps it one `Arc`, so that it is not a duplicate.
    let mut filled: HashMap<String, Arc<ToolDefinition>> = HashMap::new();
    for tool in tools {
        if tool.from_source == SourceProvided::default() || !tool.errors.is_empty() {
            continue;
        }
        let name = tool.decl.name.clone();
        if let Some(known) = filled.get(&name) {
            *tool = Arc::clone(known);
            continue;
        }
        match fetch_remote_decl(tool, toolbox, cx).await {
            Ok(completed) => {
                *tool = Arc::new(completed);
                filled.insert(name, Arc::clone(tool));
            }
            Err(why) => {
                let why = format!("tool `{name}`: {why}");
                if !problems.contains(&why) {
                    problems.push(why);
                }
            }
        }
    }
    problems
}

async fn fetch_remote_decl(
    tool: &ToolDefinition,
    toolbox: &Toolbox,
    cx: &CallCx,
) -> Result<ToolDefinition, String> {
    let name = &tool.decl.name;
    let source = toolbox.origins.get(name).map(|about| about.source.as_str());
    let source = source.and_then(|name| toolbox.sources.get(name));
    let remote = tool.executor.as_ref().and_then(|work| work.remote_name());
    let (Some(source), Some(remote)) = (source, remote) else {
        return Err("neither the file nor the source declares its arguments".to_owned());
    };
    let own_decl = source.describe_own_tool(remote, cx).await?;
    let mut completed = tool.clone();
    if tool.from_source.description {
        completed.decl.description = own_decl.description;
    }
    if tool.from_source.input {
        completed.decl.schema = own_decl.schema;
        completed.input = ToolInput::Schema(own_decl.input);
    }
    completed.from_source = SourceProvided::default();
    Ok(completed)
}
