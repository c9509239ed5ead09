//! Finds judges for a second opinion on a cell.
//!
//! Responsible for the search, which runs only when the user asks for it: judges of the workspace, keys in the
//! environment, servers on this machine. Estimates the cost like a dry run, with the tools of the cell's own judge,
//! so that the same recorded tool responses apply. Calls no model and sends no key. Treats the replies of local
//! servers as untrusted text.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::Deserialize;

use super::run_order::RunOrder;
use super::state::overlay::AvailableJudge;
use crate::clock::{Clock, with_timeout};
use crate::handlers::EvalTypeRegistry;
use crate::model::{
    ApiKeySource, CellName, JudgeConfig, JudgeTool, Millis, ProviderKind, make_visible, pluralize,
};
use crate::net::{LlmClient, ReplyLimits};
use crate::run::{CachePolicy, DecisionFilter, JudgePreview, RunOptions, preview_run};
use crate::workspace::{Env, Workspace, resolve_key, variables};

/// Environment variables with API keys, and the model that a judge with that key uses. A user who wants another model
/// configures it in dicta.yaml.
const KEY_VARIABLES: &[KeyVariable] = &[
    KeyVariable {
        service: "gemini",
        // Gemini reads both variables, as Google's own client libraries do.
        variable: "GEMINI_API_KEY",
        provider: ProviderKind::Gemini,
        model: "gemini-2.5-pro",
    },
    KeyVariable {
        service: "gemini",
        variable: variables::GOOGLE_API_KEY,
        provider: ProviderKind::Gemini,
        model: "gemini-2.5-pro",
    },
    KeyVariable {
        service: "openai",
        variable: "OPENAI_API_KEY",
        provider: ProviderKind::Openai,
        model: "gpt-5",
    },
    KeyVariable {
        service: "anthropic",
        variable: "ANTHROPIC_API_KEY",
        provider: ProviderKind::Anthropic,
        model: "claude-sonnet-4-6",
    },
];

/// An environment variable with an API key, and the judge that it allows.
struct KeyVariable {
    /// The name of the service, which is also the name of the judge.
    service: &'static str,
    variable: &'static str,
    provider: ProviderKind,
    model: &'static str,
}

/// Key variables of services with many models: only the user knows which one to use.
const GATEWAY_KEY_VARIABLES: &[(&str, &str)] = &[("openrouter", variables::OPENROUTER_API_KEY)];

/// Common local model servers by their default ports.
const LOCAL_SERVERS: &[(&str, u16)] = &[
    ("ollama", 11434),
    ("lm-studio", 1234),
    ("llama.cpp", 8080),
    ("vllm", 8000),
];

/// The time limit for a local server; a server on this machine replies at once.
const SERVER_DEADLINE: Millis = Millis(300);
/// The largest number of models that are listed per server.
const MAX_MODELS: usize = 5;
/// The longest accepted model name; a longer one is not a model name.
const MAX_MODEL_NAME_CHARS: usize = 100;

/// Finds the available judges: first those of the workspace, then keys, then local servers.
pub(crate) async fn find_available_judges(
    env: &Env,
    order: &RunOrder,
    clock: &Arc<dyn Clock>,
) -> Vec<AvailableJudge> {
    find_with_servers(LOCAL_SERVERS, env, order, clock).await
}

async fn find_with_servers(
    servers: &[(&str, u16)],
    env: &Env,
    order: &RunOrder,
    clock: &Arc<dyn Clock>,
) -> Vec<AvailableJudge> {
    let client = LlmClient::new(Arc::clone(clock));
    let requests = servers
        .iter()
        .map(|(_, port)| list_server_models(&client, clock, *port));
    // All servers at the same time, so that the search takes one deadline at most.
    let served = futures_util::future::join_all(requests).await;
    // The judge of the second opinion gets the tools of the eval's own judge, so that both see the same
    // evidence.
    let own_judge = find_own_judge(order);
    let tools = own_judge
        .map(|own_judge| own_judge.tools.clone())
        .unwrap_or_default();

    let workspace = &order.workspace;
    let mut found = Vec::new();
    for judge in workspace.judges.values() {
        // Judges without a model, such as `rules` and source judges, can't give a second opinion.
        if judge.provider.is_model() {
            found.push(check_workspace_judge(judge, env));
        }
    }
    // Names that the workspace uses are taken, because a run finds its judge by name.
    let mut names: Vec<String> = workspace.judges.keys().cloned().collect();
    found.extend(judges_from_keys(env, workspace, &tools, &mut names));
    // The order of the list is fixed: workspace, keys, servers.
    for (name, served) in servers.iter().map(|(name, _)| *name).zip(served) {
        let Some((base_url, models)) = served else {
            continue;
        };
        found.extend(judges_from_server(
            name, &base_url, &models, order, &tools, &mut names,
        ));
    }
    let (env, order, clock) = (env.clone(), order.clone(), Arc::clone(clock));
    // Planning reads transcripts, which blocks.
    let priced = tokio::task::spawn_blocking(move || estimate_prices(found, &env, &order, &clock));
    // After a panic the list is empty, which the overlay can show.
    priced.await.unwrap_or_default()
}

/// Returns the judge of the cell's own eval.
fn find_own_judge(order: &RunOrder) -> Option<&JudgeConfig> {
    if let Some(judge) = &order.judge {
        // The order already names a judge, so its tools are the ones to copy.
        return Some(judge);
    }
    let workspace = &order.workspace;
    let name: CellName = order.only.as_ref()?.first()?.parse().ok()?;
    let (rubric, at) = workspace.find_eval(&name.rubric, &name.eval)?;
    // Of a panel, the first judge represents all; a list needs one set of tools.
    let assignment = workspace.assign_judges(rubric, &rubric.evals[at])?;
    workspace.judges.get(*assignment.judges.first()?)
}

fn check_workspace_judge(judge: &JudgeConfig, env: &Env) -> AvailableJudge {
    let model = if judge.model.is_empty() {
        String::new()
    } else {
        format!(" · {}", judge.model)
    };
    // A local judge needs no key (`Ok(None)`), so its title names none.
    let (key, problem) = match resolve_key(judge, env) {
        Ok(Some(_)) => (
            format!(" · key in {}", describe_key_source(&judge.key)),
            None,
        ),
        Ok(None) => (String::new(), None),
        Err(why) => (String::new(), Some(why.to_string())),
    };
    let title = format!("{}{model} · of this workspace{key}", judge.name);
    AvailableJudge {
        // The configuration may contain control characters, so the texts are escaped.
        title: make_visible(&title, false).into_owned(),
        judge: problem.is_none().then(|| judge.clone()),
        note: make_visible(&problem.unwrap_or_default(), false).into_owned(),
    }
}

fn describe_key_source(key: &ApiKeySource) -> String {
    match key {
        ApiKeySource::None | ApiKeySource::Google(None) => String::new(),
        ApiKeySource::Env(name) | ApiKeySource::EnvIfSet(name) => name.clone(),
        ApiKeySource::File(path) | ApiKeySource::Google(Some(path)) => path.display().to_string(),
    }
}

fn judges_from_keys(
    env: &Env,
    workspace: &Workspace,
    tools: &[JudgeTool],
    names: &mut Vec<String>,
) -> Vec<AvailableJudge> {
    let mut found: Vec<AvailableJudge> = Vec::new();
    let mut providers: Vec<&str> = Vec::new();
    for KeyVariable {
        service: name,
        variable,
        provider,
        model,
    } in KEY_VARIABLES
    {
        // A workspace judge with the same key is already in the list, with the user's settings.
        // With a `base_url`, the key belongs to another service.
        let known = workspace.judges.values().any(|judge| {
            matches!(&judge.key, ApiKeySource::Env(key) | ApiKeySource::EnvIfSet(key) if key == variable)
                && judge.base_url.is_none()
        });
        // A provider with two key variables is listed once.
        if known || env.get(variable).is_none() || providers.contains(name) {
            continue;
        }
        providers.push(name);
        let judge = JudgeConfig {
            model: (*model).to_owned(),
            key: ApiKeySource::Env((*variable).to_owned()),
            tools: tools.to_vec(),
            ..JudgeConfig::new(make_unique_name(name, names), *provider)
        };
        let title = format!("{} · {model} · key in {variable}", judge.name);
        // A key that can't be read leaves the entry in the list with the reason, so that the user sees what
        // to fix.
        let broken = resolve_key(&judge, env)
            .err()
            .map(|error| error.to_string());
        found.push(AvailableJudge {
            title,
            judge: broken.is_none().then_some(judge),
            note: broken.unwrap_or_default(),
        });
    }
    // A gateway has no default model, so its entry only says how to configure it.
    for (name, variable) in GATEWAY_KEY_VARIABLES {
        if env.get(variable).is_some() {
            found.push(AvailableJudge {
                title: format!("{name} · key in {variable}"),
                judge: None,
                note:
                    "configure it in dicta.yaml: provider: openai with its base_url and api_key_env"
                        .to_owned(),
            });
        }
    }
    found
}

fn judges_from_server(
    name: &str,
    base_url: &str,
    models: &[String],
    order: &RunOrder,
    tools: &[JudgeTool],
    names: &mut Vec<String>,
) -> Vec<AvailableJudge> {
    let configured = |model: &str| {
        order.workspace.judges.values().any(|judge| {
            let same = judge
                .base_url
                .as_deref()
                .map(|url| url.trim_end_matches('/'));
            judge.model == model
                // Both names mean this machine; the list uses the address.
                && same.is_some_and(|url| url.replace("localhost", "127.0.0.1") == base_url)
        })
    };
    // A server may list hundreds of models, so the rest becomes one line.
    let more = models.len().saturating_sub(MAX_MODELS);
    let mut found: Vec<AvailableJudge> = Vec::new();
    for model in models.iter().take(MAX_MODELS) {
        if configured(model) {
            continue;
        }
        // The model name comes from a server, so it is untrusted.
        let title = format!("{name} · {} · {base_url}", make_visible(model, false));
        let judge = JudgeConfig {
            model: model.clone(),
            base_url: Some(base_url.to_owned()),
            tools: tools.to_vec(),
            // Local servers speak the OpenAI dialect.
            ..JudgeConfig::new(make_unique_name(name, names), ProviderKind::Openai)
        };
        found.push(AvailableJudge {
            title,
            judge: Some(judge),
            note: String::new(),
        });
    }
    if models.is_empty() {
        found.push(AvailableJudge {
            title: format!("{name} · {base_url}"),
            judge: None,
            note: "the server runs without a model: load a model first".to_owned(),
        });
    }
    if more > 0 {
        found.push(AvailableJudge {
            title: format!("{name} · {}", pluralize(more, "more model")),
            judge: None,
            note: "configure the one you want in dicta.yaml".to_owned(),
        });
    }
    found
}

/// Returns `wanted`, with a suffix if a judge already has that name.
fn make_unique_name(wanted: &str, names: &mut Vec<String>) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while names.contains(&name) {
        name = format!("{wanted}-{number}");
        number += 1;
    }
    names.push(name.clone());
    name
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ModelListEntry>,
}

#[derive(Deserialize)]
struct ModelListEntry {
    id: String,
}

/// Returns the base URL and models of a server with an OpenAI-compatible API, or None for anything else on that port.
async fn list_server_models(
    client: &LlmClient,
    clock: &Arc<dyn Clock>,
    port: u16,
) -> Option<(String, Vec<String>)> {
    let base_url = format!("http://127.0.0.1:{port}/v1");
    let limits = ReplyLimits {
        connect: SERVER_DEADLINE,
        first_byte: SERVER_DEADLINE,
        idle: SERVER_DEADLINE,
        // A list of models has a few kilobytes. 1 MiB limits what an unknown program on the port can send.
        total_bytes: 1 << 20,
    };
    // `GET /v1/models` is part of the OpenAI API, so another program on the port answers with another status.
    let url = format!("{base_url}/models");
    let request = async {
        let mut reply = client.get(&url, &[], limits).await.ok()?;
        let mut body = Vec::new();
        while let Some(chunk) = reply.next_chunk().await.ok()? {
            body.extend_from_slice(&chunk);
        }
        (reply.status == 200).then_some(body)
    };
    // The deadline covers the whole reply, however slowly its parts arrive.
    let body = with_timeout(&**clock, SERVER_DEADLINE, request).await??;
    let models: ModelList = serde_json::from_slice(&body).ok()?;
    let names = models.data.into_iter().map(|model| model.id);
    let names =
        names.filter(|id| !id.trim().is_empty() && id.chars().count() <= MAX_MODEL_NAME_CHARS);
    Some((base_url, names.collect()))
}

/// Estimates the cost of the cell with each judge.
fn estimate_prices(
    mut found: Vec<AvailableJudge>,
    env: &Env,
    order: &RunOrder,
    clock: &Arc<dyn Clock>,
) -> Vec<AvailableJudge> {
    let registry = EvalTypeRegistry::builtin();
    // Judges with the same prompt frame and cell get the same prompt, so one estimate is enough: each reads the
    // transcripts.
    let mut known: HashMap<String, Result<JudgePreview, String>> = HashMap::new();
    for entry in &mut found {
        // An entry without a judge has a note already and can't be asked.
        let Some(judge) = &entry.judge else { continue };
        let tools = serde_json::to_string(&judge.tools).unwrap_or_default();
        // These parts determine the prompt: tools, verdict format, base prompt.
        let prompt_key = format!("{tools}\n{:?}\n{}", judge.verdict, judge.base_prompt);
        let preview = known
            .entry(prompt_key)
            .or_insert_with(|| preview_judge(judge, env, order, clock, &registry));
        match preview {
            Ok(preview) => entry.note = describe_preview(judge, preview),
            Err(why) => {
                // Without a preview the judge can't judge this cell, so the user can't select it.
                entry.note = make_visible(why, false).into_owned();
                entry.judge = None;
            }
        }
    }
    found
}

fn preview_judge(
    judge: &JudgeConfig,
    env: &Env,
    order: &RunOrder,
    clock: &Arc<dyn Clock>,
    registry: &EvalTypeRegistry,
) -> Result<JudgePreview, String> {
    // The preview finds judges by name, so the judge must be in the workspace for the preview.
    let mut workspace = (*order.workspace).clone();
    workspace.judges.insert(judge.name.clone(), judge.clone());
    let options = RunOptions {
        filter: order
            .only
            .as_ref()
            .map(|only| DecisionFilter::from_names(only.iter().cloned())),
        judge: Some(judge.name.clone()),
        evidence_run: order.replayed_evidence.clone(),
        // With the cache, a cell that was judged before would seem free.
        cache: CachePolicy::Off,
        ..RunOptions::default()
    };
    // Blocks; `estimate_prices` already runs on a thread of its own.
    let preview = preview_run(Arc::new(workspace), registry, env, clock, options);
    let mut preview = tokio::runtime::Handle::current()
        .block_on(preview)
        .map_err(|error| error.to_string())?;
    let preview_of_judge = preview.judges.swap_remove(&judge.name);
    preview_of_judge
        // A plan without calls means that the judge is never asked.
        .filter(|preview| preview.calls_least > 0)
        .ok_or_else(|| "this cell calls no judge: code decides it, or dicta skips it".to_owned())
}

/// Formats an estimate: `about 2,100 + 300 tokens, about $0.003`.
fn describe_preview(judge: &JudgeConfig, preview: &JudgePreview) -> String {
    let mut note = format!(
        "about {} + {} tokens",
        format_thousands(preview.input_tokens),
        format_thousands(preview.output_tokens)
    );
    // Tools cause more turns, so the number of calls is a range.
    if preview.calls_most > preview.calls_least {
        // Recorded cells include all their calls. Without them, the tokens are those of the first request.
        let unit = match preview.cells_with_history {
            0 => " a call",
            _ => "",
        };
        let _infallible = write!(
            note,
            "{unit}, up to {}",
            pluralize(preview.calls_most, "call")
        );
    }
    let pricing = judge.pricing();
    let usd = pricing.map(|p| p.estimate_token_cost(preview.input_tokens, preview.output_tokens));
    // The note never prints $0.000: a small cost would look free.
    note + &match (judge.is_free(), usd) {
        (true, _) => ", free (local)".to_owned(),
        (false, Some(usd)) if usd < 0.001 => ", less than $0.001".to_owned(),
        (false, Some(usd)) => format!(", about ${usd:.3}"),
        (false, None) => ", cost unknown (no prices)".to_owned(),
    } + &pricing
        .and_then(|p| p.as_of)
        .map_or_else(String::new, |day| format!(" (prices as of {day})"))
}

fn format_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests;
