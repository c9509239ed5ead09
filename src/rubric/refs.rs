//! `$ref`: an eval that takes its keys from another eval of this or another file. The eval's own keys take
//! precedence.
//!
//! The result is the document with all references inserted. Each value keeps the place where it is written.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::RubricFiles;
use super::referenced_files::normalize_path;
use crate::diag::yaml::{self, MAX_NODES, SourceMap, SpanOffset, YamlDoc};
use crate::diag::{Diagnostic, find_nearest};
use crate::model::escape_pointer_step;

/// The key of a reference.
pub(super) const REF_KEY: &str = "$ref";
/// The maximum number of references from eval to eval.
const MAX_STEPS: usize = 16;

/// A document with its references followed.
pub(super) struct ExpandedDoc {
    pub(super) doc: YamlDoc,
    pub(super) layers: SourceMap,
    /// The problems of references that could not be followed, each in its own file.
    pub(super) problems: Vec<Diagnostic>,
}

/// Follows every `$ref` of a document's evals. Keeps a reference that leads nowhere, and reports it.
pub(super) fn expand_refs(doc: YamlDoc, files: &dyn RubricFiles) -> ExpandedDoc {
    let with_ref: Vec<String> = list_evals(&doc.value)
        .filter(|(_, eval)| eval.get(REF_KEY).is_some())
        .map(|(at, _)| at)
        .collect();
    let layers = SourceMap::new(&doc);
    // Most rubrics have no reference, so the copy below is not needed.
    if with_ref.is_empty() {
        return ExpandedDoc {
            doc,
            layers,
            problems: Vec::new(),
        };
    }
    // References read the document as written, because the loop changes the other one.
    let original = doc.clone();
    let mut work = RefExpander {
        original: &original,
        files,
        docs: HashMap::new(),
        layers,
        remaining_values: MAX_NODES,
    };
    let (mut doc, mut problems) = (doc, Vec::new());
    // A broken reference does not hide the problems of the others.
    for at in with_ref {
        if let Err(problem) = work.expand_eval(&at, &mut doc) {
            problems.push(*problem);
        }
    }
    ExpandedDoc {
        doc,
        layers: work.layers,
        problems,
    }
}

/// Returns the evals of a rubric in any format, with their pointers.
fn list_evals(value: &Value) -> impl Iterator<Item = (String, &Value)> {
    // All formats, because PromptKit's prompt configs and packs may use references as well.
    let mut lists = vec!["/evals".to_owned(), "/spec/evals".to_owned()];
    let prompts = value.get("prompts").and_then(Value::as_object);
    for (name, _) in prompts.into_iter().flatten() {
        lists.push(format!("/prompts/{}/evals", escape_pointer_step(name)));
    }
    lists.into_iter().flat_map(move |list| {
        let items = value.pointer(&list).and_then(Value::as_array);
        let items = items.into_iter().flatten().enumerate();
        items
            .map(|(index, eval)| (format!("{list}/{index}"), eval))
            .collect::<Vec<_>>()
    })
}

struct RefExpander<'w> {
    /// The document as it was written.
    original: &'w YamlDoc,
    files: &'w dyn RubricFiles,
    docs: HashMap<PathBuf, YamlDoc>,
    layers: SourceMap,
    /// The number of values that references may still insert.
    remaining_values: usize,
}

/// The place of an eval.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EvalLocation {
    /// The normalized path of its file.
    path: PathBuf,
    /// Its pointer in that file.
    pointer: String,
}

impl RefExpander<'_> {
    /// Inserts the keys of the eval that `at` refers to, under the eval's own keys.
    fn expand_eval(&mut self, at: &str, doc: &mut YamlDoc) -> Result<(), Box<Diagnostic>> {
        let steps = self.follow_refs(at)?;
        let mut merged = Map::new();
        // From the last eval of the chain to the first, so that the nearer eval overrides the farther one.
        for EvalLocation { path, pointer } in steps.iter().rev() {
            let (from, shift) = match self.docs.get(path) {
                Some(other) => (other, self.layers.add(path, &other.source)),
                None => (self.original, SpanOffset::default()),
            };
            let map = from.value.pointer(pointer).and_then(Value::as_object);
            let mut used = 0;
            for (key, value) in map.into_iter().flatten().filter(|(key, _)| *key != REF_KEY) {
                let step = escape_pointer_step(key);
                let (target, source_pointer) =
                    (format!("{at}/{step}"), format!("{pointer}/{step}"));
                // Each value keeps its place in the file where it is written.
                used += doc.copy_spans_from(&target, from, &source_pointer, shift);
                merge_key(&mut merged, key, value);
            }
            self.remaining_values = self.remaining_values.saturating_sub(used);
            // The limit applies to all references together, because nested ones could multiply.
            if self.remaining_values == 0 {
                let message = format!("more than {MAX_NODES} values, with `$ref`s followed");
                let place = format!("{at}/{REF_KEY}");
                return Err(Box::new(self.original.error(&place, "too-large", message)));
            }
        }
        let has_id = |value: &Value| value.get("id").is_some();
        if !self.original.value.pointer(at).is_some_and(has_id) {
            // A problem of an inherited id is fixed at the reference, so the id gets the place of the reference.
            doc.copy_span(&format!("{at}/id"), &format!("{at}/{REF_KEY}"));
        }
        if let Some(eval) = doc.value.pointer_mut(at) {
            *eval = Value::Object(merged);
        }
        Ok(())
    }

    /// Returns the chain of evals from this one to the one without a reference.
    fn follow_refs(&mut self, at: &str) -> Result<Vec<EvalLocation>, Box<Diagnostic>> {
        let own_path = normalize_path(&self.original.path);
        let mut steps = vec![EvalLocation {
            path: own_path.clone(),
            pointer: at.to_owned(),
        }];
        loop {
            let EvalLocation { path, pointer } = steps[steps.len() - 1].clone();
            let place = format!("{pointer}/{REF_KEY}");
            // The eval is in this file unless its path was read as another file.
            let doc = self.docs.get(&path).unwrap_or(self.original);
            // The end of the chain: an eval without a reference.
            let Some(written) = doc.value.pointer(&place).cloned() else {
                return Ok(steps);
            };
            let refused = |doc: &YamlDoc, why: String| Box::new(doc.error(&place, "ref", why));
            let Some((file, id)) = written.as_str().and_then(|text| text.split_once('#')) else {
                let why = "$ref names an eval as FILE#EVAL-ID, or #EVAL-ID in the same file";
                return Err(refused(doc, why.to_owned()));
            };
            // Relative to the file that contains the reference.
            let target = match file {
                "" => path.clone(),
                file => normalize_path(&doc.path.parent().unwrap_or(Path::new("")).join(file)),
            };
            // Each file is read once.
            if target != own_path && !self.docs.contains_key(&target) {
                match self.read(&target) {
                    Ok(other) => {
                        self.docs.insert(target.clone(), other);
                    }
                    Err(why) => {
                        // Looked up again, because the insertion above borrows `self.docs` mutably.
                        let doc = self.docs.get(&path).unwrap_or(self.original);
                        return Err(refused(doc, format!("`{file}` {why}")));
                    }
                }
            }
            let other = self.docs.get(&target).unwrap_or(self.original);
            let doc = self.docs.get(&path).unwrap_or(self.original);
            let found = find_eval(&other.value, id);
            let Some(found) = found else {
                let known = list_evals(&other.value).filter_map(|(_, eval)| eval.get("id"));
                let known: Vec<&str> = known.filter_map(Value::as_str).collect();
                let hint = find_nearest(id, known)
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                let whose = target.display();
                return Err(refused(doc, format!("{whose} has no eval `{id}`{hint}")));
            };
            let next = EvalLocation {
                path: target,
                pointer: found,
            };
            // A cycle would never end.
            if steps.contains(&next) {
                let why = format!("`{}` leads back to itself", as_text(&written));
                return Err(refused(doc, why));
            }
            // A long chain is probably a mistake.
            if steps.len() == MAX_STEPS {
                return Err(refused(
                    doc,
                    format!("$ref leads over more than {MAX_STEPS} evals"),
                ));
            }
            steps.push(next);
        }
    }

    fn read(&self, path: &Path) -> Result<YamlDoc, String> {
        let text = self.files.read(path).map_err(|why| {
            let near = self.find_nearest_file(path);
            near.map_or_else(
                || why.to_string(),
                |near| format!("{why}; did you mean `{near}`?"),
            )
        })?;
        yaml::read_document(&text, path).map_err(|problems| match problems.first() {
            Some(first) => format!("does not load: {first}"),
            None => "does not load".to_owned(),
        })
    }

    fn find_nearest_file(&self, path: &Path) -> Option<String> {
        // A misspelled file name: look for a similar one in the same folder.
        let folder = path.parent()?;
        let siblings = self.files.list(&folder.join("*").to_string_lossy());
        let names: Vec<String> = siblings
            .iter()
            .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .collect();
        let name = path.file_name()?.to_string_lossy();
        find_nearest(&name, names.iter().map(String::as_str)).map(str::to_owned)
    }
}

fn as_text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn find_eval(value: &Value, id: &str) -> Option<String> {
    let mut all = list_evals(value);
    all.find(|(_, eval)| eval.get("id").and_then(Value::as_str) == Some(id))
        .map(|(at, _)| at)
}

/// Lays a key of the referring eval over the referenced one: params key by key, other keys as a whole.
fn merge_key(merged: &mut Map<String, Value>, key: &str, value: &Value) {
    // `params` merge key by key, so that an eval can change a single param.
    if key == "params"
        && let (Some(Value::Object(below)), Value::Object(above)) = (merged.get_mut(key), value)
    {
        below.extend(above.iter().map(|(k, v)| (k.clone(), v.clone())));
        return;
    }
    merged.insert(key.to_owned(), value.clone());
}
