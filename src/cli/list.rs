//! `dicta judges`, `dicta keys` and `dicta schema`: lists judges and keys, and prints JSON Schemas.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::CommandCx;
use super::args::{SchemaArg, WorkspaceArgs};
use super::error::CommandError;
use super::format::{Format, format_document};
use super::workspace::load_workspace_without_judges;
use crate::handlers::EvalTypeRegistry;
use crate::model::{ApiKeySource, JudgeConfig, ProviderKind, VERDICT_SOURCES, pluralize};
use crate::report;
use crate::rubric;
use crate::tools;
use crate::tui;
use crate::workspace::{self, Workspace};

/// Prints the judges of the workspace.
pub(super) fn list_judges(
    format: Format,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let workspace = load_workspace_without_judges(place.workspace.as_deref(), cx)?.workspace;
    let rows = || {
        let judges = workspace.judges.values();
        judges
            .map(|judge| judge_to_json(judge, &workspace, cx))
            .collect()
    };
    let human = || format_judges(&workspace, cx);
    cx.streams.print_list(format, rows, human);
    Ok(0)
}

/// Returns the JSON object of a judge. It contains no key, only the place of the key.
fn judge_to_json(judge: &JudgeConfig, workspace: &Workspace, cx: &CommandCx) -> Value {
    let (key_source, key_set) = match &judge.key {
        ApiKeySource::None => (None, None),
        ApiKeySource::Env(var) | ApiKeySource::EnvIfSet(var) => {
            (Some(var.clone()), Some(cx.env.get(var).is_some()))
        }
        ApiKeySource::File(path) => (Some(path.display().to_string()), None),
        ApiKeySource::Google(_) => {
            let found = workspace::find_google_credentials_source(judge, &cx.env);
            (Some(found.unwrap_or_default().description), None)
        }
    };
    let pricing = judge.pricing();
    let tools: Vec<&str> = judge.tools.iter().map(|tool| tool.name.as_str()).collect();
    json!({
        "type": "judge",
        "judge": judge.name,
        "default": workspace.judge.as_deref() == Some(&judge.name),
        "provider": judge.provider,
        "model": judge.model,
        "base_url": judge.base_url,
        "location": judge.location,
        "project": judge.project,
        "key_source": key_source,
        "key_set": key_set,
        "tools": tools,
        "max_turns": judge.max_turns,
        "free": judge.is_free(),
        "input_usd_per_million": pricing.as_ref().map(|pricing| pricing.prices.input),
        "output_usd_per_million": pricing.as_ref().map(|pricing| pricing.prices.output),
        "prices_as_of": pricing.as_ref().and_then(|pricing| pricing.as_of),
    })
}

fn format_judges(workspace: &Workspace, cx: &CommandCx) -> String {
    let mut out = String::new();
    let configs = workspace::list_model_configs(workspace, &cx.env);
    for (name, judge) in &workspace.judges {
        let default = if workspace.judge.as_deref() == Some(name) {
            "  (default)"
        } else {
            ""
        };
        // serde's name of the provider is its spelling in dicta.yaml.
        let provider = serde_json::to_value(judge.provider).ok();
        let provider = provider.as_ref().and_then(Value::as_str).unwrap_or("?");
        let what = format!("{provider} {}", judge.model);
        let _infallible = writeln!(out, "{name}{default}\n    {}", what.trim_end());
        if let Some(url) = &judge.base_url {
            let _infallible = writeln!(out, "    at {url}");
        }
        if let Some(location) = &judge.location {
            let project = judge.project.as_deref().unwrap_or("the credentials' own");
            let _infallible = writeln!(out, "    in {location}, project {project}");
        }
        if let Some(file) = configs.iter().find(|opened| opened.judge == *name) {
            let _infallible = writeln!(out, "    opened from {}", file.path.display());
        }
        // A source judge has no key, tools, turns or price.
        if judge.provider == ProviderKind::Source {
            let _infallible = writeln!(out, "    {}\n", describe_source_judge(judge));
            continue;
        }
        let key = match &judge.key {
            ApiKeySource::None => "no key".to_owned(),
            ApiKeySource::Env(var) if cx.env.get(var).is_some() => {
                format!("key from {var}, which is set")
            }
            ApiKeySource::Env(var) => format!("key from {var}, which is NOT set"),
            ApiKeySource::EnvIfSet(var) => format!("key from {var} if it is set"),
            ApiKeySource::File(path) => format!("key from {}", path.display()),
            ApiKeySource::Google(_) => {
                let found = workspace::find_google_credentials_source(judge, &cx.env);
                let from = found.unwrap_or_default().description;
                format!("Google credentials from {from}")
            }
        };
        let tool_names: Vec<&str> = judge.tools.iter().map(|t| t.name.as_str()).collect();
        let tool_list = if tool_names.is_empty() {
            "no tools".to_owned()
        } else {
            format!("tools {}", tool_names.join(", "))
        };
        let price = format_price(judge);
        let _infallible = writeln!(
            out,
            "    {key} · {tool_list} · at most {} · {price}",
            pluralize(judge.max_turns, "turn")
        );
        if let Some(rule) = tools::loosened_seen_rule(&judge.tools) {
            let _infallible = writeln!(
                out,
                "    ! fetch_url with `{rule}`: the judge may fetch addresses that it writes itself"
            );
        }
        out.push('\n');
    }
    let more: Vec<&str> = VERDICT_SOURCES
        .into_iter()
        .filter(|name| !workspace.judges.contains_key(*name))
        .collect();
    if !more.is_empty() {
        let _infallible = writeln!(
            out,
            "{}\n    available without configuration: verdicts imported with transcripts",
            more.join(", ")
        );
    }
    out
}

/// Describes the source verdicts that a source judge returns.
fn describe_source_judge(judge: &JudgeConfig) -> String {
    let what = match &judge.source {
        Some(of) => format!("the verdicts of {of}"),
        None => "all verdicts".to_owned(),
    };
    let scorer_note = match &judge.scorer {
        Some(scorer) => format!("; only those of `{scorer}`"),
        None => String::new(),
    };
    format!("{what} in the transcripts{scorer_note}; makes no calls · free")
}

/// Formats the price per million tokens and its source.
fn format_price(judge: &JudgeConfig) -> String {
    if judge.is_free() {
        return "free".to_owned();
    }
    let Some(pricing) = judge.pricing() else {
        return format!(
            "cost unknown: no prices for {} (add `prices:`)",
            judge.model
        );
    };
    let prices = pricing.prices;
    let mut text = format!("${} + ${} per million tokens", prices.input, prices.output);
    if let Some(cached) = prices.cached {
        let _infallible = write!(text, " (${cached} cached)");
    }
    if let Some(as_of) = pricing.as_of {
        let _infallible = write!(text, ", dicta's own prices as of {as_of}");
    }
    text
}

/// Prints a JSON Schema. Returns the exit code.
pub(super) fn print_schema(which: SchemaArg, format: Format, cx: &CommandCx) -> u8 {
    let schema = match which {
        SchemaArg::Rubric => rubric::json_schema(&EvalTypeRegistry::builtin()),
        SchemaArg::Workspace => workspace::json_schema(),
        SchemaArg::Tools => tools::toolbox::json_schema(),
        SchemaArg::Transcript => workspace::transcript_schema(),
        SchemaArg::Event => workspace::event_schema(),
        SchemaArg::Result => report::result_schema(),
    };
    cx.streams.print(&format_document(format, &schema));
    0
}

/// Prints the keys of the workbench. Returns the exit code.
pub(super) fn list_keys(format: Format, cx: &CommandCx) -> u8 {
    let rows = || {
        let keys = tui::list_key_bindings().into_iter();
        keys.map(|binding| {
            json!({
                "type": "command",
                "command": binding.id,
                "title": binding.title,
                "group": binding.group,
                "keys": binding.keys,
                "help": binding.help,
            })
        })
        .collect()
    };
    let human = || tui::render_key_bindings(format == Format::Markdown);
    cx.streams.print_list(format, rows, human);
    0
}
