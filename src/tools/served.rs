//! Tools of files that leave their description, or what they take, to the source whose own tools they are.

use std::collections::HashMap;
use std::sync::Arc;

use super::toolbox::{Definition, Input, Left, Toolbox};
use crate::event::CallCx;

/// Asks the sources of such tools for what is left to them. Every problem, as sentences; a broken tool is left as it is.
pub(super) async fn fill(
    tools: impl Iterator<Item = &mut Arc<Definition>>,
    toolbox: &Toolbox,
    cx: &CallCx,
) -> Vec<String> {
    let mut problems = Vec::new();
    // The same tool through two sets stays one.
    let mut filled: HashMap<String, Arc<Definition>> = HashMap::new();
    for tool in tools {
        if tool.left == Left::default() || !tool.broken.is_empty() {
            continue;
        }
        let name = tool.decl.name.clone();
        if let Some(known) = filled.get(&name) {
            *tool = Arc::clone(known);
            continue;
        }
        match one(tool, toolbox, cx).await {
            Ok(whole) => {
                *tool = Arc::new(whole);
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

async fn one(tool: &Definition, toolbox: &Toolbox, cx: &CallCx) -> Result<Definition, String> {
    let name = &tool.decl.name;
    let source = toolbox.about.get(name).map(|about| about.source.as_str());
    let source = source.and_then(|name| toolbox.sources.get(name));
    let remote = tool.work.as_ref().and_then(|work| work.remote());
    let (Some(source), Some(remote)) = (source, remote) else {
        return Err("nobody says what it takes".to_owned());
    };
    let said = source.declares(remote, cx).await?;
    let mut whole = tool.clone();
    if tool.left.description {
        whole.decl.description = said.description;
    }
    if tool.left.input {
        whole.decl.schema = said.schema;
        whole.input = Input::Schema(said.input);
    }
    whole.left = Left::default();
    Ok(whole)
}
