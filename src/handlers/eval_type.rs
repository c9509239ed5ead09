//! The trait that every eval type implements, and its form as a value.
//!
//! Responsible for the interface between an eval type and the registry. Does not know any eval type: the table is in
//! `registry`.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{CompileCx, CompiledEval, ExecutionMode};
use crate::rubric::{EvalTypeAlias, EvalTypeSpec, ParamProblem, SubEval};

/// An eval type, told by its params: implemented by a struct that derives `Deserialize` and `JsonSchema`, denies unknown
/// fields and has a doc line per field (they are what `dicta evals` and editors show).
pub(super) trait EvalType: DeserializeOwned + JsonSchema {
    /// Its name, PromptKit's where there is one.
    const NAME: &'static str;
    /// One sentence: what it looks at and when it passes.
    const SUMMARY: &'static str;
    /// `params` as YAML.
    const EXAMPLE: &'static str;
    /// Whether a judge decides it.
    const JUDGED: bool = false;
    /// Whether its results carry a score.
    const SCORED: bool = false;
    /// Params that only decide. A check that scores has `min_score` and `max_score` without saying so.
    const DECISION_SETTINGS: &'static [&'static str] = &[];
    /// Other names of the type.
    const ALIASES: &'static [EvalTypeAlias] = &[];
    /// Other names of params: the other, then the struct's own.
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = &[];

    /// What params are where they are not written, where the struct itself cannot say it.
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[];
    /// Params that no transcript may choose: `{ from: metadata.x }` is refused for them.
    const FIXED_PARAMS: &'static [&'static str] = &[];

    /// Checks what a schema cannot say, and compiles. Every problem at once.
    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>>;

    /// The evals it stands for, where these resolved params say that it is several (see [`Catalog::expand`]).
    fn expand(_params: &Value) -> Result<Vec<SubEval>, ParamProblem> {
        Ok(Vec::new())
    }

    /// The same, for a type that cares where its rubric lies and what the workspace allows.
    fn compile_in(self, _home: &CompileCx) -> Result<CompiledEval, Vec<ParamProblem>> {
        self.compile()
    }

    /// [`Check::nature`](super::Check::nature) of its checks, where params are only known with a transcript.
    fn execution_mode(_home: &CompileCx) -> ExecutionMode {
        ExecutionMode::Inline
    }
}

/// An [`EvalType`] as a value.
#[derive(Debug)]
pub(super) struct EvalTypeDef {
    pub(super) build_spec: fn() -> EvalTypeSpec,
    pub(super) expand: fn(&Value) -> Result<Vec<SubEval>, ParamProblem>,
    pub(super) compile: fn(&Value, &CompileCx) -> Result<CompiledEval, Vec<ParamProblem>>,
    pub(super) execution_mode: fn(&CompileCx) -> ExecutionMode,
    pub(super) fixed_params: &'static [&'static str],
}

/// One problem, without further help. The sentence begins with the param the pointer leads to: `patterns[2] is empty`.
pub(super) fn param_problem(
    pointer: impl Into<String>,
    what: impl std::fmt::Display,
) -> ParamProblem {
    let pointer = pointer.into();
    let mut steps = pointer.split('/').skip(1);
    let message = match (steps.next(), steps.next()) {
        (None, _) => what.to_string(),
        (Some(param), None) => format!("{param} {what}"),
        (Some(param), Some(at)) => format!("{param}[{at}] {what}"),
    };
    ParamProblem {
        pointer,
        message,
        help: None,
    }
}
