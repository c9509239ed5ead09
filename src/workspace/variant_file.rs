//! The file of `dicta variants`: an eval, and a list of variants that override parts of it.
//!
//! Responsible for reading the file and for the text of the rubric that a variant gives. Does not run anything.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use super::files::{self, TextFileError};
use super::{Workspace, replace_rubric_text};
use crate::diag::yaml::{self, MAX_BYTES, YamlDoc, describe_value};
use crate::diag::{Diagnostic, Severity, find_nearest};
use crate::handlers::EvalTypeRegistry;
use crate::model::{explain_file_error, make_visible};
use crate::rubric::{EvalTypeCatalog as _, EvalValue, Rubric, find_part_of_value, set_eval_values};

/// The keys that a variant may override, and whether each is an entry of `params`.
const OVERRIDES: &[(&str, bool)] = &[
    ("criteria", true),
    ("scoring_guide", true),
    ("shots", true),
    ("model", true),
    ("grouping", true),
    ("judge", false),
    ("repeat", false),
];
/// The keys of `shots`. The schema of params knows them too, and names no similar one.
const SHOTS_KEYS: &[&str] = &["from", "pass", "fail", "pick", "seed", "max_tokens"];
/// The keys of the file.
const FILE_KEYS: &[&str] = &["eval", "variants"];
/// The largest number of variants in a file. More would choose the luckiest one.
const MAX_VARIANTS: usize = 50;

/// Returns the files of variants in the folder of a workspace, sorted: `variants.yaml`, `tone.variants.yaml`.
pub fn list_variant_files(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.and_then(|name| name.strip_suffix(".yaml").or(name.strip_suffix(".yml")))
                .is_some_and(|stem| stem == "variants" || stem.ends_with(".variants"))
        })
        .collect();
    files.sort();
    files
}

/// The reason why variants cannot be used.
#[derive(Debug, Error)]
pub enum VariantError {
    /// The file has problems.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Problems(Vec<Diagnostic>),
    /// A name is unknown, or a variant does not fit its rubric.
    #[error("{0}")]
    Unusable(String),
}

/// The variants of one eval.
#[derive(Debug, Clone)]
pub struct VariantFile {
    /// The rubric of the eval.
    pub rubric: Arc<Rubric>,
    /// The id of the eval.
    pub eval: String,
    /// The variants, in order.
    pub variants: Vec<Variant>,
    /// The file that the variants are from, for the places of errors; `None` for proposals and clauses.
    source: Option<Arc<YamlDoc>>,
}

/// A named change of an eval.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// The name.
    pub name: String,
    /// The new values.
    pub values: Vec<EvalValue>,
}

impl VariantFile {
    /// Returns variants of the eval with a name: `rubric/eval`, or `eval` if only one rubric has it.
    pub fn of_eval(
        name: &str,
        variants: Vec<Variant>,
        workspace: &Workspace,
        registry: &EvalTypeRegistry,
    ) -> Result<Self, VariantError> {
        let (rubric, eval) =
            find_eval(name, workspace, registry).map_err(VariantError::Unusable)?;
        Ok(Self {
            rubric,
            eval,
            variants,
            source: None,
        })
    }

    /// Returns the name of the eval: `rubric/eval`.
    pub fn eval_name(&self) -> String {
        format!("{}/{}", self.rubric.id, self.eval)
    }

    /// Returns true for the eval itself, and for one of its criteria: `tone.2` is a part of `tone`.
    pub fn has_part(&self, id: &str) -> bool {
        let number = id
            .strip_prefix(self.eval.as_str())
            .and_then(|rest| rest.strip_prefix('.'));
        id == self.eval || number.is_some_and(|number| number.parse::<u32>().is_ok())
    }

    /// Reads the file. An error names the nearest valid name.
    pub fn read(
        path: &Path,
        workspace: &Workspace,
        registry: &EvalTypeRegistry,
    ) -> Result<Self, VariantError> {
        let text = files::read_text(path, MAX_BYTES as u64).map_err(|error| {
            let why = match &error {
                TextFileError::Io(error) => explain_file_error(path, error),
                other => format!("{} {other}", path.display()),
            };
            VariantError::Unusable(make_visible(&why, false).into_owned())
        })?;
        Self::parse(&text, path, workspace, registry)
    }

    fn parse(
        text: &Arc<str>,
        path: &Path,
        workspace: &Workspace,
        registry: &EvalTypeRegistry,
    ) -> Result<Self, VariantError> {
        let doc = yaml::read_document(text, path).map_err(VariantError::Problems)?;
        let refuse =
            |at: &str, why: String| VariantError::Problems(vec![doc.error(at, "variants", why)]);
        let Value::Object(file) = &doc.value else {
            return Err(refuse(
                "",
                "a file of variants is a mapping with `eval` and `variants`".to_owned(),
            ));
        };
        let mut unknown = file.keys().filter(|key| !FILE_KEYS.contains(&key.as_str()));
        if let Some(key) = unknown.next() {
            let at = format!("/{}", escape(key));
            let why = unknown_key(key, FILE_KEYS.iter().copied());
            let error = doc.error_at_key(&at, "variants", why);
            return Err(VariantError::Problems(vec![error]));
        }
        let name = match file.get("eval") {
            Some(Value::String(name)) if !name.trim().is_empty() => name,
            Some(Value::String(_) | Value::Null) => {
                return Err(refuse("/eval", describe_eval_key(workspace, registry)));
            }
            Some(other) => {
                let why = format!(
                    "eval is the name of a judged eval (got {})",
                    describe_value(other)
                );
                return Err(refuse("/eval", why));
            }
            None => {
                let why = describe_eval_key(workspace, registry);
                return Err(refuse("", format!("the key `eval` is missing: {why}")));
            }
        };
        let (rubric, eval) =
            find_eval(name, workspace, registry).map_err(|why| refuse("/eval", why))?;
        let wanted = "variants is a list of mappings, such as { name: strict, criteria: … }";
        let list = match file.get("variants") {
            Some(Value::Array(list)) => list,
            Some(other) => {
                let why = format!("{wanted} (got {})", describe_value(other));
                return Err(refuse("/variants", why));
            }
            None => {
                return Err(refuse(
                    "",
                    format!("the key `variants` is missing: {wanted}"),
                ));
            }
        };
        if list.is_empty() || list.len() > MAX_VARIANTS {
            let why = format!(
                "variants needs 1 to {MAX_VARIANTS} entries (got {})",
                list.len()
            );
            return Err(refuse("/variants", why));
        }
        let mut variants: Vec<Variant> = Vec::new();
        for (at, entry) in list.iter().enumerate() {
            let place = format!("/variants/{at}");
            let variant = Variant::from_value(entry).map_err(|(key, why)| {
                let Some(key) = key else {
                    return refuse(&place, why);
                };
                let at = format!("{place}/{}", escape(&key));
                let is_known = OVERRIDES.iter().any(|(known, _)| *known == key) || key == "name";
                if is_known {
                    refuse(&at, why)
                } else {
                    VariantError::Problems(vec![doc.error_at_key(&at, "variants", why)])
                }
            })?;
            if variants.iter().any(|known| known.name == variant.name) {
                let why = format!("two variants are called `{}`", variant.name);
                return Err(refuse(&format!("{place}/name"), why));
            }
            variant
                .check_judge(workspace)
                .map_err(|why| refuse(&format!("{place}/judge"), why))?;
            variants.push(variant);
        }
        Ok(Self {
            rubric,
            eval,
            variants,
            source: Some(Arc::new(doc)),
        })
    }

    /// Returns the variant with a name.
    pub fn find(&self, name: &str) -> Result<&Variant, VariantError> {
        self.variants
            .iter()
            .find(|variant| variant.name == name)
            .ok_or_else(|| {
                let names = self.variants.iter().map(|variant| variant.name.as_str());
                let near = find_nearest(name, names.clone());
                let hint = near.map_or_else(
                    || format!("the variants are {}", names.collect::<Vec<_>>().join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                VariantError::Unusable(format!("no variant is called `{name}`; {hint}"))
            })
    }

    /// Returns the text of the rubric with the change of a variant, and the workspace with it.
    pub fn apply(
        &self,
        variant: &Variant,
        workspace: &Workspace,
        registry: &EvalTypeRegistry,
    ) -> Result<(Arc<str>, Workspace), VariantError> {
        let rubric = &self.rubric;
        let edited = set_eval_values(&rubric.source, &rubric.path, &self.eval, &variant.values)
            .map_err(|error| {
                VariantError::Unusable(format!(
                    "variant {}: {}: {error}",
                    variant.name,
                    rubric.path.display()
                ))
            })?;
        let edited: Arc<str> = edited.into();
        let changed = replace_rubric_text(workspace, &rubric.path, &edited, registry)
            .map_err(|problems| self.explain_problems(variant, &edited, &problems))?;
        Ok((edited, changed))
    }

    /// Returns the problems of a changed rubric at their places in the file of variants. No file has the changed text, so
    /// its lines would lead nowhere.
    fn explain_problems(
        &self,
        variant: &Variant,
        edited: &Arc<str>,
        problems: &[Diagnostic],
    ) -> VariantError {
        let explain = |problem: &Diagnostic| {
            let name = make_visible(&variant.name, false);
            format!("variant {name} loads no rubric: {}", problem.message)
        };
        let errors = problems
            .iter()
            .filter(|problem| problem.severity == Severity::Error);
        let number = self
            .variants
            .iter()
            .position(|one| one.name == variant.name);
        let Some((doc, number)) = self.source.as_ref().zip(number) else {
            let all: Vec<String> = errors.map(explain).collect();
            return VariantError::Unusable(all.join("; "));
        };
        let entry = format!("/variants/{number}");
        let located = errors.map(|problem| {
            let part = self.find_part(variant, edited, problem);
            let place = format!("{entry}{}", part.unwrap_or_default());
            Diagnostic {
                help: problem.help.clone(),
                ..doc.error(&place, problem.code, explain(problem))
            }
        });
        VariantError::Problems(located.collect())
    }

    /// Returns the pointer of the value with a problem below its variant; `None` if the problem is elsewhere.
    fn find_part(
        &self,
        variant: &Variant,
        edited: &Arc<str>,
        problem: &Diagnostic,
    ) -> Option<String> {
        let byte = problem.span.as_ref()?.bytes.start;
        let path = &self.rubric.path;
        variant.values.iter().find_map(|value| {
            let part = find_part_of_value(edited, path, &self.eval, value, byte)?;
            Some(format!("/{}{part}", escape(&value.key)))
        })
    }
}

fn escape(key: &str) -> String {
    crate::model::escape_pointer_step(key)
}

fn unknown_key<'k>(key: &str, known: impl Iterator<Item = &'k str> + Clone) -> String {
    let hint = find_nearest(key, known.clone()).map_or_else(
        || format!("the keys are {}", known.collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    format!("unknown key `{key}`; {hint}")
}

impl Variant {
    /// Reads one entry of the list. The error has the key that it is about.
    pub fn from_value(entry: &Value) -> Result<Self, (Option<String>, String)> {
        let Value::Object(map) = entry else {
            let why = format!(
                "a variant is a mapping, such as {{ name: strict, criteria: … }} (got {})",
                describe_value(entry)
            );
            return Err((None, why));
        };
        let name = map.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.trim().is_empty() {
            return Err((None, "a variant needs a name".to_owned()));
        }
        let mut values = Vec::new();
        for (key, value) in map.iter().filter(|(key, _)| *key != "name") {
            let Some((_, is_param)) = OVERRIDES.iter().find(|(known, _)| known == key) else {
                let known = OVERRIDES.iter().map(|(known, _)| *known).chain(["name"]);
                let known: Vec<&str> = known.collect();
                return Err((Some(key.clone()), unknown_key(key, known.iter().copied())));
            };
            if let ("shots", Value::Object(settings)) = (key.as_str(), value)
                && let Some(other) = settings
                    .keys()
                    .find(|one| !SHOTS_KEYS.contains(&one.as_str()))
            {
                let why = unknown_key(other, SHOTS_KEYS.iter().copied());
                return Err((Some(key.clone()), format!("shots: {why}")));
            }
            values.push(EvalValue {
                is_param: *is_param,
                key: key.clone(),
                value: value.clone(),
            });
        }
        Ok(Self {
            name: name.to_owned(),
            values,
        })
    }

    fn check_judge(&self, workspace: &Workspace) -> Result<(), String> {
        let judge = self.values.iter().find(|value| value.key == "judge");
        let Some(name) = judge.and_then(|judge| judge.value.as_str()) else {
            return Ok(());
        };
        if workspace.find_judge(name).is_some() {
            return Ok(());
        }
        let names = workspace.judges.keys().map(String::as_str);
        let hint = find_nearest(name, names.clone()).map_or_else(
            || {
                format!(
                    "the judges here are {}",
                    names.collect::<Vec<_>>().join(", ")
                )
            },
            |near| format!("did you mean `{near}`?"),
        );
        Err(format!("no judge is called `{name}`; {hint}"))
    }
}

/// Describes the value of the key `eval`, with the evals that it can name.
fn describe_eval_key(workspace: &Workspace, registry: &EvalTypeRegistry) -> String {
    let names = list_eval_names(workspace, registry);
    let known = match names.len() {
        0 => "the workspace has none".to_owned(),
        _ => names.join(", "),
    };
    format!("eval names the judged eval that the variants change ({known})")
}

/// Returns the names of all judged evals: `rubric/eval`.
fn list_eval_names(workspace: &Workspace, registry: &EvalTypeRegistry) -> Vec<String> {
    let rubrics = workspace.rubrics.iter();
    let names = rubrics.flat_map(|rubric| {
        let evals = list_written_evals(rubric, registry).into_iter();
        evals.map(move |id| format!("{}/{id}", rubric.id))
    });
    names.collect()
}

/// Finds the eval with a name: `rubric/eval`, or `eval` if only one rubric has it.
fn find_eval(
    name: &str,
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
) -> Result<(Arc<Rubric>, String), String> {
    let all: Vec<(&Arc<Rubric>, String)> = workspace
        .rubrics
        .iter()
        .flat_map(|rubric| {
            list_written_evals(rubric, registry)
                .into_iter()
                .map(move |id| (rubric, id))
        })
        .collect();
    let found: Vec<_> = all
        .iter()
        .filter(|(rubric, id)| name == id || name == format!("{}/{id}", rubric.id))
        .collect();
    match &found[..] {
        [(rubric, id)] => Ok((Arc::clone(rubric), id.clone())),
        [] => {
            let names = list_eval_names(workspace, registry);
            // A name without a rubric is near to the bare id of an eval.
            let bare = all.iter().map(|(_, id)| id.as_str());
            let near = find_nearest(name, names.iter().map(String::as_str)).or_else(|| {
                let near = find_nearest(name, bare)?;
                let at = all.iter().position(|(_, id)| id == near)?;
                names.get(at).map(String::as_str)
            });
            let hint = near.map_or_else(
                || format!("the judged evals are {}", names.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            Err(format!("no judged eval is called `{name}`; {hint}"))
        }
        _ => Err(format!(
            "several rubrics have an eval `{name}`; write rubric/eval"
        )),
    }
}

/// Returns the ids of the judged evals as the file writes them: an eval with `grouping: per_criterion` is one.
fn list_written_evals(rubric: &Rubric, registry: &EvalTypeRegistry) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for eval in rubric.evals.iter().filter(|eval| {
        registry
            .eval_type(&eval.eval_type)
            .is_some_and(|kind| kind.judged)
    }) {
        let whole = eval.part_of.as_ref().map_or(&eval.id, |whole| &whole.id);
        if !ids.contains(whole) {
            ids.push(whole.clone());
        }
    }
    ids
}
