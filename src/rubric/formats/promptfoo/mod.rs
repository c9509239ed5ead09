//! The reader of promptfoo: `assert:` lists of a config's tests, of its `defaultTest`, of a file of tests, or alone.
//!
//! In promptfoo an assertion belongs to one test, whose `vars` fill the prompt. In dicta the transcript exists
//! already. So the assertions of a test with `vars` (or `metadata`) apply to the transcripts with the same values in
//! their metadata: `metadata.vars.NAME`.
//!
//! A template with a single variable takes the value of the test's own `vars`. If the assertion is for every test, it
//! takes the value of the transcript's metadata. Grading models in the file are not used: the eval's judge decides.

mod assertion_value;
mod assertions;
mod js_regex;
mod unsupported;

use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::conversion::{ConversionError, ConvertedEval, EvalConverter};
use super::doc_location::{DocLocation, load_doc};
use crate::diag::yaml::YamlDoc;
use crate::diag::{Diagnostic, Severity};
use crate::rubric::{Rubric, RubricFiles};
use assertion_value::{FilledValue, fill_value};
pub(super) use assertion_value::{is_template, lone_variable};
use assertions::convert_by_type;

/// Returns true if promptfoo has an assertion of this type.
pub(super) fn is_type(kind: &str) -> bool {
    // promptfoo negates every type with the prefix `not-`.
    let base = kind.strip_prefix("not-").unwrap_or(kind);
    assertions::CONVERTIBLE_TYPES.contains(&base)
        || unsupported::explain_unsupported(base).is_some()
        || base == "assert-set"
}

/// The context for reading one assertion.
pub(super) struct PromptfooCx<'c> {
    files: &'c dyn RubricFiles,
    /// The root, for `$ref` into it.
    root: DocLocation,
}

/// The test that assertions belong to.
#[derive(Debug, Clone, Default)]
struct PromptfooTest {
    /// The prefix of the evals' ids; empty for every test.
    name: String,
    /// The test's own variables and those of `defaultTest`; `None` if the assertion is for every test.
    vars: Option<Map<String, Value>>,
    applies_to: Option<Value>,
}

pub(super) fn read(
    doc: &Rc<YamlDoc>,
    files: &dyn RubricFiles,
    rubric: &mut Rubric,
    converter: &mut EvalConverter<'_>,
) {
    let root = DocLocation::root(doc);
    let cx = PromptfooCx {
        files,
        root: root.clone(),
    };
    if let Some(text) = root.text("description") {
        text.clone_into(&mut rubric.description);
    }
    // A bare list: of tests, or of assertions.
    if root.value().is_array() {
        let items = root.items();
        // An assertion set has a type, and a test does not.
        let is_test =
            |item: &DocLocation| item.get("assert").is_some() && item.get("type").is_none();
        if items.iter().any(is_test) {
            convert_tests(&cx, &items, &root.child("defaultTest"), rubric, converter);
        } else {
            convert_assertions(&cx, &items, &PromptfooTest::default(), converter);
        }
        return;
    }
    // A config: its own assertions, `defaultTest`, then the tests.
    convert_assertions(
        &cx,
        &root.child("assert").items(),
        &PromptfooTest::default(),
        converter,
    );
    let default = root.child("defaultTest");
    if default.value().is_string() {
        let error = ConversionError::new("it is in another file", "write it here");
        converter.report_error(&default, "defaultTest", error);
    }
    // promptfoo runs each test of a scenario with each of its configs; dicta does not expand them.
    if root.get("scenarios").is_some() {
        let why = "each of its tests runs with each of its configs";
        let error = ConversionError::new(why, "write the tests out under `tests:`");
        converter.report_error(&root.child("scenarios"), "scenarios", error);
    }
    let mut all = Vec::new();
    collect_tests(&cx, &root.child("tests"), &mut all, converter);
    convert_tests(&cx, &all, &default, rubric, converter);
}

/// Returns the tests of a list, and of the files that it names.
fn collect_tests(
    cx: &PromptfooCx<'_>,
    at: &DocLocation,
    all: &mut Vec<DocLocation>,
    converter: &mut EvalConverter<'_>,
) {
    match at.value() {
        Value::Array(_) => {
            for item in at.items() {
                // A list can mix tests and files of tests.
                if item.value().is_string() {
                    collect_tests(cx, &item, all, converter);
                } else {
                    all.push(item);
                }
            }
        }
        // Globs, CSV files and scripts are not read.
        Value::String(written) => {
            let path = written.strip_prefix("file://").unwrap_or(written);
            let is_read = [".yaml", ".yml", ".json"]
                .iter()
                .any(|end| path.ends_with(end));
            if !is_read || path.contains('*') {
                let why = "only single files of YAML or JSON are read for tests";
                let error = ConversionError::new(why, "name a YAML file of tests");
                return converter.report_error(at, written, error);
            }
            match load_doc(cx.files, at, path) {
                Ok(doc) => all.extend(DocLocation::root(&doc).items()),
                Err(problems) => converter.problems.extend(problems),
            }
        }
        _ => {}
    }
}

fn convert_tests(
    cx: &PromptfooCx<'_>,
    all: &[DocLocation],
    default: &DocLocation,
    rubric: &mut Rubric,
    converter: &mut EvalConverter<'_>,
) {
    // The threshold of the tests becomes the threshold of the rubric.
    convert_threshold(all, default, rubric, converter);
    let defaults = default.child("assert").items();
    let shared_vars = read_vars(default);
    // Assertions without a variable are the same for every test.
    let (each, same): (Vec<DocLocation>, Vec<DocLocation>) = defaults
        .into_iter()
        // An assertion with a variable is converted for each test, because the values differ.
        .partition(|at| assertion_value::has_template(at.value()) && !all.is_empty());
    convert_assertions(cx, &same, &PromptfooTest::default(), converter);
    let mut bound: Option<&DocLocation> = None;
    for (index, at) in all.iter().enumerate() {
        let test = match read_test(at, index, &shared_vars) {
            Ok(test) => test,
            Err(error) => {
                converter.report_error(at, "test", error);
                continue;
            }
        };
        // A transformed output is not in the transcript, so all assertions of the test are lost.
        if let Some(key) = ["transform", "postprocess"]
            .iter()
            .find(|key| at.child("options").get(key).is_some())
        {
            let place = at.child("options").child(key);
            let why = "it changes the output before it is looked at";
            let error = ConversionError::new(why, "check the output as the agent gave it");
            converter.report_error(&place, key, error);
            continue;
        }
        // dicta has no equivalent of these keys, so each is reported.
        for key in ["assertScoringFunction", "provider", "providers", "prompts"] {
            if let Some(place) = at.get(key) {
                let error = ConversionError::new(
                    "a test here has no such key",
                    "`applies_to` says which transcripts an eval is for",
                );
                converter.report_error(&place, key, error);
            }
        }
        let test_assertions = at.child("assert").items();
        // One warning for the whole file, at the first such test.
        if test.applies_to.is_some() && !(test_assertions.is_empty() && each.is_empty()) {
            bound.get_or_insert(at);
        }
        convert_assertions(cx, &test_assertions, &test, converter);
        if at.value().pointer("/options/disableDefaultAsserts") != Some(&Value::Bool(true)) {
            convert_assertions(cx, &each, &test, converter);
        }
    }
    if let Some(first) = bound {
        converter.problems.push(metadata_binding_warning(first));
    }
}

fn metadata_binding_warning(test: &DocLocation) -> Diagnostic {
    let message = "the assertions of a test with `vars` or `metadata` are for the transcripts whose metadata says the same";
    test.problem(Severity::Warning, "bound", message.to_owned())
        .help("a transcript's metadata then holds `vars: { … }`; `defaultTest` and a bare `assert:` are for all transcripts")
}

/// Uses the tests' threshold for the rubric if it is the same for all.
fn convert_threshold(
    all: &[DocLocation],
    default: &DocLocation,
    rubric: &mut Rubric,
    converter: &mut EvalConverter<'_>,
) {
    let default_threshold = default.number("threshold");
    // A test's own threshold replaces the default.
    let same = |at: &DocLocation| at.number("threshold").or(default_threshold);
    let first = all.first().map_or(default_threshold, same);
    // The same for all tests: it becomes the rubric's threshold.
    if all.iter().all(|at| same(at) == first) {
        rubric.threshold = first.filter(|x| (0.0..=1.0).contains(x));
        return;
    }
    let odd = all.iter().find_map(|at| at.get("threshold"));
    let why = "a rubric has one threshold, and the tests have several";
    let error = ConversionError::new(why, "a rubric a threshold");
    converter.report_error(
        &odd.unwrap_or_else(|| default.child("threshold")),
        "threshold",
        error,
    );
}

fn read_vars(at: &DocLocation) -> Map<String, Value> {
    at.value()
        .get("vars")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

fn read_test(
    at: &DocLocation,
    index: usize,
    shared_vars: &Map<String, Value>,
) -> Result<PromptfooTest, ConversionError> {
    let test_vars = match at.value().get("vars") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map.clone(),
        Some(_) => {
            return Err(ConversionError::new(
                "its `vars` are in another file",
                "write them here",
            ));
        }
    };
    for (key, value) in &test_vars {
        let is_file = value
            .as_str()
            .is_some_and(|text| text.starts_with("file://"));
        // promptfoo expands these into several tests.
        if is_file || value.is_array() {
            let why = format!(
                "its variable `{key}` is a {}, of which promptfoo makes several tests",
                if is_file { "file" } else { "list" }
            );
            return Err(ConversionError::new(
                why,
                "one test per value, or `applies_to` of an eval in dicta's format",
            ));
        }
    }
    let mut wanted = Map::new();
    for (key, value) in &test_vars {
        wanted.insert(format!("vars.{key}"), value.clone());
    }
    // Variables identify the transcripts; without variables the metadata does.
    if let (true, Some(Value::Object(metadata))) =
        (test_vars.is_empty(), at.value().get("metadata"))
    {
        wanted.extend(metadata.clone());
    }
    // A test's own variables replace those of `defaultTest`.
    let mut vars = shared_vars.clone();
    vars.extend(test_vars);
    // Six words are enough to recognize a test in an id.
    let name = match at.text("description") {
        Some(text) => text
            .split_whitespace()
            .take(6)
            .collect::<Vec<_>>()
            .join(" "),
        None => format!("test-{}", index + 1),
    };
    Ok(PromptfooTest {
        name,
        vars: Some(vars),
        applies_to: (!wanted.is_empty()).then(|| json!({ "metadata": wanted })),
    })
}

fn convert_assertions(
    cx: &PromptfooCx<'_>,
    items: &[DocLocation],
    test: &PromptfooTest,
    converter: &mut EvalConverter<'_>,
) {
    for at in items {
        convert_assertion(cx, at, test, 0, converter);
    }
}

/// The maximum depth of references between templates.
const MAX_REFS: u32 = 8;

fn convert_assertion(
    cx: &PromptfooCx<'_>,
    at: &DocLocation,
    test: &PromptfooTest,
    depth: u32,
    converter: &mut EvalConverter<'_>,
) {
    // References are resolved first, because the target decides everything else.
    if let Some(pointer) = at.text("$ref").and_then(|r| r.strip_prefix('#')) {
        let found = cx.root.at_pointer(pointer);
        if depth < MAX_REFS && !found.value().is_null() {
            return convert_assertion(cx, &found, test, depth + 1, converter);
        }
        let error = ConversionError::new("its `$ref` leads nowhere", "");
        return converter.report_error(at, "$ref", error);
    }
    let Some(kind) = at.text("type").map(str::to_owned) else {
        return converter.report_error(
            at,
            "assertion",
            ConversionError::new("it has no `type`", ""),
        );
    };
    if kind == "assert-set" {
        if at.get("threshold").is_some() {
            let why = "dicta has no eval for a set that passes in part";
            let instead = "a rubric of its own, with `threshold` and weights";
            return converter.report_error(at, &kind, ConversionError::new(why, instead));
        }
        for inner in at.child("assert").items() {
            // The depth also bounds nested sets.
            if depth < MAX_REFS {
                convert_assertion(cx, &inner, test, depth + 1, converter);
            }
        }
        return;
    }
    // The metric is the author's name for an assertion; a template is not a name.
    let metric = at
        .text("metric")
        .filter(|metric| !assertion_value::is_template(metric));
    let label = metric.unwrap_or(&kind);
    let id = match test.name.as_str() {
        "" => label.to_owned(),
        name => format!("{}.{label}", super::conversion::to_safe_id(name)),
    };
    let conversion = convert_eval(cx, at, &kind, test, converter);
    converter.add_or_report(&id, at, &kind, conversion);
}

fn convert_eval(
    cx: &PromptfooCx<'_>,
    at: &DocLocation,
    kind: &str,
    test: &PromptfooTest,
    converter: &mut EvalConverter<'_>,
) -> Result<ConvertedEval, ConversionError> {
    // `not-` is handled by `convert_by_type`.
    let base = kind.strip_prefix("not-").unwrap_or(kind);
    if let Some(error) = unsupported::explain_unsupported(base) {
        return Err(error);
    }
    if !assertions::CONVERTIBLE_TYPES.contains(&base) {
        return Err(ConversionError::new(
            "promptfoo's documentation has no such type",
            "",
        ));
    }
    for key in ["transform", "contextTransform"] {
        if at.get(key).is_some() {
            let why = format!("its `{key}` changes what is looked at, in JavaScript");
            return Err(ConversionError::new(
                why,
                "check the output as the agent gave it",
            ));
        }
    }
    // promptfoo accepts a weight of 0; dicta requires more than 0.
    if at.number("weight").is_some_and(|weight| weight <= 0.0) {
        let why = "with `weight: 0` it measures, and nothing makes it fail";
        return Err(ConversionError::new(why, "leave the weight out"));
    }
    let value = at.child("value");
    // A file is read only for a value without variables: its path could contain one.
    let filled = match fill_value(value.value(), test.vars.as_ref())? {
        FilledValue::Plain(value) => {
            FilledValue::Plain(assertion_value::read_file_value(cx.files, at, value)?)
        }
        late => late,
    };
    let mut eval = convert_by_type(
        at,
        base,
        kind.starts_with("not-"),
        filled,
        converter.catalog,
    )?;
    // A grading model has an effect only on judged types.
    let judged = converter
        .catalog
        .eval_type(&eval.eval_type)
        .is_some_and(|kind| kind.judged);
    for key in ["provider", "rubricPrompt"] {
        if let (true, Some(place)) = (judged, at.get(key)) {
            let why = "the eval's judge decides, with its own prompt";
            let error =
                ConversionError::new(why, "a judge of dicta.yaml: `judge:` of the workspace");
            converter.report_error(&place, key, error);
        }
    }
    // Keys that dicta shares with promptfoo.
    if let Some(weight) = at.get("weight") {
        eval = eval.with_field("weight", weight.value().clone(), &weight);
    }
    if let Some(metric) = at.get("metric") {
        eval = eval.with_field("metric", json!({ "name": metric.value() }), &metric);
    }
    if let Some(applies_to) = &test.applies_to {
        eval = eval.with_field("applies_to", applies_to.clone(), at);
    }
    Ok(eval)
}
