//! The catalog of eval types, as the loader of rubrics sees it.
//!
//! Responsible for the interface of the catalog and for the lookup of a type by name. Does not know what a type does:
//! `handlers` implements the interface.

use serde_json::Value;

use super::RubricCx;
use super::other_tools::find_foreign_type;
use crate::diag::find_nearest;

/// The maximum number of similar type names that a message lists.
const MAX_LISTED_NAMES: usize = 6;

/// The eval types and their params. The registry of handlers implements it.
pub trait EvalTypeCatalog: Send + Sync {
    /// Returns every type, sorted by name.
    fn eval_types(&self) -> Vec<&EvalTypeSpec>;
    /// Returns the type with that name or alias.
    fn eval_type(&self, name: &str) -> Option<&EvalTypeSpec>;
    /// Checks params that satisfy the schema: regexes compile, schemas are valid, bounds are in order.
    fn check_params(&self, kind: &str, params: &Value) -> Vec<ParamProblem>;
    /// Returns the evals that replace an eval with these resolved params, in order; empty if it stays one eval.
    fn expand_params(&self, _kind: &str, _params: &Value) -> Result<Vec<SubEval>, ParamProblem> {
        Ok(Vec::new())
    }
}

/// One of the evals that replace an eval. Its id is `<id>.<n>`, from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct SubEval {
    /// The resolved params of this eval.
    pub params: Value,
    /// The JSON pointer into the params from which it was made: `/criteria/2`.
    pub pointer: String,
    /// A text for people.
    pub description: String,
}

/// An eval type, as rubric authors see it.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalTypeSpec {
    /// The type's name.
    pub name: &'static str,
    /// The folder of its handler: `text`, `calls`, `judged` …
    pub family: &'static str,
    /// One sentence about the type.
    pub summary: &'static str,
    /// The JSON Schema of `params`, closed (`additionalProperties: false`), with a description per property.
    pub schema: Value,
    /// An example of `params` as YAML, without indentation.
    pub example: &'static str,
    /// True if a judge decides it.
    pub judged: bool,
    /// True if its results have a score.
    pub scored: bool,
    /// The params that are decision settings: not part of digest, prompt or cache key.
    pub decision_params: &'static [&'static str],
    /// Other names of the type.
    pub aliases: &'static [EvalTypeAlias],
    /// Other names of params, as pairs of the other name and the name in the schema.
    pub param_aliases: &'static [(&'static str, &'static str)],
}

/// Another name of an eval type, with preset params.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvalTypeAlias {
    /// The other name.
    pub name: &'static str,
    /// The preset params with their values as JSON. A written param takes precedence.
    pub preset_params: &'static [(&'static str, &'static str)],
}

impl EvalTypeAlias {
    /// Creates an alias without preset params.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            preset_params: &[],
        }
    }
}

/// A problem in params that a schema cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamProblem {
    /// The JSON pointer into params: `/pattern`.
    pub pointer: String,
    /// A lower-case sentence.
    pub message: String,
    /// The suggested fix.
    pub help: Option<String>,
}

impl<'d> RubricCx<'d> {
    /// Returns the type of a name that the file has at a pointer, and its alias if the name is one. Reports an
    /// unknown name.
    pub(super) fn find_type(
        &self,
        name: &str,
        at: &str,
    ) -> Option<(&'d EvalTypeSpec, Option<&'d EvalTypeAlias>)> {
        // A known name or alias.
        if let Some(kind) = self.catalog.eval_type(name) {
            let alias = kind.aliases.iter().find(|alias| alias.name == name);
            return Some((kind, alias));
        }
        // Unknown: suggest a name with a similar spelling, and names that share a word.
        let kinds = self.catalog.eval_types();
        let known: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
        let others = kinds.iter().flat_map(|kind| kind.aliases);
        let names = known.iter().copied().chain(others.map(|alias| alias.name));
        if let Some(foreign) = find_foreign_type(name) {
            let message = format!(
                "unknown type `{name}`; did you mean `{}`?",
                foreign.eval_type
            );
            let problem = self.doc.error(at, "unknown-type", message);
            self.problems.push(problem.help(foreign.explain()));
            return None;
        }
        let mut problem = self.doc.error(
            at,
            "unknown-type",
            match find_nearest(name, names) {
                Some(near) => format!("unknown type `{name}`; did you mean `{near}`?"),
                None => format!("unknown type `{name}`"),
            },
        );
        // Only main names, because an alias and its type would fill the list twice.
        let alike = find_similar_names(name, &known);
        problem = problem.help(if alike.is_empty() {
            "`dicta eval-types` lists the types".to_owned()
        } else {
            let alike = alike.join(", ");
            format!("by their names it could be: {alike}; `dicta eval-types` lists all")
        });
        self.problems.push(problem);
        None
    }
}

/// Returns the known names that share a word with an unknown name, the most similar first.
fn find_similar_names<'k>(written: &str, known: &[&'k str]) -> Vec<&'k str> {
    let words = |name: &str| -> Vec<String> {
        let parts = name.split(|c: char| !c.is_alphanumeric());
        // Words of one or two letters, such as `is`, occur in many names.
        let long = parts.filter(|part| part.len() > 2);
        long.map(str::to_lowercase).collect()
    };
    let wanted = words(written);
    let same = |a: &str, b: &str| {
        let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
        // A prefix of four letters or more is enough: `match` and `matches`.
        short == long || (short.len() > 3 && long.starts_with(short))
    };
    let shares = |name: &str| {
        let name_words = words(name);
        wanted
            .iter()
            .filter(|a| name_words.iter().any(|b| same(a, b)))
            .count()
    };
    let mut found: Vec<(usize, &str)> = known.iter().map(|name| (shares(name), *name)).collect();
    found.retain(|(shared, _)| *shared > 0);
    // The sort is stable, so names with as many shared words stay in their order.
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
    fn similar_names_share_a_word() {
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
