//! Tools of files that leave their description or input to the server's own tool: completed once the server was asked.

use std::collections::HashMap;
use std::sync::Arc;

use super::toolbox::{Definition, Input, Lent, Toolbox};
use crate::diag::nearest;
use crate::event::CallCx;
use crate::schema::Compiled;

/// Completes these tools in place; what cannot be completed is told, with the tool's name.
/// The same tool is completed once, so that it is the same in every set: `done` holds those that were.
pub(super) async fn complete(
    tools: &mut [Arc<Definition>],
    toolbox: &Toolbox,
    done: &mut HashMap<String, Arc<Definition>>,
    cx: &CallCx,
) -> Vec<String> {
    let mut problems = Vec::new();
    for tool in tools
        .iter_mut()
        .filter(|tool| tool.lent.any() && tool.broken.is_empty())
    {
        if let Some(whole) = done.get(&tool.decl.name) {
            *tool = Arc::clone(whole);
            continue;
        }
        match completed(tool, toolbox, cx).await {
            Ok(whole) => {
                *tool = Arc::new(whole);
                done.insert(tool.decl.name.clone(), Arc::clone(tool));
            }
            Err(why) => problems.push(format!("tool `{}`: {why}", tool.decl.name)),
        }
    }
    problems
}

async fn completed(
    tool: &Definition,
    toolbox: &Toolbox,
    cx: &CallCx,
) -> Result<Definition, String> {
    let about = toolbox.about.get(&tool.decl.name);
    let source = about.and_then(|about| toolbox.sources.get(&about.source));
    let remote = tool.work.as_ref().and_then(|work| work.remote());
    let (Some(source), Some(remote)) = (source, remote) else {
        return Err("its source cannot be asked what it takes".to_owned());
    };
    let found = source.discover(cx).await?;
    let is_it = |one: &&Arc<Definition>| name_there(one) == Some(remote);
    let Some(lender) = found.iter().find(is_it) else {
        let known: Vec<&str> = found.iter().filter_map(|one| name_there(one)).collect();
        return Err(match nearest(remote, known.iter().copied()) {
            Some(near) => format!("the server has no tool `{remote}`; did you mean `{near}`?"),
            None => format!(
                "the server has no tool `{remote}`; it has: {}",
                known.join(", ")
            ),
        });
    };
    let mut whole = tool.clone();
    whole.lent = Lent::default();
    if tool.lent.description {
        whole.decl.description.clone_from(&lender.decl.description);
    }
    if tool.lent.input {
        // Its name is not the model's here. What is wrong with its schema stays wrong.
        if let Some(why) = lender.broken.iter().find(|why| why.contains("inputSchema")) {
            return Err(why.clone());
        }
        whole.decl.schema = lender.decl.schema.clone();
        whole.input = Input::Schema(
            Compiled::compile(&whole.decl.schema)
                .map_err(|why| format!("the inputSchema of `{remote}` cannot be used: {why}"))?,
        );
    }
    Ok(whole)
}

/// What the server calls a tool.
fn name_there(tool: &Definition) -> Option<&str> {
    tool.work.as_ref()?.remote()
}
