//! `dicta tool NAME JSON`: one judge tool exactly as a judge would call it.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::args::{ListFormat, ToolArgs};
use super::trouble::Trouble;
use super::workspace::open;
use super::{Cx, runtime};
use crate::diag::nearest;
use crate::event::{CallCx, Emitter, Envelope, Kind, MemoryBlobs, Redactor, ToolFact};
use crate::judge::book_of;
use crate::model::{
    Answer, CallIx, CellIx, Change, Hop, Millis, RawJson, ToolUse, Transcript, TurnIx,
};
use crate::net::parse_resolve;
use crate::tools::reading::{is_reading, over};
use crate::tools::{PreparedCall, Seen, ToolDeps, ToolSet, build, parse_arguments, prepare_call};
use crate::transcript::{TranscriptFile, parse};

/// What came of the call, in the shape of `--format json` (design.md 4).
#[derive(Debug, Serialize)]
struct Report<'a> {
    tool: &'a str,
    raw: &'a str,
    canonical: Option<&'a RawJson>,
    repaired: bool,
    changes: &'a [Change],
    values: Option<&'a RawJson>,
    outcome: &'static str,
    error: Option<String>,
    text: Option<&'a str>,
    bytes: u64,
    truncated: bool,
    hops: &'a [Hop],
    duration_ms: u64,
}

/// Calls the tool and prints what came of it: 0 finished, 1 rejected or error.
pub(super) fn tool(args: &ToolArgs, cx: &Cx) -> Result<u8, Trouble> {
    let set = tool_set(args, cx)?;
    if let Some(badge) = set.get(&args.name).and_then(|tool| tool.badge()) {
        cx.streams.tell(&format!("warning: {badge}"));
    }
    let mut seen = Seen::default();
    // Its own argument counts as seen: nobody is led astray by a URL they typed themselves. Escapes hide none.
    seen.note(&args.json);
    if let Ok(arguments) = parse_arguments(&args.name, &args.json) {
        seen.note(arguments.canonical.get());
    }
    let started = cx.clock.now();
    let prepared = prepare_call(&set, &args.name, &args.json, &seen);
    let (answer, hops) = if prepared.outcome.is_ok() {
        let (answer, hops) = runtime()?.block_on(call(&set, &prepared, cx));
        (Some(answer), hops)
    } else {
        (None, Vec::new())
    };
    let elapsed = cx.clock.now().since(started);
    let report = report(args, &prepared, answer.as_ref(), &hops, elapsed);
    match args.format {
        ListFormat::Json => {
            let json = serde_json::to_string(&report)
                .map_err(|error| Trouble::usage(error.to_string()))?;
            cx.streams.print(&(json + "\n"));
        }
        ListFormat::Human => cx.streams.print(&human(&report)),
    }
    Ok(u8::from(report.outcome != "finished"))
}

fn tool_set(args: &ToolArgs, cx: &Cx) -> Result<ToolSet, Trouble> {
    match (&args.transcript, is_reading(&args.name)) {
        (Some(at), true) => {
            let book = Arc::new(book_of(&transcript_at(at)?));
            return Ok(ToolSet { tools: over(&book) });
        }
        (None, true) => {
            return Err(Trouble::usage(format!(
                "`{}` reads a transcript: name one with --transcript FILE or FILE:ID",
                args.name
            )));
        }
        (Some(_), false) => {
            return Err(Trouble::usage(format!(
                "--transcript is for the tools that read one, and `{}` does not",
                args.name
            )));
        }
        (None, false) => {}
    }
    let uses = match &args.judge {
        None => vec![ToolUse {
            name: args.name.clone(),
            settings: indexmap::IndexMap::new(),
        }],
        Some(name) => {
            let workspace = open(args.place.workspace.as_deref(), cx)?.workspace;
            let judge = workspace.judges.get(name).ok_or_else(|| {
                let known: Vec<&str> = workspace.judges.keys().map(String::as_str).collect();
                Trouble::usage(format!(
                    "no judge is called `{name}`; the judges here are {}",
                    known.join(", ")
                ))
            })?;
            judge.tools.clone()
        }
    };
    let mut resolve = Vec::new();
    for text in &args.resolve {
        resolve.extend(
            parse_resolve(text).map_err(|why| Trouble::usage(format!("--resolve: {why}")))?,
        );
    }
    build(
        &uses,
        &ToolDeps {
            resolve,
            ..ToolDeps::default()
        },
    )
    .map_err(|problems| Trouble::usage(problems.join("; ")))
}

/// The transcript at `FILE` (its first) or `FILE:ID`. A file whose name holds a colon is taken as it is.
fn transcript_at(at: &str) -> Result<Transcript<'static>, Trouble> {
    let whole = Path::new(at);
    let (path, id) = match at.rsplit_once(':') {
        Some((file, id)) if !whole.exists() && Path::new(file).exists() => {
            (Path::new(file), Some(id))
        }
        // An id may hold colons: `t.jsonl:t:3`.
        _ if !whole.exists() => match at
            .match_indices(':')
            .find(|(cut, _)| Path::new(&at[..*cut]).exists())
        {
            Some((cut, _)) => (Path::new(&at[..cut]), Some(&at[cut + 1..])),
            None => (whole, None),
        },
        _ => (whole, None),
    };
    let trouble = |error: crate::transcript::TranscriptError| Trouble::usage(error.to_string());
    let mut file = TranscriptFile::open(path).map_err(trouble)?;
    let mut ids = Vec::new();
    while let Some(block) = file.next_block().map_err(trouble)? {
        for span in &block.spans {
            let default = file.default_id(span.number);
            let Ok(transcript) = parse(block.record(*span), span.number, &default) else {
                continue;
            };
            if id.is_none_or(|id| *transcript.id == *id) {
                return Ok(transcript.into_owned());
            }
            ids.push(transcript.id.to_string());
        }
    }
    let path = path.display();
    Err(Trouble::usage(match id {
        None => format!("{path} holds no transcript that can be read"),
        Some(id) => match nearest(id, ids.iter().map(String::as_str)) {
            Some(near) => {
                format!("{path} holds no transcript `{id}`; did you mean `{near}`?")
            }
            None => format!("{path} holds no transcript `{id}` among its {}", ids.len()),
        },
    }))
}

async fn call(set: &ToolSet, prepared: &PreparedCall, cx: &Cx) -> (Answer, Vec<Hop>) {
    let (to, mut facts) = tokio::sync::mpsc::channel::<Envelope>(256);
    let out = Emitter::new(
        to,
        Arc::new(MemoryBlobs::default()),
        Arc::new(Redactor::default()),
    );
    let clock = Arc::clone(&cx.clock);
    let cancel = CancellationToken::new();
    let call_cx = CallCx {
        out,
        clock,
        cancel,
        cell: CellIx(0),
        turn: TurnIx(0),
    };
    let gather = async {
        let mut hops = Vec::new();
        while let Some(envelope) = facts.recv().await {
            if let Kind::Tool {
                fact: ToolFact::Hop(hop),
                ..
            } = envelope.kind
            {
                hops.push(hop);
            }
        }
        hops
    };
    let work = async move {
        match (
            &prepared.outcome,
            prepared
                .outcome
                .as_ref()
                .ok()
                .and_then(|p| set.get(&p.tool)),
        ) {
            (Ok(prepared), Some(tool)) => tool.call(prepared, CallIx(0), &call_cx).await,
            _ => Answer::error("the tool is gone"),
        }
    };
    tokio::join!(work, gather)
}

fn report<'a>(
    args: &'a ToolArgs,
    prepared: &'a PreparedCall,
    answer: Option<&'a Answer>,
    hops: &'a [Hop],
    elapsed: Millis,
) -> Report<'a> {
    let (values, outcome, error) = match (&prepared.outcome, answer) {
        (Err(rejection), _) => (None, "rejected", Some(rejection.text.clone())),
        (Ok(ready), Some(answer)) if answer.is_error => {
            (Some(&ready.values), "error", Some(answer.text.clone()))
        }
        (Ok(ready), _) => (Some(&ready.values), "finished", None),
    };
    Report {
        tool: &args.name,
        raw: &args.json,
        canonical: prepared.canonical.as_ref(),
        repaired: !prepared.changes.is_empty(),
        changes: &prepared.changes,
        values,
        outcome,
        error,
        text: answer.map(|a| a.text.as_str()),
        bytes: answer.map_or(0, |a| a.bytes),
        truncated: answer.is_some_and(|a| a.truncated),
        hops,
        duration_ms: elapsed.0,
    }
}

fn human(report: &Report<'_>) -> String {
    let mut out = format!("{}({})\n", report.tool, report.raw);
    if let Some(canonical) = report.canonical.filter(|c| c.get() != report.raw) {
        let _infallible = writeln!(out, "canonical  {}", canonical.get());
    }
    for change in report.changes {
        let _infallible = writeln!(out, "changed    {} {}", change.path, change.what);
    }
    for hop in report.hops {
        let address = hop.address.map(|a| format!(" at {a}")).unwrap_or_default();
        let end = match (&hop.refused, hop.status) {
            (Some(why), _) => format!("refused: {why}"),
            (None, Some(status)) => status.to_string(),
            (None, None) => "no answer".to_owned(),
        };
        let _infallible = writeln!(out, "hop        {}{address} → {end}", hop.url);
    }
    let cut = if report.truncated { ", cut" } else { "" };
    let elapsed = Millis(report.duration_ms);
    let _infallible = writeln!(
        out,
        "{}   {} bytes{cut}, {elapsed}",
        report.outcome, report.bytes
    );
    if let Some(text) = report.error.as_deref().or(report.text) {
        let _infallible = writeln!(out, "\n{text}");
    }
    out
}
