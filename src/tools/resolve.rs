//! From the names in a judge's `tools:` to tools: built-in ones, those of tools files, sets, sources with tools of their
//! own, servers.
//!
//! Owns what a name stands for and what of that does not fit together. [`check`] asks nobody; [`open`] asks servers for
//! their tools and has tokens verified.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::auth::Claims;
use super::claimed::{claims, services_of};
use super::kinds::Source;
use super::toolbox::{ALLOW, Definition, FileTool, Left, SERVER, Toolbox};
use super::{FETCH_URL, FetchUrl, Tool, ToolDeps, ToolSet, names, reading, served};
use crate::diag::find_nearest;
use crate::event::{CallCx, EventKind};
use crate::model::JudgeTool;
use crate::net::{Resolver, ResolverOverrides, SystemResolver};

/// What an entry of `tools:` stands for.
enum What {
    /// It is there already.
    Made(Arc<dyn Tool>),
    /// It is bound to a cell's transcript, so that whoever has that makes it; naming one asks for it.
    Reading,
    /// Tools of files.
    Declared(Vec<Arc<Definition>>),
    /// All tools of a source, or some: known once it was asked.
    Discovers {
        name: String,
        source: Arc<dyn Source>,
        allow: Option<Vec<String>>,
    },
}

/// How much of what does not fit is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strictness {
    /// A judge's tools.
    Judge,
    /// One tool alone, to be tried: broken ones answer with what is wrong, and none must come after another.
    One,
}

/// Everything that is wrong with a judge's `tools:` as far as it can be told without asking anybody, as sentences.
///
/// Reads files that settings name (`ca_file`): a relative path counts from the current directory, so whoever reads the
/// settings from a file makes it absolute first.
pub fn check(uses: &[JudgeTool], deps: &ToolDeps) -> Vec<String> {
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
pub fn check_entry(entry: &JudgeTool, deps: &ToolDeps) -> Vec<String> {
    choose(std::slice::from_ref(entry), deps, Strictness::One).1
}

/// Builds a judge's tools as far as nobody has to be asked: no server for tools of its own, nobody for tokens. Every
/// problem at once, as sentences.
pub fn build(uses: &[JudgeTool], deps: &ToolDeps) -> Result<ToolSet, Vec<String>> {
    let mut problems = check(uses, deps);
    let (chosen, _) = choose(uses, deps, Strictness::Judge);
    for what in &chosen {
        match what {
            What::Discovers { name, .. } => {
                problems.push(format!("{name}: its tools are known once it was asked"));
            }
            What::Declared(tools) => {
                let left = tools.iter().filter(|tool| tool.left != Left::default());
                problems.extend(left.map(|tool| {
                    let name = &tool.decl.name;
                    format!("{name}: what it takes is known once its source was asked")
                }));
            }
            What::Made(_) | What::Reading => {}
        }
    }
    if problems.is_empty() {
        Ok(assembled(chosen, &[], &Claims::default(), &deps.toolbox))
    } else {
        Err(problems)
    }
}

/// Builds a judge's tools: asks sources for tools of their own, and has tokens verified.
pub async fn open(
    uses: &[JudgeTool],
    deps: &ToolDeps,
    cx: &CallCx,
) -> Result<ToolSet, Vec<String>> {
    opened(uses, deps, cx, Strictness::Judge).await
}

/// As [`open`], for one tool that somebody tries: a broken one is there, and its calls are rejected.
pub async fn open_one(
    entry: &JudgeTool,
    deps: &ToolDeps,
    cx: &CallCx,
) -> Result<ToolSet, Vec<String>> {
    opened(std::slice::from_ref(entry), deps, cx, Strictness::One).await
}

async fn opened(
    uses: &[JudgeTool],
    deps: &ToolDeps,
    cx: &CallCx,
    strictness: Strictness,
) -> Result<ToolSet, Vec<String>> {
    let (mut chosen, mut problems) = choose(uses, deps, strictness);
    if !problems.is_empty() {
        return Err(problems);
    }
    let declared_ones = chosen.iter_mut().filter_map(|what| match what {
        What::Declared(tools) => Some(tools),
        _ => None,
    });
    problems.extend(served::fill(declared_ones.flatten(), &deps.toolbox, cx).await);
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
                Ok(tools) if allow.is_none() && strictness == Strictness::Judge => {
                    found.push((usable(name, tools, cx).await, source.badge()));
                }
                Ok(tools) => found.push((tools, source.badge())),
                Err(why) => problems.push(why),
            },
            // A server's failure names it already.
            Err(why) if why.contains(&format!("`{name}`")) => problems.push(why),
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

/// Of all tools of a source those that can be called: one that nobody asked for by name must not keep the others away.
async fn usable(source: &str, tools: Vec<Arc<Definition>>, cx: &CallCx) -> Vec<Arc<Definition>> {
    let (well, broken): (Vec<_>, Vec<_>) =
        tools.into_iter().partition(|tool| tool.broken.is_empty());
    for tool in broken {
        let text = format!(
            "source `{source}`: its tool `{}` is left out: {}",
            tool.decl.name,
            tool.broken.join("; ")
        );
        cx.out.send(EventKind::Note { cell: None, text }).await;
    }
    well
}

/// What looks names up.
fn resolver(deps: &ToolDeps) -> Arc<dyn Resolver> {
    if deps.resolve.is_empty() {
        Arc::new(SystemResolver)
    } else {
        Arc::new(ResolverOverrides::new(
            &deps.resolve,
            Arc::new(SystemResolver),
        ))
    }
}

fn choose(uses: &[JudgeTool], deps: &ToolDeps, strictness: Strictness) -> (Vec<What>, Vec<String>) {
    let resolver = resolver(deps);
    let (mut chosen, mut problems, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for (at, entry) in uses.iter().enumerate() {
        if entry.name != SERVER && uses[..at].iter().any(|earlier| earlier.name == entry.name) {
            problems.push(format!("tool `{}` is listed twice", entry.name));
            continue;
        }
        match what(entry, &deps.toolbox, &resolver) {
            Some(Ok(What::Declared(tools))) if strictness == Strictness::Judge => {
                problems.extend(tools.iter().filter_map(|tool| broken(tool)));
                chosen.push(What::Declared(tools));
            }
            Some(Ok(what)) => chosen.push(what),
            Some(Err(found)) => problems.extend(found),
            None => unknown.push(entry.name.as_str()),
        }
    }
    if !unknown.is_empty() {
        problems.push(names::unknown(&unknown, &deps.toolbox));
    }
    (chosen, problems)
}

fn broken(tool: &Definition) -> Option<String> {
    let why = tool.broken.join("; ");
    (!why.is_empty()).then(|| format!("tool `{}` is broken: {why}", tool.decl.name))
}

/// What an entry stands for; `None` where nothing has its name.
fn what(
    entry: &JudgeTool,
    toolbox: &Toolbox,
    resolver: &Arc<dyn Resolver>,
) -> Option<Result<What, Vec<String>>> {
    let name = entry.name.as_str();
    if name == FETCH_URL {
        let tool = FetchUrl::new(entry, Arc::clone(resolver));
        return Some(tool.map(|tool| What::Made(Arc::new(tool))));
    }
    if reading::is_reading(name) {
        let is_plain = entry.settings.is_empty();
        let has_none = || vec![format!("{name}: it has no settings")];
        return Some(if is_plain {
            Ok(What::Reading)
        } else {
            Err(has_none())
        });
    }
    if name == SERVER {
        return Some(server(entry, toolbox));
    }
    let tool = toolbox.tools.get(name);
    let set = toolbox.sets.get(name);
    let source = toolbox
        .sources
        .get(name)
        .filter(|source| source.discovers());
    match (tool, set, source) {
        (Some(tool), None, None) => Some(if entry.settings.is_empty() {
            Ok(What::Declared(vec![Arc::clone(tool)]))
        } else {
            Err(vec![format!(
                "{name}: a tool of a file has no settings here: they stand in its file"
            )])
        }),
        (None, Some(set), None) => Some(of_set(entry, set, toolbox)),
        (None, None, Some(source)) => Some(allow(entry).map(|allow| What::Discovers {
            name: name.to_owned(),
            source: Arc::clone(source),
            allow,
        })),
        (None, None, None) => {
            // Of a known source without tools of its own, that is what is wrong.
            let source = toolbox.sources.get(name)?;
            Some(Err(vec![format!(
                "{name}: it is a source of kind {}; name its tools, or a toolset",
                source.kind()
            )]))
        }
        _ => {
            let what = [
                tool.map(|_| "a tool"),
                set.map(|_| "a toolset"),
                source.map(|_| "a source"),
            ];
            let what: Vec<&str> = what.into_iter().flatten().collect();
            Some(Err(vec![format!(
                "{name}: it is {}; give them different names",
                what.join(" and ")
            )]))
        }
    }
}

fn server(entry: &JudgeTool, toolbox: &Toolbox) -> Result<What, Vec<String>> {
    let allow = allow_of(&entry.name, &entry.settings).map_err(|why| vec![why])?;
    match toolbox.server(&entry.settings) {
        Some(source) => Ok(What::Discovers {
            name: SERVER.to_owned(),
            source: Arc::clone(source),
            allow,
        }),
        None => Err(vec![
            "mcp: this server is in no workspace that was read; name a source of kind mcp instead"
                .to_owned(),
        ]),
    }
}

fn of_set(entry: &JudgeTool, set: &[String], toolbox: &Toolbox) -> Result<What, Vec<String>> {
    let allow = allow(entry)?;
    let name = &entry.name;
    let mut tools = Vec::new();
    for tool in allow.as_deref().unwrap_or(set) {
        match toolbox.tools.get(tool).filter(|_| set.contains(tool)) {
            Some(tool) => tools.push(Arc::clone(tool)),
            None => return Err(vec![not_there(name, tool, set.iter().map(String::as_str))]),
        }
    }
    Ok(What::Declared(tools))
}

fn not_there<'k>(of: &str, tool: &str, known: impl Iterator<Item = &'k str> + Clone) -> String {
    if let Some(near) = find_nearest(tool, known.clone()) {
        return format!("{of}: it has no tool `{tool}`; did you mean `{near}`?");
    }
    let known: Vec<&str> = known.collect();
    format!(
        "{of}: it has no tool `{tool}`; it has: {}",
        known.join(", ")
    )
}

/// The only setting that sets and sources have.
fn allow(entry: &JudgeTool) -> Result<Option<Vec<String>>, Vec<String>> {
    let unknown = entry.settings.keys().filter(|key| *key != ALLOW);
    let mut problems: Vec<String> = unknown
        .map(|key| {
            format!(
                "{}: unknown setting `{key}`; there is `{ALLOW}`",
                entry.name
            )
        })
        .collect();
    match allow_of(&entry.name, &entry.settings) {
        Ok(allow) if problems.is_empty() => Ok(allow),
        Ok(_) => Err(problems),
        Err(why) => {
            problems.push(why);
            Err(problems)
        }
    }
}

fn allow_of(name: &str, settings: &IndexMap<String, Value>) -> Result<Option<Vec<String>>, String> {
    let Some(written) = settings.get(ALLOW) else {
        return Ok(None);
    };
    let names = written.as_array().and_then(|items| {
        let names = items.iter().map(|item| item.as_str().map(str::to_owned));
        names.collect::<Option<Vec<String>>>()
    });
    match names {
        Some(names) if !names.is_empty() => Ok(Some(names)),
        _ => Err(format!("{name}: {ALLOW} is a list of names of tools")),
    }
}

/// Of a source's own tools those that are allowed, in the order of the list.
fn allowed(
    name: &str,
    tools: Vec<Arc<Definition>>,
    allow: Option<&[String]>,
) -> Result<Vec<Arc<Definition>>, String> {
    let Some(allow) = allow else {
        return Ok(tools);
    };
    let known = || tools.iter().map(|tool| tool.decl.name.as_str());
    allow
        .iter()
        .map(|wanted| {
            // By the name that models call, or by the server's own.
            let remote = |tool: &Definition| {
                let work = tool.work.as_ref();
                work.is_some_and(|work| work.remote() == Some(wanted.as_str()))
            };
            let named = tools.iter().find(|tool| tool.decl.name == *wanted);
            let found = named.or_else(|| tools.iter().find(|tool| remote(tool)));
            found
                .cloned()
                .ok_or_else(|| not_there(name, wanted, known()))
        })
        .collect()
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
                "two tools are called `{}`: take one of them away, or give it another name (an MCP server's: its `prefix`)",
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
mod tests;
