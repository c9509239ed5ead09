//! The conversion of one assertion to one eval with the same meaning.

use serde_json::{Value, json};

use super::super::conversion::{ConversionError, ConvertedEval};
use super::super::doc_location::DocLocation;
use super::assertion_value::{FilledValue, number_text, parse_schema, unfilled_template_error};
use super::js_regex;
use crate::diag::yaml;
use crate::model::SIMILAR_EVAL_TYPE;
use crate::rubric::EvalTypeCatalog;

/// The types that have an equivalent eval type, without `not-`.
pub(super) const CONVERTIBLE_TYPES: &[&str] = &[
    "equals",
    "contains",
    "icontains",
    "contains-all",
    "contains-any",
    "icontains-all",
    "icontains-any",
    "starts-with",
    "regex",
    "is-json",
    "contains-json",
    "latency",
    "cost",
    "similar",
    "similar:cosine",
    "llm-rubric",
    "g-eval",
    "factuality",
    "model-graded-factuality",
    "model-graded-closedqa",
    "answer-relevance",
    "tool-call-f1",
    "trajectory:tool-used",
    "trajectory:tool-args-match",
    "trajectory:tool-sequence",
    "trajectory:step-count",
    "trajectory:goal-success",
];

/// Converts an assertion; `base` is its type without `not-`.
pub(super) fn convert_by_type(
    at: &DocLocation,
    base: &str,
    inverse: bool,
    value: FilledValue,
    catalog: &dyn EvalTypeCatalog,
) -> Result<ConvertedEval, ConversionError> {
    let place = at.child("value");
    let kind = at.text("type").unwrap_or(base);
    let new = |ours: &str| ConvertedEval::new(kind, ours, at);
    let threshold = at.get("threshold");
    // A value from each transcript's metadata.
    if let FilledValue::FromMetadata(path) = &value {
        // Only a param that takes a text literally can come from the metadata.
        let (ours, param) = match base {
            "equals" => ("exact_match", "expected"),
            "llm-rubric" | "model-graded-closedqa" => ("llm_judge", "criteria"),
            "similar" | "similar:cosine" => (SIMILAR_EVAL_TYPE, "reference"),
            _ => {
                let why = "its value is a variable of each test";
                let instead = "one eval a value, with `applies_to`";
                return Err(ConversionError::new(why, instead));
            }
        };
        let eval = new(ours).with_param(param, json!({ "from": path }), &place);
        return match ours {
            "llm_judge" => apply_judge_threshold(eval, threshold.as_ref(), None, inverse),
            SIMILAR_EVAL_TYPE => Ok(apply_similarity(eval, threshold.as_ref(), inverse)),
            _ => Ok(eval.negated_if(inverse)),
        };
    }
    // A plain value, or a template for a judge.
    let value = match value {
        FilledValue::Plain(value) => value,
        // Texts for a judge may contain templates over the metadata.
        FilledValue::MetadataTemplate(text)
            if matches!(base, "llm-rubric" | "model-graded-closedqa") =>
        {
            let eval = new("llm_judge").with_param("criteria", text, &place);
            return apply_judge_threshold(eval, threshold.as_ref(), None, inverse);
        }
        FilledValue::MetadataTemplate(text) if matches!(base, "similar" | "similar:cosine") => {
            let eval = new(SIMILAR_EVAL_TYPE).with_param("reference", text, &place);
            return Ok(apply_similarity(eval, threshold.as_ref(), inverse));
        }
        FilledValue::MetadataTemplate(text) | FilledValue::FromMetadata(text) => {
            return Err(unfilled_template_error(&text));
        }
    };
    // Each type becomes the eval type with the same meaning.
    let eval = match base {
        "equals" => match &value {
            // Both tools compare a mapping or a list with the output as JSON.
            Value::Object(_) | Value::Array(_) => {
                new("exact_match").with_param("expected", value.clone(), &place)
            }
            _ => new("exact_match").with_param("expected", scalar_text(&value)?, &place),
        },
        // promptfoo's `contains` is case-sensitive and dicta's is not, so the text becomes a pattern.
        "contains" => {
            new("regex").with_param("pattern", regex::escape(&scalar_text(&value)?), &place)
        }
        "icontains" => {
            new("contains").with_param("patterns", json!([scalar_text(&value)?]), &place)
        }
        "icontains-all" => new("contains").with_param("patterns", text_list(&value)?, &place),
        // Case-sensitive, so all texts become patterns.
        "contains-all" => {
            let quoted: Vec<String> = text_list(&value)?
                .iter()
                .map(|t| regex::escape(t))
                .collect();
            new("regexp_matcher")
                .with_param("regexp_string_list", quoted, &place)
                .with_param("match_all_patterns", true, &place)
        }
        // dicta's `contains_any` reads every answer, promptfoo's only the last one.
        "contains-any" => {
            new("regex").with_param("pattern", any_of_pattern(&text_list(&value)?), &place)
        }
        "icontains-any" => {
            let pattern = format!("(?i){}", any_of_pattern(&text_list(&value)?));
            new("regex").with_param("pattern", pattern, &place)
        }
        "starts-with" => {
            // `\A` and not `^`, because `^` could match a line with the multi-line flag.
            let pattern = format!(r"\A{}", regex::escape(&scalar_text(&value)?));
            new("regex").with_param("pattern", pattern, &place)
        }
        // JavaScript's syntax differs in classes and escapes.
        "regex" => {
            let pattern = js_regex::to_rust_pattern(&scalar_text(&value)?).map_err(|why| {
                ConversionError::new(why, "`regex` with a pattern of Rust's syntax")
            })?;
            new("regex").with_param("pattern", pattern, &place)
        }
        "is-json" => convert_is_json(new, &value, &place)?,
        "contains-json" => convert_contains_json(new, &value, &place, catalog)?,
        "similar" | "similar:cosine" => {
            // promptfoo passes if any of several references is similar.
            let eval = new(SIMILAR_EVAL_TYPE);
            let eval = match &value {
                Value::Array(_) => eval.with_param("references", text_list(&value)?, &place),
                _ => eval.with_param("reference", scalar_text(&value)?, &place),
            };
            return Ok(apply_similarity(eval, threshold.as_ref(), inverse));
        }
        "latency" => apply_threshold(new("latency_budget"), "max_ms", threshold.as_ref(), kind)?,
        "cost" => apply_threshold(new("cost_budget"), "max_cost_usd", threshold.as_ref(), kind)?,
        "tool-call-f1" => convert_tool_call_f1(
            new("trajectory_matcher"),
            &value,
            &place,
            threshold.as_ref(),
        )?,
        "trajectory:tool-used" => return convert_tool_used(new, &value, &place, inverse),
        "trajectory:tool-args-match" => convert_tool_args(new, &value, &place)?,
        "trajectory:tool-sequence" => convert_tool_sequence(new, &value, &place)?,
        "trajectory:step-count" => convert_step_count(new("tool_call_count"), &value, &place)?,
        // All remaining types are judged.
        _ => {
            let (eval, min) = convert_judged(new, base, &value, &place)?;
            return apply_judge_threshold(eval, threshold.as_ref(), min, inverse);
        }
    };
    Ok(eval.negated_if(inverse))
}

/// Converts an assertion that a model grades; uses promptfoo's default threshold.
fn convert_judged(
    new: impl Fn(&str) -> ConvertedEval,
    base: &str,
    value: &Value,
    place: &DocLocation,
) -> Result<(ConvertedEval, Option<f64>), ConversionError> {
    let criteria = |text: String| new("llm_judge").with_param("criteria", text, place);
    Ok(match base {
        "llm-rubric" | "model-graded-closedqa" => (criteria(criteria_text(value)?), None),
        // 0.7 is promptfoo's default for `g-eval`.
        "g-eval" => (criteria(criteria_text(value)?), Some(0.7)),
        "factuality" | "model-graded-factuality" => {
            let text = format!(
                "The answer does not contradict this reference answer; it may say less, more, or the same in other words:\n\n{}",
                criteria_text(value)?
            );
            (criteria(text), None)
        }
        "trajectory:goal-success" => {
            let goal = value.get("goal").unwrap_or(value);
            let text = format!("The agent achieved this goal: {}", criteria_text(goal)?);
            (
                new("llm_judge_session").with_param("criteria", text, place),
                None,
            )
        }
        // The default threshold of promptfoo is 0 here, so nothing fails.
        _ => (new("answer_relevancy"), Some(0.0)),
    })
}

/// Sets the threshold of a judged eval. In promptfoo both the grader's verdict and the threshold must hold; in dicta
/// a given threshold decides alone.
fn apply_judge_threshold(
    eval: ConvertedEval,
    threshold: Option<&DocLocation>,
    default: Option<f64>,
    inverse: bool,
) -> Result<ConvertedEval, ConversionError> {
    if inverse {
        let why = "dicta does not negate the verdict of a judge";
        return Err(ConversionError::new(
            why,
            "the same type with criteria that state the opposite",
        ));
    }
    // A written threshold, the default of the type, or the grader's verdict alone.
    match (threshold, default) {
        (Some(at), _) => Ok(eval.with_param("min_score", at.value().clone(), at)),
        (None, Some(min)) if min > 0.0 => {
            let at = eval.location.clone();
            Ok(eval.with_param("min_score", min, &at))
        }
        (None, Some(_)) => Err(ConversionError::new(
            "without `threshold` it measures, and nothing makes it fail",
            "set a `threshold`",
        )),
        (None, None) => Ok(eval),
    }
}

/// The lowest cosine of a pass without a `threshold`: promptfoo's default.
const DEFAULT_SIMILARITY: f64 = 0.75;

/// Sets the bound of `similar`. With `not-`, promptfoo passes at or below the threshold.
fn apply_similarity(
    eval: ConvertedEval,
    threshold: Option<&DocLocation>,
    inverse: bool,
) -> ConvertedEval {
    let bound = if inverse { "max_score" } else { "min_score" };
    if let Some(at) = threshold {
        eval.with_param(bound, at.value().clone(), at)
    } else {
        let at = eval.location.clone();
        eval.with_param(bound, DEFAULT_SIMILARITY, &at)
    }
}

fn apply_threshold(
    eval: ConvertedEval,
    param: &str,
    threshold: Option<&DocLocation>,
    kind: &str,
) -> Result<ConvertedEval, ConversionError> {
    match threshold {
        Some(at) => Ok(eval.with_param(param, at.value().clone(), at)),
        None => Err(ConversionError::new(
            format!("without `threshold` {kind} measures, and nothing makes it fail"),
            "set a `threshold`",
        )),
    }
}

/// Returns a text; numbers and booleans as the text that promptfoo compares.
fn scalar_text(value: &Value) -> Result<String, ConversionError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number_text(number)),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Null => Err(ConversionError::new(
            "it has no `value`",
            "give it a `value`",
        )),
        other => {
            let why = format!(
                "its value must be text (got {})",
                yaml::describe_value(other)
            );
            Err(ConversionError::new(why, ""))
        }
    }
}

/// Returns a list of texts. A single text is split at its commas, and its empty parts are left out, as in promptfoo.
fn text_list(value: &Value) -> Result<Vec<String>, ConversionError> {
    match value {
        Value::Array(items) if !items.is_empty() => items.iter().map(scalar_text).collect(),
        // A quoted item could contain a comma, so such a text is refused.
        Value::String(text) if !text.contains('"') => {
            let parts = text.split(',').map(str::trim);
            let parts: Vec<String> = parts
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect();
            if parts.is_empty() {
                return Err(ConversionError::new("its list is empty", ""));
            }
            Ok(parts)
        }
        Value::String(_) => Err(ConversionError::new(
            "its value is a quoted list in one text",
            "a list of texts",
        )),
        Value::Array(_) => Err(ConversionError::new("its list is empty", "")),
        other => Ok(vec![scalar_text(other)?]),
    }
}

fn any_of_pattern(texts: &[String]) -> String {
    // Every answer contains the empty text, so an empty alternative would match every answer.
    let quoted: Vec<String> = texts.iter().map(|text| regex::escape(text)).collect();
    format!("(?:{})", quoted.join("|"))
}

/// Returns criteria as a judge reads them.
fn criteria_text(value: &Value) -> Result<String, ConversionError> {
    match value {
        Value::Array(items) if !items.is_empty() => {
            // A list of criteria becomes a Markdown list.
            let lines: Result<Vec<String>, ConversionError> = items
                .iter()
                .map(|item| Ok(format!("- {}", scalar_text(item)?)))
                .collect();
            Ok(lines?.join("\n"))
        }
        Value::Object(_) => serde_json::to_string_pretty(value)
            .map_err(|why| ConversionError::new(why.to_string(), "")),
        other => scalar_text(other),
    }
}

fn convert_is_json(
    new: impl Fn(&str) -> ConvertedEval,
    value: &Value,
    place: &DocLocation,
) -> Result<ConvertedEval, ConversionError> {
    Ok(match parse_schema(value)? {
        Some(schema) => new("json_schema").with_param("schema", schema, place),
        None => new("json_valid"),
    })
}

/// Converts `contains-json`. promptfoo passes if any object in the output fits, and dicta reads only the first JSON. Both
/// agree if there is one object.
fn convert_contains_json(
    new: impl Fn(&str) -> ConvertedEval,
    value: &Value,
    place: &DocLocation,
    catalog: &dyn EvalTypeCatalog,
) -> Result<ConvertedEval, ConversionError> {
    // Without a schema promptfoo looks for an object: neither a list nor a number alone passes.
    let schema = parse_schema(value)?.unwrap_or_else(|| json!({"type": "object"}));
    let eval = new("json_schema").with_param("schema", schema, place);
    let kind = catalog.eval_type(&eval.eval_type);
    // The catalog is asked, because types differ in this option.
    let extracts = kind.is_some_and(|kind| kind.schema["properties"]["extract_json"].is_object());
    if !extracts {
        let why = format!(
            "{} reads the whole output, with nothing around the JSON",
            eval.eval_type
        );
        return Err(ConversionError::new(why, "`regex`, or a `script` eval"));
    }
    Ok(eval.with_param("extract_json", true, place))
}

/// Converts the F1 score of two sets of tools. dicta's trajectory matcher uses their Jaccard index, which is F1 / (2
/// - F1).
fn convert_tool_call_f1(
    eval: ConvertedEval,
    value: &Value,
    place: &DocLocation,
    threshold: Option<&DocLocation>,
) -> Result<ConvertedEval, ConversionError> {
    // Without a threshold promptfoo requires the full score.
    let wanted = threshold.and_then(|at| at.value().as_f64()).unwrap_or(1.0);
    // Slightly lower, so that rounding does not fail a score at the limit.
    let least = if wanted >= 1.0 {
        1.0
    } else {
        (wanted / (2.0 - wanted) - 1e-9).max(0.0)
    };
    let at = threshold.cloned().unwrap_or_else(|| place.clone());
    Ok(eval
        .with_param("expected_trajectory", read_tool_names(value)?, place)
        .with_param("filter_native_tools", false, place)
        .with_param("min_score", least, &at))
}

/// Returns names of tools. promptfoo also accepts globs, dicta only names.
fn read_tool_names(value: &Value) -> Result<Vec<String>, ConversionError> {
    let names: Vec<String> = match value {
        Value::Array(steps) => steps.iter().map(read_tool_name).collect::<Result<_, _>>()?,
        Value::String(_) => text_list(value)?
            .into_iter()
            .map(|t| read_tool_name(&t.into()))
            .collect::<Result<_, _>>()?,
        other => vec![read_tool_name(other)?],
    };
    if names.is_empty() {
        return Err(ConversionError::new("it names no tool", ""));
    }
    Ok(names)
}

fn read_tool_name(value: &Value) -> Result<String, ConversionError> {
    let known = |key: &String| {
        [
            "name",
            "pattern",
            "type",
            "min",
            "max",
            "args",
            "arguments",
            "mode",
        ]
        .contains(&key.as_str())
    };
    // A step with other keys means something that dicta would ignore.
    if value.as_object().is_some_and(|map| !map.keys().all(known)) {
        return Err(ConversionError::new(
            "its step has keys of promptfoo's own",
            "the tool's name alone",
        ));
    }
    let name = match value {
        Value::Object(map) => map.get("name").or_else(|| map.get("pattern")),
        other => Some(other),
    };
    match name.and_then(Value::as_str) {
        Some(name) if name.contains(['*', '?']) => Err(ConversionError::new(
            format!("`{name}` is a glob, and tools here are names"),
            "the tools' names",
        )),
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(ConversionError::new("it names no tool", "")),
    }
}

fn convert_tool_used(
    new: impl Fn(&str) -> ConvertedEval,
    value: &Value,
    place: &DocLocation,
    inverse: bool,
) -> Result<ConvertedEval, ConversionError> {
    // A mapping has bounds on the number of calls of one tool.
    if value.is_object() {
        let counts = apply_count_bounds(
            new("tool_call_count").with_param("tool", read_tool_name(value)?, place),
            value,
            place,
            1,
        )?;
        return Ok(counts.negated_if(inverse));
    }
    // The opposite of "all are called" would be "at least one is missing". promptfoo means that none of them is
    // called.
    let ours = if inverse {
        "tools_not_called"
    } else {
        "tools_called"
    };
    Ok(new(ours).with_param("tool_names", read_tool_names(value)?, place))
}

fn apply_count_bounds(
    mut eval: ConvertedEval,
    value: &Value,
    place: &DocLocation,
    least: u64,
) -> Result<ConvertedEval, ConversionError> {
    let min = value
        .get("min")
        .cloned()
        .or_else(|| (least > 0).then(|| json!(least)));
    // A minimum of 0 has no effect, and dicta refuses it.
    let min = min.filter(|min| min.as_u64() != Some(0));
    if let Some(min) = &min {
        eval = eval.with_param("min", min.clone(), &place.child("min"));
    }
    match value.get("max") {
        Some(max) => Ok(eval.with_param("max", max.clone(), &place.child("max"))),
        None if min.is_none() => Err(ConversionError::new(
            "without `min` and `max` nothing makes it fail",
            "set a bound",
        )),
        None => Ok(eval),
    }
}

fn convert_step_count(
    mut eval: ConvertedEval,
    value: &Value,
    place: &DocLocation,
) -> Result<ConvertedEval, ConversionError> {
    // Only steps of the type `tool` are in a transcript.
    if value.get("type").and_then(Value::as_str) != Some("tool") {
        let why = "it counts steps of a trace; a transcript has messages and tool calls";
        return Err(ConversionError::new(
            why,
            "`tool_call_count`, `turn_count` or `agent_steps`",
        ));
    }
    let named = value.get("name").or_else(|| value.get("pattern"));
    // `*` means any tool.
    if named.is_some_and(|name| name.as_str() != Some("*")) {
        eval = eval.with_param("tool", read_tool_name(value)?, place);
    }
    apply_count_bounds(eval, value, place, 0)
}

/// Converts an assertion that one call has these arguments. promptfoo compares nested mappings in part, dicta as a
/// whole.
fn convert_tool_args(
    new: impl Fn(&str) -> ConvertedEval,
    value: &Value,
    place: &DocLocation,
) -> Result<ConvertedEval, ConversionError> {
    let (key, args) = match (value.get("args"), value.get("arguments")) {
        (Some(args), _) => ("args", args),
        (None, Some(args)) => ("arguments", args),
        (None, None) => return Err(ConversionError::new("it has no `args`", "")),
    };
    let by_hand = |why: &str| {
        ConversionError::new(
            why,
            "`trajectory_match` with `args_mode` and `arg_matchers`",
        )
    };
    // dicta has no eval that leaves single arguments out.
    if value.get("ignore").is_some() {
        return Err(by_hand("it leaves arguments out of the comparison"));
    }
    let Some(map) = args.as_object() else {
        return Err(ConversionError::new("its `args` are not a mapping", ""));
    };
    // Only the name is read here; the other keys of the mapping are about arguments.
    let named = value.as_object().into_iter().flatten();
    let named = named.filter(|(key, _)| matches!(key.as_str(), "name" | "pattern"));
    let name = read_tool_name(&Value::Object(
        named.map(|(k, v)| (k.clone(), v.clone())).collect(),
    ))?;
    let at = place.child(key);
    if value.get("mode").and_then(Value::as_str) == Some("exact") {
        if value.get("defaults").is_some() {
            return Err(by_hand(
                "it tolerates further arguments with certain values",
            ));
        }
        let call = json!([{ "tool": name, "args": args, "args_mode": "exact" }]);
        return Ok(new("trajectory_match")
            .with_param("mode", "superset", place)
            .with_param("expected", call, &at));
    }
    // promptfoo compares nested values in part, dicta as a whole, so both could differ.
    if map.values().any(Value::is_object) {
        return Err(by_hand("it compares nested arguments in part"));
    }
    // `defaults` only lists further arguments that are allowed, and dicta allows all.
    Ok(new("tool_args")
        .with_param("tool_name", name, place)
        .with_param("expected_args", args.clone(), &at))
}

fn convert_tool_sequence(
    new: impl Fn(&str) -> ConvertedEval,
    value: &Value,
    place: &DocLocation,
) -> Result<ConvertedEval, ConversionError> {
    let steps = value.get("steps").unwrap_or(value);
    let names = read_tool_names(steps)?;
    Ok(match value.get("mode").and_then(Value::as_str) {
        // `exact` allows no other calls, hence the strict mode.
        Some("exact") => new("trajectory_match")
            .with_param("mode", "strict", place)
            .with_param("expected", names, place),
        None | Some("in_order") => new("tool_call_sequence").with_param("sequence", names, place),
        Some(other) => {
            return Err(ConversionError::new(
                format!("promptfoo has no mode `{other}`"),
                "",
            ));
        }
    })
}
