//! The reader of evalbench's run config: its scorers become evals for the scenarios of the evalset that it names.
//!
//! A scorer that reads a scenario's expectation becomes one eval per scenario, limited by the scenario's id. Another
//! scorer becomes one eval. A scorer that only measures (a count, a time) needs a bound to pass or fail. dicta reads
//! the bound from the scorer's options, which evalbench ignores. Scorers that run SQL or build projects do not carry
//! over.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use globset::GlobBuilder;
use serde_json::{Map, Value};

use super::conversion::{ConversionError, ConvertedEval, EvalConverter, literal_globs, to_safe_id};
use super::doc_location::{DocLocation, find_file, load_doc};
use super::evalset::{self, ScenarioExpectation};
use crate::diag::Severity;
use crate::diag::yaml::YamlDoc;
use crate::rubric::{Rubric, RubricFiles};

/// The conversion of a scorer.
enum ScorerMapping {
    /// One eval per scenario.
    PerScenario(ScenarioExpectation),
    /// One eval of this type, with the scorer's options unchanged.
    SingleEval(&'static str),
    /// One eval of this type if it has a bound.
    NeedsBound {
        eval_type: &'static str,
        example: &'static str,
    },
    /// No eval: the reason, and what to write instead.
    Unsupported {
        reason: &'static str,
        alternative: &'static str,
    },
}

impl ScorerMapping {
    const fn needs_bound(eval_type: &'static str, example: &'static str) -> Self {
        Self::NeedsBound { eval_type, example }
    }

    const fn unsupported(reason: &'static str, alternative: &'static str) -> Self {
        Self::Unsupported {
            reason,
            alternative,
        }
    }
}

const SQL: ScorerMapping = ScorerMapping::unsupported(
    "it compares executions of SQL, which no transcript holds",
    "a check of the SQL's text: `regexp_matcher` or `regex`",
);
const ROWS: ScorerMapping = ScorerMapping::unsupported(
    "it compares rows of two executions, which no transcript holds",
    "a judge with the expected answer: `llm_rater` or `llm_judge`",
);
const BUILD: ScorerMapping = ScorerMapping::unsupported(
    "it builds a project on disk",
    "what the agent's own build said: `tool_result_includes`",
);
const TOKENS: ScorerMapping = ScorerMapping::unsupported(
    "it measures, and nothing makes it fail",
    "a bound on tokens: `token_consumption` or `cost_budget`",
);
const MCP: ScorerMapping =
    ScorerMapping::unsupported("it reviews an endpoint's tools, not a transcript", "");
const TRIALS: ScorerMapping =
    ScorerMapping::unsupported("it compares repeated trials with each other", "");

fn map_scorer(kind: &str) -> ScorerMapping {
    match kind {
        "binary_rubric_scorer" => ScorerMapping::PerScenario(ScenarioExpectation::Rubric),
        "trajectory_matcher" => ScorerMapping::PerScenario(ScenarioExpectation::Trajectory),
        "goal_completion" => ScorerMapping::PerScenario(ScenarioExpectation::Plan),
        "behavioral_metrics" => ScorerMapping::SingleEval("behavioral_metrics"),
        "parameter_analysis" => ScorerMapping::SingleEval("parameter_analysis"),
        "regexp_matcher" => ScorerMapping::SingleEval("regexp_matcher"),
        "turn_count" => ScorerMapping::needs_bound("turn_count", "max: 6"),
        "agent_steps" => ScorerMapping::needs_bound("agent_steps", "max: 20"),
        "end_to_end_latency" => ScorerMapping::needs_bound("end_to_end_latency", "max_ms: 60000"),
        "tool_call_latency" => ScorerMapping::needs_bound("tool_call_latency", "max_ms: 10000"),
        "token_consumption" => ScorerMapping::needs_bound("token_consumption", "max_tokens: 50000"),
        // Measurements without a type in dicta; a bound on tokens is near.
        "tokens_processed" | "effective_billed_tokens" | "non_final_output_tokens" => TOKENS,
        "exact_match" | "recall_match" | "set_match" | "executable_sql" | "returned_sql" => SQL,
        "llmrater" | "analytics_scorer" => ROWS,
        "exact_match_consistency" | "llm_consistency" => TRIALS,
        "python_scorer" => ScorerMapping::unsupported(
            "it is a program of its own, with evalbench's input",
            "a `script` eval: JSON in on stdin, {passed, score, reason} out",
        ),
        "skills_trajectory" | "skills_best_practices" => ScorerMapping::unsupported(
            "only the harness distinguishes activated skills from tools",
            "if the transcript has a call for it: `tool_args` with the skill's name",
        ),
        // Families of scorers: only their prefix is known.
        kind if kind.starts_with("dataform") || kind.starts_with("dbt_") => BUILD,
        kind if kind.starts_with("mcp_") => MCP,
        kind if kind.starts_with("set_match_turn") || kind.starts_with("set_match_") => SQL,
        _ => ScorerMapping::unsupported("no eval type of dicta does the same", "a `script` eval"),
    }
}

pub(super) fn read(
    doc: &Rc<YamlDoc>,
    files: &dyn RubricFiles,
    rubric: &mut Rubric,
    converter: &mut EvalConverter<'_>,
) {
    let root = DocLocation::root(doc);
    let Some((scenarios, filtered)) = load_scenarios(&root, files, converter) else {
        return;
    };
    // Only if some scenarios are left out: otherwise the rubric applies to all transcripts.
    if filtered {
        let ids: Vec<String> = scenarios.iter().map(|(id, _)| id.clone()).collect();
        rubric.applies_to.ids = literal_globs(&ids);
    }
    let scorers = root.child("scorers");
    // A run without scorers checks nothing, which is an error here as in a rubric.
    if scorers.value().as_object().is_none_or(Map::is_empty) {
        let error = root.problem(
            Severity::Error,
            "no-evals",
            "this evalbench run config has no `scorers`".to_owned(),
        );
        converter.problems.push(error);
        return;
    }
    for (name, at) in scorers.entries() {
        // evalbench takes the scorer's name as its type if it has none.
        let kind = at.text("type").unwrap_or(&name).to_owned();
        convert_scorer(&name, &kind, &at, &scenarios, files, converter);
    }
    // With the scorer `skills_trajectory`, that scorer's own report is enough.
    if scorers.get("skills_trajectory").is_none() {
        for (_, at) in &scenarios {
            evalset::report_skills(at, converter);
        }
    }
}

/// Returns the scenarios of the run; the flag is true if some are left out. `None` if the evalset cannot be read.
fn load_scenarios(
    root: &DocLocation,
    files: &dyn RubricFiles,
    converter: &mut EvalConverter<'_>,
) -> Option<(Vec<(String, DocLocation)>, bool)> {
    let named = root.child("dataset_config");
    // A run config without an evalset has scorers for all transcripts.
    let Some(written) = named.value().as_str() else {
        return Some((Vec::new(), false));
    };
    let set = match load_doc(files, &named, written) {
        Ok(set) => set,
        Err(problems) => {
            converter.problems.extend(problems);
            return None;
        }
    };
    if set.value.get("scenarios").is_none() {
        let why = "it is not an evalset of scenarios: its checks run SQL";
        converter.report_error(&named, "dataset_config", ConversionError::new(why, ""));
        return Some((Vec::new(), false));
    }
    let all = evalset::read_scenarios(&set, converter);
    // evalbench accepts one id or a list of ids.
    let picked = root.child("scenarios");
    let ids: Vec<&str> = picked
        .value()
        .as_array()
        .into_iter()
        .flatten()
        .chain(Some(picked.value()))
        .filter_map(Value::as_str)
        .collect();
    let pattern = root.text("scenario_pattern");
    let glob = pattern.and_then(|text| GlobBuilder::new(text).build().ok());
    if pattern.is_some() && glob.is_none() {
        let at = root.child("scenario_pattern");
        let message = "scenario_pattern is not a glob".to_owned();
        converter
            .problems
            .push(at.problem(Severity::Error, "glob", message));
    }
    // An unknown id is an error: the eval would silently check less.
    for id in &ids {
        if !all.iter().any(|(known, _)| known == id) {
            let message = format!("the evalset has no scenario `{id}`");
            converter
                .problems
                .push(picked.problem(Severity::Error, "unknown-scenario", message));
        }
    }
    // Apply both filters.
    let filtered = !ids.is_empty() || glob.is_some();
    let glob = glob.map(|glob| glob.compile_matcher());
    let kept = all
        .into_iter()
        .filter(|(id, _)| ids.is_empty() || ids.contains(&id.as_str()))
        .filter(|(id, _)| glob.as_ref().is_none_or(|glob| glob.is_match(id)))
        .collect();
    Some((kept, filtered))
}

fn convert_scorer(
    name: &str,
    kind: &str,
    at: &DocLocation,
    scenarios: &[(String, DocLocation)],
    files: &dyn RubricFiles,
    converter: &mut EvalConverter<'_>,
) {
    let options = read_options(at, files, converter);
    // `map_scorer` knows the meaning; this function only builds the evals.
    match map_scorer(kind) {
        ScorerMapping::Unsupported {
            reason,
            alternative,
        } => {
            converter.report_error(at, name, ConversionError::new(reason, alternative));
        }
        ScorerMapping::SingleEval(ours) => {
            convert_as_single_eval(name, ours, at, options, converter);
        }
        ScorerMapping::PerScenario(expectation) => {
            if !convert_per_scenario(expectation, name, at, scenarios, options, converter) {
                let why = format!("no scenario has a `{}`", expectation.key());
                converter.report_error(at, name, ConversionError::new(why, ""));
            }
        }
        // A bound in the scorer's options applies to all scenarios; otherwise a scenario's `max_turns` is a bound.
        ScorerMapping::NeedsBound {
            eval_type: ours, ..
        } if !options.params.is_empty() => {
            convert_as_single_eval(name, ours, at, options, converter);
        }
        ScorerMapping::NeedsBound {
            eval_type: ours,
            example,
        } => {
            // Only turns have a bound in the scenario.
            let turns = ours == "turn_count"
                && convert_per_scenario(
                    ScenarioExpectation::Turns,
                    name,
                    at,
                    scenarios,
                    options,
                    converter,
                );
            if !turns {
                let why = "it measures, and nothing makes it fail";
                let instead =
                    format!("set a bound: `{name}: {{ {example} }}`; evalbench ignores it");
                converter.report_error(at, name, ConversionError::new(why, instead));
            }
        }
    }
}

/// Adds an eval for each scenario that has this expectation. Returns true if there is one.
fn convert_per_scenario(
    expectation: ScenarioExpectation,
    name: &str,
    at: &DocLocation,
    scenarios: &[(String, DocLocation)],
    mut options: ScorerOptions,
    converter: &mut EvalConverter<'_>,
) -> bool {
    options.apply_tool_call_visibility(expectation.eval_type(), converter);
    let mut any = false;
    for (id, scenario) in scenarios {
        let conversion =
            evalset::convert_expectation(expectation, name, id, scenario, &options.params);
        let Some(conversion) = conversion else {
            continue;
        };
        any = true;
        let conversion =
            conversion.map(|eval| with_judge_and_span(eval, at, options.judge.as_deref()));
        converter.add_or_report(
            &format!("{}.{name}", to_safe_id(id)),
            scenario,
            name,
            conversion,
        );
    }
    any
}

fn convert_as_single_eval(
    name: &str,
    ours: &str,
    at: &DocLocation,
    mut options: ScorerOptions,
    converter: &mut EvalConverter<'_>,
) {
    options.apply_tool_call_visibility(ours, converter);
    let mut eval = ConvertedEval::new(name, ours, at);
    for (key, value) in options.params {
        // An option has its own place, so that a problem points at it.
        let place = at.child(&key);
        eval = eval.with_param(&key, value, &place);
    }
    converter.add(
        name,
        with_judge_and_span(eval, at, options.judge.as_deref()),
    );
}

/// Adds the judge. Also makes the eval begin at its scorer, because the scenario is in another file than the rubric.
fn with_judge_and_span(
    eval: ConvertedEval,
    scorer: &DocLocation,
    judge: Option<&str>,
) -> ConvertedEval {
    let mut eval = match judge {
        Some(judge) => eval.with_field("judge", judge, &scorer.child("model_config")),
        None => eval,
    };
    eval.display_span = Some(scorer.span());
    eval
}

/// The options of a scorer.
struct ScorerOptions {
    /// The options that become params of the eval.
    params: Map<String, Value>,
    judge: Option<String>,
    include_tool_calls: bool,
    /// The place of `include_tool_calls`, if it is written.
    include_tool_calls_at: Option<DocLocation>,
}

impl ScorerOptions {
    /// Sets the visibility of tool calls. In evalbench a judge sees the agent's calls only with `include_tool_calls`;
    /// in dicta it sees them unless the eval type can hide them.
    fn apply_tool_call_visibility(&mut self, ours: &str, converter: &mut EvalConverter<'_>) {
        const KEY: &str = "include_tool_calls";
        let kind = converter.catalog.eval_type(ours);
        // Only an explicit `false` is reported, because the default of evalbench would report every scorer.
        if kind.is_some_and(|kind| kind.schema["properties"][KEY].is_object()) {
            self.params
                .insert(KEY.to_owned(), Value::Bool(self.include_tool_calls));
        } else if let (false, Some(at)) = (self.include_tool_calls, &self.include_tool_calls_at) {
            let why = "a judge here sees the agent's calls and their results";
            converter.report_error(
                at,
                "include_tool_calls: false",
                ConversionError::new(why, ""),
            );
        }
    }
}

fn read_options(
    at: &DocLocation,
    files: &dyn RubricFiles,
    converter: &mut EvalConverter<'_>,
) -> ScorerOptions {
    let mut options = ScorerOptions {
        params: Map::new(),
        judge: None,
        include_tool_calls: false,
        include_tool_calls_at: None,
    };
    for (key, value) in at.entries() {
        match key.as_str() {
            // Both only name the scorer.
            "type" | "scorer_name" => {}
            "model_config" => options.judge = read_model_config_path(&value, files, converter),
            "include_tool_calls" => {
                options.include_tool_calls = value.value() == &Value::Bool(true);
                options.include_tool_calls_at = Some(value);
            }
            _ => {
                options.params.insert(key, value.value().clone());
            }
        }
    }
    options
}

/// Returns the name of a model config's judge, from the file's name. The same path gives the same judge.
fn read_model_config_path(
    at: &DocLocation,
    files: &dyn RubricFiles,
    converter: &mut EvalConverter<'_>,
) -> Option<String> {
    let Some(written) = at.value().as_str() else {
        let message = "model_config must be the path of a model config".to_owned();
        converter
            .problems
            .push(at.problem(Severity::Error, "type", message));
        return None;
    };
    let path = match find_file(files, &at.doc.path, written) {
        Ok(found) => found.path,
        Err(why) => {
            let message = format!("the judge's file `{written}` {why}");
            converter
                .problems
                .push(at.problem(Severity::Error, "io", message));
            return None;
        }
    };
    // Several scorers can name the same file, which is one judge.
    if let Some((name, _)) = converter.judges.iter().find(|(_, known)| **known == path) {
        return Some(name.clone());
    }
    let name = unique_judge_name(&path, |name| converter.judges.contains_key(name));
    converter.judges.insert(name.clone(), path);
    Some(name)
}

/// Returns a free name: the file's stem, or the stem with a number appended.
fn unique_judge_name(path: &Path, taken: impl Fn(&str) -> bool) -> String {
    let stem: PathBuf = path.file_stem().unwrap_or_default().into();
    let stem = to_safe_id(&stem.to_string_lossy());
    // From 2, because the first judge has the plain name.
    let numbered = (2..).map(|n| format!("{stem}-{n}"));
    let mut names = std::iter::once(stem.clone()).chain(numbered);
    names.find(|name| !taken(name)).unwrap_or(stem)
}
