//! Resolution of the names in a judge's `tools:` to tools.
//!
//! Responsible for the meaning of a name: a built-in tool, a tool of a tools file, a toolset, a source or a server.
//! Also finds tools that do not fit together. [`check_tools`] opens no connection; [`open_tools`] asks servers for
//! their tools and verifies tokens.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::auth::VerifiedClaims;
use super::source::{SourceProvided, ToolDefinition, ToolSource};
use super::token_claims::{required_services, verify_tool_claims};
use super::toolbox::{ALLOW_SETTING, FileTool, INLINE_SERVER, Toolbox};
use super::{
    FETCH_URL, FetchUrl, FetchUrlError, Tool, ToolDeps, ToolError, ToolErrors, ToolSet,
    remote_decl, tool_names, transcript_tools,
};
use crate::diag::find_nearest;
use crate::event::{CallCx, EventKind};
use crate::model::JudgeTool;
use crate::net::{OverridingResolver, Resolver, SystemResolver};

/// The meaning of an entry of `tools:`.
enum ToolUseTarget {
    /// A built-in tool.
    BuiltIn(Arc<dyn Tool>),
    /// A transcript tool. The code that has the cell's transcript builds it.
    TranscriptTool,
    /// Tools of tools files.
    Definitions(Vec<Arc<ToolDefinition>>),
    /// All or some tools of a source, known after the source was asked.
    Source {
        name: String,
        source: Arc<dyn ToolSource>,
        allow: Option<Vec<String>>,
    },
}

/// The own tools of a source.
struct DiscoveredTools {
    tools: Vec<Arc<ToolDefinition>>,
    /// The source's warning.
    badge: Option<String>,
}

/// The strictness of the checks between tools.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strictness {
    /// For the tools of a judge.
    Judge,
    /// For one tool that a person tries. A broken tool then reports its problems, and prerequisites do not apply.
    SingleTool,
}

/// Returns all problems of a judge's `tools:` that dicta can find without a connection.
///
/// Reads files that settings name (`ca_file`). A relative path starts at the current directory, so the caller makes
/// paths of a file absolute first.
pub fn check_tools(uses: &[JudgeTool], deps: &ToolDeps) -> Vec<ToolError> {
    let (chosen, mut problems) = resolve_tool_uses(uses, deps, Strictness::Judge);
    // A broken entry would cause misleading errors in the checks between tools.
    if problems.is_empty() {
        let asks = chosen
            .iter()
            .any(|what| matches!(what, ToolUseTarget::Source { .. }));
        problems = check_tools_fit_together(&declared_definitions(&chosen), &chosen, asks);
    }
    problems
}

/// Returns the problems of one entry, except those of its tools file.
pub fn check_tool_entry(entry: &JudgeTool, deps: &ToolDeps) -> Vec<ToolError> {
    resolve_tool_uses(std::slice::from_ref(entry), deps, Strictness::SingleTool).1
}

/// Builds a judge's tools without opening a connection: sources are not asked and tokens are not verified. Returns
/// every problem at once.
pub fn build_tools(uses: &[JudgeTool], deps: &ToolDeps) -> Result<ToolSet, ToolErrors> {
    // Resolved a second time, because the checks above do not return the targets.
    let mut problems = check_tools(uses, deps);
    let (chosen, _) = resolve_tool_uses(uses, deps, Strictness::Judge);
    for what in &chosen {
        match what {
            ToolUseTarget::Source { name, .. } => {
                problems.push(unusable_entry(
                    name,
                    "its tools are known once it was asked",
                ));
            }
            ToolUseTarget::Definitions(tools) => {
                let left = tools
                    .iter()
                    .filter(|tool| tool.from_source != SourceProvided::default());
                problems.extend(left.map(|tool| {
                    let reason = "what it takes is known once its source was asked";
                    unusable_entry(&tool.decl.name, reason)
                }));
            }
            ToolUseTarget::BuiltIn(_) | ToolUseTarget::TranscriptTool => {}
        }
    }
    if problems.is_empty() {
        Ok(assemble_tool_set(
            chosen,
            &[],
            &VerifiedClaims::default(),
            &deps.toolbox,
        ))
    } else {
        Err(ToolErrors(problems))
    }
}

/// Builds a judge's tools: asks sources for their own tools and verifies tokens.
pub async fn open_tools(
    uses: &[JudgeTool],
    deps: &ToolDeps,
    cx: &CallCx,
) -> Result<ToolSet, ToolErrors> {
    open_with_strictness(uses, deps, cx, Strictness::Judge).await
}

/// Works like [`open_tools`] for one tool that a person tries. A broken tool is included, and its calls are rejected.
pub async fn open_single_tool(
    entry: &JudgeTool,
    deps: &ToolDeps,
    cx: &CallCx,
) -> Result<ToolSet, ToolErrors> {
    open_with_strictness(
        std::slice::from_ref(entry),
        deps,
        cx,
        Strictness::SingleTool,
    )
    .await
}

async fn open_with_strictness(
    uses: &[JudgeTool],
    deps: &ToolDeps,
    cx: &CallCx,
    strictness: Strictness,
) -> Result<ToolSet, ToolErrors> {
    let (mut chosen, mut problems) = resolve_tool_uses(uses, deps, strictness);
    if !problems.is_empty() {
        return Err(ToolErrors(problems));
    }
    let declared_ones = chosen.iter_mut().filter_map(|what| match what {
        ToolUseTarget::Definitions(tools) => Some(tools),
        _ => None,
    });
    // Tools of files that leave parts to their source are completed first.
    let missing = remote_decl::fetch_remote_decls(declared_ones.flatten(), &deps.toolbox, cx).await;
    problems.extend(missing.into_iter().map(source_failed));
    // Then the sources that declare their own tools are asked.
    let mut found = Vec::new();
    for what in &chosen {
        let ToolUseTarget::Source {
            name,
            source,
            allow,
        } = what
        else {
            continue;
        };
        match source.discover_tools(cx).await {
            Ok(tools) => match filter_allowed_tools(name, tools, allow.as_deref()) {
                // With `allow`, the user named the tools, so a broken one is an error.
                Ok(tools) if allow.is_none() && strictness == Strictness::Judge => {
                    let tools = drop_broken_tools(name, tools, cx).await;
                    let badge = source.badge();
                    found.push(DiscoveredTools { tools, badge });
                }
                Ok(tools) => {
                    let badge = source.badge();
                    found.push(DiscoveredTools { tools, badge });
                }
                Err(why) => problems.push(why),
            },
            // The failure already names the server.
            Err(why) if why.contains(&format!("`{name}`")) => problems.push(source_failed(why)),
            Err(why) => problems.push(source_failed(format!("{name}: {why}"))),
        }
    }
    if !problems.is_empty() {
        return Err(ToolErrors(problems));
    }
    // All tools are known now, so conflicts between them are certain.
    let mut all = declared_definitions(&chosen);
    all.extend(found.iter().flat_map(|found| found.tools.iter().cloned()));
    if strictness == Strictness::Judge {
        problems = check_tools_fit_together(&all, &chosen, false);
    }
    if !problems.is_empty() {
        return Err(ToolErrors(problems));
    }
    // Verify tokens last: it may send requests, which are useless if the tools have errors.
    let claims = verify_tool_claims(&all, &deps.toolbox, &new_resolver(deps), cx).await;
    Ok(assemble_tool_set(chosen, &found, &claims, &deps.toolbox))
}

/// Drops the broken tools among all tools of a source. The user did not name them, so they must not block the others.
async fn drop_broken_tools(
    source: &str,
    tools: Vec<Arc<ToolDefinition>>,
    cx: &CallCx,
) -> Vec<Arc<ToolDefinition>> {
    let (well, broken): (Vec<_>, Vec<_>) =
        tools.into_iter().partition(|tool| tool.errors.is_empty());
    for tool in broken {
        let text = format!(
            "source `{source}`: its tool `{}` is left out: {}",
            tool.decl.name,
            tool.errors.join("; ")
        );
        cx.out.send(EventKind::Note { cell: None, text }).await;
    }
    well
}

/// Creates the resolver of host names, with the overrides of `deps`.
fn new_resolver(deps: &ToolDeps) -> Arc<dyn Resolver> {
    if deps.host_overrides.is_empty() {
        Arc::new(SystemResolver)
    } else {
        Arc::new(OverridingResolver::new(
            &deps.host_overrides,
            Arc::new(SystemResolver),
        ))
    }
}

fn resolve_tool_uses(
    uses: &[JudgeTool],
    deps: &ToolDeps,
    strictness: Strictness,
) -> (Vec<ToolUseTarget>, Vec<ToolError>) {
    let resolver = new_resolver(deps);
    let (mut chosen, mut problems, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for (at, entry) in uses.iter().enumerate() {
        // Several inline servers share the name of their kind.
        if entry.name != INLINE_SERVER
            && uses[..at].iter().any(|earlier| earlier.name == entry.name)
        {
            let name = entry.name.clone();
            problems.push(ToolError::ListedTwice { name });
            continue;
        }
        match resolve_tool_use(entry, &deps.toolbox, &resolver) {
            Some(Ok(ToolUseTarget::Definitions(tools))) if strictness == Strictness::Judge => {
                problems.extend(tools.iter().filter_map(|tool| broken_tool_error(tool)));
                chosen.push(ToolUseTarget::Definitions(tools));
            }
            Some(Ok(what)) => chosen.push(what),
            Some(Err(found)) => problems.extend(found),
            None => unknown.push(entry.name.as_str()),
        }
    }
    if !unknown.is_empty() {
        let message = tool_names::explain_unknown_tools(&unknown, &deps.toolbox);
        problems.push(ToolError::UnknownNames { message });
    }
    (chosen, problems)
}

fn broken_tool_error(tool: &ToolDefinition) -> Option<ToolError> {
    let reason = tool.errors.join("; ");
    (!reason.is_empty()).then(|| ToolError::BrokenDeclaration {
        tool: tool.decl.name.clone(),
        reason,
    })
}

/// Finds the meaning of an entry; `None` if its name is unknown.
fn resolve_tool_use(
    entry: &JudgeTool,
    toolbox: &Toolbox,
    resolver: &Arc<dyn Resolver>,
) -> Option<Result<ToolUseTarget, Vec<ToolError>>> {
    let name = entry.name.as_str();
    if name == FETCH_URL {
        let tool = FetchUrl::new(entry, Arc::clone(resolver));
        let tool = tool.map(|tool| ToolUseTarget::BuiltIn(Arc::new(tool)));
        let to_errors = |problems: Vec<FetchUrlError>| {
            let texts = problems.iter().map(ToString::to_string);
            texts.map(invalid_settings).collect()
        };
        return Some(tool.map_err(to_errors));
    }
    if transcript_tools::is_transcript_tool(name) {
        let is_plain = entry.settings.is_empty();
        return Some(if is_plain {
            Ok(ToolUseTarget::TranscriptTool)
        } else {
            Err(vec![unusable_entry(name, "it has no settings")])
        });
    }
    if name == INLINE_SERVER {
        return Some(resolve_inline_server(entry, toolbox));
    }
    // The same name in two roles is an error, because a judge's `tools:` could mean either.
    let tool = toolbox.tools.get(name);
    let set = toolbox.sets.get(name);
    let source = toolbox
        .sources
        .get(name)
        .filter(|source| source.has_own_tools());
    match (tool, set, source) {
        (Some(tool), None, None) => Some(if entry.settings.is_empty() {
            Ok(ToolUseTarget::Definitions(vec![Arc::clone(tool)]))
        } else {
            let reason = "a tool of a tools file has no settings here; set them in its file";
            Err(vec![unusable_entry(name, reason)])
        }),
        (None, Some(set), None) => Some(resolve_tool_set(entry, set, toolbox)),
        (None, None, Some(source)) => {
            Some(parse_allow_only(entry).map(|allow| ToolUseTarget::Source {
                name: name.to_owned(),
                source: Arc::clone(source),
                allow,
            }))
        }
        (None, None, None) => {
            // A known source without its own tools cannot be listed in `tools:`.
            let source = toolbox.sources.get(name)?;
            let kind = source.kind();
            let reason = format!("it is a source of kind {kind}; name its tools, or a toolset");
            Some(Err(vec![unusable_entry(name, reason)]))
        }
        _ => {
            let what = [
                tool.map(|_| "a tool"),
                set.map(|_| "a toolset"),
                source.map(|_| "a source"),
            ];
            let what: Vec<&str> = what.into_iter().flatten().collect();
            let what = what.join(" and ");
            let reason = format!("it is {what}; give them different names");
            Some(Err(vec![unusable_entry(name, reason)]))
        }
    }
}

fn resolve_inline_server(
    entry: &JudgeTool,
    toolbox: &Toolbox,
) -> Result<ToolUseTarget, Vec<ToolError>> {
    let allow = parse_allow_list(&entry.name, &entry.settings).map_err(|why| vec![why])?;
    // The workspace's reader created the source, since only it knows the environment and the folder.
    match toolbox.inline_server(&entry.settings) {
        Some(source) => Ok(ToolUseTarget::Source {
            name: INLINE_SERVER.to_owned(),
            source: Arc::clone(source),
            allow,
        }),
        None => Err(vec![unusable_entry(
            INLINE_SERVER,
            "this server is in no workspace that was read; name a source of kind mcp instead",
        )]),
    }
}

fn resolve_tool_set(
    entry: &JudgeTool,
    set: &[String],
    toolbox: &Toolbox,
) -> Result<ToolUseTarget, Vec<ToolError>> {
    let allow = parse_allow_only(entry)?;
    let name = &entry.name;
    let mut tools = Vec::new();
    for tool in allow.as_deref().unwrap_or(set) {
        match toolbox.tools.get(tool).filter(|_| set.contains(tool)) {
            Some(tool) => tools.push(Arc::clone(tool)),
            None => {
                return Err(vec![missing_tool_error(
                    name,
                    tool,
                    set.iter().map(String::as_str),
                )]);
            }
        }
    }
    Ok(ToolUseTarget::Definitions(tools))
}

fn missing_tool_error<'k>(
    owner: &str,
    tool: &str,
    known: impl Iterator<Item = &'k str> + Clone,
) -> ToolError {
    if let Some(near) = find_nearest(tool, known.clone()) {
        let reason = format!("it has no tool `{tool}`; did you mean `{near}`?");
        return unusable_entry(owner, reason);
    }
    let known: Vec<&str> = known.collect();
    let known = known.join(", ");
    unusable_entry(owner, format!("it has no tool `{tool}`; it has: {known}"))
}

fn unusable_entry(entry: &str, reason: impl Into<String>) -> ToolError {
    ToolError::UnusableEntry {
        entry: entry.to_owned(),
        reason: reason.into(),
    }
}

fn invalid_settings(message: String) -> ToolError {
    ToolError::InvalidSettings { message }
}

fn source_failed(message: String) -> ToolError {
    ToolError::SourceFailed { message }
}

/// Reads `allow`, the only setting of toolsets and sources.
fn parse_allow_only(entry: &JudgeTool) -> Result<Option<Vec<String>>, Vec<ToolError>> {
    let unknown = entry.settings.keys().filter(|key| *key != ALLOW_SETTING);
    let mut problems: Vec<ToolError> = unknown
        .map(|key| {
            let name = &entry.name;
            invalid_settings(format!(
                "{name}: unknown setting `{key}`; there is `{ALLOW_SETTING}`"
            ))
        })
        .collect();
    match parse_allow_list(&entry.name, &entry.settings) {
        Ok(allow) if problems.is_empty() => Ok(allow),
        Ok(_) => Err(problems),
        Err(why) => {
            problems.push(why);
            Err(problems)
        }
    }
}

fn parse_allow_list(
    name: &str,
    settings: &IndexMap<String, Value>,
) -> Result<Option<Vec<String>>, ToolError> {
    let Some(written) = settings.get(ALLOW_SETTING) else {
        return Ok(None);
    };
    let names = written.as_array().and_then(|items| {
        let names = items.iter().map(|item| item.as_str().map(str::to_owned));
        names.collect::<Option<Vec<String>>>()
    });
    match names {
        Some(names) if !names.is_empty() => Ok(Some(names)),
        _ => Err(invalid_settings(format!(
            "{name}: {ALLOW_SETTING} is a list of names of tools"
        ))),
    }
}

/// Selects the allowed tools of a source, in the order of the list.
fn filter_allowed_tools(
    name: &str,
    tools: Vec<Arc<ToolDefinition>>,
    allow: Option<&[String]>,
) -> Result<Vec<Arc<ToolDefinition>>, ToolError> {
    let Some(allow) = allow else {
        return Ok(tools);
    };
    let known = || tools.iter().map(|tool| tool.decl.name.as_str());
    allow
        .iter()
        .map(|wanted| {
            // A name in the list is the name for language models or the server's own name.
            let remote = |tool: &ToolDefinition| {
                let work = tool.executor.as_ref();
                work.is_some_and(|work| work.remote_name() == Some(wanted.as_str()))
            };
            let named = tools.iter().find(|tool| tool.decl.name == *wanted);
            let found = named.or_else(|| tools.iter().find(|tool| remote(tool)));
            found
                .cloned()
                .ok_or_else(|| missing_tool_error(name, wanted, known()))
        })
        .collect()
}

fn declared_definitions(chosen: &[ToolUseTarget]) -> Vec<Arc<ToolDefinition>> {
    let of_files = chosen.iter().filter_map(|what| match what {
        ToolUseTarget::Definitions(tools) => Some(tools),
        _ => None,
    });
    of_files.flatten().cloned().collect()
}

/// Returns the conflicts between a judge's tools: duplicate names and missing prerequisites. `asks` is true if a
/// source has tools that are not known yet.
fn check_tools_fit_together(
    all: &[Arc<ToolDefinition>],
    chosen: &[ToolUseTarget],
    asks: bool,
) -> Vec<ToolError> {
    let mut problems = Vec::new();
    let name = |tool: &Arc<ToolDefinition>| tool.decl.name.clone();
    let built_in = chosen.iter().filter_map(|what| match what {
        ToolUseTarget::BuiltIn(tool) => Some(tool.decl().name.clone()),
        _ => None,
    });
    // Transcript tools are not in the list; `is_built_in_tool` covers their names.
    let mut names: Vec<String> = built_in.collect();
    for (at, tool) in all.iter().enumerate() {
        // Two toolsets may contain the same tool; that is not a conflict.
        let is_same = |other: &Arc<ToolDefinition>| Arc::ptr_eq(other, tool);
        if all[..at].iter().any(is_same) {
            continue;
        }
        // Also without listing them: a built-in name must not mean something else.
        let is_taken = super::is_built_in_tool(&tool.decl.name) || names.contains(&tool.decl.name);
        if is_taken {
            let name = tool.decl.name.clone();
            problems.push(ToolError::DuplicateName { name });
        }
        problems.extend(broken_tool_error(tool).filter(|why| !problems.contains(why)));
        names.push(name(tool));
    }
    // With a source that was not asked yet, its tools may be the missing ones.
    for tool in all.iter().filter(|_| !asks) {
        for before in tool
            .prerequisites
            .iter()
            .filter(|before| !names.contains(before))
        {
            let why = ToolError::MissingPrerequisite {
                tool: tool.decl.name.clone(),
                prerequisite: before.clone(),
            };
            if !problems.contains(&why) {
                problems.push(why);
            }
        }
    }
    problems
}

/// Builds each tool once, in the order of `tools:`.
fn assemble_tool_set(
    chosen: Vec<ToolUseTarget>,
    found: &[DiscoveredTools],
    claims: &VerifiedClaims,
    toolbox: &Toolbox,
) -> ToolSet {
    let mut set = ToolSet::default();
    let mut found = found.iter();
    let file_tool = |definition: &Arc<ToolDefinition>, badge: Option<String>| -> Arc<dyn Tool> {
        let services: Vec<&str> = required_services(definition, toolbox).collect();
        let claims = claims.for_services(&services);
        Arc::new(FileTool::new(Arc::clone(definition), claims, badge))
    };
    for what in chosen {
        // The order of `tools:` is the order in which the model sees the tools.
        let tools: Vec<Arc<dyn Tool>> = match what {
            ToolUseTarget::BuiltIn(tool) => vec![tool],
            ToolUseTarget::TranscriptTool => Vec::new(),
            ToolUseTarget::Definitions(tools) => {
                let tools = tools.iter();
                tools
                    .map(|tool| file_tool(tool, source_badge(tool, toolbox)))
                    .collect()
            }
            // `found` has one element per source, in the same order as the targets.
            ToolUseTarget::Source { .. } => {
                let tools = found
                    .next()
                    .into_iter()
                    .flat_map(|found| found.tools.iter().map(|tool| (tool, found.badge.clone())));
                tools.map(|(tool, badge)| file_tool(tool, badge)).collect()
            }
        };
        for tool in tools {
            // Two toolsets may contain the same tool; the first one counts.
            if set.get(&tool.decl().name).is_none() {
                set.tools.push(tool);
            }
        }
    }
    set
}

fn source_badge(tool: &ToolDefinition, toolbox: &Toolbox) -> Option<String> {
    let about = toolbox.origins.get(&tool.decl.name)?;
    toolbox.sources.get(&about.source)?.badge()
}

#[cfg(test)]
mod tests;
