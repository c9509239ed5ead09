//! The catalog of eval types, as the loader of rubrics sees it.
//!
//! Responsible for the interface of the catalog and for the lookup of a type by name. Does not know what a type does:
//! `handlers` implements the interface.

use serde_json::Value;

use super::RubricCx;
use crate::diag::find_nearest;

/// The maximum number of similar type names that a message lists.
const MAX_LISTED_NAMES: usize = 6;

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

impl<'d> RubricCx<'d> {
    /// The type of a name that stands at a pointer.
    pub(super) fn find_type(
        &self,
        name: &str,
        at: &str,
    ) -> Option<(&'d EvalTypeSpec, Option<&'d EvalTypeAlias>)> {
        if let Some(kind) = self.catalog.eval_type(name) {
            let alias = kind.aliases.iter().find(|alias| alias.name == name);
            return Some((kind, alias));
        }
        let kinds = self.catalog.eval_types();
        let known: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
        let others = kinds.iter().flat_map(|kind| kind.aliases);
        let names = known.iter().copied().chain(others.map(|alias| alias.name));
        let mut problem = self.doc.error(
            at,
            "unknown-type",
            match find_nearest(name, names) {
                Some(near) => format!("unknown type `{name}`; did you mean `{near}`?"),
                None => format!("unknown type `{name}`"),
            },
        );
        let alike = find_similar_names(name, &known);
        problem = problem.help(if alike.is_empty() {
            "`dicta evals` lists the types".to_owned()
        } else {
            let alike = alike.join(", ");
            format!("by their names it could be: {alike}; `dicta evals` lists all")
        });
        self.problems.push(problem);
        None
    }
}

/// The names that share a word with one that nobody knows, in their order.
fn find_similar_names<'k>(written: &str, known: &[&'k str]) -> Vec<&'k str> {
    let words = |name: &str| -> Vec<String> {
        let parts = name.split(|c: char| !c.is_alphanumeric());
        let long = parts.filter(|part| part.len() > 2);
        long.map(str::to_lowercase).collect()
    };
    let wanted = words(written);
    let same = |a: &str, b: &str| {
        let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
        short == long || (short.len() > 3 && long.starts_with(short))
    };
    let shares = |name: &str| {
        let own = words(name);
        wanted
            .iter()
            .filter(|a| own.iter().any(|b| same(a, b)))
            .count()
    };
    let mut found: Vec<(usize, &str)> = known.iter().map(|name| (shares(name), *name)).collect();
    found.retain(|(shared, _)| *shared > 0);
    // Most words first; what shares as many stays in its order.
    found.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
    found
        .into_iter()
        .take(MAX_LISTED_NAMES)
        .map(|(_, name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_alike_that_share_a_word() {
        let known = [
            "contains",
            "contains_any",
            "llm_judge",
            "binary_rubric",
            "regex",
        ];
        assert_eq!(
            find_similar_names("contain-all", &known),
            ["contains", "contains_any"]
        );
        assert_eq!(
            find_similar_names("llm-rubric", &known),
            ["llm_judge", "binary_rubric"]
        );
        assert_eq!(find_similar_names("xyzzy", &known), [""; 0]);
    }
}
