//! The reader of OpenAI Evals' `testing_criteria`: of an eval as it is created or listed, or a list of graders alone.
//!
//! `{{sample.output_text}}` becomes the transcript's output. `{{item.x}}`, a column of the data set, becomes the
//! transcript's `metadata.x`. Graders that compare columns with each other do not judge an output, so they do not
//! carry over.

use std::fmt::Write as _;
use std::rc::Rc;

use serde_json::{Value, json};

use super::conversion::{ConversionError, ConvertedEval, EvalConverter};
use super::doc_location::DocLocation;
use super::promptfoo::{is_template, lone_variable};
use crate::diag::yaml::YamlDoc;
use crate::rubric::Rubric;

/// The types of graders.
pub(super) const GRADER_TYPES: &[&str] = &[
    "string_check",
    "text_similarity",
    "score_model",
    "label_model",
    "python",
    "multi",
    "endpoint",
    "azure_ai_evaluator",
];

pub(super) fn read(doc: &Rc<YamlDoc>, rubric: &mut Rubric, converter: &mut EvalConverter<'_>) {
    let root = DocLocation::root(doc);
    if let Some(name) = root.text("name") {
        name.clone_into(&mut rubric.description);
    }
    let mut lists = vec![root.child("testing_criteria")];
    // A bare list of graders.
    if root.value().is_array() {
        lists = vec![root.clone()];
    }
    // A page of evals, as the API lists them.
    lists.extend(
        root.child("data")
            .items()
            .iter()
            .map(|eval| eval.child("testing_criteria")),
    );
    for at in lists.iter().flat_map(DocLocation::items) {
        let kind = at.text("type").unwrap_or("grader").to_owned();
        // The name of a grader is for people; `add` makes it a valid id.
        let id = at.text("name").unwrap_or(&kind).to_owned();
        let conversion = convert_grader(&at, &kind);
        // Reported only for a converted grader: otherwise its own report is enough.
        if let (Ok(_), Some(model)) = (&conversion, at.get("model")) {
            let why = "the eval's judge decides";
            let instead = "a judge of dicta.yaml with that model: `judge:` of the workspace";
            converter.report_error(&model, "model", ConversionError::new(why, instead));
        }
        converter.add_or_report(&id, &at, &kind, conversion);
    }
}

fn convert_grader(at: &DocLocation, kind: &str) -> Result<ConvertedEval, ConversionError> {
    match kind {
        "string_check" => convert_string_check(at),
        "score_model" => convert_score_model(at),
        "label_model" => convert_label_model(at),
        // Graders without an equivalent type.
        "text_similarity" => Err(ConversionError::new(
            "it scores the overlap of words, or embeddings, with a reference",
            "`exact_match`, `contains` with the words that matter, or `llm_judge` with the expected answer",
        )),
        "python" => Err(ConversionError::new(
            "it is code of another program",
            "a `script` eval: JSON in on stdin, {passed, score, reason} out",
        )),
        "multi" => Err(ConversionError::new(
            "it is a formula over graders",
            "its graders as evals with weights, and a `threshold` of the rubric",
        )),
        _ => Err(ConversionError::new(
            "its grader runs elsewhere",
            "`llm_judge` with its criteria",
        )),
    }
}

/// The meaning of a text in a grader.
enum GraderText {
    Output,
    Column(String),
    Text(String),
}

fn parse_grader_text(at: &DocLocation, key: &str) -> Result<GraderText, ConversionError> {
    let text = match at.value().get(key) {
        Some(Value::String(text)) => text.as_str(),
        _ => return Err(ConversionError::new(format!("it has no `{key}`"), "")),
    };
    // A text is the output, a column, or plain; nothing between.
    match lone_variable(text) {
        Some("sample.output_text") => return Ok(GraderText::Output),
        Some(name) => {
            if let Some(column) = name.strip_prefix("item.") {
                return Ok(GraderText::Column(column.to_owned()));
            }
        }
        None if !is_template(text) => return Ok(GraderText::Text(text.to_owned())),
        None => {}
    }
    // 60 characters identify a template in a message.
    let excerpt: String = text.chars().take(60).collect();
    Err(ConversionError::new(
        format!("`{excerpt}` is a template of more than the output or one column"),
        "the text itself, or a param as `{ from: metadata.NAME }`",
    ))
}

fn convert_string_check(at: &DocLocation) -> Result<ConvertedEval, ConversionError> {
    let operation = at.text("operation").unwrap_or_default();
    let (input, reference) = (
        parse_grader_text(at, "input")?,
        parse_grader_text(at, "reference")?,
    );
    // Equality is symmetric; "like" checks if the input contains the reference.
    let (wanted, place) = match (input, reference) {
        (GraderText::Output, GraderText::Output) => {
            return Err(ConversionError::new(
                "it compares the output with itself",
                "",
            ));
        }
        (GraderText::Output, wanted) => (wanted, at.child("reference")),
        (wanted, GraderText::Output) if matches!(operation, "eq" | "ne") => {
            (wanted, at.child("input"))
        }
        (_, GraderText::Output) => {
            let why = "it asks whether a text holds the whole output";
            return Err(ConversionError::new(why, "a `script` eval"));
        }
        _ => {
            let why = "it compares the data set with itself, not with an output";
            return Err(ConversionError::new(
                why,
                "compare with `{{sample.output_text}}`",
            ));
        }
    };
    let new = |ours: &str| ConvertedEval::new("string_check", ours, at);
    Ok(match (operation, wanted) {
        // An operation with a column: the value comes from each transcript's metadata.
        ("eq" | "ne", GraderText::Column(column)) => {
            let from = json!({ "from": format!("metadata.{column}") });
            new("exact_match")
                .with_param("expected", from, &place)
                .negated_if(operation == "ne")
        }
        ("eq" | "ne", GraderText::Text(text)) => new("exact_match")
            .with_param("expected", text, &place)
            .negated_if(operation == "ne"),
        // `like` is case-sensitive and `contains` of dicta is not, so the text becomes a pattern.
        ("like", GraderText::Text(text)) => {
            new("regex").with_param("pattern", regex::escape(&text), &place)
        }
        ("ilike", GraderText::Text(text)) => {
            new("contains").with_param("patterns", json!([text]), &place)
        }
        ("like" | "ilike", _) => {
            let why = "what must occur is a column of the data set, and patterns are a list";
            let instead =
                "`contains` with `patterns: { from: metadata.NAME }`, and a list in the metadata";
            return Err(ConversionError::new(why, instead));
        }
        (other, _) => {
            return Err(ConversionError::new(
                format!("there is no operation `{other}`"),
                "eq, ne, like or ilike",
            ));
        }
    })
}

/// Returns a grader's messages as criteria. The judge sees the transcript, so the criteria refer to the output and do
/// not repeat it.
fn read_criteria(at: &DocLocation) -> Result<String, ConversionError> {
    let mut parts = Vec::new();
    for message in at.child("input").items() {
        let text = match message.value().get("content") {
            Some(Value::String(text)) => text.clone(),
            // A message part: only text can be criteria.
            Some(Value::Object(part)) => match part.get("text").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => {
                    return Err(ConversionError::new(
                        "its prompt contains content that is not text",
                        "",
                    ));
                }
            },
            Some(_) => {
                return Err(ConversionError::new(
                    "its prompt contains content that is not text",
                    "",
                ));
            }
            // A message without content has nothing to say to the judge.
            None => continue,
        };
        parts.push(replace_template_variables(&text)?);
    }
    // The input may also be one text.
    if let Some(text) = at.text("input") {
        parts.push(replace_template_variables(text)?);
    }
    if parts.is_empty() {
        return Err(ConversionError::new("it has no `input`", ""));
    }
    Ok(parts.join("\n\n"))
}

fn replace_template_variables(text: &str) -> Result<String, ConversionError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        // Only variables are replaced; a template with logic cannot be converted.
        match name.trim() {
            "sample.output_text" => out.push_str("(the output that is judged)"),
            // The user's question is in the transcript; other columns are in its metadata.
            "item.input" | "item.question" | "item.query" | "item.prompt" => {
                out.push_str("(what the user asked)");
            }
            other => match other.strip_prefix("item.") {
                // The column's name must be a variable name, or dicta's template could not read it.
                Some(column) if lone_variable(&format!("{{{{{column}}}}}")).is_some() => {
                    let _infallible = write!(out, "{{{{ metadata.{column} }}}}");
                }
                _ => {
                    let why =
                        format!("its prompt contains `{{{{{other}}}}}`, which is not a column");
                    let instead = "`llm_judge` with criteria that hold the text itself";
                    return Err(ConversionError::new(why, instead));
                }
            },
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn convert_score_model(at: &DocLocation) -> Result<ConvertedEval, ConversionError> {
    let mut eval = ConvertedEval::new("score_model", "llm_judge", at).with_param(
        "criteria",
        read_criteria(at)?,
        &at.child("input"),
    );
    let range = at.child("range");
    let bounds: Vec<f64> = range
        .items()
        .iter()
        .filter_map(|x| x.value().as_f64())
        .collect();
    // Without a range OpenAI's scores are from 0 to 1.
    let (low, high) = match bounds.as_slice() {
        [low, high] if low < high => (*low, *high),
        [] => (0.0, 1.0),
        _ => {
            return Err(ConversionError::new(
                "its `range` is not a lowest and a highest score",
                "",
            ));
        }
    };
    // dicta's default scale needs no param.
    if (low, high) != (0.0, 1.0) {
        eval = eval.with_param("scale", range.value().clone(), &range);
    }
    if let Some(threshold) = at.get("pass_threshold") {
        let score = threshold.value().as_f64().unwrap_or(f64::NAN);
        // The threshold is on the grader's scale; dicta's bound is from 0 to 1.
        let share = (score - low) / (high - low);
        if !(0.0..=1.0).contains(&share) {
            return Err(ConversionError::new(
                "its `pass_threshold` is outside its `range`",
                "",
            ));
        }
        eval = eval.with_param("min_score", share, &threshold);
    }
    Ok(eval)
}

fn convert_label_model(at: &DocLocation) -> Result<ConvertedEval, ConversionError> {
    let texts = |key: &str| -> Vec<String> {
        let items = at.child(key).items();
        items
            .iter()
            .filter_map(|item| item.value().as_str().map(str::to_owned))
            .collect()
    };
    let (labels, passing) = (texts("labels"), texts("passing_labels"));
    // A label grader that always decides the same would be a check without effect.
    if passing.is_empty() || labels.iter().all(|label| passing.contains(label)) {
        let why =
            "its `passing_labels` are none or all of its `labels`: it always decides the same";
        return Err(ConversionError::new(why, ""));
    }
    let text = format!(
        "{}\n\nThe labels are: {}. It passes if the label is {}.",
        read_criteria(at)?,
        labels.join(", "),
        passing.join(" or ")
    );
    Ok(
        ConvertedEval::new("label_model", "llm_judge", at).with_param(
            "criteria",
            text,
            &at.child("input"),
        ),
    )
}
