//! Tests of other tools' files: converted to values in dicta's format, and loaded. They do not depend on this build's
//! eval types.

mod arena;
mod evalbench;
mod openai;
mod places;
mod promptfoo;
mod promptfoo_code;
mod promptfoo_config;
mod recognised;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::conversion::EvalConverter;
use super::{DetectedFile, RubricFormat, detect_rubric_format};
use crate::diag::Diagnostic;
use crate::diag::yaml;
use crate::rubric::tests_support::FakeCatalog;
use crate::rubric::{Rubric, RubricFileError, RubricFiles, Selector, load_with_files};

/// Files by their names.
#[derive(Debug, Default)]
pub(super) struct InMemoryFiles {
    files: HashMap<PathBuf, Arc<str>>,
    requested: RefCell<Vec<PathBuf>>,
}

impl InMemoryFiles {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let files = files.iter();
        Self {
            files: files
                .map(|(path, text)| (path.into(), Arc::from(*text)))
                .collect(),
            requested: RefCell::default(),
        }
    }
}

impl RubricFiles for InMemoryFiles {
    fn read(&self, path: &Path) -> Result<Arc<str>, RubricFileError> {
        self.requested.borrow_mut().push(path.to_owned());
        let text = self.files.get(path).map(Arc::clone);
        text.ok_or(RubricFileError::Unreadable {
            source: Arc::new(std::io::Error::other("does not exist")),
        })
    }

    fn list(&self, _: &str) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// The result of a conversion: the rubric's own keys, evals as dicta's loader sees them, and what does not carry
/// over.
pub(super) struct ConvertedFile {
    pub(super) rubric: Rubric,
    pub(super) evals: Vec<Value>,
    pub(super) lost: Vec<String>,
    pub(super) problems: Vec<String>,
    pub(super) judges: IndexMap<String, PathBuf>,
}

pub(super) fn convert_file(text: &str, path: &str, files: &InMemoryFiles) -> ConvertedFile {
    let source: Arc<str> = Arc::from(text);
    let doc =
        Rc::new(yaml::read_document(&source, Path::new(path)).unwrap_or_else(|p| panic!("{p:?}")));
    let Some(DetectedFile::Rubric(format)) = detect_rubric_format(&doc.value) else {
        panic!("not recognised: {:?}", detect_rubric_format(&doc.value));
    };
    let catalog = FakeCatalog::new();
    let mut converter = EvalConverter::new(&catalog, files);
    let mut rubric = Rubric {
        id: "x".to_owned(),
        description: String::new(),
        threshold: None,
        judge: None,
        panel: None,
        applies_to: Selector::default(),
        evals: Vec::new(),
        allow: Vec::new(),
        path: path.into(),
        source,
        format,
        judges: IndexMap::new(),
        not_carried: Vec::new(),
    };
    match format {
        RubricFormat::ArenaScenario | RubricFormat::ArenaEval => {
            super::arena::read(&doc, format, &mut rubric, &mut converter);
        }
        RubricFormat::EvalbenchRun => {
            super::evalbench::read(&doc, files, &mut rubric, &mut converter);
        }
        RubricFormat::Evalset => super::evalset::read(&doc, &mut converter),
        RubricFormat::Promptfoo => super::promptfoo::read(&doc, files, &mut rubric, &mut converter),
        RubricFormat::OpenaiEval => super::openai::read(&doc, &mut rubric, &mut converter),
        other => panic!("{other} is read by our own loader"),
    }
    let (evals, lost) = converter.written();
    ConvertedFile {
        rubric,
        evals,
        lost,
        problems: converter.problems.iter().map(ToString::to_string).collect(),
        judges: converter.judges,
    }
}

/// Loads a file completely, with the few types of the fake catalog.
pub(super) fn loaded(
    text: &str,
    path: &str,
    files: &InMemoryFiles,
) -> (Option<Rubric>, Vec<Diagnostic>) {
    load_with_files(Arc::from(text), Path::new(path), &FakeCatalog::new(), files)
}

pub(super) fn from_yaml(text: &str) -> Value {
    let read = yaml::read_document(&Arc::from(text), Path::new("expected"));
    read.unwrap_or_else(|p| panic!("{text}: {p:?}")).value
}
