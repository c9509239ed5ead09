//! The registry of the eval types: their documentation and schema, and the compilation of evals.
//!
//! Responsible for what all types share: score bounds, defaults, schemas, and the wrappers around a check. Does not
//! decide anything itself.

use std::sync::Arc;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::Value;
use thiserror::Error;

use super::eval_type::{EvalType, EvalTypeDef, param_problem};
use super::numbers::{cosine, cost, latency};
use super::text::{
    contains, exact_match, field_presence, json, json_path, length, regexp, regexp_matcher,
    sentences,
};
use super::wrap::{
    BoundedCheck, DeferredCheck, DeferredParams, FailureMessageCheck, NegatedCheck, NoAnswerCheck,
    TextOutputCheck, has_variables,
};
use super::{
    CompileCx, CompiledEval, JudgedEval, JudgedPart, assertion, calls, grounding, judged, script,
    trajectory,
};
use crate::model::ScoreBounds;
use crate::rubric::{
    Eval, EvalTypeCatalog, EvalTypeSpec, ParamProblem, SubEval, metadata_param_path,
};
use crate::schema::{CompiledSchema, SchemaError};

/// The reason why an eval does not compile.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EvalCompileError {
    /// No eval type has that name.
    #[error("unknown eval type `{name}`")]
    UnknownType {
        /// The name.
        name: String,
    },
    /// A param that must be in the rubric comes from the metadata of a transcript.
    #[error("{param} cannot come from a transcript")]
    FixedParam {
        /// The name of the param.
        param: &'static str,
    },
    /// The schema of the eval type is invalid.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The params are invalid.
    #[error("{}", join_messages(.0))]
    Params(Vec<ParamProblem>),
}

/// Joins the texts of the problems in a line.
fn join_messages(problems: &[ParamProblem]) -> String {
    let all: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
    all.join("; ")
}

/// The list of eval types. A new type is a file and a line here.
const TYPES: &[EvalTypeDef] = &[
    EvalTypeDef::new::<calls::AgentInvoked>(),
    EvalTypeDef::new::<calls::AgentNotInvoked>(),
    EvalTypeDef::new::<calls::AgentResponseContains>(),
    EvalTypeDef::new::<calls::AgentSteps>(),
    EvalTypeDef::new::<judged::AnswerRelevancy>(),
    EvalTypeDef::new::<assertion::AssertionEval>(),
    EvalTypeDef::new::<judged::BehavioralMetrics>(),
    EvalTypeDef::new::<judged::Bias>(),
    EvalTypeDef::new::<judged::BinaryRubric>(),
    EvalTypeDef::new::<contains::Contains>(),
    EvalTypeDef::new::<contains::ContainsAny>(),
    EvalTypeDef::new::<contains::ContentExcludes>(),
    EvalTypeDef::new::<judged::ContextualPrecision>(),
    EvalTypeDef::new::<judged::ContextualRecall>(),
    EvalTypeDef::new::<judged::ContextualRelevancy>(),
    EvalTypeDef::new::<cosine::CosineSimilarity>(),
    EvalTypeDef::new::<cost::CostBudget>(),
    EvalTypeDef::new::<latency::EndToEndLatency>(),
    EvalTypeDef::new::<exact_match::ExactMatch>(),
    EvalTypeDef::new::<judged::Faithfulness>(),
    EvalTypeDef::new::<field_presence::FieldPresence>(),
    EvalTypeDef::new::<judged::GoalCompletion>(),
    EvalTypeDef::new::<grounding::Grounded>(),
    EvalTypeDef::new::<assertion::GuardrailEval>(),
    EvalTypeDef::new::<judged::Hallucination>(),
    EvalTypeDef::new::<json_path::JsonPath>(),
    EvalTypeDef::new::<json::JsonSchemaEval>(),
    EvalTypeDef::new::<json::JsonValid>(),
    EvalTypeDef::new::<latency::LatencyBudget>(),
    EvalTypeDef::new::<judged::LlmJudge>(),
    EvalTypeDef::new::<judged::LlmJudgeSession>(),
    EvalTypeDef::new::<judged::LlmJudgeToolCalls>(),
    EvalTypeDef::new::<judged::LlmRater>(),
    EvalTypeDef::new::<length::MaxLength>(),
    EvalTypeDef::new::<length::MinLength>(),
    EvalTypeDef::new::<calls::NoToolErrors>(),
    EvalTypeDef::new::<trajectory::OutcomeEquivalent>(),
    EvalTypeDef::new::<judged::PairwisePreference>(),
    EvalTypeDef::new::<judged::ParameterAnalysis>(),
    EvalTypeDef::new::<judged::PiiLeakage>(),
    EvalTypeDef::new::<regexp::RegexEval>(),
    EvalTypeDef::new::<regexp_matcher::RegexpMatcher>(),
    EvalTypeDef::new::<judged::RoleViolation>(),
    EvalTypeDef::new::<script::ScriptEval>(),
    EvalTypeDef::new::<sentences::SentenceCount>(),
    EvalTypeDef::new::<judged::Similar>(),
    EvalTypeDef::new::<cost::TokenConsumption>(),
    EvalTypeDef::new::<trajectory::ToolAntiPattern>(),
    EvalTypeDef::new::<calls::ToolArgsEval>(),
    EvalTypeDef::new::<calls::ToolArgsExcludedSession>(),
    EvalTypeDef::new::<calls::ToolArgsSession>(),
    EvalTypeDef::new::<trajectory::ToolCallChain>(),
    EvalTypeDef::new::<calls::ToolCallCount>(),
    EvalTypeDef::new::<calls::ToolCallLatency>(),
    EvalTypeDef::new::<trajectory::ToolCallSequence>(),
    EvalTypeDef::new::<calls::ToolCallsWithArgs>(),
    EvalTypeDef::new::<calls::ToolEfficiency>(),
    EvalTypeDef::new::<calls::ToolNoRepeat>(),
    EvalTypeDef::new::<calls::ToolResultIncludes>(),
    EvalTypeDef::new::<calls::ToolResultMatches>(),
    EvalTypeDef::new::<calls::ToolsCalled>(),
    EvalTypeDef::new::<calls::ToolsCalledSession>(),
    EvalTypeDef::new::<calls::ToolsNotCalled>(),
    EvalTypeDef::new::<calls::ToolsNotCalledSession>(),
    EvalTypeDef::new::<judged::Toxicity>(),
    EvalTypeDef::new::<trajectory::TrajectoryMatch>(),
    EvalTypeDef::new::<trajectory::TrajectoryMatcher>(),
    EvalTypeDef::new::<calls::TurnCount>(),
];

/// Returns the part of a transcript that the checks of an eval type read. Aliases of types are not known.
pub fn judged_part(eval_type: &str) -> JudgedPart {
    TYPES
        .iter()
        .find(|known| known.name == eval_type)
        .map_or(JudgedPart::Transcript, EvalTypeDef::find_judged_part)
}

/// The params that bound the score of any check that scores.
const BOUND_PARAMS: &[&str] = &["min_score", "max_score"];

impl EvalTypeDef {
    /// Builds the value of a type.
    const fn new<T: EvalType>() -> Self {
        Self {
            name: T::NAME,
            summary: T::SUMMARY,
            example: T::EXAMPLE,
            judged: T::JUDGED,
            scored: T::SCORED,
            decision_settings: T::DECISION_SETTINGS,
            aliases: T::ALIASES,
            param_aliases: T::PARAM_ALIASES,
            defaults: T::DEFAULTS,
            fixed_params: T::FIXED_PARAMS,
            judged_part: T::JUDGED_PART,
            rust_path: std::any::type_name::<T>,
            build_schema: SchemaGenerator::into_root_schema_for::<T>,
            compile_params: compile_params::<T>,
            expand: T::expand,
            execution_mode: T::execution_mode,
        }
    }

    fn family(&self) -> &'static str {
        family_from_path((self.rust_path)())
    }

    fn find_judged_part(&self) -> JudgedPart {
        self.judged_part.unwrap_or_else(|| match self.family() {
            "text" | "grounding" => JudgedPart::Output,
            "calls" | "trajectory" => JudgedPart::Calls,
            _ => JudgedPart::Transcript,
        })
    }

    /// Returns `true` if the type is a check that scores. The registry then handles its bounds.
    fn has_score_bounds(&self) -> bool {
        self.scored && !self.judged
    }

    fn build_spec(&self) -> EvalTypeSpec {
        let mut schema = self.build_params_schema();
        if self.has_score_bounds() {
            // The registry handles the bounds of checks, so no params struct names them.
            for (name, what) in [("min_score", "at least"), ("max_score", "at most")] {
                schema["properties"][name] = serde_json::json!({
                    "description": format!("Decision setting: the eval passes if its score is {what} this."),
                    "type": "number", "minimum": 0, "maximum": 1
                });
            }
        }
        for (name, text) in self.defaults {
            // Defaults that depend on a `const` text, which a derive cannot express.
            schema["properties"][name]["default"] = (*text).into();
        }
        EvalTypeSpec {
            name: self.name,
            family: self.family(),
            summary: self.summary,
            schema,
            example: self.example,
            judged: self.judged,
            scored: self.scored,
            decision_params: if self.has_score_bounds() {
                BOUND_PARAMS
            } else {
                self.decision_settings
            },
            aliases: self.aliases,
            param_aliases: self.param_aliases,
        }
    }

    /// Builds the schema of a params struct: inlined, and without Rust's number formats. A param may be left out, but
    /// `null` is refused: a key without a value is a mistake that must not disable a check.
    fn build_params_schema(&self) -> Value {
        let settings = SchemaSettings::draft2020_12().with(|s| {
            s.meta_schema = None;
            // Inlined, because editors and `dicta eval-types` show each param by itself.
            s.inline_subschemas = true;
        });
        let mut schema = (self.build_schema)(settings.into_generator()).to_value();
        if let Some(root) = schema.as_object_mut() {
            // The title is the name of a Rust struct.
            root.remove("title");
            if let Some(Value::Object(properties)) = root.get_mut("properties") {
                for property in properties.values_mut() {
                    simplify_property(property);
                }
            }
        }
        schema
    }

    /// Compiles params that satisfy the schema of the type.
    pub(super) fn compile(
        &self,
        params: &Value,
        home: &CompileCx,
    ) -> Result<CompiledEval, Vec<ParamProblem>> {
        if !self.has_score_bounds() {
            // Judged types and types without a score read their params unchanged.
            return (self.compile_params)(params, home);
        }
        // The struct of the type denies unknown fields, so it must not see the bounds.
        let mut type_params = params.clone();
        let [min, max] = ["min_score", "max_score"].map(|name| {
            let bound = type_params
                .as_object_mut()
                .and_then(|type_params| type_params.remove(name));
            bound.as_ref().and_then(Value::as_f64)
        });
        // Both bounds are numbers by the schema; this compares them with each other.
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            let why = format!("is above max_score ({min} > {max}): nothing could pass");
            return Err(vec![param_problem("/min_score", why)]);
        }
        Ok(match (self.compile_params)(&type_params, home)? {
            CompiledEval::Check(inner) if min.is_some() || max.is_some() => {
                let bounds = ScoreBounds { min, max };
                CompiledEval::Check(Box::new(BoundedCheck { inner, bounds }))
            }
            compiled => compiled,
        })
    }
}

/// Reads the struct of a type from its params, and compiles it. The compiler repeats this code for each type.
fn compile_params<T: EvalType>(
    params: &Value,
    home: &CompileCx,
) -> Result<CompiledEval, Vec<ParamProblem>> {
    // The error of serde has no position; the schema has checked the params before.
    T::deserialize(params)
        .map_err(|why| vec![param_problem("", why.to_string())])?
        .compile_in(home)
}

/// The families in the order that authors read them, each with a description. A family is the folder (or file) of
/// `handlers` that contains the types.
pub const FAMILIES: &[(&str, &str)] = &[
    ("text", "the agent's answers: words, patterns, length, JSON"),
    ("calls", "single tool calls and their results"),
    (
        "trajectory",
        "the list of tool calls: which tools, and in which order",
    ),
    ("grounding", "claims that tool results must support"),
    (
        "numbers",
        "recorded metrics: latency, cost, tokens, similarity",
    ),
    ("judged", "decisions of a judge"),
    ("assertion", "bounds around another type"),
    ("script", "your own program"),
];

/// Returns the folder of `handlers` in the path of a type: `text` of `dicta::handlers::text::contains::Contains`.
fn family_from_path(path: &'static str) -> &'static str {
    // The folder of a type is its family, so moving a file moves the type in the documentation.
    let mut steps = path.split("::").skip_while(|step| *step != "handlers");
    steps.nth(1).unwrap_or_default()
}

fn simplify_property(property: &mut Value) {
    let Some(property) = property.as_object_mut() else {
        return;
    };
    // `format` is Rust's number type (`uint32`), which authors do not know.
    property.remove("format");
    if property.get("default") == Some(&Value::Null) {
        // A default of null means "not set", and the schema refuses null.
        property.remove("default");
    }
    let Some(Value::Array(types)) = property.get_mut("type") else {
        return;
    };
    types.retain(|t| t != "null");
    if let [only] = types.as_slice() {
        let only = only.clone();
        property.insert("type".to_owned(), only);
    }
}

/// All eval types of this build.
pub struct EvalTypeRegistry {
    /// The types, sorted by name.
    types: Vec<RegisteredType>,
}

/// An eval type with its documentation.
struct RegisteredType {
    spec: EvalTypeSpec,
    def: &'static EvalTypeDef,
}

impl Default for EvalTypeRegistry {
    fn default() -> Self {
        Self::builtin()
    }
}

impl EvalTypeRegistry {
    /// Creates the registry of all built-in types.
    pub fn builtin() -> Self {
        let register = |def: &'static EvalTypeDef| RegisteredType {
            spec: def.build_spec(),
            def,
        };
        let mut types: Vec<_> = TYPES.iter().map(register).collect();
        // Sorted by name for the binary search in `find_type`.
        types.sort_by_key(|registered| registered.spec.name);
        Self { types }
    }

    /// Compiles an eval whose params satisfy its type's schema and checks. Programs are not allowed, because the
    /// rubric folder is unknown.
    pub fn compile(&self, kind: &str, params: &Value) -> Result<CompiledEval, EvalCompileError> {
        self.compile_in(kind, params, &CompileCx::default())
    }

    fn compile_in(
        &self,
        kind: &str,
        params: &Value,
        home: &CompileCx,
    ) -> Result<CompiledEval, EvalCompileError> {
        let RegisteredType { def, .. } =
            self.find_type(kind)
                .ok_or_else(|| EvalCompileError::UnknownType {
                    name: kind.to_owned(),
                })?;
        def.compile(params, home).map_err(EvalCompileError::Params)
    }

    /// Compiles a whole eval: its type with its params, params from the transcript's metadata, `not` and `message`.
    pub fn compile_eval(
        &self,
        eval: &Eval,
        home: &CompileCx,
    ) -> Result<CompiledEval, EvalCompileError> {
        // Find the type.
        let RegisteredType { spec, def } =
            self.find_type(&eval.eval_type)
                .ok_or_else(|| EvalCompileError::UnknownType {
                    name: eval.eval_type.clone(),
                })?;
        let fills = spec.judged && has_variables(&eval.params);
        // A judged text with variables is rendered with each transcript, so it compiles late.
        let mut compiled = if eval.has_metadata_params() || fills {
            // Some params come from a transcript: they are compiled when the transcript is known.
            let mut fixed = def.fixed_params.iter();
            // Security: a transcript must not choose the command of a script.
            let is_late = |name: &&&str| metadata_param_path(&eval.params[**name]).is_some();
            if let Some(name) = fixed.find(is_late) {
                return Err(EvalCompileError::FixedParam { param: name });
            }
            let late = DeferredParams {
                params: Arc::new(eval.params.clone()),
                schema: CompiledSchema::compile(&spec.schema)?,
                eval_type: def,
                compile_cx: home.clone(),
                renders_templates: fills,
            };
            if spec.judged {
                CompiledEval::Judged(JudgedEval::from_deferred(late))
            } else {
                CompiledEval::Check(Box::new(DeferredCheck::new(late)))
            }
        } else {
            self.compile_in(&eval.eval_type, &eval.params, home)?
        };
        let reads_text = matches!(
            def.find_judged_part(),
            JudgedPart::Output | JudgedPart::Answers
        );
        if eval.needs_text_output && reads_text {
            compiled = match compiled {
                CompiledEval::Check(check) => CompiledEval::Check(Box::new(TextOutputCheck(check))),
                CompiledEval::Judged(judged) => CompiledEval::Judged(judged.for_text_output()),
            };
        }
        // Wrap the check: `not`, then the note on a missing answer, then `message`.
        if let CompiledEval::Check(mut check) = compiled {
            // Inside the message: a failure of the negated check needs the message as well.
            if eval.negate {
                check = Box::new(NegatedCheck(check));
            }
            check = Box::new(NoAnswerCheck(check));
            if !eval.message.is_empty() {
                let message = eval.message.clone();
                check = Box::new(FailureMessageCheck {
                    inner: check,
                    message,
                });
            }
            compiled = CompiledEval::Check(check);
        }
        Ok(compiled)
    }

    fn find_type(&self, kind: &str) -> Option<&RegisteredType> {
        let at = self
            .types
            .binary_search_by(|registered| registered.spec.name.cmp(kind));
        at.ok().map(|at| &self.types[at])
    }
}

impl EvalTypeCatalog for EvalTypeRegistry {
    fn eval_types(&self) -> Vec<&EvalTypeSpec> {
        self.types
            .iter()
            .map(|registered| &registered.spec)
            .collect()
    }

    fn eval_type(&self, name: &str) -> Option<&EvalTypeSpec> {
        let named = |spec: &EvalTypeSpec| spec.aliases.iter().any(|alias| alias.name == name);
        // The name first: an alias never hides a type.
        self.find_type(name)
            .map(|registered| &registered.spec)
            .or_else(|| {
                let mut specs = self.types.iter().map(|registered| &registered.spec);
                specs.find(|spec| named(spec))
            })
    }

    fn check_params(&self, kind: &str, params: &Value) -> Vec<ParamProblem> {
        // Checking compiles, so that everything that loads also runs.
        match self.find_type(kind) {
            Some(RegisteredType { def, .. }) => def
                .compile(params, &CompileCx::default())
                .err()
                .unwrap_or_default(),
            // The loader reports unknown types itself; this is for other callers.
            None => vec![param_problem("", format!("unknown eval type `{kind}`"))],
        }
    }

    fn expand_params(&self, kind: &str, params: &Value) -> Result<Vec<SubEval>, ParamProblem> {
        self.find_type(kind).map_or_else(
            || Ok(Vec::new()),
            |RegisteredType { def, .. }| (def.expand)(params),
        )
    }
}

#[cfg(test)]
mod tests;
