//! `dicta check --connect`: responsible for one test call to every judge and every tool source, and its report. Exit
//! code 0: every judge returned a verdict; 2: a judge or source is misconfigured; 3: a call ended in an error.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::args::{ConnectArgs, ExampleArgs};
use super::consent::confirm_paid_calls;
use super::error::{CommandError, EXIT_USAGE};
use super::format::{Format, LIST_FORMATS};
use super::tool_sources::ToolProbe;
use super::trust::confirm_sends;
use super::workspace::load_workspace_to_check;
use super::{CommandCx, build_runtime, check, tool_sources};
use crate::handlers::EvalTypeRegistry;
use crate::model::{
    ApiKeySource, CellResult, ExitReason, JudgeConfig, Outcome, format_usd, pluralize,
};
use crate::report::{describe_outcome, format_bytes};
use crate::run::{
    ConnectionCheck, ConnectionReport, PaidCalls, check_connections, is_built_in,
    preview_connections,
};
use crate::workspace::{Workspace, trust};

/// The exit code of an error; a run with errors but no failures exits with the same code.
const EXIT_FAILED: u8 = ExitReason::NoVerdict.code();

/// Runs `dicta check`, then tests the connections if `--connect` is given.
pub(super) fn check_and_connect(
    path: Option<&Path>,
    strict: bool,
    exam: &ExampleArgs,
    connecting: &ConnectArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    // `--judge` needs one of two flags, so clap's `requires` does not fit.
    if exam.judge.is_some() && !(exam.examples || connecting.connect) {
        return Err(CommandError::usage("--judge needs --examples or --connect"));
    }
    if exam.consent.is_given() && !(exam.examples || connecting.connect) {
        return Err(CommandError::usage(
            "--yes and --max-cost need --examples or --connect",
        ));
    }
    if !connecting.connect {
        return check::check(path, strict, exam, connecting.format, cx);
    }
    connecting.format.require(LIST_FORMATS, "--connect")?;
    let is_workspace =
        path.is_none_or(|path| path.is_dir() || path.ends_with(crate::workspace::CONFIG_FILE));
    if !is_workspace {
        return Err(CommandError::usage(
            "--connect tests the judges and sources of a workspace; pass the folder of the workspace, or no path",
        ));
    }
    // With another format, standard output contains only the connections. So the other check prints as
    // text to standard error.
    let checked = match connecting.format {
        Format::Human => check::check(path, strict, exam, Format::Human, cx)?,
        // The check of the files is left out here, so only the connections decide the exit code.
        _ => 0,
    };
    let tried = connect_all(path, exam, connecting.format, cx)?;
    Ok(if tried == 0 { checked } else { tried })
}

fn connect_all(
    path: Option<&Path>,
    exam: &ExampleArgs,
    format: Format,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let mut workspace =
        Workspace::clone(&load_workspace_to_check(path, exam.judge.as_deref(), cx)?.workspace);
    let limit_usd = workspace.limits.confirm_usd;
    if exam.consent.max_cost.is_some() {
        workspace.limits.budgets.run.max_cost_usd = exam.consent.max_cost;
    }
    let workspace = &workspace;
    let only = exam.judge.as_deref();
    // Step: choose the judges.
    let judges: Vec<&JudgeConfig> = match only {
        None => workspace.judges.values().collect(),
        Some(name) => {
            let found = workspace.find_judge(name);
            let found = found.ok_or_else(|| {
                let names: Vec<&str> = workspace.judges.keys().map(String::as_str).collect();
                let names = names.join(", ");
                CommandError::usage(format!("unknown judge `{name}`; available judges: {names}"))
            })?;
            vec![found]
        }
    };
    // A user who names one judge tests only that judge, so the sources are skipped.
    let tools = match only {
        None => tool_sources::count_probes(workspace),
        Some(_) => 0,
    };
    // Step: ask before anything connects.
    let mut sends = trust::list_judge_sends(judges.iter().copied(), &cx.env);
    let asked = judges.iter().copied();
    sends.extend(trust::list_prompt_sends(asked, workspace, &cx.env));
    if tools > 0 {
        sends.extend(trust::list_tool_sends(&workspace.tools, None));
    }
    confirm_sends(&workspace.root, sends, cx)?;
    let runtime = build_runtime()?;
    let registry = EvalTypeRegistry::builtin();
    let previews = preview_connections(workspace, &registry, &cx.env, &cx.clock, &judges);
    let previews = runtime.block_on(previews);
    let calls = PaidCalls::of_judges(previews.iter().map(|(judge, one)| (&*judge.name, one)));
    confirm_paid_calls(&calls, "test question", limit_usd, &exam.consent, cx)?;
    if let Some(max_usd) = exam.consent.max_cost {
        check_max_cost(&calls, max_usd)?;
    }
    // Step: announce the requests before they are sent.
    let tested_count = judges.iter().filter(|judge| !is_built_in(judge)).count();
    if tested_count > 0 {
        cx.streams.print_note(&format!(
            "testing {} at the same time: a few small requests each, billed to their keys",
            pluralize(tested_count as u64, "judge")
        ));
    }
    if tools > 0 {
        let tools = pluralize(tools as u64, "source");
        cx.streams
            .print_note(&format!("testing {tools} of tools at the same time"));
    }
    let cancel = CancellationToken::new();
    // Step: test judges and sources at the same time.
    let found = runtime.block_on(async {
        let probing = async {
            match tools {
                0 => Vec::new(),
                _ => tool_sources::probe_all(workspace, cx).await,
            }
        };
        let trying = async {
            let asking =
                check_connections(workspace, &registry, &cx.env, &cx.clock, &judges, &cancel);
            tokio::join!(asking, probing)
        };
        // By default, ctrl-c would end dicta without stopping the programs that tools started.
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => None,
            found = trying => Some(found),
        }
    });
    // A source or judge may block a thread, so don't wait for it.
    drop(runtime);
    let Some((found, probed)) = found else {
        return Ok(ExitReason::Interrupted.code());
    };
    // Step: print the report.
    let rows = || {
        let mut list: Vec<Value> = found.iter().map(as_json).collect();
        list.extend(probed.iter().map(ToolProbe::to_json));
        list
    };
    let human = || {
        let mut text: String = found.iter().map(format_connection).collect();
        for judge in judges.iter().filter(|judge| is_built_in(judge)) {
            let _infallible = writeln!(text, "\n{}: built in, calls no server", judge.name);
        }
        text.extend(probed.iter().map(ToolProbe::to_text));
        text
    };
    cx.streams.print_list(format, rows, human);
    Ok(exit_code(&found, &probed))
}

/// Checks that the calls of all judges together cost at most `max_usd`. Each judge has its own budget, which only limits
/// its own calls.
pub(super) fn check_max_cost(calls: &PaidCalls, max_usd: f64) -> Result<(), CommandError> {
    // The check of a judge without prices reports the missing prices.
    match calls.cost {
        Some(cost) if cost.most > max_usd => Err(CommandError::usage(format!(
            "--max-cost {max_usd}: the calls may cost up to {}; raise the limit, or ask one judge only",
            format_usd(cost.most)
        ))),
        _ => Ok(()),
    }
}

fn exit_code(found: &[ConnectionCheck], probed: &[ToolProbe]) -> u8 {
    let failed = |check: &ConnectionCheck| {
        check
            .report
            .as_ref()
            .is_ok_and(|report| !has_verdict(report))
    };
    let probed: Vec<bool> = probed.iter().filter_map(ToolProbe::unusable).collect();
    // Misconfiguration comes first, because trying again does not help.
    if found.iter().any(|check| check.report.is_err()) || probed.contains(&true) {
        EXIT_USAGE
    } else if found.iter().any(failed) || !probed.is_empty() {
        EXIT_FAILED
    } else {
        0
    }
}

/// Returns true if the judge returned any verdict.
fn has_verdict(report: &ConnectionReport) -> bool {
    let result = report.result.as_ref();
    result.is_some_and(|result| result.outcome.is_judgment())
}

/// Returns the provider as dicta.yaml spells it, and the model: `gemini` · `gemini-2.5-pro`.
fn describe_provider(judge: &JudgeConfig) -> String {
    let name = serde_json::to_value(judge.provider).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

fn format_connection(check: &ConnectionCheck) -> String {
    let judge = &check.judge;
    let mut out = format!(
        "\n{}: {} {}",
        judge.name,
        describe_provider(judge),
        judge.model
    );
    if let Some(base) = &judge.base_url {
        let _infallible = write!(out, " at {base}");
    }
    out.push('\n');
    let mut line = |name: &str, text: String| {
        let _infallible = writeln!(out, "  {name:<9} {text}");
    };
    match &check.report {
        Err(why) => line("✗", format!("not called: {why}")),
        Ok(report) => {
            for (name, text) in list_facts(judge, report) {
                line(name, text);
            }
        }
    }
    out
}

fn list_facts(judge: &JudgeConfig, report: &ConnectionReport) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let nothing = CellResult::cancelled();
    let result = report.result.as_ref().unwrap_or(&nothing);
    let well = has_verdict(report);
    let took = result.duration_ms;
    // A single failed attempt is often a rejected setting, which dicta then leaves out.
    let attempts = match report.attempts.saturating_sub(report.turns) {
        0 | 1 => String::new(),
        n => format!(", {n} attempts failed"),
    };
    facts.push(match (well, report.reached) {
        (true, _) => ("✓", format!("answered in {took}{attempts}")),
        (false, true) => (
            "✗",
            format!(
                "reached, no verdict after {took}: {}",
                describe_outcome(result.outcome)
            ),
        ),
        (false, false) => ("✗", format!("not reached ({took}{attempts})")),
    });
    if let Some(why) = result.error.as_ref().filter(|_| !well) {
        facts.push(("why", why.clone()));
        if let Some(advice) = suggest_fix(judge, report, result) {
            facts.push(("do", advice));
        }
    }
    if report.turns > 0 {
        let streamed = match (judge.stream, report.streamed) {
            (false, _) => "not streamed, as configured (stream: false)",
            (true, true) => "streamed",
            (true, false) => "streaming requested, but the reply was not streamed",
        };
        facts.push(("reply", streamed.to_owned()));
    }
    if report.has_tools {
        facts.push(("tools", format_tool_support(report)));
    }
    let verdict_format = match report.verdict_format {
        Some(verdict_format) => serde_json::to_value(verdict_format).unwrap_or_default(),
        None => json!("of its own kind"),
    };
    // If no server replied, the report states what dicta would have sent.
    let (stated, sent_as) = match (well, report.reached) {
        (true, _) => ("stated", "sent"),
        (false, true) => ("requested", "sent"),
        (false, false) => ("to be requested", "to send"),
    };
    let verdict_format = verdict_format.as_str().unwrap_or_default().to_owned();
    facts.push(("verdict", format!("{stated} as {verdict_format}")));
    let sent: Vec<&str> = report.sent_keys.iter().map(String::as_str).collect();
    facts.push((
        sent_as,
        format!(
            "{} ({})",
            sent.join(", "),
            format_bytes(report.request_bytes)
        ),
    ));
    for dropped in &report.dropped_settings {
        facts.push(("dropped", format!("{}: {}", dropped.what, dropped.why)));
    }
    // `error` already reports the last failure.
    let retried = report.failures.len().saturating_sub(usize::from(!well));
    let why = result.error.as_deref().unwrap_or_default();
    let mut failures: Vec<&str> = report.failures[..retried]
        .iter()
        .map(String::as_str)
        .collect();
    // Retries of the same failure are of no interest twice.
    failures.dedup();
    failures.retain(|failure| *failure != why);
    facts.extend(
        failures
            .into_iter()
            .map(|failure| ("retried", failure.to_owned())),
    );
    facts.push(("billed", format_billing(judge, result)));
    facts
}

fn format_tool_support(report: &ConnectionReport) -> String {
    match (report.answered_calls, report.rejected_calls.first()) {
        (0, Some(why)) => format!("the judge made a call, which dicta refused: {why}"),
        (0, None) => {
            "declared but not called (a test tool; dicta doesn't run the judge's own tools here)"
                .to_owned()
        }
        (n, _) => format!("{} made and answered", pluralize(u64::from(n), "call")),
    }
}

fn format_billing(judge: &JudgeConfig, result: &CellResult) -> String {
    let usage = result.usage.unwrap_or_default();
    let tokens = match (usage.input, usage.output) {
        (Some(input), Some(output)) => format!("{input} + {output} tokens"),
        _ => "tokens unknown".to_owned(),
    };
    let bill = result.bill();
    if bill.is_zero() && usage.input.is_none() {
        return "nothing".to_owned();
    }
    // Calls without a known price are listed apart from the sum.
    let calls = pluralize(bill.unknown, "call");
    let cost = match (bill.usd > 0.0, bill.unknown > 0) {
        _ if judge.is_free() => "free".to_owned(),
        (false, true) if judge.pricing().is_none() => "cost unknown (no prices)".to_owned(),
        (false, true) => format!("cost unknown for {calls}"),
        (true, true) => format!("${:.6} + unknown for {calls}", bill.usd),
        (_, false) => format!("${:.6}", bill.usd),
    };
    format!("{tokens}, {cost}")
}

/// Returns advice on how to fix an error.
fn suggest_fix(
    judge: &JudgeConfig,
    report: &ConnectionReport,
    result: &CellResult,
) -> Option<String> {
    let model = &judge.model;
    let key = match &judge.key {
        ApiKeySource::Env(name) | ApiKeySource::EnvIfSet(name) => format!("the key in {name}"),
        ApiKeySource::File(path) => format!("the key in {}", path.display()),
        ApiKeySource::Google(_) => "the Google credentials".to_owned(),
        ApiKeySource::None => "the key (not configured: set api_key_env)".to_owned(),
    };
    let why = result.error.as_deref().unwrap_or_default().to_lowercase();
    let text = match (result.outcome, report.status) {
        // Before the statuses, because servers use 400, 413 and 500 for it.
        (_, Some(_)) if exceeds_context(&why) => {
            "the request doesn't fit the model's context: start the server with a larger one (llama.cpp: --ctx-size), or set the judge's `context_window`".to_owned()
        }
        // The status is more specific than the outcome, so its arms come first.
        (_, Some(401 | 403)) => format!("check {key}, and that the key may use `{model}`"),
        (_, Some(404)) => {
            format!(
                "check the model name `{model}` and base_url: the server doesn't know one of them"
            )
        }
        (_, Some(400 | 422)) => {
            "the server rejected a setting: compare the sent settings with the server's message".to_owned()
        }
        // 402 is "payment required", which some providers use for missing credit.
        (_, Some(402 | 429)) => {
            "the account's rate limit or credit is used up: wait, or raise it".to_owned()
        }
        (_, Some(500..)) => "the server reported an internal error: try again later".to_owned(),
        (Outcome::Timeout, _) => {
            "the server didn't reply in time: check that it is running, that the model is loaded, and the proxy settings".to_owned()
        }
        (Outcome::JudgeError, None) => suggest_network_fix(result)?,
        (Outcome::Unparsed, _) if report.has_tools => {
            "the model replies but doesn't call functions: check that model and server support them, or remove the judge's `tools`"
                .to_owned()
        }
        (Outcome::Unparsed, _) => {
            "the model replies, but without a valid verdict: try `verdict: text`, or a larger model".to_owned()
        }
        (Outcome::Truncated, _) => "the reply was cut off: raise max_output_tokens".to_owned(),
        (Outcome::TurnLimit, _) => {
            "the judge doesn't submit a verdict: raise max_turns, or remove its tools".to_owned()
        }
        _ => return None,
    };
    Some(text)
}

/// Returns whether a server's error states that the request is larger than the model's context window.
fn exceeds_context(error: &str) -> bool {
    [
        // llama.cpp, OpenAI and vLLM, LM Studio, Anthropic, Gemini.
        "exceed_context_size",
        "exceeds the available context size",
        "context_length_exceeded",
        "maximum context length",
        "greater than the context length",
        "prompt is too long",
        "exceeds the maximum number of tokens",
    ]
    .iter()
    .any(|words| error.contains(words))
}

/// Returns advice on a network error, or None if the error message itself contains it.
fn suggest_network_fix(result: &CellResult) -> Option<String> {
    // Errors of the HTTP client have no stable codes, so search their text.
    let why = result.error.as_deref().unwrap_or_default().to_lowercase();
    let mentions = |words: &[&str]| words.iter().any(|word| why.contains(word));
    if mentions(&["google credentials"]) {
        return None;
    }
    // rustls reports `InvalidContentType` if the server answers in plain HTTP.
    let text = if mentions(&["invalidcontenttype", "corrupt message"]) {
        "the server doesn't use TLS: write http:// in base_url, or use the https port"
    } else if mentions(&["certificate", "tls", "handshake", "secure connection"]) {
        "the server's certificate is not trusted: check base_url (http or https?) and any proxy in between"
    } else if mentions(&["resolve", "dns", "lookup", "name or service"]) {
        "the host name is unknown: check base_url and the network"
    } else if mentions(&["refused"]) {
        "no server listens at that address: start the server, or check base_url and its port"
    } else {
        "check base_url, the network and the proxy settings"
    };
    Some(text.to_owned())
}

fn as_json(check: &ConnectionCheck) -> Value {
    let judge = &check.judge;
    let mut out = json!({
        "type": "connect",
        "judge": judge.name,
        "provider": describe_provider(judge),
        "model": judge.model,
        "base_url": judge.base_url,
        "asked": check.report.is_ok(),
    });
    let report = match &check.report {
        Err(why) => {
            out["error"] = json!(why.to_string());
            return out;
        }
        Ok(report) => report,
    };
    let nothing = CellResult::cancelled();
    let result = report.result.as_ref().unwrap_or(&nothing);
    let well = has_verdict(report);
    let more = json!({
        "ok": well,
        "reached": report.reached,
        "status": report.status,
        "outcome": result.outcome,
        "streamed": report.streamed,
        "turns": report.turns,
        "attempts": report.attempts,
        "tools": report.has_tools,
        "tool_calls_answered": report.answered_calls,
        "tool_calls_refused": report.rejected_calls.len(),
        "verdict": report.verdict_format,
        "sent": report.sent_keys,
        "bytes": report.request_bytes,
        "dropped": report.dropped_settings,
        "failures": report.failures,
        "usage": result.usage,
        "cost_usd": result.cost_usd,
        "duration_ms": result.duration_ms.0,
        "error": result.error,
        "advice": (!well).then(|| suggest_fix(judge, report, result)).flatten(),
    });
    if let (Some(out), Value::Object(more)) = (out.as_object_mut(), more) {
        out.extend(more);
    }
    out
}
