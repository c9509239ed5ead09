//! The loader of a rubric file. [`super::formats`] converts the formats of other tools.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::allowed_lints::allowed_lints_schema;
use super::eval::EvalReader;
use super::formats::{self, DetectedFile, RubricFormat};
use super::ids::check_id;
use super::reference::check_references;
use super::{
    Eval, EvalTypeCatalog, NOT_CARRIED, NoRubricFiles, Rubric, RubricCx, RubricFiles, Selector,
    allowed_lints, panel, refs,
};
use crate::diag::yaml::{
    self, ConfigKey, DiagnosticCollector, MappingDecoder, YamlDoc, YamlLimits, any_text_schema,
    text_schema,
};
use crate::diag::{Diagnostic, has_errors, mask_secrets, replace_sources};

/// The keys of a rubric file.
#[rustfmt::skip]
pub(super) const RUBRIC_KEYS: &[ConfigKey] = &[
    ConfigKey::new("id", "The id of the rubric; by default the file's name without its ending.", text_schema),
    ConfigKey::new("description", "A text for people.", any_text_schema),
    ConfigKey::new("threshold", "The lowest rubric score at which the rubric passes; 1.0 by default.", |doc| {
        json!({"type": "number", "minimum": 0, "maximum": 1, "description": doc})
    }),
    ConfigKey::new("judge", "The default judge of the evals below.", text_schema),
    ConfigKey::new("jury", "The default jury of the evals below.", |doc| json!({"$ref": "#/$defs/jury", "description": doc})),
    ConfigKey::new("cascade", "The default cascade of the evals below.", |doc| json!({"$ref": "#/$defs/cascade", "description": doc})),
    ConfigKey::new("applies_to", "The transcripts that the rubric is for; all by default.", |doc| {
        json!({"$ref": "#/$defs/selector", "description": doc})
    }),
    ConfigKey::new("allow", "Warnings of `dicta check` that dicta doesn't report for this rubric.", allowed_lints_schema),
    ConfigKey::new("evals", "The evals of the rubric.", |doc| {
        json!({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/eval"}, "description": doc})
    }),
];

/// Reads a rubric. Returns all problems of the file, sorted by place, warnings included, and the rubric if none of
/// them is an error.
///
/// `path` is the file as the user would name it; its stem is the default id.
pub fn load(
    text: Arc<str>,
    path: &Path,
    catalog: &dyn EvalTypeCatalog,
) -> (Option<Rubric>, Vec<Diagnostic>) {
    load_with_files(text, path, catalog, &NoRubricFiles)
}

/// Reads a rubric as [`load`] does, and the other files that it names.
pub fn load_with_files(
    text: Arc<str>,
    path: &Path,
    catalog: &dyn EvalTypeCatalog,
    files: &dyn RubricFiles,
) -> (Option<Rubric>, Vec<Diagnostic>) {
    // A file that is not YAML has no rubric and no further problems.
    let mut doc = match yaml::read_limited_document(&text, path, YamlLimits::GENERATED) {
        Ok(doc) => doc,
        // Security: a snippet of another tool's file must not show its keys, and the format is unknown.
        Err(problems) => {
            let masked: Arc<str> = mask_secrets(&text).into();
            return (None, replace_sources(problems, &masked));
        }
    };
    let source = formats::mask_tool_secrets(&doc).unwrap_or(text);
    doc.source = Arc::clone(&source);
    // References are resolved first, so that the readers below see one document.
    let expanded = refs::expand_refs(doc, files);
    let (doc, layers) = (Rc::new(expanded.doc), expanded.layers);
    let problems = DiagnosticCollector::from_doc(&doc);
    let cx = RubricCx {
        doc: &doc,
        layers: &layers,
        problems: &problems,
        catalog,
        files,
    };
    // Read everything before deciding, so that all problems are reported at once.
    let rubric = read_rubric(cx, &doc, source);
    let mut problems: Vec<Diagnostic> = problems
        .into_sorted()
        .into_iter()
        .map(|problem| layers.locate_in_own_file(problem))
        .chain(expanded.problems)
        .collect();
    // The problems of this file come first, then those of other files; each group is sorted by place.
    problems.sort_by_key(|problem| {
        let span = problem.span.as_ref();
        let place = span.map_or((0, 0), |span| (span.line, span.column));
        (problem.file != path, problem.file.clone(), place)
    });
    // A single error refuses the rubric: a part of it would check something else.
    let rubric = rubric
        .filter(|_| !has_errors(&problems))
        .map(|rubric| Rubric {
            not_carried: problems
                .iter()
                .filter(|problem| problem.code == NOT_CARRIED)
                .cloned()
                .collect(),
            ..rubric
        });
    (rubric, problems)
}

fn read_rubric(cx: RubricCx<'_>, shared: &Rc<YamlDoc>, source: Arc<str>) -> Option<Rubric> {
    let RubricCx { doc, problems, .. } = cx;
    if doc.value.is_null() {
        problems.push(
            doc.error("", "empty", "the file is empty; a rubric needs `evals`")
                .help("dicta init writes a small rubric to start from"),
        );
        return None;
    }
    // A file in no known format is read as dicta's own, so that its keys are checked.
    let format = match formats::detect_rubric_format(&doc.value) {
        Some(DetectedFile::Rubric(format)) => format,
        Some(DetectedFile::NotARubric { what, help }) => {
            let message = format!("this is {what}, which holds no rubric");
            problems.push(doc.error("", "no-rubric", message).help(help));
            return None;
        }
        None => RubricFormat::Native,
    };
    // The file's name is the default id.
    let stem = doc.path.file_stem().unwrap_or_default();
    let mut rubric = Rubric {
        id: stem.to_string_lossy().into_owned(),
        description: String::new(),
        threshold: None,
        judge: None,
        panel: None,
        applies_to: Selector::default(),
        evals: Vec::new(),
        allow: Vec::new(),
        path: doc.path.clone(),
        source,
        format,
        judges: IndexMap::new(),
        not_carried: Vec::new(),
    };
    if format == RubricFormat::Native {
        let mut evals = EvalReader::new(cx);
        read_native(doc, problems, &mut evals, &mut rubric);
    } else {
        formats::read_foreign(format, cx, shared, &mut rubric);
    }
    Some(rubric)
}

fn read_native(
    doc: &YamlDoc,
    problems: &DiagnosticCollector,
    evals: &mut EvalReader<'_>,
    rubric: &mut Rubric,
) {
    let mut fields = MappingDecoder::new(doc, "", problems).accepting(RUBRIC_KEYS);
    if !fields.is_mapping() {
        return;
    }
    if let Some(id) = fields.text("id") {
        if let Err(why) = check_id(&id) {
            fields.error("id", "id", format!("id {why}"));
        }
        // An invalid id is kept as well: the error refuses the rubric anyway.
        rubric.id = id;
    }
    rubric.description = fields.text_or_empty("description").unwrap_or_default();
    rubric.threshold = fields.number("threshold", "between 0 and 1", |x| (0.0..=1.0).contains(&x));
    rubric.judge = fields.text("judge");
    rubric.panel = panel::read(&mut fields);
    rubric.applies_to = Selector::read(&mut fields);
    rubric.allow = allowed_lints::read_allowed_lints(&mut fields);
    // `evals` is a known key; it is read below.
    fields.value("evals");
    fields.finish();
    rubric.evals = read_evals(doc, problems, evals, "/evals");
}

/// Reads the evals of a list in dicta's own format.
pub(super) fn read_evals(
    doc: &YamlDoc,
    problems: &DiagnosticCollector,
    evals: &mut EvalReader<'_>,
    at: &str,
) -> Vec<Eval> {
    match doc.value.pointer(at) {
        None => {
            problems.push(doc.error(
                at,
                "no-evals",
                "`evals` is missing: a rubric without evals checks nothing",
            ));
            Vec::new()
        }
        Some(Value::Array(items)) if items.is_empty() => {
            problems.push(doc.error(
                at,
                "no-evals",
                "`evals` is empty: a rubric without evals checks nothing",
            ));
            Vec::new()
        }
        Some(Value::Array(items)) => {
            report_duplicates(doc, problems, at, items);
            let all: Vec<Eval> = (0..items.len())
                // A broken eval does not hide the problems of the others.
                .flat_map(|index| evals.read(&format!("{at}/{index}")))
                .collect();
            report_collisions(problems, &all, items);
            check_references(evals.cx, at, items, &all);
            all
        }
        Some(other) => {
            let message = format!("evals must be a list (got {})", yaml::describe_value(other));
            problems.push(doc.error(at, "type", message));
            Vec::new()
        }
    }
}

/// Reports duplicate ids. Compares the ids as written, so that an eval with another problem counts too.
fn report_duplicates(doc: &YamlDoc, problems: &DiagnosticCollector, at: &str, items: &[Value]) {
    let mut first: HashMap<&str, u32> = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        // An eval without an id, such as one with `$ref`, is reported elsewhere.
        let Some(id) = item.get("id").and_then(Value::as_str) else {
            continue;
        };
        let span = doc.span(&format!("{at}/{index}/id"));
        if let Some(line) = first.get(id) {
            let message = format!("the eval id `{id}` is used twice (first on line {line})");
            problems.error(span, "duplicate-id", message);
        } else {
            first.insert(id, span.line);
        }
    }
}

/// Reports evals with the same id. The parts of a split eval have generated ids, which may equal another eval's id.
fn report_collisions(problems: &DiagnosticCollector, all: &[Eval], items: &[Value]) {
    let mut written: HashMap<&str, usize> = HashMap::new();
    for id in items.iter().filter_map(|item| item.get("id")?.as_str()) {
        *written.entry(id).or_default() += 1;
    }
    let mut ids: HashSet<&str> = HashSet::new();
    for eval in all {
        // Ids that are written twice are already reported by `report_duplicates`.
        let already_reported = written.get(eval.id.as_str()).is_some_and(|n| *n > 1);
        if !ids.insert(&eval.id) && !already_reported {
            let message = format!(
                "the eval id `{}` is used twice: dicta numbers the parts of a split eval from `.1`",
                eval.id
            );
            problems.error(eval.span.clone(), "duplicate-id", message);
        }
    }
}
