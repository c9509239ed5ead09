//! The clauses of an eval as variants: the whole, and each clause of the criteria by itself.
//!
//! Responsible for the names. [`crate::judge::rules::split_clauses`] splits the criteria.

use serde_json::{Value, json};

use super::error::CommandError;
use crate::handlers::EvalTypeRegistry;
use crate::judge::rules::split_clauses;
use crate::rubric::EvalValue;
use crate::workspace::Workspace;
use crate::workspace::variant_file::{Variant, VariantFile};

/// The name of the variant with one criterion per clause, for `--take`.
const CLAUSES: &str = "clauses";

/// The criteria of an eval, split into clauses.
struct SplitCriteria {
    clauses: Vec<String>,
    /// True if the eval has a list of criteria, so that each can be an eval of its own.
    is_list: bool,
}

/// Returns the whole and each clause as a variant. An eval with one clause is an error.
pub(super) fn split_eval(
    eval: &str,
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
) -> Result<VariantFile, CommandError> {
    let mut file = VariantFile::of_eval(eval, Vec::new(), workspace, registry)?;
    let split = split_criteria(&file)?;
    let whole = Variant {
        name: "whole".to_owned(),
        values: Vec::new(),
    };
    let clauses = (1..)
        .zip(&split.clauses)
        .map(|(number, clause): (u32, _)| Variant {
            name: format!("clause {number}"),
            values: vec![criteria_value(if split.is_list {
                json!([clause])
            } else {
                json!(clause)
            })],
        });
    file.variants = std::iter::once(whole).chain(clauses).collect();
    Ok(file)
}

/// Returns the variant `clauses`, which makes each clause a criterion of its own.
pub(super) fn list_form(
    eval: &str,
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
) -> Result<VariantFile, CommandError> {
    let mut file = VariantFile::of_eval(eval, Vec::new(), workspace, registry)?;
    let split = split_criteria(&file)?;
    if !split.is_list {
        return Err(CommandError::usage(format!(
            "{} has one text as criteria, so its clauses cannot become criteria of one eval; write an eval of the type \
             `binary_rubric` with a list of criteria, or one eval per clause",
            file.eval_name()
        )));
    }
    file.variants = vec![Variant {
        name: CLAUSES.to_owned(),
        // One call for all criteria, if the eval has no other grouping: then labels stay on the whole.
        values: vec![criteria_value(json!(split.clauses))],
    }];
    Ok(file)
}

/// Returns the texts of the clauses of a split eval.
pub(super) fn clause_texts(file: &VariantFile) -> Vec<String> {
    let values = file.variants.iter().flat_map(|variant| &variant.values);
    let texts = values.map(|value| match &value.value {
        Value::Array(items) => items.first().and_then(Value::as_str).unwrap_or_default(),
        value => value.as_str().unwrap_or_default(),
    });
    texts.map(str::to_owned).collect()
}

fn criteria_value(value: Value) -> EvalValue {
    EvalValue {
        is_param: true,
        key: "criteria".to_owned(),
        value,
    }
}

fn split_criteria(file: &VariantFile) -> Result<SplitCriteria, CommandError> {
    let own: Vec<&Value> = file
        .rubric
        .evals
        .iter()
        .filter(|eval| file.has_part(&eval.id))
        .map(|eval| &eval.params["criteria"])
        .collect();
    let is_list = own.iter().any(|criteria| criteria.is_array());
    let texts = own.into_iter().flat_map(|criteria| match criteria {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect::<Vec<_>>(),
    });
    let clauses = texts.flat_map(split_clauses);
    // A clause before ", and" keeps the mark that separated it.
    let clauses: Vec<String> = clauses
        .map(|clause| clause.trim_end_matches([';', ',', ' ']).to_owned())
        .collect();
    if clauses.len() < 2 {
        return Err(CommandError::usage(format!(
            "the criteria of {} have {} clause, so there is nothing to split",
            file.eval_name(),
            clauses.len()
        )));
    }
    Ok(SplitCriteria { clauses, is_list })
}
