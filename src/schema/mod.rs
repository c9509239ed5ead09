//! JSON Schema: compiled once, remote and file references refused, drafts by `$schema` (else 2020-12), formats asserted.
//!
//! Owns [`Compiled`], the only way anything here is validated, and the wording of its problems. Refuses to open a file
//! or a socket: a schema refers to itself or to the well-known meta-schemas, which are built in. Patterns run on the
//! linear-time `regex` engine with a size limit, so that neither a schema nor a text can hold a thread.
//!
//! The only importer of the `jsonschema` crate.

mod error_text;
mod validation_cost;

use std::fmt;
use std::sync::Arc;

use jsonschema::{PatternOptions, Retrieve, Uri, Validator};
use serde_json::Value;

/// How large a compiled pattern may be, in bytes; larger ones are refused when the schema is compiled.
const PATTERN_SIZE: usize = 1 << 20;
/// What a pattern's lazy automaton may use, in bytes.
const PATTERN_CACHE: usize = 8 << 20;
/// More problems than this are not listed: a hostile instance must not make a list of millions.
const MAX_ERRORS: usize = 100;

/// A schema ready for use. Cheap to clone.
#[derive(Clone)]
pub struct CompiledSchema {
    validator: Arc<Validator>,
    cost: validation_cost::ValidationCost,
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("schema::Compiled")
    }
}

/// Refuses every reference that leaves the document, whatever features another crate switches on.
struct RefuseRemoteReferences;

impl Retrieve for RefuseRemoteReferences {
    fn retrieve(
        &self,
        _uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("references that leave the schema are refused".into())
    }
}

impl CompiledSchema {
    /// Compiles a schema. The error is a lower-case sentence: not a schema, a reference that leaves it, a bad pattern.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err(format!(
                "a JSON Schema is an object or a boolean, not {}",
                error_text::json_type_name(schema)
            ));
        }
        let looks = validation_cost::ValidationCost::estimate(schema)?;
        jsonschema::options()
            .with_retriever(RefuseRemoteReferences)
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(PATTERN_SIZE)
                    .dfa_size_limit(PATTERN_CACHE),
            )
            .should_validate_formats(true)
            .build(schema)
            .map(|validator| Self {
                validator: Arc::new(validator),
                cost: looks,
            })
            .map_err(|error| error_text::describe_schema_error(&error))
    }

    /// Whether looking at `value` ends soon; a schema may take exponentially long on a deep one. The error is a sentence.
    pub fn check_cost(&self, value: &Value) -> Result<(), String> {
        self.cost.check(value)
    }

    /// Whether `value` satisfies the schema. Quicker than [`Compiled::errors`].
    pub fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// Every problem (at most 100) as the JSON pointer of the value it is about and a lower-case sentence, in the order of the schema.
    /// An unexpected property is reported at the property, a missing one at the object that lacks it.
    pub fn errors(&self, value: &Value) -> Vec<(String, String)> {
        self.validator
            .iter_errors(value)
            .flat_map(|error| error_text::list_value_errors(&error))
            .take(MAX_ERRORS)
            .collect()
    }
}

#[cfg(test)]
mod tests;
