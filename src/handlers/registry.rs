//! Every eval type of this build, by name: what authors see of it, how its params are checked and compiled.

use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::numbers::{cosine, cost, latency};
use super::text::{
    contains, exact, fields, json, json_path, length, regexp, regexp_matcher, sentences,
};
use super::wrap::{Bounded, Late, LateCheck, Not, Told, has_variables};
use super::{
    Compiled, Home, JudgedEval, Nature, assertion, calls, grounding, judged, script, trajectory,
};
use crate::model::ScoreBounds;
use crate::rubric::{
    Eval, EvalTypeAlias, EvalTypeCatalog, EvalTypeSpec, ParamProblem, SubEval, metadata_param_path,
};

/// The list. A new type is a file of its own and a line here.
const TYPES: &[TypeDef] = &[
    TypeDef::of::<calls::AgentInvoked>(),
    TypeDef::of::<calls::AgentNotInvoked>(),
    TypeDef::of::<calls::AgentResponseContains>(),
    TypeDef::of::<calls::AgentSteps>(),
    TypeDef::of::<judged::AnswerRelevancy>(),
    TypeDef::of::<assertion::Assertion>(),
    TypeDef::of::<judged::BehavioralMetrics>(),
    TypeDef::of::<judged::Bias>(),
    TypeDef::of::<judged::BinaryRubric>(),
    TypeDef::of::<contains::Contains>(),
    TypeDef::of::<contains::ContainsAny>(),
    TypeDef::of::<contains::ContentExcludes>(),
    TypeDef::of::<judged::ContextualPrecision>(),
    TypeDef::of::<judged::ContextualRecall>(),
    TypeDef::of::<judged::ContextualRelevancy>(),
    TypeDef::of::<cosine::CosineSimilarity>(),
    TypeDef::of::<cost::CostBudget>(),
    TypeDef::of::<latency::EndToEndLatency>(),
    TypeDef::of::<exact::ExactMatch>(),
    TypeDef::of::<judged::Faithfulness>(),
    TypeDef::of::<fields::FieldPresence>(),
    TypeDef::of::<judged::GoalCompletion>(),
    TypeDef::of::<grounding::Grounded>(),
    TypeDef::of::<assertion::Guardrail>(),
    TypeDef::of::<judged::Hallucination>(),
    TypeDef::of::<json_path::JsonPath>(),
    TypeDef::of::<json::JsonSchemaEval>(),
    TypeDef::of::<json::JsonValid>(),
    TypeDef::of::<latency::LatencyBudget>(),
    TypeDef::of::<judged::LlmJudge>(),
    TypeDef::of::<judged::LlmJudgeSession>(),
    TypeDef::of::<judged::LlmJudgeToolCalls>(),
    TypeDef::of::<judged::LlmRater>(),
    TypeDef::of::<length::MaxLength>(),
    TypeDef::of::<length::MinLength>(),
    TypeDef::of::<calls::NoToolErrors>(),
    TypeDef::of::<trajectory::OutcomeEquivalent>(),
    TypeDef::of::<judged::ParameterAnalysis>(),
    TypeDef::of::<judged::PiiLeakage>(),
    TypeDef::of::<regexp::RegexEval>(),
    TypeDef::of::<regexp_matcher::RegexpMatcher>(),
    TypeDef::of::<judged::RoleViolation>(),
    TypeDef::of::<script::ScriptEval>(),
    TypeDef::of::<sentences::SentenceCount>(),
    TypeDef::of::<cost::TokenConsumption>(),
    TypeDef::of::<trajectory::ToolAntiPattern>(),
    TypeDef::of::<calls::ToolArgs>(),
    TypeDef::of::<calls::ToolArgsExcludedSession>(),
    TypeDef::of::<calls::ToolArgsSession>(),
    TypeDef::of::<trajectory::ToolCallChain>(),
    TypeDef::of::<calls::ToolCallCount>(),
    TypeDef::of::<calls::ToolCallLatency>(),
    TypeDef::of::<trajectory::ToolCallSequence>(),
    TypeDef::of::<calls::ToolCallsWithArgs>(),
    TypeDef::of::<calls::ToolEfficiency>(),
    TypeDef::of::<calls::ToolNoRepeat>(),
    TypeDef::of::<calls::ToolResultIncludes>(),
    TypeDef::of::<calls::ToolResultMatches>(),
    TypeDef::of::<calls::ToolsCalled>(),
    TypeDef::of::<calls::ToolsCalledSession>(),
    TypeDef::of::<calls::ToolsNotCalled>(),
    TypeDef::of::<calls::ToolsNotCalledSession>(),
    TypeDef::of::<judged::Toxicity>(),
    TypeDef::of::<trajectory::TrajectoryMatch>(),
    TypeDef::of::<trajectory::TrajectoryMatcher>(),
    TypeDef::of::<calls::TurnCount>(),
];

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
    const DECIDES: &'static [&'static str] = &[];
    /// Other names of the type.
    const ALIASES: &'static [EvalTypeAlias] = &[];
    /// Other names of params: the other, then the struct's own.
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = &[];

    /// What params are where they are not written, where the struct itself cannot say it.
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[];
    /// Params that no transcript may choose: `{ from: metadata.x }` is refused for them.
    const FIXED: &'static [&'static str] = &[];

    /// Checks what a schema cannot say, and compiles. Every problem at once.
    fn compile(self) -> Result<Compiled, Vec<ParamProblem>>;

    /// The evals it stands for, where these resolved params say that it is several (see [`Catalog::expand`]).
    fn expand(_params: &Value) -> Result<Vec<SubEval>, ParamProblem> {
        Ok(Vec::new())
    }

    /// The same, for a type that cares where its rubric lies and what the workspace allows.
    fn compile_at(self, _home: &Home) -> Result<Compiled, Vec<ParamProblem>> {
        self.compile()
    }

    /// [`Check::nature`](super::Check::nature) of its checks, where params are only known with a transcript.
    fn nature(_home: &Home) -> Nature {
        Nature::Quick
    }
}

/// An [`EvalType`] as a value.
#[derive(Debug)]
pub(super) struct TypeDef {
    spec: fn() -> EvalTypeSpec,
    expand: fn(&Value) -> Result<Vec<SubEval>, ParamProblem>,
    pub(super) compile: fn(&Value, &Home) -> Result<Compiled, Vec<ParamProblem>>,
    pub(super) nature: fn(&Home) -> Nature,
    fixed: &'static [&'static str],
}

impl TypeDef {
    const fn of<T: EvalType>() -> Self {
        Self {
            spec: spec_of::<T>,
            compile: compile_of::<T>,
            expand: T::expand,
            nature: T::nature,
            fixed: T::FIXED,
        }
    }
}

/// What bounds the score of any check that scores.
const BOUNDS: &[&str] = &["min_score", "max_score"];

/// Whether the type is a check that scores: its bounds are the registry's own.
const fn bounded<T: EvalType>() -> bool {
    T::SCORED && !T::JUDGED
}

fn spec_of<T: EvalType>() -> EvalTypeSpec {
    let mut schema = schema_of::<T>();
    if bounded::<T>() {
        for (name, what) in [("min_score", "at least"), ("max_score", "at most")] {
            schema["properties"][name] = serde_json::json!({
                "description": format!("Decides from the score: passed if it is {what} this."),
                "type": "number", "minimum": 0, "maximum": 1
            });
        }
    }
    for (name, text) in T::DEFAULTS {
        schema["properties"][name]["default"] = (*text).into();
    }
    EvalTypeSpec {
        name: T::NAME,
        family: family_of(std::any::type_name::<T>()),
        summary: T::SUMMARY,
        schema,
        example: T::EXAMPLE,
        judged: T::JUDGED,
        scored: T::SCORED,
        decision_params: if bounded::<T>() { BOUNDS } else { T::DECIDES },
        aliases: T::ALIASES,
        param_aliases: T::PARAM_ALIASES,
    }
}

/// Families in the order authors read them: the folder (or file) of `handlers` that the types live in, and what they look
/// at. Which type is in which follows from where it is.
pub const FAMILIES: &[(&str, &str)] = &[
    ("text", "what the agent said: words, patterns, length, JSON"),
    (
        "calls",
        "its tool calls, one by one, and what they answered",
    ),
    (
        "trajectory",
        "its tool calls as a list: which, in what order",
    ),
    ("grounding", "whether its tools said so too"),
    ("numbers", "recorded numbers: time, cost, tokens, likeness"),
    ("judged", "what a judge decides"),
    ("assertion", "another type with bounds around it"),
    ("script", "a program of yours"),
];

/// The folder of `handlers` in the path of a type: `text` of `dicta::handlers::text::contains::Contains`.
fn family_of(path: &'static str) -> &'static str {
    let mut steps = path.split("::").skip_while(|step| *step != "handlers");
    steps.nth(1).unwrap_or_default()
}

fn compile_of<T: EvalType>(params: &Value, home: &Home) -> Result<Compiled, Vec<ParamProblem>> {
    let read = |params: &Value| {
        T::deserialize(params)
            .map_err(|why| vec![problem("", why.to_string())])?
            .compile_at(home)
    };
    if !bounded::<T>() {
        return read(params);
    }
    let mut own = params.clone();
    let [min, max] = ["min_score", "max_score"].map(|name| {
        let bound = own.as_object_mut().and_then(|own| own.remove(name));
        bound.as_ref().and_then(Value::as_f64)
    });
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        let why = format!("is above max_score ({min} > {max}): nothing could pass");
        return Err(vec![problem("/min_score", why)]);
    }
    Ok(match read(&own)? {
        Compiled::Check(inner) if min.is_some() || max.is_some() => {
            let bounds = ScoreBounds { min, max };
            Compiled::Check(Box::new(Bounded { inner, bounds }))
        }
        compiled => compiled,
    })
}

/// One problem, without further help. The sentence begins with the param the pointer leads to: `patterns[2] is empty`.
pub(super) fn problem(pointer: impl Into<String>, what: impl std::fmt::Display) -> ParamProblem {
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

/// The schema of a params struct: inlined, and without what only a Rust reader understands. A param may be left out,
/// but `null` is no value for it: a key without a value is a slip that must not switch a check off.
fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.meta_schema = None;
        s.inline_subschemas = true;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    if let Some(root) = schema.as_object_mut() {
        root.remove("title");
        if let Some(Value::Object(properties)) = root.get_mut("properties") {
            for property in properties.values_mut() {
                tidy_property(property);
            }
        }
    }
    schema
}

fn tidy_property(property: &mut Value) {
    let Some(property) = property.as_object_mut() else {
        return;
    };
    property.remove("format");
    if property.get("default") == Some(&Value::Null) {
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

/// Every eval type of this build.
pub struct Registry {
    /// Sorted by name.
    types: Vec<(EvalTypeSpec, &'static TypeDef)>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Registry {
    /// All built-in types.
    pub fn builtin() -> Self {
        let mut types: Vec<_> = TYPES.iter().map(|def| ((def.spec)(), def)).collect();
        types.sort_by_key(|(spec, _)| spec.name);
        Self { types }
    }

    /// Compiles an eval whose params satisfy its type's schema and checks; what still fails is a sentence. It has no home:
    /// what could run a program does not.
    pub fn compile(&self, kind: &str, params: &Value) -> Result<Compiled, String> {
        self.compile_at(kind, params, &Home::default())
    }

    fn compile_at(&self, kind: &str, params: &Value, home: &Home) -> Result<Compiled, String> {
        let (_, def) = self
            .get(kind)
            .ok_or_else(|| format!("there is no eval type `{kind}`"))?;
        (def.compile)(params, home).map_err(|problems| {
            let all: Vec<String> = problems.into_iter().map(|p| p.message).collect();
            all.join("; ")
        })
    }

    /// The whole eval: its type with its params, those from the transcript's metadata included, and `not`.
    pub fn prepare(&self, eval: &Eval, home: &Home) -> Result<Compiled, String> {
        let (spec, def) = self
            .get(&eval.eval_type)
            .ok_or_else(|| format!("there is no eval type `{}`", eval.eval_type))?;
        let fills = spec.judged && has_variables(&eval.params);
        let mut compiled = if eval.has_metadata_params() || fills {
            let mut fixed = def.fixed.iter();
            let is_late = |name: &&&str| metadata_param_path(&eval.params[**name]).is_some();
            if let Some(name) = fixed.find(is_late) {
                return Err(format!("{name} cannot come from a transcript"));
            }
            let late = Late {
                params: Arc::new(eval.params.clone()),
                schema: crate::schema::CompiledSchema::compile(&spec.schema)?,
                def,
                home: home.clone(),
                fills,
            };
            if spec.judged {
                Compiled::Judged(JudgedEval::late(late))
            } else {
                Compiled::Check(Box::new(LateCheck::new(late)))
            }
        } else {
            self.compile_at(&eval.eval_type, &eval.params, home)?
        };
        if let Compiled::Check(mut check) = compiled {
            if eval.negate {
                check = Box::new(Not(check));
            }
            if !eval.message.is_empty() {
                let message = eval.message.clone();
                check = Box::new(Told {
                    inner: check,
                    message,
                });
            }
            compiled = Compiled::Check(check);
        }
        Ok(compiled)
    }

    fn get(&self, kind: &str) -> Option<&(EvalTypeSpec, &'static TypeDef)> {
        let at = self.types.binary_search_by(|(spec, _)| spec.name.cmp(kind));
        at.ok().map(|at| &self.types[at])
    }
}

impl EvalTypeCatalog for Registry {
    fn eval_types(&self) -> Vec<&EvalTypeSpec> {
        self.types.iter().map(|(spec, _)| spec).collect()
    }

    fn eval_type(&self, name: &str) -> Option<&EvalTypeSpec> {
        let named = |spec: &EvalTypeSpec| spec.aliases.iter().any(|alias| alias.name == name);
        self.get(name).map(|(spec, _)| spec).or_else(|| {
            let mut specs = self.types.iter().map(|(spec, _)| spec);
            specs.find(|spec| named(spec))
        })
    }

    fn check_params(&self, kind: &str, params: &Value) -> Vec<ParamProblem> {
        // Checking is compiling: what loads is what runs.
        match self.get(kind) {
            Some((_, def)) => (def.compile)(params, &Home::default())
                .err()
                .unwrap_or_default(),
            None => vec![problem("", format!("there is no eval type `{kind}`"))],
        }
    }

    fn expand_params(&self, kind: &str, params: &Value) -> Result<Vec<SubEval>, ParamProblem> {
        self.get(kind)
            .map_or_else(|| Ok(Vec::new()), |(_, def)| (def.expand)(params))
    }
}

#[cfg(test)]
mod tests;
