//! The compiled rubrics and judges with which a run begins, and their description in the header.
//!
//! Responsible for compiling evals and for the judges' digests. Does not build judges.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use serde_json::{Value, json};

use super::feed::display_path;
use crate::diag::{LoadedFile, find_nearest};
use crate::event::{EvalSpec, RecordedShot, Redactor, RubricSpec, RunPurpose, SnapshotFile};
use crate::handlers::{CompileCx, CompiledEval, EvalTypeRegistry, ExecutionMode, ScriptEnv, Shot};
use crate::model::{
    Blob, Digest, JudgeConfig, Panel, PanelRule, ProviderKind, ScoreBounds, Transcript,
    TranscriptMode, compares_pairs, find_body_secrets, is_secret_name,
};
use crate::rubric::{Eval, Rubric, canonical_json};
use crate::run::plan::{EvalPlan, FilterFacts, RunPlan, compile_selectors};
use crate::run::shots::{ShotsByEval, resolve_shots};
use crate::run::{KnownFilterIds, RunError, RunOptions, RunUsageError};
use crate::transcript::to_native;
use crate::workspace::{Env, Workspace};

/// The compiled evals of a workspace and the judges that they need.
pub(in crate::run) struct Compilation {
    pub(in crate::run) plan: Arc<RunPlan>,
    /// The judges, in the order of [`RunPlan::judges`].
    pub(in crate::run) judges: Vec<JudgeConfig>,
    /// The positions of the judges that a selected eval needs.
    pub(in crate::run) needed: HashSet<u32>,
    /// The further models that evals name, by position of the judge.
    pub(in crate::run) extra_models: Vec<IndexSet<String>>,
}

/// Compiles all evals and finds the judge of each. The error lists all problems.
pub(in crate::run) fn compile_evals(
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
    env: &Env,
    options: &RunOptions,
    filter_facts: FilterFacts,
) -> Result<Compilation, RunError> {
    let mut problems = Vec::new();
    if let Some(name) = &options.judge
        && workspace.find_judge(name).is_none()
    {
        return Err(explain_no_judge(name, workspace).into());
    }
    // Step: the examples of prompts. A leak is a problem of the run, found before anything is spent.
    let shots = resolve_shots(workspace).unwrap_or_else(|found| {
        problems.extend(found.iter().map(ToString::to_string));
        ShotsByEval::default()
    });
    let mut evals = Vec::new();
    let mut judges: IndexMap<String, JudgeConfig> = IndexMap::new();
    let mut needed = HashSet::new();
    let mut models: Vec<IndexSet<String>> = Vec::new();
    // Without `allow_scripts`, script evals compile but stay disabled.
    let scripts = workspace.allow_scripts.then(|| {
        let variables = env.0.iter().map(|(name, value)| (&**name, &**value));
        Arc::new(ScriptEnv::from_variables(variables))
    });
    for (rubric_at, rubric) in workspace.rubrics.iter().enumerate() {
        // Paths in a rubric are relative to the rubric's file.
        let folder = rubric.path.parent().unwrap_or(Path::new(""));
        let home = CompileCx {
            rubric_folder: workspace.root.join(folder),
            script_env: scripts.clone(),
        };
        for (at, eval) in rubric.evals.iter().enumerate() {
            let compiled = match registry.compile_eval(eval, &home) {
                Ok(compiled) => compiled,
                Err(why) => {
                    problems.push(format!(
                        "{}: eval {}: {why}",
                        rubric.path.display(),
                        eval.id
                    ));
                    continue;
                }
            };
            // Step: find the judges of a judged eval.
            let (mut judge_positions, mut rule) = (Vec::new(), None);
            if let CompiledEval::Judged(judged) = &compiled {
                let assigned = match find_judges(eval, rubric, workspace, options) {
                    Ok(assigned) => assigned,
                    Err(why) => {
                        problems.push(why);
                        continue;
                    }
                };
                rule = assigned.rule;
                let mut configs = assigned.configs.iter();
                if compares_pairs(&eval.eval_type)
                    && !options.only_names
                    && configs.any(|config| config.provider == ProviderKind::Rules)
                {
                    problems.push(format!(
                        "{}: eval {} compares two answers, and `rules` reads clauses about one: name a judge with a model, such as \
                         `judge: gpt` with a judge of dicta.yaml",
                        rubric.path.display(),
                        eval.id
                    ));
                    continue;
                }
                let names: Vec<&str> = assigned.configs.iter().map(|c| c.name.as_str()).collect();
                let selected = options.filter.as_ref().is_none_or(|filter| {
                    filter.may_select(&rubric.id, &eval.id, &names, &eval.groups)
                });
                for config in assigned.configs {
                    // `insert_full` returns the existing position of a known judge, so positions are stable.
                    let (ix, _) = judges.insert_full(config.name.clone(), config.clone());
                    // One set of further models per judge, at the same position.
                    models.resize_with(judges.len(), IndexSet::new);
                    models[ix].extend(
                        judged
                            .known_params
                            .model
                            .clone()
                            .filter(|m| *m != config.model),
                    );
                    let ix = u32::try_from(ix).unwrap_or(u32::MAX);
                    // A judge of disabled or unselected evals only appears in the header.
                    if eval.enabled && selected {
                        needed.insert(ix);
                    }
                    judge_positions.push(ix);
                }
            }
            let judge = judge_positions.first().copied();
            evals.push(EvalPlan {
                rubric: u32::try_from(rubric_at).unwrap_or(u32::MAX),
                position: at,
                repeat: match judge {
                    // Each repeat of a comparison asks in both orders.
                    Some(_) if compares_pairs(&eval.eval_type) => options
                        .repeat
                        .unwrap_or(eval.repeat)
                        .max(1)
                        .saturating_mul(2),
                    Some(_) => options.repeat.unwrap_or(eval.repeat).max(1),
                    // `--repeat` does not apply to checks: they return the same result each time.
                    None => 1,
                },
                compares_pairs: compares_pairs(&eval.eval_type),
                disabled_reason: match &compiled {
                    CompiledEval::Check(check) => match check.execution_mode() {
                        ExecutionMode::Disabled(why) => Some(why.to_owned()),
                        ExecutionMode::Inline | ExecutionMode::Blocking => None,
                    },
                    CompiledEval::Judged(_) => None,
                },
                compiled,
                taught: shots.get(&(rubric_at, at)).cloned().unwrap_or_default(),
                judge,
                panel: rule.map(|rule| Panel {
                    rule,
                    judges: judge_positions,
                }),
                bounds: ScoreBounds::from_decision_settings(&eval.decision_settings),
                applies_to: compile_selectors([&rubric.applies_to, &eval.applies_to]),
            });
        }
    }
    let plan = RunPlan {
        rubrics: workspace.rubrics.clone(),
        evals,
        judges: judges.keys().cloned().collect(),
        filter: options.filter.clone(),
        filter_facts,
        records_revision_plan: options.is_partial() && !options.knows_no_whole_plan(),
        plans_all_repeats: matches!(options.purpose, RunPurpose::Noise | RunPurpose::Variants),
    };
    // Step: report patterns that match nothing, which are probably typing errors.
    if let Some(filter) = &options.filter {
        problems.extend(find_unmatched_patterns(filter, &plan));
    }
    if !problems.is_empty() {
        return Err(RunUsageError::Problems(problems).into());
    }
    Ok(Compilation {
        plan: Arc::new(plan),
        judges: judges.into_values().collect(),
        needed,
        extra_models: models,
    })
}

fn find_unmatched_patterns(filter: &crate::run::DecisionFilter, plan: &RunPlan) -> Vec<String> {
    let collect_ids = |pick: fn(&Rubric) -> Vec<&str>| -> Vec<&str> {
        plan.rubrics
            .iter()
            .flat_map(|rubric| pick(rubric))
            .collect()
    };
    let rubrics = collect_ids(|rubric| vec![rubric.id.as_str()]);
    let evals = collect_ids(|rubric| rubric.evals.iter().map(|eval| eval.id.as_str()).collect());
    let judges: Vec<&str> = plan.judges.iter().map(String::as_str).collect();
    let groups = collect_ids(|rubric| {
        let evals = rubric.evals.iter();
        evals
            .flat_map(|eval| &eval.groups)
            .map(String::as_str)
            .collect()
    });
    filter.unmatched_patterns(&KnownFilterIds {
        evals: &evals,
        rubrics: &rubrics,
        judges: &judges,
        groups: &groups,
        // The run has not read the transcripts yet.
        transcripts: None,
        tags: None,
    })
}

/// The judges of an eval and their vote rule.
pub(in crate::run) struct EvalJudges<'w> {
    pub(in crate::run) rule: Option<PanelRule>,
    /// The judges in the order of calls; at least one.
    pub(in crate::run) configs: Vec<&'w JudgeConfig>,
}

/// Returns the judges of an eval. A judge from the run's options replaces all of them. The error is a sentence.
pub(in crate::run) fn find_judges<'w>(
    eval: &Eval,
    rubric: &Rubric,
    workspace: &'w Workspace,
    options: &RunOptions,
) -> Result<EvalJudges<'w>, String> {
    let config = |name: &str| {
        let judge = workspace.find_judge(name);
        judge.ok_or_else(|| explain_no_judge(name, workspace).to_string())
    };
    // `--judge` replaces a panel by one judge, so there is no vote rule.
    if let Some(name) = &options.judge {
        return Ok(EvalJudges {
            rule: None,
            configs: vec![config(name)?],
        });
    }
    let assigned = workspace.assign_judges(rubric, eval);
    // The names of decisions contain no judge, so any judge gives the same ones.
    if assigned.is_none() && options.only_names {
        return Ok(EvalJudges {
            rule: None,
            configs: vec![config(ProviderKind::Rules.as_str())?],
        });
    }
    let assigned = assigned.ok_or_else(|| {
        format!(
            "{}: eval {} needs a judge: name one with `judge:` in dicta.yaml, in the rubric or with --judge (the judges here are {})",
            rubric.path.display(),
            eval.id,
            list_known_judges(workspace)
        )
    })?;
    let configs = assigned.judges.into_iter().map(config);
    Ok(EvalJudges {
        rule: assigned.rule,
        configs: configs.collect::<Result<_, _>>()?,
    })
}

fn explain_no_judge(name: &str, workspace: &Workspace) -> RunUsageError {
    let near = find_nearest(name, workspace.judges.keys().map(String::as_str));
    RunUsageError::UnknownJudge {
        name: name.to_owned(),
        hint: match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the judges here are {}", list_known_judges(workspace)),
        },
    }
}

fn list_known_judges(workspace: &Workspace) -> String {
    let names: Vec<&str> = workspace.judges.keys().map(String::as_str).collect();
    names.join(", ")
}

impl Compilation {
    /// Returns the evals as the header records them.
    pub(in crate::run) fn eval_specs(&self) -> Vec<EvalSpec> {
        self.plan
            .evals
            .iter()
            .map(|plan| {
                let rubric = &self.plan.rubrics[plan.rubric as usize];
                let eval = &rubric.evals[plan.position];
                let shots: Vec<RecordedShot> = plan.taught.shots.iter().map(name_shot).collect();
                EvalSpec {
                    rubric: plan.rubric,
                    id: eval.id.clone(),
                    eval_type: eval.eval_type.clone(),
                    digest: digest_with_shots(&eval.digest, &shots),
                    decision_settings: eval.decision_settings.clone(),
                    weight: eval.weight,
                    required: eval.required,
                    weighted: eval.weighted,
                    repeat: plan.repeat,
                    panel: plan.panel.clone(),
                    judged: plan.judge.is_some(),
                    groups: eval.groups.clone(),
                    judge: plan.judge.filter(|_| plan.panel.is_none()),
                    scope: digest_scope(rubric, eval),
                    question: Some(eval.question.clone()),
                    shots,
                    shot_copies: plan.taught.copies.to_vec(),
                    part_of: eval.part_of.clone(),
                }
            })
            .collect()
    }

    /// Returns the rubrics as the header records them.
    pub(in crate::run) fn rubric_specs(&self, root: &Path) -> Vec<RubricSpec> {
        self.plan
            .rubrics
            .iter()
            .map(|rubric| RubricSpec {
                id: rubric.id.clone(),
                path: display_path(root, &rubric.path).to_owned(),
                threshold: rubric.threshold,
            })
            .collect()
    }
}

/// Returns a shot as the header records it.
fn name_shot(shot: &Shot) -> RecordedShot {
    let shown = shot.transcript.messages.get(shot.messages.clone());
    let excerpt = to_native(&Transcript {
        id: "".into(),
        messages: shown.unwrap_or_default().to_vec(),
        metadata: None,
        tags: Vec::new(),
        verdicts: Vec::new(),
    });
    RecordedShot {
        transcript: shot.transcript.id.to_string(),
        passed: shot.passed,
        digest: Digest::hash_parts([excerpt.as_slice(), shot.reason.as_bytes()]),
    }
}

/// Returns the digest of an eval's question with its shots. Other shots are another question: their verdicts differ for a
/// reason, and not by chance. The question that a label answers is without shots; see [`Eval::question`].
fn digest_with_shots(eval: &Digest, shots: &[RecordedShot]) -> Digest {
    // Evals without shots keep the digest of older versions.
    if shots.is_empty() {
        return eval.clone();
    }
    let shots = shots.iter().map(|shot| {
        let verdict = if shot.passed { "pass" } else { "fail" };
        format!("{verdict} {}", shot.digest.0)
    });
    let parts: Vec<String> = std::iter::once(eval.0.clone()).chain(shots).collect();
    Digest::hash_parts(parts.iter().map(String::as_bytes))
}

/// Returns the digest of the settings that select transcripts; `None` if the eval is planned for every transcript.
fn digest_scope(rubric: &Rubric, eval: &Eval) -> Option<Digest> {
    let selectors = [&rubric.applies_to, &eval.applies_to];
    if eval.enabled && selectors.iter().all(|selector| selector.is_empty()) {
        return None;
    }
    let parts: Vec<Value> = selectors
        .iter()
        .map(|one| json!([one.ids, one.tags, one.metadata, one.has_tool]))
        .collect();
    let text = canonical_json(&json!([eval.enabled, parts]));
    Some(Digest::hash_bytes(text.as_bytes()))
}

/// Returns the loaded files as the header names them, with the digest of the stored text, which has no secrets.
pub(in crate::run) fn snapshot_files(
    files: &[LoadedFile],
    redactor: &Redactor,
) -> Vec<SnapshotFile> {
    files
        .iter()
        .map(|file| SnapshotFile {
            path: file.path.clone(),
            blob: match redactor.redact(&file.text) {
                Some(clean) => Blob::from_bytes(clean.as_bytes()),
                None => Blob::from_bytes(file.text.as_bytes()),
            },
        })
        .collect()
}

/// Returns the digest of those settings of a judge that could change a verdict.
pub(crate) fn judge_digest(config: &JudgeConfig) -> Digest {
    let mut value = serde_json::to_value(config).unwrap_or(Value::Null);
    if let Some(map) = value.as_object_mut() {
        // These settings change the name, the speed, the price or the access, but no verdict.
        for ignored_key in [
            "name",
            "key",
            "timeout",
            "prices",
            "stream",
            "requests_per_minute",
            "tokens_per_minute",
            "max_attempts",
            "project",
            "headers",
        ] {
            map.remove(ignored_key);
        }
        // A header can change the request like `extra_body`. Secret values stay out of the digest, because a digest of a
        // short one could be guessed; the cache key covers them.
        let headers: BTreeMap<String, &String> = config
            .headers
            .iter()
            .filter(|(name, _)| !is_secret_name(name))
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect();
        // Without such headers, the digest is that of earlier versions.
        if !headers.is_empty() {
            map.insert("headers".to_owned(), json!(headers));
        }
        if let Some(body) = map.get_mut("extra_body") {
            for at in find_body_secrets(body) {
                if let Some(secret) = body.pointer_mut(&at) {
                    *secret = Value::Null;
                }
            }
        }
        // Runs from before this setting used this value, so their digest must not change.
        if config.transcript == TranscriptMode::Auto {
            map.remove("transcript");
        }
    }
    Digest::hash_bytes(value.to_string().as_bytes())
}

/// Returns the run's options for the header, so that the run can be described and resumed.
pub(in crate::run) fn plan_spec(
    workspace: &Workspace,
    options: &RunOptions,
) -> IndexMap<String, Value> {
    let files: Vec<String> = workspace
        .transcripts
        .iter()
        .map(|path| {
            display_path(&workspace.root, path)
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let mut spec = IndexMap::from([("transcripts".to_owned(), json!(files))]);
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            spec.insert(key.to_owned(), value);
        }
    };
    put(
        "where",
        options.filter.as_ref().map(|f| json!(f.to_source())),
    );
    put("judge", options.judge.as_ref().map(|j| json!(j)));
    put("default_judge", workspace.judge.as_ref().map(|j| json!(j)));
    put("repeat", options.repeat.map(|n| json!(n)));
    put("limit", options.limit.map(|n| json!(n)));
    put("sample", options.sample.map(|s| json!(s.size)));
    put("seed", options.sample.map(|s| json!(s.seed)));
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    fn judge(headers: &[(&str, &str)], body: Value) -> JudgeConfig {
        let mut config = JudgeConfig::new("j", ProviderKind::Openai);
        let headers = headers.iter();
        config.headers = headers
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        config.extra_body = Some(body);
        config
    }

    #[test]
    fn digest_of_a_judge_changes_with_headers_that_are_not_secret() {
        let digest = |headers: &[(&str, &str)]| judge_digest(&judge(headers, Value::Null));
        let plain = digest(&[]);
        assert_ne!(digest(&[("X-Prompt-Mode", "strict")]), plain);
        assert_ne!(
            digest(&[("X-Prompt-Mode", "strict")]),
            digest(&[("X-Prompt-Mode", "kind")])
        );
        // Servers ignore the case of a name and the order of headers.
        assert_eq!(
            digest(&[("A", "1"), ("b", "2")]),
            digest(&[("B", "2"), ("a", "1")])
        );
        for secret in ["Authorization", "X-Tenant-Token", "Cookie"] {
            assert_eq!(digest(&[(secret, "s3cret-value")]), plain, "{secret}");
        }
    }

    #[test]
    fn digest_of_a_judge_contains_no_secret_of_the_body() {
        let digest = |body| judge_digest(&judge(&[], body));
        let with = |secret: &str| json!({"auth": {"token": secret}, "top_k": 1});
        assert_eq!(digest(with("hunter2")), digest(with("hunter3")));
        assert_ne!(digest(json!({"top_k": 1})), digest(json!({"top_k": 2})));
    }
}
