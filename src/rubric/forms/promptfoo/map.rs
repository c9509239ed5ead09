//! One assertion as one eval of ours that means the same.

use serde_json::{Value, json};

use super::super::at::At;
use super::super::make::{Lost, NewEval};
use super::js_regex;
use super::value::{Filled, schema, template};
use crate::diag::yaml;
use crate::rubric::Catalog;

/// The types that have an eval of ours, without `not-`.
pub(super) const CARRIED: &[&str] = &[
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

/// The eval of an assertion, `base` its type without `not-`.
pub(super) fn map(
    at: &At,
    base: &str,
    inverse: bool,
    value: Filled,
    catalog: &dyn Catalog,
) -> Result<NewEval, Lost> {
    let place = at.child("value");
    let kind = at.text("type").unwrap_or(base);
    let new = |ours: &str| NewEval::new(kind, ours, at);
    let threshold = at.get("threshold");
    if let Filled::Late(path) = &value {
        // Only a param that takes the text as it is can be the transcript's own.
        let (ours, param) = match base {
            "equals" => ("exact_match", "expected"),
            "llm-rubric" | "model-graded-closedqa" => ("llm_judge", "criteria"),
            _ => {
                let why = "its value is a variable of each test";
                let instead = "one eval a value, with `applies_to`";
                return Err(Lost::new(why, instead));
            }
        };
        let eval = new(ours).param(param, json!({ "from": path }), &place);
        return if ours == "llm_judge" {
            judged(eval, threshold.as_ref(), None, inverse)
        } else {
            Ok(eval.negated(inverse))
        };
    }
    let value = match value {
        Filled::Plain(value) => value,
        // What a judge is told may have the transcript's metadata filled in.
        Filled::Template(text) if matches!(base, "llm-rubric" | "model-graded-closedqa") => {
            let eval = new("llm_judge").param("criteria", text, &place);
            return judged(eval, threshold.as_ref(), None, inverse);
        }
        Filled::Template(text) | Filled::Late(text) => return Err(template(&text)),
    };
    let eval = match base {
        "equals" => match &value {
            // A mapping or a list is compared with the output as JSON, in both.
            Value::Object(_) | Value::Array(_) => {
                new("exact_match").param("expected", value.clone(), &place)
            }
            _ => new("exact_match").param("expected", scalar(&value)?, &place),
        },
        // Theirs tells upper from lower case, our `contains` does not: the text as a pattern.
        "contains" => new("regex").param("pattern", regex::escape(&scalar(&value)?), &place),
        "icontains" => new("contains").param("patterns", json!([scalar(&value)?]), &place),
        "icontains-all" => new("contains").param("patterns", texts(&value)?, &place),
        "contains-all" => {
            let quoted: Vec<String> = texts(&value)?.iter().map(|t| regex::escape(t)).collect();
            new("regexp_matcher")
                .param("regexp_string_list", quoted, &place)
                .param("match_all_patterns", true, &place)
        }
        // Our `contains_any` looks at every answer, theirs at the last one.
        "contains-any" => new("regex").param("pattern", any_of(&texts(&value)?), &place),
        "icontains-any" => {
            let pattern = format!("(?i){}", any_of(&texts(&value)?));
            new("regex").param("pattern", pattern, &place)
        }
        "starts-with" => {
            let pattern = format!(r"\A{}", regex::escape(&scalar(&value)?));
            new("regex").param("pattern", pattern, &place)
        }
        "regex" => new("regex").param("pattern", js_regex::ours(&scalar(&value)?), &place),
        "is-json" => json_shape(new, "json_valid", &value, &place)?,
        "contains-json" => contains_json(new, &value, &place, catalog)?,
        "latency" => bound(new("latency_budget"), "max_ms", threshold.as_ref(), kind)?,
        "cost" => bound(new("cost_budget"), "max_cost_usd", threshold.as_ref(), kind)?,
        "tool-call-f1" => f1(
            new("trajectory_matcher"),
            &value,
            &place,
            threshold.as_ref(),
        )?,
        "trajectory:tool-used" => return tool_used(new, &value, &place, inverse),
        "trajectory:tool-args-match" => tool_args(new, &value, &place)?,
        "trajectory:tool-sequence" => tool_sequence(new, &value, &place)?,
        "trajectory:step-count" => step_count(new("tool_call_count"), &value, &place)?,
        _ => {
            let (eval, min) = by_a_judge(new, base, &value, &place)?;
            return judged(eval, threshold.as_ref(), min, inverse);
        }
    };
    Ok(eval.negated(inverse))
}

/// What a model grades there, and the threshold where none is written.
fn by_a_judge(
    new: impl Fn(&str) -> NewEval,
    base: &str,
    value: &Value,
    place: &At,
) -> Result<(NewEval, Option<f64>), Lost> {
    let criteria = |text: String| new("llm_judge").param("criteria", text, place);
    Ok(match base {
        "llm-rubric" | "model-graded-closedqa" => (criteria(prose(value)?), None),
        "g-eval" => (criteria(prose(value)?), Some(0.7)),
        "factuality" | "model-graded-factuality" => {
            let text = format!(
                "The answer does not contradict this reference answer; it may say less, more, or the same in other words:\n\n{}",
                prose(value)?
            );
            (criteria(text), None)
        }
        "trajectory:goal-success" => {
            let goal = value.get("goal").unwrap_or(value);
            let text = format!("The agent achieved this goal: {}", prose(goal)?);
            (
                new("llm_judge_session").param("criteria", text, place),
                None,
            )
        }
        // Their threshold is 0 where none is written: nothing fails.
        _ => (new("answer_relevancy"), Some(0.0)),
    })
}

/// A judged eval: there both the grader's verdict and the threshold must hold, here the threshold decides where given.
fn judged(
    eval: NewEval,
    threshold: Option<&At>,
    default: Option<f64>,
    inverse: bool,
) -> Result<NewEval, Lost> {
    if inverse {
        let why = "a judge's verdict is not turned round";
        return Err(Lost::new(
            why,
            "turn its criteria round: say what must not be so",
        ));
    }
    match (threshold, default) {
        (Some(at), _) => Ok(eval.param("min_score", at.value().clone(), at)),
        (None, Some(min)) if min > 0.0 => {
            let at = eval.at.clone();
            Ok(eval.param("min_score", min, &at))
        }
        (None, Some(_)) => Err(Lost::new(
            "without `threshold` it measures, and nothing makes it fail",
            "set a `threshold`",
        )),
        (None, None) => Ok(eval),
    }
}

fn bound(eval: NewEval, param: &str, threshold: Option<&At>, kind: &str) -> Result<NewEval, Lost> {
    match threshold {
        Some(at) => Ok(eval.param(param, at.value().clone(), at)),
        None => Err(Lost::new(
            format!("without `threshold` {kind} measures, and nothing makes it fail"),
            "set a `threshold`",
        )),
    }
}

/// A text, or a number or boolean as the text it is compared by.
fn scalar(value: &Value) -> Result<String, Lost> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        Value::Null => Err(Lost::new("it has no `value`", "give it a `value`")),
        other => {
            let why = format!(
                "its value must be text (got {})",
                yaml::describe_value(other)
            );
            Err(Lost::new(why, ""))
        }
    }
}

/// A list of texts; one text is a list with commas.
fn texts(value: &Value) -> Result<Vec<String>, Lost> {
    match value {
        Value::Array(items) if !items.is_empty() => items.iter().map(scalar).collect(),
        Value::String(text) if !text.contains('"') => {
            Ok(text.split(',').map(|part| part.trim().to_owned()).collect())
        }
        Value::String(_) => Err(Lost::new(
            "its value is a quoted list in one text",
            "a list of texts",
        )),
        Value::Array(_) => Err(Lost::new("its list is empty", "")),
        other => Ok(vec![scalar(other)?]),
    }
}

fn any_of(texts: &[String]) -> String {
    // An empty text is in every answer; an empty alternative would say so.
    let quoted: Vec<String> = texts.iter().map(|text| regex::escape(text)).collect();
    format!("(?:{})", quoted.join("|"))
}

/// Criteria as a judge reads them.
fn prose(value: &Value) -> Result<String, Lost> {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let lines: Result<Vec<String>, Lost> = items
                .iter()
                .map(|item| Ok(format!("- {}", scalar(item)?)))
                .collect();
            Ok(lines?.join("\n"))
        }
        Value::Object(_) => {
            serde_json::to_string_pretty(value).map_err(|why| Lost::new(why.to_string(), ""))
        }
        other => scalar(other),
    }
}

fn json_shape(
    new: impl Fn(&str) -> NewEval,
    bare: &str,
    value: &Value,
    place: &At,
) -> Result<NewEval, Lost> {
    Ok(match schema(value)? {
        Some(schema) => new("json_schema").param("schema", schema, place),
        None => new(bare),
    })
}

/// Theirs passes if any JSON in the output fits, ours looks at the first one: the same where there is one.
fn contains_json(
    new: impl Fn(&str) -> NewEval,
    value: &Value,
    place: &At,
    catalog: &dyn Catalog,
) -> Result<NewEval, Lost> {
    let eval = json_shape(new, "json_valid", value, place)?;
    let kind = catalog.kind(&eval.kind);
    let extracts = kind.is_some_and(|kind| kind.schema["properties"]["extract_json"].is_object());
    if !extracts {
        let why = format!(
            "{} reads the whole output, with nothing around the JSON",
            eval.kind
        );
        return Err(Lost::new(why, "`regex`, or a `script` eval"));
    }
    Ok(eval.param("extract_json", true, place))
}

/// F1 of two sets of tools as the Jaccard index of them, F1 / (2 - F1), which our trajectory matcher scores by.
fn f1(eval: NewEval, value: &Value, place: &At, threshold: Option<&At>) -> Result<NewEval, Lost> {
    let wanted = threshold.and_then(|at| at.value().as_f64()).unwrap_or(1.0);
    // A hair lower, so that a score at the limit is not lost to rounding.
    let least = if wanted >= 1.0 {
        1.0
    } else {
        (wanted / (2.0 - wanted) - 1e-9).max(0.0)
    };
    let at = threshold.cloned().unwrap_or_else(|| place.clone());
    Ok(eval
        .param("expected_trajectory", tools(value)?, place)
        .param("filter_native_tools", false, place)
        .param("min_score", least, &at))
}

/// Names of tools; theirs may be globs, ours are names.
fn tools(value: &Value) -> Result<Vec<String>, Lost> {
    let names: Vec<String> = match value {
        Value::Array(steps) => steps.iter().map(tool).collect::<Result<_, _>>()?,
        Value::String(_) => texts(value)?
            .into_iter()
            .map(|t| tool(&t.into()))
            .collect::<Result<_, _>>()?,
        other => vec![tool(other)?],
    };
    if names.is_empty() {
        return Err(Lost::new("it names no tool", ""));
    }
    Ok(names)
}

fn tool(value: &Value) -> Result<String, Lost> {
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
    if value.as_object().is_some_and(|map| !map.keys().all(known)) {
        return Err(Lost::new(
            "its step has keys of promptfoo's own",
            "the tool's name alone",
        ));
    }
    let name = match value {
        Value::Object(map) => map.get("name").or_else(|| map.get("pattern")),
        other => Some(other),
    };
    match name.and_then(Value::as_str) {
        Some(name) if name.contains(['*', '?']) => Err(Lost::new(
            format!("`{name}` is a glob, and tools here are names"),
            "the tools' names",
        )),
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(Lost::new("it names no tool", "")),
    }
}

fn tool_used(
    new: impl Fn(&str) -> NewEval,
    value: &Value,
    place: &At,
    inverse: bool,
) -> Result<NewEval, Lost> {
    if value.is_object() {
        let counts = counts(
            new("tool_call_count").param("tool", tool(value)?, place),
            value,
            place,
            1,
        )?;
        return Ok(counts.negated(inverse));
    }
    // Turned round, none of them may be called; `not` of "all are called" would be content with one missing.
    let ours = if inverse {
        "tools_not_called"
    } else {
        "tools_called"
    };
    Ok(new(ours).param("tool_names", tools(value)?, place))
}

fn counts(mut eval: NewEval, value: &Value, place: &At, least: u64) -> Result<NewEval, Lost> {
    let min = value
        .get("min")
        .cloned()
        .or_else(|| (least > 0).then(|| json!(least)));
    let min = min.filter(|min| min.as_u64() != Some(0));
    if let Some(min) = &min {
        eval = eval.param("min", min.clone(), &place.child("min"));
    }
    match value.get("max") {
        Some(max) => Ok(eval.param("max", max.clone(), &place.child("max"))),
        None if min.is_none() => Err(Lost::new(
            "without `min` and `max` nothing makes it fail",
            "set a bound",
        )),
        None => Ok(eval),
    }
}

fn step_count(mut eval: NewEval, value: &Value, place: &At) -> Result<NewEval, Lost> {
    if value.get("type").and_then(Value::as_str) != Some("tool") {
        let why = "it counts steps of a trace; a transcript has messages and tool calls";
        return Err(Lost::new(
            why,
            "`tool_call_count`, `turn_count` or `agent_steps`",
        ));
    }
    let named = value.get("name").or_else(|| value.get("pattern"));
    if named.is_some_and(|name| name.as_str() != Some("*")) {
        eval = eval.param("tool", tool(value)?, place);
    }
    counts(eval, value, place, 0)
}

/// Some one call has these arguments. There nested mappings match in part, ours as a whole.
fn tool_args(new: impl Fn(&str) -> NewEval, value: &Value, place: &At) -> Result<NewEval, Lost> {
    let (key, args) = match (value.get("args"), value.get("arguments")) {
        (Some(args), _) => ("args", args),
        (None, Some(args)) => ("arguments", args),
        (None, None) => return Err(Lost::new("it has no `args`", "")),
    };
    let by_hand = |why: &str| {
        Lost::new(
            why,
            "`trajectory_match` with `args_mode` and `arg_matchers`",
        )
    };
    if value.get("ignore").is_some() {
        return Err(by_hand("it leaves arguments out of the comparison"));
    }
    let Some(map) = args.as_object() else {
        return Err(Lost::new("its `args` are no mapping", ""));
    };
    let named = value.as_object().into_iter().flatten();
    let named = named.filter(|(key, _)| matches!(key.as_str(), "name" | "pattern"));
    let name = tool(&Value::Object(
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
            .param("mode", "superset", place)
            .param("expected", call, &at));
    }
    if map.values().any(Value::is_object) {
        return Err(by_hand("it compares nested arguments in part"));
    }
    // `defaults` only say which further arguments are harmless, and here all are.
    Ok(new("tool_args")
        .param("tool_name", name, place)
        .param("expected_args", args.clone(), &at))
}

fn tool_sequence(
    new: impl Fn(&str) -> NewEval,
    value: &Value,
    place: &At,
) -> Result<NewEval, Lost> {
    let steps = value.get("steps").unwrap_or(value);
    let names = tools(steps)?;
    Ok(match value.get("mode").and_then(Value::as_str) {
        Some("exact") => new("trajectory_match")
            .param("mode", "strict", place)
            .param("expected", names, place),
        None | Some("in_order") => new("tool_call_sequence").param("sequence", names, place),
        Some(other) => return Err(Lost::new(format!("promptfoo has no mode `{other}`"), "")),
    })
}
