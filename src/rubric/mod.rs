//! Rubrics: text in, [`Rubric`] or diagnostics out.
//!
//! Owns the shape of a rubric file, strict loading with every problem at once, digests of resolved params, `applies_to`
//! and the [`Catalog`] that says which eval types exist. Refuses to read files itself (callers hand it text) and to know
//! what an eval type does.

mod allowed_lints;
mod catalog;
mod digest;
mod eval;
mod example;
mod file_schema;
mod formats;
mod ids;
mod load;
mod panel;
mod params;
mod referenced_files;
mod refs;
mod sampling;
mod selector;
pub mod template;
mod text_params;
mod trigger;
mod when;
mod wrapper;

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use crate::diag::yaml::{DiagnosticCollector, SourceMap, YamlDoc};
use crate::diag::{Diagnostic, SourceSpan};
use crate::model::Digest;

pub use allowed_lints::LINTS;
pub use catalog::{EvalTypeAlias, EvalTypeCatalog, EvalTypeSpec, ParamProblem, SubEval};
pub use digest::canonical_json;
pub use example::{Example, ExampleInput};
pub use file_schema::json_schema;
pub use formats::{DetectedFile, RubricFormat, detect_rubric_format};
pub(crate) use ids::check_id;
pub use load::{load, load_with_files};
pub use panel::{JudgeAssignment, PanelSpec};
pub use params::metadata_param_path;
pub use referenced_files::{NoRubricFiles, RubricFiles, SnapshotFiles, normalize_path};
pub use sampling::{is_sampled, sample_bucket};
pub use selector::{CompiledSelector, Selector, json_equal};
pub use trigger::Trigger;
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

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod tests_support;
