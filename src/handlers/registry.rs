//! Every eval type of this build, by name: what authors see of it, how its params are checked and compiled.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Compiled, contains, json, length, llm_judge, regexp, tools_called};
use crate::rubric::{Catalog, KindSpec, ParamProblem};

/// The list. A new type is a file of its own and a line here.
const TYPES: &[TypeDef] = &[
    TypeDef::of::<contains::Contains>(),
    TypeDef::of::<contains::ContainsAny>(),
    TypeDef::of::<contains::ContentExcludes>(),
    TypeDef::of::<json::JsonSchemaEval>(),
    TypeDef::of::<json::JsonValid>(),
    TypeDef::of::<length::MaxLength>(),
    TypeDef::of::<length::MinLength>(),
    TypeDef::of::<llm_judge::LlmJudge>(),
    TypeDef::of::<llm_judge::LlmJudgeSession>(),
    TypeDef::of::<regexp::RegexEval>(),
    TypeDef::of::<tools_called::ToolsCalled>(),
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
    /// Params that only decide.
    const DECIDES: &'static [&'static str] = &[];

    /// Checks what a schema cannot say, and compiles. Every problem at once.
    fn compile(self) -> Result<Compiled, Vec<ParamProblem>>;
}

/// An [`EvalType`] as a value.
struct TypeDef {
    spec: fn() -> KindSpec,
    compile: fn(&Value) -> Result<Compiled, Vec<ParamProblem>>,
}

impl TypeDef {
    const fn of<T: EvalType>() -> Self {
        Self {
            spec: spec_of::<T>,
            compile: compile_of::<T>,
        }
    }
}

fn spec_of<T: EvalType>() -> KindSpec {
    KindSpec {
        name: T::NAME,
        summary: T::SUMMARY,
        schema: schema_of::<T>(),
        example: T::EXAMPLE,
        judged: T::JUDGED,
        scored: T::SCORED,
        decides: T::DECIDES,
    }
}

fn compile_of<T: EvalType>(params: &Value) -> Result<Compiled, Vec<ParamProblem>> {
    T::deserialize(params)
        .map_err(|why| vec![problem("", why.to_string())])?
        .compile()
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
    types: Vec<(KindSpec, &'static TypeDef)>,
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

    /// Compiles an eval whose params satisfy its type's schema and checks; what still fails is a sentence.
    pub fn compile(&self, kind: &str, params: &Value) -> Result<Compiled, String> {
        let (_, def) = self
            .get(kind)
            .ok_or_else(|| format!("there is no eval type `{kind}`"))?;
        (def.compile)(params).map_err(|problems| {
            let all: Vec<String> = problems.into_iter().map(|p| p.message).collect();
            all.join("; ")
        })
    }

    fn get(&self, kind: &str) -> Option<&(KindSpec, &'static TypeDef)> {
        let at = self.types.binary_search_by(|(spec, _)| spec.name.cmp(kind));
        at.ok().map(|at| &self.types[at])
    }
}

impl Catalog for Registry {
    fn kinds(&self) -> Vec<&KindSpec> {
        self.types.iter().map(|(spec, _)| spec).collect()
    }

    fn kind(&self, name: &str) -> Option<&KindSpec> {
        self.get(name).map(|(spec, _)| spec)
    }

    fn check(&self, kind: &str, params: &Value) -> Vec<ParamProblem> {
        // Checking is compiling: what loads is what runs.
        match self.get(kind) {
            Some((_, def)) => (def.compile)(params).err().unwrap_or_default(),
            None => vec![problem("", format!("there is no eval type `{kind}`"))],
        }
    }
}

#[cfg(test)]
mod tests;
