//! dicta.yaml as a document.
//!
//! Responsible for reading and parsing the file, and for snippets that show no secret of it. Does not know its keys.

use std::path::Path;
use std::sync::Arc;

use super::{CONFIG_FILE, api_keys, files};
use crate::diag::yaml::{self, MAX_BYTES, YamlDoc};
use crate::diag::{Diagnostic, mask_secrets, replace_sources};

/// The text of dicta.yaml and its document.
pub(super) struct ConfigDocument {
    /// The text as the author wrote it.
    pub(super) text: Arc<str>,
    /// The document. Snippets come from its source, in which stars replace secrets.
    pub(super) doc: YamlDoc,
}

/// Reads dicta.yaml of the workspace with the folder `root`.
pub(super) fn read_config_document(root: &Path) -> Result<ConfigDocument, Vec<Diagnostic>> {
    let path = root.join(CONFIG_FILE);
    let text = files::read_text(&path, MAX_BYTES as u64)
        .map_err(|why| vec![Diagnostic::error("io", &path, why.to_string())])?;
    // A key that someone wrote into the file must not be in a snippet.
    let masked_text: Arc<str> = mask_secrets(&text).into();
    let mut doc = yaml::read_document(&text, Path::new(CONFIG_FILE))
        .map_err(|problems| replace_sources(problems, &masked_text))?;
    doc.source = api_keys::mask_secrets(&doc, &masked_text);
    Ok(ConfigDocument { text, doc })
}
