//! Rubrics: text in, [`Rubric`] or diagnostics out.
//!
//! Responsible for the format of rubric files and their strict loading, which reports all problems at once. Also
//! responsible for the digests of resolved params, for `applies_to`, and for the interface [`EvalTypeCatalog`]. Does
//! not read files (callers pass their text) and does not know what an eval type does.

mod allowed_lints;
mod bound_edit;
mod catalog;
mod digest;
mod edit_target;
mod eval;
mod example;
mod example_edit;
mod file_schema;
mod formats;
mod ids;
mod load;
mod other_tools;
mod panel;
mod params;
mod reference;
mod referenced_files;
mod refs;
mod sampling;
mod selector;
pub mod template;
mod text_params;
mod trigger;
mod value_edit;
mod when;
mod wrapper;

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use crate::diag::yaml::{DiagnosticCollector, SourceMap, YamlDoc};
use crate::diag::{Diagnostic, SourceSpan};
use crate::model::{Digest, EvalWhole};

pub use allowed_lints::LINTS;
pub use bound_edit::{BoundEditError, set_bound};
pub use catalog::{EvalTypeAlias, EvalTypeCatalog, EvalTypeSpec, ParamProblem, SubEval};
pub use digest::canonical_json;
pub use edit_target::EditTargetError;
pub use example::{Example, ExampleInput};
pub use example_edit::{ExampleEditError, add_example};
pub use file_schema::json_schema;
pub use formats::{DetectedFile, RubricFormat, detect_rubric_format, find_tool_secrets};
pub(crate) use ids::check_id;
pub use load::{load, load_with_files};
pub use other_tools::explain_foreign_type;
#[cfg(test)]
pub(crate) use other_tools::list_foreign_types;
pub use panel::{JudgeAssignment, PanelSpec};
pub use params::metadata_param_path;
pub use referenced_files::{
    NoRubricFiles, RubricFileError, RubricFiles, SnapshotFiles, normalize_path,
};
pub use sampling::{is_sampled, sample_bucket};
pub use selector::{ANY_OF, CompiledSelector, Selector, json_equal};
pub use trigger::Trigger;
pub use value_edit::{EvalValue, ValueEditError, find_part_of_value, set_eval_values};
pub use when::WhenCondition;

/// A named list of evals.
#[derive(Debug, Clone, PartialEq)]
pub struct Rubric {
    /// The rubric's id; by default the file's stem.
    pub id: String,
    /// A text for people.
    pub description: String,
    /// The lowest rubric score at which the rubric passes; `None` if not set, which counts as 1.0.
    pub threshold: Option<f64>,
    /// The default judge of its evals.
    pub judge: Option<String>,
    /// The default panel of its evals; never set together with `judge`.
    pub panel: Option<PanelSpec>,
    /// The transcripts that the rubric is for.
    pub applies_to: Selector,
    /// The evals in file order.
    pub evals: Vec<Eval>,
    /// The lints that the author allows for the whole rubric.
    pub allow: Vec<&'static str>,
    /// The file, as the user would name it.
    pub path: PathBuf,
    /// The text of the file. In a file of another tool, stars replace the secrets of its settings.
    pub source: Arc<str>,
    /// The format of the file.
    pub format: RubricFormat,
    /// The judges that the file names by the paths of their configurations (evalbench's `model_config`): the judge's
    /// name in evals, and the path.
    pub judges: IndexMap<String, PathBuf>,
    /// The warnings about features of another tool's format that dicta does not support.
    pub not_carried: Vec<Diagnostic>,
}

/// The code of warnings about features of another tool's format that dicta does not support.
pub const NOT_CARRIED: &str = "not-carried";

/// The code of the problem that a file of another tool gives no eval.
pub const NO_EVALS: &str = "no-evals";

/// One check of a rubric.
#[derive(Debug, Clone, PartialEq)]
pub struct Eval {
    /// The eval's id, unique within the rubric.
    pub id: String,
    /// The eval type, by its canonical name.
    pub eval_type: String,
    /// The rule for when the eval runs.
    pub trigger: Trigger,
    /// The resolved params, a JSON object that satisfies the type's schema. Includes decision settings such as
    /// `min_score`.
    pub params: Value,
    /// The judge, if it is not the rubric's judge.
    pub judge: Option<String>,
    /// The panel of judges; never set together with `judge`.
    pub panel: Option<PanelSpec>,
    /// A text for people.
    pub description: String,
    /// False if dicta skips the eval's cells.
    pub enabled: bool,
    /// The percentage of messages or transcripts, for the sampling triggers.
    pub sample_percentage: f64,
    /// The number of cells per judge, 1 or more.
    pub repeat: u32,
    /// The factor of the eval in the rubric score.
    pub weight: f64,
    /// True if the rubric fails when this eval fails.
    pub required: bool,
    /// True if the file sets `weight` or `required`.
    pub weighted: bool,
    /// True if the judge may answer "not applicable".
    pub allow_na: bool,
    /// The transcripts that the eval is for, among the rubric's.
    pub applies_to: Selector,
    /// The lints that the author allows for this eval.
    pub allow: Vec<&'static str>,
    /// The examples that test the eval itself.
    pub examples: Vec<Example>,
    /// PromptKit's metric, as written.
    pub metric: Option<Value>,
    /// The eval of the same rubric whose verdicts, decided by code, serve as labels of this one.
    pub reference: Option<String>,
    /// The digest of everything that could change a verdict: type, resolved params without decision settings,
    /// trigger, `allow_na`.
    pub digest: Digest,
    /// The digest of the question that a label answers: criteria, scoring guide and scale, or the params of a check.
    pub question: Digest,
    /// The eval as the file writes it, if this eval is one of several that replace it.
    pub part_of: Option<EvalWhole>,
    /// True if the eval passes when its check fails (`not: true`). Never true for judged evals.
    pub negate: bool,
    /// True if the eval needs an output that is text: promptfoo compares the JSON of an output of calls, which a
    /// transcript does not contain.
    pub needs_text_output: bool,
    /// The precondition; if it does not hold, dicta skips the cell.
    pub when: Option<WhenCondition>,
    /// The names for selection with `--where group:NAME`.
    pub groups: Vec<String>,
    /// The text before the reason of a failure; empty if none.
    pub message: String,
    /// The decision settings as written: `min_score`, `max_score` …
    pub decision_settings: IndexMap<String, Value>,
    /// The place in the file where the eval begins.
    pub span: SourceSpan,
}

impl Eval {
    /// Returns true if a param refers to the transcript's metadata.
    pub fn has_metadata_params(&self) -> bool {
        let params = self.params.as_object().into_iter().flatten();
        params
            .into_iter()
            .any(|(_, value)| metadata_param_path(value).is_some())
    }
}

/// The context that all readers of a rubric's parts share.
#[derive(Clone, Copy)]
struct RubricCx<'d> {
    /// The file, with the contents of its references inserted.
    doc: &'d YamlDoc,
    /// The file that each place belongs to.
    layers: &'d SourceMap,
    problems: &'d DiagnosticCollector,
    catalog: &'d dyn EvalTypeCatalog,
    files: &'d dyn RubricFiles,
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod tests_support;
