//! The judges of a run: their keys, models, tools and engines.
//!
//! Responsible for building the judges that the selected evals need. Does not call them. Keys are resolved here, so a
//! run that needs no judge needs no key.

pub(super) mod circuit_breaker;
pub(super) mod duplicate_indexes;
pub(super) mod live_cell_names;
pub(super) mod permit;
pub(super) mod pool;
pub(super) mod rate_limit;
pub(super) mod replay;
pub(super) mod source_judge;
pub(super) mod tool_sets;

use std::path::Path;
use std::sync::Arc;

use self::circuit_breaker::CircuitBreakers;
use self::live_cell_names::LiveCellNames;
use self::pool::{JudgeSlot, RequestSize};
use self::rate_limit::{RateLimitedProvider, RateLimiters};
use self::replay::{RecordedTraces, ReplayJudge};
use self::source_judge::SourceJudge;
use crate::clock::Clock;
use crate::diag::yaml;
use crate::event::{DroppedSetting, JudgeSpec, TablePrices};
use crate::handlers::JudgeBackend;
use crate::judge::{JudgeEngine, JudgeEngineDeps, TracePrefix, rules};
use crate::model::{
    Digest, JudgeConfig, Millis, ProviderKind, find_body_secrets, list_header_secrets,
};
use crate::provider::{self, Provider, google_auth::GoogleTokens};
use crate::record::RunStore;
use crate::rubric::canonical_json;
use crate::run::inputs::snapshot::{Compilation, judge_digest};
use crate::run::{RunError, RunUsageError};
use crate::tools::ToolSet;
use crate::tools::toolbox::Toolbox;
use crate::workspace::{Env, Workspace, load_google_credentials, resolve_key};

/// The dependencies of judges.
pub(in crate::run) struct JudgeBuildCx<'p> {
    pub(in crate::run) env: &'p Env,
    pub(in crate::run) clock: &'p Arc<dyn Clock>,
    pub(in crate::run) deps: JudgeEngineDeps,
    /// The delay of `rules` between two pieces of its text.
    pub(in crate::run) rules_delay: Option<Millis>,
    /// The rate limiters of the run.
    pub(in crate::run) rate_limiters: RateLimiters,
    pub(in crate::run) store: &'p RunStore,
    /// The workspace's folder.
    pub(in crate::run) root: &'p Path,
    /// The workspace's toolbox.
    pub(in crate::run) toolbox: &'p Toolbox,
    pub(in crate::run) cell_names: &'p Arc<LiveCellNames>,
    /// `true` if the run sends requests, so that a missing key is an error.
    pub(in crate::run) sending: bool,
    /// The recorded beginning of the only judge trace, if the run is a branch.
    pub(in crate::run) prefix: Option<Arc<TracePrefix>>,
}

/// The judges of a run.
pub(in crate::run) struct BuiltJudges {
    pub(in crate::run) slots: Vec<Option<JudgeSlot>>,
    pub(in crate::run) specs: Vec<JudgeSpec>,
}

/// Returns the texts that dicta must never record or show: the keys, header values and body secrets of all judges,
/// the variables in model configs, and the secrets of tools files.
pub fn collect_secrets(workspace: &Workspace, env: &Env) -> Vec<String> {
    let mut secrets = workspace.tools.secrets.clone();
    secrets.extend(workspace.secrets.iter().cloned());
    // Also the judges that a run does not need: the header and the snapshots contain their settings.
    for config in workspace.judges.values() {
        // A missing key adds no secret. Building the judge reports it.
        secrets.extend(resolve_key(config, env).ok().flatten());
        if let Ok(Some(credentials)) = load_google_credentials(config, env) {
            secrets.extend(credentials.secrets().into_iter().map(str::to_owned));
        }
        let headers = config.headers.iter();
        secrets.extend(headers.flat_map(|(name, value)| list_header_secrets(name, value)));
        if let Some(body) = &config.extra_body {
            let found = find_body_secrets(body);
            let values = found.iter().filter_map(|at| body.pointer(at));
            secrets.extend(values.map(|value| {
                let text = value.as_str().map(str::to_owned);
                text.unwrap_or_else(|| value.to_string())
            }));
        }
    }
    secrets
}

/// Builds the needed judges and describes all judges. The error lists all problems.
pub(in crate::run) fn build_judges(
    compilation: &Compilation,
    tools: &[ToolSet],
    parts: &JudgeBuildCx<'_>,
) -> Result<BuiltJudges, RunError> {
    let (mut slots, mut specs, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for (ix, config) in compilation.judges.iter().enumerate() {
        let (mut slot, mut dropped) = (None, Vec::new());
        // A judge that no selected eval needs is described but not built, so it needs no key.
        let needed = u32::try_from(ix).is_ok_and(|ix| compilation.needed.contains(&ix));
        if needed {
            let models = compilation.extra_models[ix].iter().map(String::as_str);
            match self::build_slot(config, models, &tools[ix], parts) {
                Ok((built, drops)) => (slot, dropped) = (Some(built), drops),
                // Continue, so that the user sees the problems of all judges at once.
                Err(why) => problems.push(why),
            }
        }
        slots.push(slot);
        specs.push(JudgeSpec {
            config: config.clone(),
            digest: judge_digest(config),
            dropped,
            table_prices: find_built_in_prices(config),
            tools: tool_sets::list_tool_digests(&tools[ix]),
            tool_files: (!parts.toolbox.source_names(&config.tools).is_empty())
                .then(|| digest_tool_files(parts.toolbox)),
        });
    }
    if problems.is_empty() {
        Ok(BuiltJudges { slots, specs })
    } else {
        Err(RunUsageError::Problems(problems).into())
    }
}

/// Returns the digest of what the tools files define. Comments and layout do not count.
fn digest_tool_files(toolbox: &Toolbox) -> Digest {
    let files = toolbox.recorded_files.iter().map(|file| {
        let documents = yaml::read_all_documents(&file.text, &file.path);
        // The files were read before, so only a masked secret could make one unreadable.
        documents.map_or_else(
            |_| file.text.to_string(),
            |documents| {
                let values = documents
                    .iter()
                    .map(|document| canonical_json(&document.value));
                values.collect::<Vec<_>>().join("\n")
            },
        )
    });
    Digest::hash_bytes(files.collect::<Vec<_>>().join("\n").as_bytes())
}

/// Checks that every paid judge has prices, because a cost limit needs them. The error lists all problems.
pub(in crate::run) fn check_prices(compilation: &Compilation) -> Result<(), RunError> {
    let mut problems = Vec::new();
    for (ix, config) in compilation.judges.iter().enumerate() {
        let needed = u32::try_from(ix).is_ok_and(|ix| compilation.needed.contains(&ix));
        if !needed || config.is_free() {
            continue;
        }
        let models = compilation.extra_models[ix].iter().map(String::as_str);
        // An eval may name another model of the judge, and each model has its own price.
        for model in std::iter::once(config.model.as_str()).chain(models) {
            if config.pricing_for_model(model).is_none() {
                problems.push(format!(
                    "judge `{}`: the price of {model} is not known, and `--max-cost` or `max_cost_usd` limits the cost; add \
                     `prices: {{ input: …, output: … }}` (USD per million tokens) to the judge, or limit max_tokens or \
                     max_calls instead",
                    config.name
                ));
            }
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(RunUsageError::Problems(problems).into())
    }
}

/// Returns the built-in prices of a judge without prices of its own.
fn find_built_in_prices(config: &JudgeConfig) -> Option<TablePrices> {
    // A price in the judge's configuration has no date, so only built-in prices pass here.
    let pricing = config.pricing().filter(|_| !config.is_free())?;
    Some(TablePrices {
        prices: pricing.prices,
        as_of: pricing.as_of?.to_owned(),
    })
}

fn build_slot<'m>(
    config: &JudgeConfig,
    models: impl Iterator<Item = &'m str>,
    tools: &ToolSet,
    parts: &JudgeBuildCx<'_>,
) -> Result<(JudgeSlot, Vec<DroppedSetting>), String> {
    let free = config.is_free();
    match config.provider {
        ProviderKind::Replay => {
            let judge = ReplayJudge {
                replay: Arc::new(load_replay(config, parts)?),
                names: Arc::clone(parts.cell_names),
            };
            Ok((slot_without_engine(Arc::new(judge), free), Vec::new()))
        }
        ProviderKind::Source => {
            let judge = SourceJudge::new(config, parts.cell_names);
            Ok((slot_without_engine(Arc::new(judge), free), Vec::new()))
        }
        ProviderKind::Rules => {
            let delay = parts.rules_delay;
            let engine =
                rules::build_engine(config.clone(), tools.clone(), parts.deps.clone(), delay)
                    .with_prefix(parts.prefix.clone());
            let slot = JudgeSlot {
                // This judge calls no language model, so there are no tokens to estimate.
                request_size: Box::new(|_| None),
                ..slot_with_engine(engine, free, CircuitBreakers::default())
            };
            Ok((slot, Vec::new()))
        }
        _ => {
            let breakers = CircuitBreakers::new(&config.model);
            let (engine, dropped) = build_engine(config, models, tools, parts, &breakers)?;
            Ok((slot_with_engine(engine, free, breakers), dropped))
        }
    }
}

/// Builds a judge that returns recorded verdicts. It needs no key and sends nothing.
fn slot_without_engine(judge: Arc<dyn JudgeBackend>, free: bool) -> JudgeSlot {
    JudgeSlot {
        judge,
        // Without a key, no later run uses the result: it repeats another run's or tool's verdict.
        cache_key: Box::new(|_| None),
        request_size: Box::new(|_| None),
        engine: None,
        is_free: free,
        circuit_breakers: CircuitBreakers::default(),
    }
}

/// Builds a judge from an engine.
fn slot_with_engine(
    engine: JudgeEngine,
    free: bool,
    circuit_breakers: CircuitBreakers,
) -> JudgeSlot {
    let engine = Arc::new(engine);
    let (keyed, sized) = (Arc::clone(&engine), Arc::clone(&engine));
    JudgeSlot {
        judge: Arc::clone(&engine) as Arc<dyn JudgeBackend>,
        cache_key: Box::new(move |ask| keyed.cache_key(ask).ok().map(|found| found.key)),
        request_size: Box::new(move |ask| {
            let first = sized.first_turn_request(ask).ok()?;
            Some(RequestSize {
                bytes: first.resent_bytes
                    + first
                        .body
                        .pieces
                        .iter()
                        .map(|piece| piece.len() as u64)
                        .sum::<u64>(),
                turns: u64::from(first.max_turns),
            })
        }),
        engine: Some(engine),
        is_free: free,
        circuit_breakers,
    }
}

/// Builds the engine of a judge with a language model.
fn build_engine<'m>(
    config: &JudgeConfig,
    models: impl Iterator<Item = &'m str>,
    tools: &ToolSet,
    parts: &JudgeBuildCx<'_>,
    breakers: &CircuitBreakers,
) -> Result<(JudgeEngine, Vec<DroppedSetting>), String> {
    let key = match resolve_key(config, parts.env) {
        Ok(key) => key,
        Err(why) if parts.sending => return Err(why.to_string()),
        // The placeholder lets a preview build the provider, which renders the request.
        Err(_) => Some("not needed: nothing is sent".to_owned()),
    };
    // All models of a judge share one limiter, because they share a key.
    let limiter = parts.rate_limiters.limiter_for(config, key.as_deref());
    // All models of a judge share one token source. A run that sends nothing has the key above, so it loads no
    // credentials.
    let credentials = match key {
        None => load_google_credentials(config, parts.env).map_err(|error| error.to_string())?,
        Some(_) => None,
    };
    let tokens = credentials.map(|found| GoogleTokens::new(found, Arc::clone(parts.clock)));
    let provider = |config: &JudgeConfig| -> Result<Arc<dyn Provider>, String> {
        let clock = Arc::clone(parts.clock);
        let built = match &tokens {
            Some(tokens) => provider::build_provider_with_tokens(config, tokens, clock),
            None => provider::build_provider(config, key.as_deref(), clock),
        };
        let built = built.map_err(|error| add_judge_name(&config.name, &error.to_string()))?;
        Ok(Arc::new(RateLimitedProvider {
            inner: built,
            limiter: Arc::clone(&limiter),
            breaker: breakers.of_model(Some(&config.model)),
        }))
    };
    let own_provider = provider(config)?;
    // The header describes the judge's own model, so record its dropped settings.
    let dropped = own_provider.capabilities().dropped.clone();
    let mut engine = JudgeEngine::new(
        config.clone(),
        own_provider,
        tools.clone(),
        parts.deps.clone(),
    )
    .with_prefix(parts.prefix.clone());
    for model in models {
        let other = JudgeConfig {
            model: model.to_owned(),
            ..config.clone()
        };
        engine = engine.with_model(model, provider(&other)?);
    }
    Ok((engine, dropped))
}

/// Returns a judge's error with the judge's name. Most errors contain it already.
pub(in crate::run) fn add_judge_name(judge: &str, error: &str) -> String {
    if error.starts_with(&format!("judge `{judge}`")) {
        error.to_owned()
    } else {
        format!("judge `{judge}`: {error}")
    }
}

/// Reads the run that `run:` names, by its name or by its folder relative to the workspace.
fn load_replay(config: &JudgeConfig, parts: &JudgeBuildCx<'_>) -> Result<RecordedTraces, String> {
    let name = config.run.as_deref().ok_or_else(|| {
        format!(
            "judge `{}` replays a run; say which with `run:`",
            config.name
        )
    })?;
    // A folder relative to the workspace wins over a run of the same name.
    let folder = parts.root.join(name);
    let found = if folder.is_dir() {
        parts.store.resolve(&folder.to_string_lossy())
    } else {
        parts.store.resolve(name)
    };
    found
        .and_then(|run| RecordedTraces::read(&run))
        .map_err(|error| add_judge_name(&config.name, &error.to_string()))
}
