//! What each entry of `tools:` stands for, asking nobody.
//!
//! Owns names and `allow`. Whether what was chosen goes together is for [`super`].

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::resolver;
use crate::diag::nearest;
use crate::model::ToolUse;
use crate::net::Resolver;
use crate::tools::kinds::Source;
use crate::tools::toolbox::{ALLOW, Definition, SERVER, Toolbox};
use crate::tools::{FETCH_URL, FetchUrl, Tool, ToolDeps, available, reading};

/// What an entry of `tools:` stands for.
pub(super) enum What {
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
pub(super) enum Strictness {
    /// A judge's tools.
    Judge,
    /// One tool alone, to be tried: broken ones answer with what is wrong, and none must come after another.
    One,
}

pub(super) fn choose(
    uses: &[ToolUse],
    deps: &ToolDeps,
    strictness: Strictness,
) -> (Vec<What>, Vec<String>) {
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
        problems.push(describe_unknown(&unknown, &deps.toolbox));
    }
    (chosen, problems)
}

pub(super) fn broken(tool: &Definition) -> Option<String> {
    let why = tool.broken.join("; ");
    (!why.is_empty()).then(|| format!("tool `{}` is broken: {why}", tool.decl.name))
}

/// What an entry stands for; `None` where nothing has its name.
fn what(
    entry: &ToolUse,
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

fn server(entry: &ToolUse, toolbox: &Toolbox) -> Result<What, Vec<String>> {
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

fn of_set(entry: &ToolUse, set: &[String], toolbox: &Toolbox) -> Result<What, Vec<String>> {
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
    if let Some(near) = nearest(tool, known.clone()) {
        return format!("{of}: it has no tool `{tool}`; did you mean `{near}`?");
    }
    let known: Vec<&str> = known.collect();
    format!(
        "{of}: it has no tool `{tool}`; it has: {}",
        known.join(", ")
    )
}

/// The only setting that sets and sources have.
fn allow(entry: &ToolUse) -> Result<Option<Vec<String>>, Vec<String>> {
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
pub(super) fn allowed(
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
            let found = tools.iter().find(|tool| tool.decl.name == *wanted);
            found
                .cloned()
                .ok_or_else(|| not_there(name, wanted, known()))
        })
        .collect()
}

fn describe_unknown(unknown: &[&str], toolbox: &Toolbox) -> String {
    let names = names(toolbox);
    let listed: Vec<String> = unknown
        .iter()
        .map(
            |name| match nearest(name, names.iter().map(String::as_str)) {
                Some(near) => format!("`{name}` (did you mean `{near}`?)"),
                None => format!("`{name}`"),
            },
        )
        .collect();
    format!(
        "unknown tools: {}; available: {}",
        listed.join(", "),
        names.join(", ")
    )
}

/// What a judge's `tools:` may name, sorted.
pub fn names(toolbox: &Toolbox) -> Vec<String> {
    let mut names: Vec<String> = available().into_iter().map(|decl| decl.name).collect();
    names.extend(toolbox.tools.keys().cloned());
    names.extend(toolbox.sets.keys().cloned());
    let discovers = toolbox
        .sources
        .iter()
        .filter(|(_, source)| source.discovers());
    names.extend(discovers.map(|(name, _)| name.clone()));
    names.sort();
    names.dedup();
    names
}
