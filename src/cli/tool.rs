//! `dicta tool NAME JSON`: calls one tool exactly as a judge would, and prints the call's report.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::args::ToolArgs;
use super::error::CommandError;
use super::format::Format;
use super::tool_context::{
    ToolCallLog, ToolContext, build_redactor, list_own_tool_sources, open_source_tools,
    parse_resolve_args, with_call_cx,
};
use super::transcript_file::open_file;
use super::workspace::load_workspace_without_judges;
use super::{CommandCx, build_runtime};
use crate::diag::{Severity, find_nearest};
use crate::event::CallCx;
use crate::judge::collect_judged_messages;
use crate::model::{
    ArgumentChange, CallIx, Hop, JudgeTool, Millis, RawJson, Transcript, pluralize,
};
use crate::tools::toolbox::Toolbox;
use crate::tools::transcript_tools::{is_transcript_tool, transcript_tools_for};
use crate::tools::{
    self, PreparedCall, SeenUrls, Tool, ToolDeps, ToolExecution, ToolSet, built_in_tool_decls,
    execute_tool_call, list_tool_names, open_single_tool, parse_arguments,
    prepare_call_catching_panics, unknown_tool_rejection,
};

/// The report of a call, in the layout of `--format json`.
#[derive(Debug, Serialize)]
struct ToolCallReport<'a> {
    tool: &'a str,
    raw: &'a str,
    canonical: Option<&'a RawJson>,
    repaired: bool,
    /// The changes by the argument repair, then those by lenient typing.
    changes: Vec<&'a ArgumentChange>,
    values: Option<&'a RawJson>,
    outcome: &'static str,
    /// The rule that rejected the call.
    rule: Option<&'a str>,
    error: Option<String>,
    text: Option<&'a str>,
    bytes: u64,
    truncated: bool,
    hops: &'a [Hop],
    /// The error of the first attempt, if dicta retried the call.
    retried: Option<&'a str>,
    duration_ms: u64,
}

/// Calls the tool and prints the report. Returns exit code 0 if the call finished, 1 if it was rejected or failed.
pub(super) fn call_tool(args: &ToolArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let runtime = build_runtime()?;
    let (toolbox, called) = runtime.block_on(run_tool_call(args, cx))?;
    // A tool source may still hold a thread. It ends with the process, so don't wait for it.
    drop(runtime);
    for note in &called.log.notes {
        cx.streams.print_note(&format!("note: {note}"));
    }
    let report = build_report(args, &called);
    let text = if args.format == Format::Human {
        format_report(&report)
    } else {
        let json = serde_json::to_string(&report)
            .map_err(|error| CommandError::usage(error.to_string()))?;
        json + "\n"
    };
    // Redact the whole report, because arguments and errors may repeat a secret.
    let clean = build_redactor(&toolbox).redact(&text);
    cx.streams
        .print_format_lines(args.format, &clean.unwrap_or(text));
    Ok(u8::from(report.outcome != "finished"))
}

/// A call with its arguments, response and log.
struct ToolTrial {
    prepared: PreparedCall,
    called: Option<ToolExecution>,
    log: ToolCallLog,
    elapsed: Millis,
}

async fn run_tool_call(
    args: &ToolArgs,
    cx: &CommandCx,
) -> Result<(Arc<Toolbox>, ToolTrial), CommandError> {
    let found = load_tool_context(args, cx)?;
    let toolbox = Arc::clone(&found.deps.toolbox);
    let work = async |call_cx: &CallCx| {
        let CallableTools { set, known } = open_tool_set(args, &found, call_cx, cx).await?;
        if let Some(tool) = set.get(&args.name) {
            for note in list_tool_notes(&**tool, &found.deps.toolbox) {
                cx.streams.print_note(&note);
            }
        }
        let mut seen = SeenUrls::default();
        // A URL in the user's own argument counts as seen: the seen rule protects against URLs that a text planted.
        // The canonical arguments are added too, because JSON escapes can hide a URL in the raw ones.
        seen.add_text(&args.json);
        if let Ok(arguments) = parse_arguments(&args.name, &args.json) {
            seen.add_text(arguments.canonical.get());
            // Each text as a whole: a URL may contain characters that end it in a text.
            let values: Map<String, Value> =
                serde_json::from_str(arguments.canonical.get()).unwrap_or_default();
            for text in values.values().filter_map(Value::as_str) {
                seen.add_url(text);
            }
        }
        let started = call_cx.clock.now();
        let mut prepared = prepare_call_catching_panics(&set, &args.name, &args.json, &seen);
        // The rejection by an empty set would list no names, so replace it by one with all known names.
        if let Some(known) = known {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            prepared.outcome = Err(unknown_tool_rejection(&args.name, &known));
        }
        let tool = prepared.outcome.as_ref().ok();
        let tool = tool.and_then(|ready| Some((ready, set.get(&ready.tool)?)));
        let called = match tool {
            Some((ready, tool)) => {
                Some(execute_tool_call(&**tool, ready, CallIx(0), call_cx).await)
            }
            None => None,
        };
        let elapsed = call_cx.clock.now().since(started);
        Ok::<_, CommandError>((prepared, called, elapsed))
    };
    let (done, log) = with_call_cx(&toolbox, cx, work).await;
    let (prepared, called, elapsed) = done?;
    let call = ToolTrial {
        prepared,
        called,
        log,
        elapsed,
    };
    Ok((toolbox, call))
}

/// Returns warnings and notes about a tool, to print before the call.
fn list_tool_notes(tool: &dyn Tool, toolbox: &Toolbox) -> Vec<String> {
    let mut notes: Vec<String> = tool.badge().into_iter().collect();
    if let Some(about) = toolbox.origins.get(&tool.decl().name) {
        notes.extend(about.lints.iter().cloned());
    }
    for line in &mut notes {
        line.insert_str(0, "warning: ");
    }
    if !tool.prerequisites().is_empty() {
        notes.push(format!(
            "note: a judge can call this tool only after {}; here dicta calls it alone",
            tool.prerequisites().join(", ")
        ));
    }
    notes
}

/// Loads the tools files. A built-in tool without a judge needs none, so it works outside a workspace.
fn load_tool_context(args: &ToolArgs, cx: &CommandCx) -> Result<ToolContext, CommandError> {
    if args.judge.is_none() && is_built_in(&args.name) {
        return Ok(ToolContext {
            deps: ToolDeps {
                host_overrides: parse_resolve_args(&args.resolve)?,
                ..ToolDeps::default()
            },
            problems: Vec::new(),
            root: None,
        });
    }
    ToolContext::load(args.place.workspace.as_deref(), &args.resolve, cx)
}

fn is_built_in(name: &str) -> bool {
    built_in_tool_decls().iter().any(|decl| decl.name == name)
}

/// The tools among which the call finds its tool.
struct CallableTools {
    set: ToolSet,
    /// The names of all tools, if no tool has the requested name.
    known: Option<Vec<String>>,
}

impl From<ToolSet> for CallableTools {
    fn from(set: ToolSet) -> Self {
        Self { set, known: None }
    }
}

async fn open_tool_set(
    args: &ToolArgs,
    found: &ToolContext,
    call_cx: &CallCx,
    cx: &CommandCx,
) -> Result<CallableTools, CommandError> {
    match (&args.transcript, is_transcript_tool(&args.name)) {
        // Transcript tools work on a given transcript and need no toolbox.
        (Some(at), true) => {
            let messages = Arc::new(collect_judged_messages(&read_transcript_arg(at)?));
            return Ok(ToolSet {
                tools: transcript_tools_for(&messages),
            }
            .into());
        }
        (None, true) => {
            return Err(CommandError::usage(format!(
                "`{}` reads a transcript; add --transcript FILE or FILE:ID",
                args.name
            )));
        }
        (Some(_), false) => {
            return Err(CommandError::usage(format!(
                "--transcript works only with tools that read a transcript; `{}` doesn't",
                args.name
            )));
        }
        (None, false) => {}
    }
    match &args.judge {
        Some(name) => open_judge_tools(name, args, found, call_cx, cx)
            .await
            .map(CallableTools::from),
        None => open_standalone_tool(args, found, call_cx, cx).await,
    }
}

/// Opens the tool with the judge's settings. Without an entry of that name, opens all tools of the judge, because a set
/// or a server may contain the tool.
async fn open_judge_tools(
    name: &str,
    args: &ToolArgs,
    found: &ToolContext,
    call_cx: &CallCx,
    cx: &CommandCx,
) -> Result<ToolSet, CommandError> {
    let workspace = load_workspace_without_judges(args.place.workspace.as_deref(), cx)?.workspace;
    let judge = workspace.judges.get(name).ok_or_else(|| {
        let known: Vec<&str> = workspace.judges.keys().map(String::as_str).collect();
        CommandError::usage(format!(
            "unknown judge `{name}`; available judges: {}",
            known.join(", ")
        ))
    })?;
    let mut deps = found.deps.clone();
    // The toolbox of the context contains the overrides of `--resolve`.
    if deps.host_overrides.is_empty() {
        deps.toolbox = Arc::clone(&workspace.tools);
    }
    let entry = judge.tools.iter().find(|entry| entry.name == args.name);
    let uses = entry.map_or(&judge.tools[..], std::slice::from_ref);
    found.confirm_sends(&deps.toolbox, uses, cx)?;
    let opened = match entry {
        Some(entry) => open_single_tool(entry, &deps, call_cx).await,
        None => tools::open_tools(&judge.tools, &deps, call_cx).await,
    };
    opened.map_err(|problems| CommandError::usage(problems.to_string()))
}

/// Opens the tool of that name, from a tools file or from a source that has its own tools. An unknown name is not a
/// usage error: the call is rejected, exactly as a judge's call would be.
async fn open_standalone_tool(
    args: &ToolArgs,
    found: &ToolContext,
    call_cx: &CallCx,
    cx: &CommandCx,
) -> Result<CallableTools, CommandError> {
    let deps = &found.deps;
    let toolbox = &deps.toolbox;
    let is_listable = list_tool_names(toolbox).contains(&args.name);
    if !is_built_in(&args.name) && !toolbox.tools.contains_key(&args.name) {
        let mut known: Vec<String> = built_in_tool_decls()
            .into_iter()
            .map(|decl| decl.name)
            .collect();
        known.extend(toolbox.tools.keys().cloned());
        let sources = toolbox.sources.iter();
        found.confirm_sends(toolbox, &list_own_tool_sources(toolbox), cx)?;
        for (name, _) in sources.filter(|(_, source)| source.has_own_tools()) {
            match open_source_tools(name, deps, call_cx).await {
                Ok(set) if set.get(&args.name).is_some() => return Ok(set.into()),
                Ok(set) => known.extend(set.decls().into_iter().map(|decl| decl.name)),
                Err(problems) => cx.streams.print_stderr(&format!(
                    "can't list the tools of source `{name}`: {problems}"
                )),
            }
        }
        // The tool may be defined in a part that could not be read, so show the errors.
        // Warnings about other tools are of no interest here.
        let errors = found.problems.iter();
        let errors = errors.filter(|problem| problem.severity == Severity::Error);
        cx.streams
            .print_diagnostics(&errors.cloned().collect::<Vec<_>>());
        // A judge cannot list this name either, so the call is rejected as a judge's call would be.
        if !is_listable {
            let set = ToolSet::default();
            return Ok(CallableTools {
                set,
                known: Some(known),
            });
        }
    }
    let entry = JudgeTool {
        name: args.name.clone(),
        settings: indexmap::IndexMap::new(),
    };
    found.confirm_sends(toolbox, std::slice::from_ref(&entry), cx)?;
    let opened = open_single_tool(&entry, deps, call_cx).await;
    let opened = opened.map_err(|problems| CommandError::usage(problems.to_string()))?;
    Ok(opened.into())
}

/// Reads the transcript at `FILE` (the first one) or `FILE:ID`. An existing file whose name contains a colon has
/// priority.
fn read_transcript_arg(arg: &str) -> Result<Transcript<'static>, CommandError> {
    let whole_path = Path::new(arg);
    let (path, id) = match arg.rsplit_once(':') {
        Some((file, id)) if !whole_path.exists() && Path::new(file).exists() => {
            (Path::new(file), Some(id))
        }
        // An id may contain colons: `t.jsonl:t:3`.
        _ if !whole_path.exists() => match arg
            .match_indices(':')
            .find(|(cut, _)| Path::new(&arg[..*cut]).exists())
        {
            Some((cut, _)) => (Path::new(&arg[..cut]), Some(&arg[cut + 1..])),
            None => (whole_path, None),
        },
        _ => (whole_path, None),
    };
    let trouble =
        |error: crate::transcript::TranscriptError| CommandError::usage(error.to_string());
    let mut file = open_file(path, None)?;
    let mut ids = Vec::new();
    while let Some(block) = file.next_block().map_err(trouble)? {
        for (record, bytes) in block.records() {
            let default = file.default_id(record.span.number);
            // `dicta check` reports bad records. Here, only the wanted transcript matters.
            let Ok(transcript) = record.parse(bytes, &default) else {
                continue;
            };
            if id.is_none_or(|id| *transcript.id == *id) {
                return Ok(transcript.into_owned());
            }
            ids.push(transcript.id.to_string());
        }
    }
    let path = path.display();
    Err(CommandError::usage(match id {
        None => format!("{path} contains no readable transcript"),
        Some(id) => match find_nearest(id, ids.iter().map(String::as_str)) {
            Some(near) => {
                format!("{path} doesn't contain the transcript `{id}`; did you mean `{near}`?")
            }
            None => format!(
                "{path} doesn't contain the transcript `{id}`; it contains {}",
                pluralize(ids.len(), "transcript")
            ),
        },
    }))
}

fn build_report<'a>(args: &'a ToolArgs, call: &'a ToolTrial) -> ToolCallReport<'a> {
    let prepared = &call.prepared;
    let answer = call.called.as_ref().map(|called| &called.response);
    let mut changes: Vec<&ArgumentChange> = prepared.changes.iter().collect();
    let (mut values, mut rule, mut error, mut outcome) = (None, None, None, "finished");
    match &prepared.outcome {
        Err(rejection) => {
            rule = Some(rejection.rule.as_str());
            error = Some(rejection.text.clone());
            outcome = "rejected";
        }
        Ok(ready) => {
            values = Some(&ready.values);
            changes.extend(&ready.coerced);
            if let Some(answer) = answer.filter(|answer| answer.is_error) {
                error = Some(answer.text.clone());
                outcome = "error";
            }
        }
    }
    ToolCallReport {
        tool: &args.name,
        raw: &args.json,
        canonical: prepared.canonical.as_ref(),
        repaired: !prepared.changes.is_empty(),
        changes,
        values,
        outcome,
        rule,
        error,
        text: answer.map(|a| a.text.as_str()),
        bytes: answer.map_or(0, |a| a.bytes),
        truncated: answer.is_some_and(|a| a.truncated),
        hops: &call.log.hops,
        retried: call
            .called
            .as_ref()
            .and_then(|called| called.first_failure.as_deref()),
        duration_ms: call.elapsed.0,
    }
}

fn format_report(report: &ToolCallReport<'_>) -> String {
    let mut out = format!("{}({})\n", report.tool, report.raw);
    if let Some(canonical) = report.canonical.filter(|c| c.get() != report.raw) {
        let _infallible = writeln!(out, "canonical  {}", canonical.get());
    }
    for change in &report.changes {
        let at = if change.path.is_empty() {
            String::new()
        } else {
            format!("{} ", change.path)
        };
        let _infallible = writeln!(out, "changed    {at}{}", change.what);
    }
    let apart = |values: &&RawJson| report.canonical.is_none_or(|c| c.get() != values.get());
    if let Some(values) = report.values.filter(apart) {
        let _infallible = writeln!(out, "values     {}", values.get());
    }
    for hop in report.hops {
        let address = hop.address.map(|a| format!(" at {a}")).unwrap_or_default();
        let end = match (&hop.refused, hop.status) {
            (Some(why), _) => format!("refused: {why}"),
            (None, Some(status)) => status.to_string(),
            (None, None) => "no reply".to_owned(),
        };
        let _infallible = writeln!(out, "hop        {}{address} → {end}", hop.url);
    }
    if let Some(why) = report.retried {
        let _infallible = writeln!(out, "tried      twice; first: {why}");
    }
    if let Some(rule) = report.rule {
        let _infallible = writeln!(out, "rule       {rule}");
    }
    let cut = if report.truncated { ", cut" } else { "" };
    let elapsed = Millis(report.duration_ms);
    let _infallible = writeln!(
        out,
        "{:<10} {} bytes{cut}, {elapsed}",
        report.outcome, report.bytes
    );
    if let Some(text) = report.error.as_deref().or(report.text) {
        let _infallible = writeln!(out, "\n{text}");
    }
    out
}
