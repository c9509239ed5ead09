//! The lists of dicta.yaml that name files: globs, paths, and for transcripts `{path, map}`.
//!
//! Responsible for the resolution of these lists to files and field mappings. Does not read the files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::config_document::{ConfigDocument, read_config_document};
use super::{Env, globs, run_folders};
use crate::diag::yaml::{
    ConfigKey, DiagnosticCollector, MappingDecoder, YamlDoc, describe_value, properties_schema,
    text_schema,
};
use crate::diag::{Diagnostic, has_errors};
use crate::transcript::{FieldMapping, FieldMappings};

/// The keys of an entry of `transcripts:` that is a mapping.
const MAPPED_FILE_KEYS: &[ConfigKey] = &[
    ConfigKey::new(
        "path",
        "A file or a glob, relative to this file, absolute or from home (`~/`).",
        text_schema,
    ),
    // `FieldMapping` describes its keys itself, because it also decodes them.
    ConfigKey::new(
        "map",
        "The meaning of the fields of a record.",
        FieldMapping::json_schema,
    ),
];

/// Returns the JSON Schema of an entry of `transcripts:` with a field mapping.
pub(super) fn mapped_file_schema() -> Value {
    json!({
        "type": "object",
        "description": "Files in an unknown format: CSV, JSON lines, a JSON array. `dicta map FILE` prints a guess.",
        "properties": properties_schema(MAPPED_FILE_KEYS),
        "required": ["path", "map"],
        "additionalProperties": false,
    })
}

/// The files that a list names.
#[derive(Debug, Default)]
pub(super) struct ListedFiles {
    /// The files, each once, in the order listed.
    pub(super) files: Vec<PathBuf>,
    /// The field mappings of the files that have one.
    pub(super) maps: FieldMappings,
}

/// Reads the field mappings of the workspace in `root`. Reads only `transcripts` of dicta.yaml, so problems elsewhere
/// do not matter.
pub fn read_field_maps(root: &Path, env: &Env) -> Result<FieldMappings, Vec<Diagnostic>> {
    let root = run_folders::canonical_root(root);
    // Import also works outside a workspace and in a broken one, so an unreadable file means no mappings.
    let Ok(ConfigDocument { doc, .. }) = read_config_document(&root) else {
        return Ok(FieldMappings::default());
    };
    if doc.value.get("transcripts").is_none() {
        return Ok(FieldMappings::default());
    }
    let problems = DiagnosticCollector::from_doc(&doc);
    let mut fields = MappingDecoder::new(&doc, "", &problems);
    let listed = ListedFiles::read((&root, env), &doc, &mut fields, "transcripts", &problems);
    // Other commands report missing and skipped files.
    let mut found = problems.into_sorted();
    found.retain(|problem| !matches!(problem.code, "glob" | "skipped"));
    if has_errors(&found) {
        return Err(found);
    }
    Ok(listed.maps)
}

impl ListedFiles {
    /// Reads a list of globs and returns its files.
    pub(super) fn read(
        at_home @ (root, _): (&Path, &Env),
        doc: &YamlDoc,
        fields: &mut MappingDecoder<'_>,
        key: &'static str,
        problems: &DiagnosticCollector,
    ) -> Self {
        if fields.is_mapping() && !fields.has(key) {
            let ending = if key == "rubrics" { "yaml" } else { "jsonl" };
            fields.error_at_mapping(
                "missing",
                format!("`{key}` is missing: a list of files or globs, such as [{key}/*.{ending}]"),
            );
        }
        // Step 1: bring the three spellings (text, list, nothing) into one list, each entry with its pointer.
        let written: Vec<(String, &Value)> = match fields.value(key) {
            Some(value @ Value::String(_)) => vec![(key.to_owned(), value)],
            Some(Value::Array(items)) if items.is_empty() => {
                fields.error(key, "empty", format!("{key} must not be empty"));
                Vec::new()
            }
            Some(_) => fields
                .list(key)
                .unwrap_or_default()
                .into_iter()
                .enumerate()
                .map(|(index, (_, item))| (format!("{key}/{index}"), item))
                .collect(),
            None => Vec::new(),
        };
        // Step 2: expand the entries.
        let mut listed = Self::default();
        let mut mapped: BTreeMap<PathBuf, String> = BTreeMap::new();
        for (at, item) in written {
            match item {
                Value::String(glob) => {
                    listed.add_glob(at_home, glob, &at, fields, problems);
                }
                Value::Object(entry) if key == "transcripts" => {
                    // A broken mapping reports its own problems, so only an absent one counts as missing.
                    let has_map = entry.contains_key("map");
                    let mut entry_fields = MappingDecoder::new(
                        doc,
                        &format!("{}/{at}", fields.mapping_pointer()),
                        problems,
                    )
                    .accepting(MAPPED_FILE_KEYS);
                    let path = entry_fields.text("path");
                    let map = entry_fields.mapping("map").and_then(FieldMapping::parse);
                    let map = map.map(|mut map| {
                        map.resolve_paths(root);
                        for joined in map.joined_files().filter(|path| !path.is_file()) {
                            let shown = super::paths::display_path(root, joined);
                            let why = format!("join: `{}` is not a file", shown.display());
                            entry_fields.error_at("map/join", "io", why);
                        }
                        map
                    });
                    if !entry_fields.has("path") {
                        entry_fields
                            .error_at_mapping("missing", "`path` is missing: a file or a glob");
                    }
                    if !has_map {
                        let why = "`map` is missing: what the fields of a record mean (`dicta map FILE` prints a guess); without one, list the path alone";
                        entry_fields.error_at_mapping("missing", why);
                    }
                    entry_fields.finish();
                    // The path is expanded even if the mapping is broken, so that both kinds of problems show
                    // at once.
                    let Some(path) = path else { continue };
                    let inside = format!("{at}/path");
                    let found = listed.add_glob(at_home, &path, &inside, fields, problems);
                    let Some(map) = map.map(Arc::new) else {
                        continue;
                    };
                    for file in found {
                        // Two globs may match the same file. That is a conflict only if their mappings
                        // differ.
                        if let Some(other) = mapped.insert(file.clone(), path.clone())
                            && listed.maps.by_path.get(&file) != Some(&map)
                        {
                            let file = super::paths::display_path(root, &file);
                            let why = format!(
                                "{} has another map by `{other}` above: one file is read in one way",
                                file.display()
                            );
                            fields.error_at(&inside, "map", why);
                        }
                        listed.maps.by_path.insert(file, Arc::clone(&map));
                    }
                }
                other => {
                    let what = if key == "transcripts" {
                        "files and globs as text, or {path, map}"
                    } else {
                        "files and globs as text"
                    };
                    let why = format!("{key} holds {what} (got {})", describe_value(other));
                    fields.error_at(&at, "type", why);
                }
            }
        }
        listed
    }

    /// Adds the files of a glob. Returns all of them.
    fn add_glob(
        &mut self,
        (root, env): (&Path, &Env),
        glob: &str,
        at: &str,
        fields: &MappingDecoder<'_>,
        problems: &DiagnosticCollector,
    ) -> Vec<PathBuf> {
        match globs::expand_from_home(root, glob, env) {
            Ok(found) => {
                for file in &found.files {
                    // Several entries may match the same file; the first entry decides its position.
                    if !self.files.contains(file) {
                        self.files.push(file.clone());
                    }
                }
                for skipped in found.skipped {
                    problems.warning(fields.inner_span(at), "skipped", skipped);
                }
                found.files
            }
            Err(why) => {
                fields.error_at(at, "glob", why);
                Vec::new()
            }
        }
    }
}
