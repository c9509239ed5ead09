//! From the names in a judge's `tools:` to tools: built-in ones, those of tools files, sets, sources with tools of their
//! own, servers.
//!
//! Owns what a name stands for and what of that does not fit together. [`check`] asks nobody; [`open`] asks servers for
//! their tools and has tokens verified.

mod choose;

use std::sync::Arc;

pub use choose::names;
use choose::{Strictness, What, allowed, broken, choose};

use super::auth::{self, Claims};
use super::toolbox::{Definition, FileTool, Toolbox};
use super::{Tool, ToolDeps, ToolSet};
use crate::event::{CallCx, Kind};
use crate::model::ToolUse;
use crate::net::{Overrides, Resolver, SystemResolver};

/// Everything that is wrong with a judge's `tools:` as far as it can be told without asking anybody, as sentences.
///
/// Reads files that settings name (`ca_file`): a relative path counts from the current directory, so whoever reads the
/// settings from a file makes it absolute first.
pub fn check(uses: &[ToolUse], deps: &ToolDeps) -> Vec<String> {
    let (chosen, mut problems) = choose(uses, deps, Strictness::Judge);
    if problems.is_empty() {
        let asks = chosen
            .iter()
            .any(|what| matches!(what, What::Discovers { .. }));
        problems = together(&declared(&chosen), &chosen, asks);
    }
    problems
}

/// What is wrong with one entry by itself, but for what is wrong in its file.
pub fn check_entry(entry: &ToolUse, deps: &ToolDeps) -> Vec<String> {
    choose(std::slice::from_ref(entry), deps, Strictness::One).1
}

/// Builds a judge's tools as far as nobody has to be asked: no server for tools of its own, nobody for tokens. Every
/// problem at once, as sentences.
pub fn build(uses: &[ToolUse], deps: &ToolDeps) -> Result<ToolSet, Vec<String>> {
    let mut problems = check(uses, deps);
    let (chosen, _) = choose(uses, deps, Strictness::Judge);
    for what in &chosen {
        if let What::Discovers { name, .. } = what {
            problems.push(format!("{name}: its tools are known once it was asked"));
        }
    }
    if problems.is_empty() {
        Ok(assembled(chosen, &[], &Claims::default(), &deps.toolbox))
    } else {
        Err(problems)
    }
}

/// Builds a judge's tools: asks sources for tools of their own, and has tokens verified.
pub async fn open(uses: &[ToolUse], deps: &ToolDeps, cx: &CallCx) -> Result<ToolSet, Vec<String>> {
    opened(uses, deps, cx, Strictness::Judge).await
}

/// As [`open`], for one tool that somebody tries: a broken one is there, and its calls are rejected.
pub async fn open_one(
    entry: &ToolUse,
    deps: &ToolDeps,
    cx: &CallCx,
) -> Result<ToolSet, Vec<String>> {
    opened(std::slice::from_ref(entry), deps, cx, Strictness::One).await
}

async fn opened(
    uses: &[ToolUse],
    deps: &ToolDeps,
    cx: &CallCx,
    strictness: Strictness,
) -> Result<ToolSet, Vec<String>> {
    let (chosen, mut problems) = choose(uses, deps, strictness);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut found = Vec::new();
    for what in &chosen {
        let What::Discovers {
            name,
            source,
            allow,
        } = what
        else {
            continue;
        };
        match source.discover(cx).await {
            Ok(tools) => match allowed(name, tools, allow.as_deref()) {
                Ok(tools) => found.push((tools, source.badge())),
                Err(why) => problems.push(why),
            },
            Err(why) => problems.push(format!("{name}: {why}")),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut all = declared(&chosen);
    all.extend(found.iter().flat_map(|(tools, _)| tools.iter().cloned()));
    if strictness == Strictness::Judge {
        problems = together(&all, &chosen, false);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let claims = claims(&all, &deps.toolbox, &resolver(deps), cx).await;
    Ok(assembled(chosen, &found, &claims, &deps.toolbox))
}

/// What verified tokens claim, of the services that these tools ask for.
async fn claims(
    definitions: &[Arc<Definition>],
    toolbox: &Toolbox,
    resolver: &Arc<dyn Resolver>,
    cx: &CallCx,
) -> Claims {
    let mut services: Vec<&str> = Vec::new();
    for definition in definitions {
        for service in services_of(definition, toolbox) {
            if !services.contains(&service) {
                services.push(service);
            }
        }
    }
    let services = services
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), Arc::clone(toolbox.auth.get(name)?))))
        .collect();
    let (claims, problems) = auth::verify(&services, &cx.clock, resolver).await;
    for text in problems {
        // The model is told that authentication is missing, a person why.
        cx.out.send(Kind::Note { cell: None, text }).await;
    }
    claims
}

fn services_of<'t>(
    definition: &'t Definition,
    toolbox: &'t Toolbox,
) -> impl Iterator<Item = &'t str> {
    let about = toolbox.about.get(&definition.decl.name);
    let of_params = about.into_iter().flat_map(|about| &about.services);
    definition
        .auth_required
        .iter()
        .chain(of_params)
        .map(String::as_str)
}

/// What looks names up.
fn resolver(deps: &ToolDeps) -> Arc<dyn Resolver> {
    if deps.resolve.is_empty() {
        Arc::new(SystemResolver)
    } else {
        Arc::new(Overrides::new(&deps.resolve, Arc::new(SystemResolver)))
    }
}

fn declared(chosen: &[What]) -> Vec<Arc<Definition>> {
    let of_files = chosen.iter().filter_map(|what| match what {
        What::Declared(tools) => Some(tools),
        _ => None,
    });
    of_files.flatten().cloned().collect()
}

/// What of a judge's tools does not fit together: names that two have, and prerequisites that are not there. `asks`:
/// sources have tools that are not known yet.
fn together(all: &[Arc<Definition>], chosen: &[What], asks: bool) -> Vec<String> {
    let mut problems = Vec::new();
    let name = |tool: &Arc<Definition>| tool.decl.name.clone();
    let built_in = chosen.iter().filter_map(|what| match what {
        What::Made(tool) => Some(tool.decl().name.clone()),
        _ => None,
    });
    let mut names: Vec<String> = built_in.collect();
    for (at, tool) in all.iter().enumerate() {
        // The same tool through two sets is one.
        let is_same = |other: &Arc<Definition>| Arc::ptr_eq(other, tool);
        if all[..at].iter().any(is_same) {
            continue;
        }
        let is_taken = super::is_built_in(&tool.decl.name) || names.contains(&tool.decl.name);
        if is_taken {
            problems.push(format!(
                "two tools are called `{}`: take one of them away, or give it another name",
                tool.decl.name
            ));
        }
        problems.extend(broken(tool).filter(|why| !problems.contains(why)));
        names.push(name(tool));
    }
    for tool in all.iter().filter(|_| !asks) {
        for before in tool.after.iter().filter(|before| !names.contains(before)) {
            let why = format!(
                "`{}` comes after `{before}`, which this judge does not have: add it to its `tools:`",
                tool.decl.name
            );
            if !problems.contains(&why) {
                problems.push(why);
            }
        }
    }
    problems
}

/// The tools, each once, in the order of `tools:`.
fn assembled(
    chosen: Vec<What>,
    found: &[(Vec<Arc<Definition>>, Option<String>)],
    claims: &Claims,
    toolbox: &Toolbox,
) -> ToolSet {
    let mut set = ToolSet::default();
    let mut found = found.iter();
    let file_tool = |definition: &Arc<Definition>, badge: Option<String>| -> Arc<dyn Tool> {
        let services: Vec<&str> = services_of(definition, toolbox).collect();
        let mut own = claims.clone();
        own.0
            .retain(|service, _| services.contains(&service.as_str()));
        Arc::new(FileTool::new(Arc::clone(definition), own, badge))
    };
    for what in chosen {
        let tools: Vec<Arc<dyn Tool>> = match what {
            What::Made(tool) => vec![tool],
            What::Reading => Vec::new(),
            What::Declared(tools) => {
                let tools = tools.iter();
                tools
                    .map(|tool| file_tool(tool, badge_of(tool, toolbox)))
                    .collect()
            }
            What::Discovers { .. } => {
                let tools = found
                    .next()
                    .into_iter()
                    .flat_map(|(tools, badge)| tools.iter().map(move |tool| (tool, badge.clone())));
                tools.map(|(tool, badge)| file_tool(tool, badge)).collect()
            }
        };
        for tool in tools {
            if set.get(&tool.decl().name).is_none() {
                set.tools.push(tool);
            }
        }
    }
    set
}

fn badge_of(tool: &Definition, toolbox: &Toolbox) -> Option<String> {
    let about = toolbox.about.get(&tool.decl.name)?;
    toolbox.sources.get(&about.source)?.badge()
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
