//! JSON Schema: compiled once, without remote or file references, draft by `$schema` (otherwise 2020-12), formats
//! asserted.
//!
//! Responsible for all validation against JSON Schema and for the texts of its problems. Does not open a file or a
//! socket: a schema refers to itself or to the well-known meta-schemas, which are built in.
//!
//! Patterns run on the linear-time `regex` engine with a size limit, so that neither a schema nor a text can block a
//! thread. The only importer of the `jsonschema` crate.

mod error;
mod error_text;
mod validation_cost;

use std::fmt;
use std::sync::Arc;

use jsonschema::{PatternOptions, Retrieve, Uri, Validator};
use serde_json::Value;

pub use error::SchemaError;

/// The largest size of a compiled pattern, in bytes. A schema with a larger one does not compile.
const PATTERN_SIZE: usize = 1 << 20;
/// The memory limit of a pattern's lazy automaton, in bytes.
const PATTERN_CACHE: usize = 8 << 20;
/// The largest number of listed problems. A hostile instance must not make a list of millions.
const MAX_ERRORS: usize = 100;

/// A schema ready for use. Cheap to clone.
#[derive(Clone)]
pub struct CompiledSchema {
    validator: Arc<Validator>,
    cost: validation_cost::ValidationCost,
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompiledSchema")
    }
}

/// A retriever that refuses every reference out of the document, whatever features another crate switches on.
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
    /// Compiles a schema.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        // A value that cannot be a schema gets an error of its own.
        if !schema.is_object() && !schema.is_boolean() {
            return Err(SchemaError::NotASchema {
                found: error_text::json_type_name(schema),
            });
        }
        // The cost first: a schema that is refused for its cost need not be compiled.
        let cost = validation_cost::ValidationCost::estimate(schema)?;
        jsonschema::options()
            .with_retriever(RefuseRemoteReferences)
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(PATTERN_SIZE)
                    .dfa_size_limit(PATTERN_CACHE),
            )
            // Formats are assertions here; the specification leaves this open.
            .should_validate_formats(true)
            .build(schema)
            .map(|validator| Self {
                validator: Arc::new(validator),
                cost,
            })
            .map_err(|error| error_text::classify_schema_error(&error))
    }

    /// Checks that validating `value` ends soon: a schema may take exponentially long on a deep value.
    pub fn check_cost(&self, value: &Value) -> Result<(), SchemaError> {
        // The cost depends only on the depth of the value.
        self.cost.check(value)
    }

    /// Returns `true` if `value` satisfies the schema. Faster than [`CompiledSchema::errors`].
    pub fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// Returns every problem (at most 100) as the JSON pointer of its value and a lower-case sentence, in the order
    /// of the schema. An unexpected property is reported at the property, a missing one at the object that lacks it.
    pub fn errors(&self, value: &Value) -> Vec<(String, String)> {
        self.validator
            .iter_errors(value)
            // One error can give several problems, one for each unexpected property.
            .flat_map(|error| error_text::list_value_errors(&error))
            .take(MAX_ERRORS)
            .collect()
    }
}

#[cfg(test)]
mod tests;
