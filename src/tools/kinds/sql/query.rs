//! A tool's statement, and the assignment of values to its parameters.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;
use serde_json::value::RawValue;

use super::SqlFailure;
use crate::diag::yaml::MappingDecoder;
use crate::model::Digest;
use crate::tools::ValidatedCall;
use crate::tools::params::Template;
use crate::tools::source::ToolInput;

/// The default limit of rows.
const DEFAULT_MAX_ROWS: usize = 1000;
const LARGEST_MAX_ROWS: i64 = 10_000;

/// The statement of a tool.
#[derive(Debug)]
pub(in super::super) struct SqlQuery {
    /// The statement or its template, as written.
    statement: String,
    /// The names of the values in the order of `$1`, `$2` …: the declared parameters, or the schema's properties as
    /// written.
    pub(in super::super) value_names: Vec<String>,
    /// The template; `None` if the text is the statement.
    template: Option<Template>,
    /// The limit of rows that are read.
    pub(in super::super) max_rows: usize,
}

/// A call's values as JSON, by name; numbers as written.
#[derive(Debug)]
pub(in super::super) struct SqlValues(IndexMap<String, Box<RawValue>>);

impl SqlValues {
    /// Returns a value as JSON text, or `null` if it is absent.
    pub(in super::super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("null", |value| value.get())
    }
}

impl SqlQuery {
    /// Reads `statement` and `maxRows`. Returns `None` after it reported a problem.
    pub(in super::super) fn read(
        fields: &mut MappingDecoder<'_>,
        input: &ToolInput,
    ) -> Option<Arc<Self>> {
        let max_rows = fields.integer("maxRows", 1..=LARGEST_MAX_ROWS);
        // The range error is already reported.
        if max_rows.is_none() && fields.has("maxRows") {
            return None;
        }
        if !fields.has("statement") {
            fields.error_at_mapping("missing", "a SQL tool needs a `statement`");
        }
        let text = fields.text("statement")?;
        // PostgreSQL and SQLite end a statement at NUL, so the rest would be hidden.
        if text.contains('\0') {
            fields.error("statement", "value", "statement must not hold a NUL");
            return None;
        }
        let (names, template) = match input {
            ToolInput::Parameters(params) => {
                let names: Vec<String> = params.bound.iter().map(|p| p.name.clone()).collect();
                if !names.is_empty() && !may_have_placeholder(&text) {
                    let why = format!(
                        "the statement has no placeholder such as `?` or `$1` outside of quotes, so the values of {} \
                         change nothing: write each placeholder without quotes",
                        names.join(", ")
                    );
                    fields.warning_at("statement", "unused-parameters", why);
                }
                match Template::parse(&text, params) {
                    Ok(template) => (names, Some(template)),
                    Err(why) => {
                        fields.error("statement", "template", format!("statement: {why}"));
                        return None;
                    }
                }
            }
            ToolInput::Schema(_) => (schema_property_names(fields.value("inputSchema")), None),
        };
        Some(Arc::new(Self {
            statement: text,
            value_names: names,
            template,
            max_rows: max_rows
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(DEFAULT_MAX_ROWS),
        }))
    }

    /// Returns the statement if it is the same in every call.
    pub(in super::super) fn fixed_statement(&self) -> Option<&str> {
        let is_template = self.template.as_ref().is_some_and(|t| !t.is_plain());
        (!is_template).then_some(self.statement.as_str())
    }

    /// Returns a call's statement and values.
    pub(in super::super) fn prepare_statement(
        &self,
        prepared: &ValidatedCall,
    ) -> Result<(String, SqlValues), SqlFailure> {
        let values: IndexMap<String, Box<RawValue>> =
            serde_json::from_str(prepared.values.get())
                .map_err(|_| SqlFailure::permanent("the values are no object"))?;
        let text = match &self.template {
            Some(template) => template
                .render(&prepared.values)
                .map_err(SqlFailure::Permanent)?,
            None => self.statement.clone(),
        };
        // An inserted value may contain a NUL as well.
        if text.contains('\0') {
            return Err(SqlFailure::permanent("the statement must not hold a NUL"));
        }
        Ok((text, SqlValues(values)))
    }

    /// Returns the digest of the statement on a source that `of` describes.
    pub(in super::super) fn digest(&self, of: &[&str]) -> Digest {
        let rows = self.max_rows.to_string();
        let parts = of.iter().copied().chain([self.statement.as_str(), &rows]);
        Digest::hash_parts(
            parts
                .chain(self.value_names.iter().map(String::as_str))
                .map(str::as_bytes),
        )
    }
}

/// Returns false if no value can be bound to the statement: none of the characters that begin a placeholder or a template
/// is outside of quotes. A comment counts as a part of the statement.
fn may_have_placeholder(statement: &str) -> bool {
    let mut quote = None;
    for c in statement.chars() {
        match (quote, c) {
            // A doubled quote ends the text and begins it again.
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '?' | '$' | ':' | '@' | '{') => return true,
            _ => {}
        }
    }
    false
}

fn schema_property_names(schema: Option<&Value>) -> Vec<String> {
    let properties = schema.and_then(|schema| schema.get("properties"));
    let properties = properties.and_then(Value::as_object);
    properties.map_or_else(Vec::new, |all| all.keys().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholder_inside_quotes_is_a_text() {
        for bound in [
            "SELECT * FROM t WHERE n = ?",
            "SELECT 'it''s' WHERE n = $1",
            "SELECT \"a?\" FROM t WHERE n = :name",
            "SELECT @name",
            "SELECT * FROM {{.table}}",
        ] {
            assert!(may_have_placeholder(bound), "{bound}");
        }
        for unbound in [
            "SELECT * FROM t WHERE n = '?'",
            "SELECT * FROM t WHERE n = 'it''s $1'",
            "SELECT \"?\"",
            "SELECT 1",
        ] {
            assert!(!may_have_placeholder(unbound), "{unbound}");
        }
    }
}
