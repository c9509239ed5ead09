//! Rubrics: text in, [`Rubric`] or diagnostics out.
//!
//! Owns the shape of a rubric file, strict loading with every problem at once, digests of resolved params, `applies_to`
//! and the [`Catalog`] that says which eval types exist. Refuses to read files itself (callers hand it text) and to know
//! what an eval type does.

mod allowed_lints;
mod digest;
mod eval;
mod example;
mod file_schema;
mod formats;
mod load;
mod panel;
mod params;
mod referenced_files;
mod refs;
mod sampling;
mod selector;
pub mod template;
mod text_params;
mod when;
mod wrapper;

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use crate::diag::yaml::{DiagnosticCollector, SourceMap, YamlDoc};
use crate::diag::{Diagnostic, SourceSpan};
use crate::model::{Digest, Transcript};

pub use allowed_lints::LINTS;
pub use digest::canonical_json;
pub use file_schema::json_schema;
pub use formats::{DetectedFile, RubricFormat, detect_rubric_format};
pub(crate) use load::check_id;
pub use load::{load, load_with_files};
pub use panel::{JudgeAssignment, PanelSpec};
pub use params::metadata_param_path;
pub use referenced_files::{NoRubricFiles, RubricFiles, SnapshotFiles, normalize_path};
pub use sampling::{is_sampled, sample_bucket};
pub use selector::{CompiledSelector, json_equal};
pub use when::WhenCondition;

/// A named list of evals.
#[derive(Debug, Clone, PartialEq)]
pub struct Rubric {
    /// Its id; the file's stem where none is written.
    pub id: String,
    /// For people.
    pub description: String,
    /// The score a transcript needs; `None`: not set (1.0 where it matters).
    pub threshold: Option<f64>,
    /// The default judge of its evals.
    pub judge: Option<String>,
    /// Their default judges, where they are several; never with `judge`.
    pub panel: Option<PanelSpec>,
    /// Which transcripts it is for.
    pub applies_to: Selector,
    /// In file order.
    pub evals: Vec<Eval>,
    /// Lints that its author allows, for all of it.
    pub allow: Vec<&'static str>,
    /// The file, as the user would name it.
    pub path: PathBuf,
    /// The file's text.
    pub source: Arc<str>,
    /// Which tool's form the file is in.
    pub format: RubricFormat,
    /// Judges that its file names by the files of their configurations (evalbench's `model_config`): the name its evals
    /// use, and the path.
    pub judges: IndexMap<String, PathBuf>,
    /// What did not carry over from another tool's form; these are among the warnings of loading it.
    pub not_carried: Vec<Diagnostic>,
}

/// The code of warnings about what did not carry over from another tool's form.
pub const NOT_CARRIED: &str = "not-carried";

/// One criterion or check.
#[derive(Debug, Clone, PartialEq)]
pub struct Eval {
    /// Unique within the rubric.
    pub id: String,
    /// The eval type, canonical name.
    pub eval_type: String,
    /// When it runs.
    pub trigger: Trigger,
    /// Resolved params: a JSON object that satisfies the type's schema. `min_score` and its like are in here too.
    pub params: Value,
    /// The judge, if another than the rubric's.
    pub judge: Option<String>,
    /// Its judges, where they are several; never with `judge`.
    pub panel: Option<PanelSpec>,
    /// For people.
    pub description: String,
    /// `false`: its cells are skipped.
    pub enabled: bool,
    /// Percent of turns or sessions, for the sampling triggers.
    pub sample_percentage: f64,
    /// How many cells per judge, 1 or more.
    pub repeat: u32,
    /// For the rubric's score.
    pub weight: f64,
    /// Whether it must pass for the rubric to pass.
    pub required: bool,
    /// Whether `weight` or `required` was written.
    pub weighted: bool,
    /// Whether the judge may answer "not applicable".
    pub allow_na: bool,
    /// Which transcripts it is for, within the rubric's.
    pub applies_to: Selector,
    /// Lints that its author allows.
    pub allow: Vec<&'static str>,
    /// Tests of the eval itself.
    pub examples: Vec<Example>,
    /// PromptKit's metric, kept as written.
    pub metric: Option<Value>,
    /// Digest of all that could change a result: type, resolved params without what only decides, trigger, `allow_na`.
    pub digest: Digest,
    /// `not: true`: passes where its check fails. Never with a judge.
    pub negate: bool,
    /// What must have happened for it to be decided; else its cells are skipped.
    pub when: Option<WhenCondition>,
    /// Names it is chosen by: `--where group:NAME`.
    pub groups: Vec<String>,
    /// Said with a failure, before why; empty for none.
    pub message: String,
    /// What only decides, as written: `min_score`, `max_score` …
    pub decision_settings: IndexMap<String, Value>,
    /// Where it begins in the file.
    pub span: SourceSpan,
}

impl Eval {
    /// Whether some param is taken from the transcript's metadata.
    pub fn has_metadata_params(&self) -> bool {
        let params = self.params.as_object().into_iter().flatten();
        params
            .into_iter()
            .any(|(_, value)| metadata_param_path(value).is_some())
    }
}

/// When an eval runs. PromptKit's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trigger {
    /// A cell per assistant message.
    EveryTurn,
    /// One cell.
    #[default]
    OnSessionComplete,
    /// A cell per sampled assistant message.
    SampleTurns,
    /// One cell if the transcript is sampled.
    SampleSessions,
}

impl Trigger {
    /// The name as files spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EveryTurn => "every_turn",
            Self::OnSessionComplete => "on_session_complete",
            Self::SampleTurns => "sample_turns",
            Self::SampleSessions => "sample_sessions",
        }
    }

    /// Whether it has a cell per assistant message.
    pub const fn is_per_turn(self) -> bool {
        matches!(self, Self::EveryTurn | Self::SampleTurns)
    }

    /// Whether `sample_percentage` counts.
    pub const fn is_sampled(self) -> bool {
        matches!(self, Self::SampleTurns | Self::SampleSessions)
    }
}

/// `applies_to`: every given condition must hold; within one, any entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selector {
    /// Globs over transcript ids.
    pub ids: Vec<String>,
    /// Any of these tags.
    pub tags: Vec<String>,
    /// Each of these dotted metadata paths has this value.
    pub metadata: IndexMap<String, Value>,
    /// Any of these tools was called.
    pub has_tool: Vec<String>,
}

/// A test of an eval.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// What is judged.
    pub input: ExampleInput,
    /// `pass`, `fail` or `na`.
    pub expect: crate::model::Outcome,
    /// Why, for people.
    pub why: String,
    /// Where it begins in the file.
    pub span: SourceSpan,
}

/// What an example judges.
#[derive(Debug, Clone, PartialEq)]
pub enum ExampleInput {
    /// The output of an assistant, alone.
    Text(String),
    /// A whole transcript.
    Transcript(Arc<Transcript<'static>>),
}

/// What every reader of a rubric's parts goes by.
#[derive(Clone, Copy)]
struct RubricCx<'d> {
    /// The file, with what it refers to laid in.
    doc: &'d YamlDoc,
    /// Which file each place is in.
    layers: &'d SourceMap,
    problems: &'d DiagnosticCollector,
    catalog: &'d dyn EvalTypeCatalog,
    files: &'d dyn RubricFiles,
}

/// Which eval types exist and what params they take; implemented by the registry that runs them.
pub trait EvalTypeCatalog: Send + Sync {
    /// Every type, sorted by name.
    fn eval_types(&self) -> Vec<&EvalTypeSpec>;
    /// The type of that name.
    fn eval_type(&self, name: &str) -> Option<&EvalTypeSpec>;
    /// Checks params that already satisfy the schema: regexes compile, schemas are schemas, bounds are in order.
    fn check_params(&self, kind: &str, params: &Value) -> Vec<ParamProblem>;
    /// The evals that an eval with these resolved params stands for, in order; empty: it is one.
    fn expand_params(&self, _kind: &str, _params: &Value) -> Result<Vec<SubEval>, ParamProblem> {
        Ok(Vec::new())
    }
}

/// One of the evals that an eval stands for: it is called `<id>.<n>`, from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct SubEval {
    /// Its own resolved params.
    pub params: Value,
    /// Where in the params it stands: `/criteria/2`.
    pub pointer: String,
    /// For people.
    pub description: String,
}

/// An eval type as authors see it.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalTypeSpec {
    /// Its name.
    pub name: &'static str,
    /// The family it lives in, by its folder: `text`, `calls`, `judged` …
    pub family: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// JSON Schema of `params`, closed (`additionalProperties: false`), with a description per property.
    pub schema: Value,
    /// An example of `params` as YAML, indented by nothing.
    pub example: &'static str,
    /// Whether a judge decides it.
    pub judged: bool,
    /// Whether results carry a score.
    pub scored: bool,
    /// Params that only decide and are no part of digest, prompt or cache key.
    pub decision_params: &'static [&'static str],
    /// Other names of the type.
    pub aliases: &'static [EvalTypeAlias],
    /// Other names of params: the other, then the one of the schema.
    pub param_aliases: &'static [(&'static str, &'static str)],
}

/// Another name of an eval type, with params it sets where they are not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvalTypeAlias {
    /// The other name.
    pub name: &'static str,
    /// Params and their values as JSON.
    pub preset_params: &'static [(&'static str, &'static str)],
}

impl EvalTypeAlias {
    /// Only another name.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            preset_params: &[],
        }
    }
}

/// A fault in params that a schema cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamProblem {
    /// JSON pointer into params: `/pattern`.
    pub pointer: String,
    /// A lower-case sentence.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod tests_support;
