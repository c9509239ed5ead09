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
mod code;
mod csv_tests;
mod grading_prompt;
mod js_regex;
mod test_list;
mod transforms;
mod unsupported;
mod variables;

use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::conversion::{ConversionError, ConvertedEval, EvalConverter};
use super::doc_location::{DocLocation, load_doc};
use crate::diag::yaml::YamlDoc;
use crate::diag::{Severity, SourceSpan};
use crate::rubric::{Rubric, RubricFiles};
use assertion_value::{FilledValue, fill_value};
pub(super) use assertion_value::{is_template, lone_variable};
use assertions::convert_by_type;
use test_list::{TestSource, collect_config_tests, number_tests};

/// Returns true if promptfoo has an assertion of this type.
pub(super) fn is_type(kind: &str) -> bool {
    // promptfoo negates every type with the prefix `not-`.
    let base = kind.strip_prefix("not-").unwrap_or(kind);
    assertions::CONVERTIBLE_TYPES.contains(&base)
        || code::is_code(base)
        || unsupported::explain_unsupported(base).is_some()
        || base == "assert-set"
}

/// The context for reading one assertion.
pub(super) struct PromptfooCx<'c> {
    files: &'c dyn RubricFiles,
    /// The root, for `$ref` into it.
    root: DocLocation,
}

impl PromptfooCx<'_> {
    /// Returns the place in the config that names the file of an assertion; `None` if the assertion is in the config.
    fn find_naming_span(&self, at: &DocLocation) -> Option<SourceSpan> {
        if Rc::ptr_eq(&at.doc, &self.root.doc) {
            return None;
        }
        let mut keys = ["tests", "scenarios", "defaultTest", "assert"].into_iter();
        let place = keys.find_map(|key| self.root.get(key))?;
        Some(place.span())
    }
}

/// The test that assertions belong to.
#[derive(Debug, Clone, Default)]
struct PromptfooTest {
    /// The prefix of the evals' ids; empty for every test.
    name: String,
    /// The test's own variables and those of `defaultTest`; `None` if the assertion is for every test.
    vars: Option<Map<String, Value>>,
    applies_to: Option<Value>,
    /// The prompt for the grading model.
    rubric_prompt: Option<DocLocation>,
}

impl PromptfooTest {
    /// Adds what the options of a test say; those of `defaultTest` count where the test says nothing.
    fn with_options(mut self, options: &[&DocLocation]) -> Self {
        let is_transformed = options
            .iter()
            .any(|at| transforms::find_transform(at).is_some());
        if is_transformed {
            transforms::bind_to_results(&mut self.applies_to);
        }
        self.rubric_prompt = options.iter().find_map(|at| at.get("rubricPrompt"));
        self
    }
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
            let tests = number_tests(items);
            convert_tests(&cx, &tests, &root.child("defaultTest"), rubric, converter);
        } else {
            convert_assertions(&cx, &items, &PromptfooTest::default(), converter);
        }
        return;
    }
    // A config: its own assertions, `defaultTest`, then the tests.
    let own = list_assertions(&cx, &root.child("assert"), converter);
    convert_assertions(&cx, &own, &PromptfooTest::default(), converter);
    let default = find_default_test(&cx, converter);
    if let Some(place) = root.get("derivedMetrics") {
        let error = ConversionError::new("it calculates a metric from others", "");
        converter.report_error(&place, "derivedMetrics", error);
    }
    let reported = converter.error_count();
    let all = collect_config_tests(files, &root, converter);
    converter.has_no_checks =
        converter.error_count() == reported && !has_assertions(&root, &default, &all);
    convert_tests(&cx, &all, &default, rubric, converter);
}

/// Returns `defaultTest`, from the file that it names if it is a text.
fn find_default_test(cx: &PromptfooCx<'_>, converter: &mut EvalConverter<'_>) -> DocLocation {
    let at = cx.root.child("defaultTest");
    let Some(path) = at.value().as_str() else {
        return at;
    };
    load_named_file(cx, &at, path, converter).unwrap_or(at)
}

/// Returns the content of a file that a config names with or without `file://`. Reports a file that it can't read.
fn load_named_file(
    cx: &PromptfooCx<'_>,
    at: &DocLocation,
    path: &str,
    converter: &mut EvalConverter<'_>,
) -> Option<DocLocation> {
    match load_doc(cx.files, at, path.strip_prefix("file://").unwrap_or(path)) {
        Ok(doc) => Some(DocLocation::root(&doc)),
        Err(problems) => {
            converter.problems.extend(problems);
            None
        }
    }
}

/// Returns the entries of an `assert` list, from the file that it names if it is a text.
fn list_assertions(
    cx: &PromptfooCx<'_>,
    at: &DocLocation,
    converter: &mut EvalConverter<'_>,
) -> Vec<DocLocation> {
    match at.value() {
        Value::Null | Value::Array(_) => at.items(),
        Value::String(path) => load_named_file(cx, at, path, converter)
            .map(|file| file.items())
            .unwrap_or_default(),
        _ => {
            let error = ConversionError::new("it is not a list", "write a list of assertions");
            converter.report_error(at, "assert", error);
            Vec::new()
        }
    }
}

/// Returns true if a config, its `defaultTest` or a test has assertions.
fn has_assertions(root: &DocLocation, default: &DocLocation, all: &[TestSource]) -> bool {
    let is_filled = |at: Option<DocLocation>| {
        at.is_some_and(|at| at.value().is_string() || !at.items().is_empty())
    };
    // What is in another file is unknown.
    default.value().is_string()
        || is_filled(root.get("assert"))
        || is_filled(default.get("assert"))
        || all.iter().any(|test| is_filled(test.get("assert")))
}

fn convert_tests(
    cx: &PromptfooCx<'_>,
    all: &[TestSource],
    default: &DocLocation,
    rubric: &mut Rubric,
    converter: &mut EvalConverter<'_>,
) {
    // The threshold of the tests becomes the threshold of the rubric.
    convert_threshold(all, default, rubric, converter);
    let default_options = default.child("options");
    if let Some(place) = default_options.get("provider") {
        report_grader(&place, "defaultTest.options.provider", converter);
    }
    let name = "defaultTest.options.contextTransform";
    transforms::report_context_transform(&default_options, name, converter);
    // A test with its own options changes the assertions of `defaultTest`, too.
    let has_own_options = |source: &TestSource| {
        let options = source.at.child("options");
        transforms::find_transform(&options).is_some()
            || options.get("rubricPrompt").is_some()
            || disables_defaults(source)
    };
    let are_options_equal = !all.iter().any(has_own_options);
    let name = "defaultTest.options.transformVars";
    transforms::report_variable_transform(&default_options, name, converter);
    let defaults = list_assertions(cx, &default.child("assert"), converter);
    let shared_vars = variables::read_vars(cx.files, default).unwrap_or_else(|error| {
        converter.report_error(default, "defaultTest.vars", error);
        Map::new()
    });
    // Assertions without a variable are the same for every test.
    let (each, same): (Vec<DocLocation>, Vec<DocLocation>) = defaults
        .into_iter()
        // An assertion with a variable is converted for each test, because the values differ.
        .partition(|at| {
            let differs = assertion_value::has_template(at.value()) || !are_options_equal;
            differs && !all.is_empty()
        });
    let every_test = PromptfooTest::default().with_options(&[&default_options]);
    let first_transform = transforms::find_transform(&default_options).or_else(|| {
        let mut options = all.iter().map(|source| source.at.child("options"));
        options.find_map(|at| transforms::find_transform(&at))
    });
    if let Some(place) = first_transform {
        converter
            .problems
            .push(transforms::result_binding_warning(&place));
    }
    convert_assertions(cx, &same, &every_test, converter);
    for source in all {
        let at = &source.at;
        let variants = match read_test(cx, source, &shared_vars) {
            Ok(variants) => variants,
            Err(error) => {
                converter.report_error(at, "test", error);
                continue;
            }
        };
        let options = at.child("options");
        transforms::report_context_transform(&options, "contextTransform", converter);
        transforms::report_variable_transform(&options, "transformVars", converter);
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
        // A test of a scenario replaces the assertions of the scenario's config.
        let test_assertions = source
            .get("assert")
            .map(|at| list_assertions(cx, &at, converter))
            .unwrap_or_default();
        for test in variants {
            let test = test.with_options(&[&options, &default_options]);
            convert_assertions(cx, &test_assertions, &test, converter);
            if !disables_defaults(source) {
                convert_assertions(cx, &each, &test, converter);
            }
        }
    }
}

/// Returns true if a test leaves out the assertions of `defaultTest`.
fn disables_defaults(test: &TestSource) -> bool {
    let option = test.at.value().pointer("/options/disableDefaultAsserts");
    option == Some(&Value::Bool(true))
}

/// Reports the model that grades for promptfoo.
fn report_grader(at: &DocLocation, name: &str, converter: &mut EvalConverter<'_>) {
    let error = ConversionError::new(
        "the eval's judge decides, with its own prompt",
        "a judge of dicta.yaml: `judge:` of the workspace",
    );
    converter.report_error(at, name, error);
}

/// Uses the tests' threshold for the rubric if it is the same for all.
fn convert_threshold(
    all: &[TestSource],
    default: &DocLocation,
    rubric: &mut Rubric,
    converter: &mut EvalConverter<'_>,
) {
    let default_threshold = default.number("threshold");
    // A test's own threshold replaces the default.
    let same = |test: &TestSource| {
        let own = test.get("threshold").and_then(|at| at.value().as_f64());
        own.or(default_threshold)
    };
    let first = all.first().map_or(default_threshold, same);
    // The same for all tests: it becomes the rubric's threshold.
    if all.iter().all(|at| same(at) == first) {
        rubric.threshold = first.filter(|x| (0.0..=1.0).contains(x));
        return;
    }
    let odd = all.iter().find_map(|test| test.get("threshold"));
    let why = "a rubric has one threshold, and the tests have several";
    let error = ConversionError::new(why, "a rubric a threshold");
    converter.report_error(
        &odd.unwrap_or_else(|| default.child("threshold")),
        "threshold",
        error,
    );
}

/// Returns the tests that promptfoo makes of one: a test for each combination of the values of its variables.
fn read_test(
    cx: &PromptfooCx<'_>,
    source: &TestSource,
    shared_vars: &Map<String, Value>,
) -> Result<Vec<PromptfooTest>, ConversionError> {
    let at = &source.at;
    let mut test_vars = Map::new();
    // The test's own variables replace those of its scenario's config.
    for place in source.config.iter().chain([at]) {
        test_vars.extend(variables::read_vars(cx.files, place)?);
    }
    // A test's own variables replace those of `defaultTest`.
    let mut vars = shared_vars.clone();
    vars.extend(test_vars.clone());
    let is_expanded =
        at.value().pointer("/options/disableVarExpansion") != Some(&Value::Bool(true));
    let combinations = if is_expanded {
        variables::expand(cx.files, at, &vars)?
    } else {
        vec![vars]
    };
    let metadata = source.get("metadata");
    let metadata = metadata.as_ref().and_then(|at| at.value().as_object());
    // Six words are enough to recognize a test in an id.
    let name = match at.text("description") {
        Some(text) => text
            .split_whitespace()
            .take(6)
            .collect::<Vec<_>>()
            .join(" "),
        None => source.default_name.clone(),
    };
    let is_single = combinations.len() == 1;
    let tests = combinations.into_iter().zip(1..).map(|(written, number)| {
        let mut vars = written.clone();
        variables::read_files(cx.files, at, &mut vars);
        // The test's own variables identify its transcripts, and those that differ between its combinations.
        let is_own = |key: &String| {
            test_vars.contains_key(key) || (is_expanded && variables::is_list(shared_vars, key))
        };
        let own: Vec<(&String, &Value)> = written.iter().filter(|(key, _)| is_own(key)).collect();
        let mut wanted: Map<String, Value> = own
            .iter()
            .filter_map(|(key, value)| {
                let condition = variables::to_condition(cx.files, at, key, value, &vars)?;
                Some((format!("vars.{key}"), condition))
            })
            .collect();
        // Newer results have the names of files that dicta cannot read, such as images.
        if wanted.is_empty() {
            let as_written = own
                .iter()
                .map(|(key, value)| (format!("vars.{key}"), (*value).clone()));
            wanted.extend(as_written);
        }
        // Without variables the metadata identifies the transcripts.
        if let (true, Some(metadata)) = (test_vars.is_empty(), metadata) {
            wanted.extend(metadata.clone());
        }
        PromptfooTest {
            name: if is_single {
                name.clone()
            } else {
                format!("{name}-{number}")
            },
            vars: Some(vars),
            applies_to: (!wanted.is_empty()).then(|| json!({ "metadata": wanted })),
            rubric_prompt: None,
        }
    });
    Ok(tests.collect())
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

/// The criteria of an assertion that has a prompt of its own and no value.
const GUIDE_AS_CRITERIA: &str = "The output meets the scoring guide.";

/// The code of warnings about assertions that fail every output in promptfoo.
const FAILING_CODE: &str = "failing-code";

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
        // The assertions of a set are single evals, so nothing has the name and the weight of the set.
        for key in ["metric", "weight"] {
            if let Some(place) = at.get(key) {
                let why = "its assertions become single evals";
                let instead = "the key at each assertion of the set";
                converter.report_error(&place, key, ConversionError::new(why, instead));
            }
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
    let conversion = convert_eval(cx, at, &kind, test, converter).map(|mut eval| {
        eval.display_span = cx.find_naming_span(at);
        eval
    });
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
    let is_code = code::is_code(base);
    if let Some(error) = unsupported::explain_unsupported(base) {
        return Err(error);
    }
    if !assertions::CONVERTIBLE_TYPES.contains(&base) && !is_code {
        return Err(ConversionError::new(
            "promptfoo's documentation has no such type",
            "",
        ));
    }
    transforms::report_context_transform(at, "contextTransform", converter);
    let programs: Vec<String> = transforms::find_transform(at)
        .iter()
        .map(transforms::read_code)
        .collect::<Result<_, _>>()?;
    let around = code::AssertionCode {
        transforms: programs,
        vars: test.vars.as_ref(),
    };
    // promptfoo accepts a weight of 0; dicta requires more than 0.
    if at.number("weight").is_some_and(|weight| weight <= 0.0) {
        let why = "with `weight: 0` it measures, and nothing makes it fail";
        return Err(ConversionError::new(why, "leave the weight out"));
    }
    let value = at.child("value");
    if is_code {
        let inverse = kind.starts_with("not-");
        let eval = code::convert_code(at, base, inverse, value.value(), &around)?;
        let written = value.value().as_str().unwrap_or_default();
        if around.transforms.is_empty()
            && let Some(why) = code::explain_failing_code(base, written)
        {
            let warning = value.problem(Severity::Warning, FAILING_CODE, why.to_owned());
            // The assertions of `defaultTest` are converted again for each test that has other ones.
            if !converter.problems.contains(&warning) {
                converter.problems.push(warning);
            }
        }
        return Ok(with_shared_fields(eval, at, test));
    }
    // A file is read only for a value without variables: its path could contain one.
    let filled = match fill_value(value.value(), test.vars.as_ref())? {
        FilledValue::Plain(value) => {
            FilledValue::Plain(assertion_value::read_file_values(cx.files, at, value)?)
        }
        late => late,
    };
    if !around.transforms.is_empty() {
        let FilledValue::Plain(value) = filled else {
            return Err(ConversionError::new(
                "its value is a variable of each test, and a `transform` changes its output first",
                "one eval a value, with `applies_to`",
            ));
        };
        let inverse = kind.starts_with("not-");
        let eval = code::convert_transformed(at, base, inverse, &value, &around)?;
        return Ok(with_shared_fields(eval, at, test));
    }
    let prompt = at
        .get("rubricPrompt")
        .or_else(|| test.rubric_prompt.clone());
    // Without a value, promptfoo's grader reads the author's prompt alone.
    let is_prompt_alone =
        base == "llm-rubric" && prompt.is_some() && filled == FilledValue::Plain(Value::Null);
    let filled = if is_prompt_alone {
        FilledValue::Plain(GUIDE_AS_CRITERIA.into())
    } else {
        filled
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
    if let (true, Some(place)) = (judged, at.get("provider")) {
        report_grader(&place, "provider", converter);
    }
    if let (true, Some(place)) = (judged, prompt) {
        let read = match &*eval.eval_type {
            "llm_judge" => grading_prompt::to_scoring_guide(cx.files, &place, test.vars.as_ref()),
            other => Err(ConversionError::new(
                format!("{other} has its own prompt"),
                "`llm_judge` with your criteria",
            )),
        };
        match read {
            Ok(guide) => eval = eval.with_param("scoring_guide", guide, &place),
            Err(error) if is_prompt_alone => return Err(error),
            Err(error) => converter.report_error(&place, "rubricPrompt", error),
        }
    }
    Ok(with_shared_fields(eval, at, test))
}

/// Adds the keys that dicta shares with promptfoo.
fn with_shared_fields(
    mut eval: ConvertedEval,
    at: &DocLocation,
    test: &PromptfooTest,
) -> ConvertedEval {
    if let Some(weight) = at.get("weight") {
        eval = eval.with_field("weight", weight.value().clone(), &weight);
    }
    if let Some(metric) = at.get("metric") {
        eval = eval.with_field("metric", json!({ "name": metric.value() }), &metric);
    }
    if let Some(applies_to) = &test.applies_to {
        eval = eval.with_field("applies_to", applies_to.clone(), at);
    }
    eval
}
