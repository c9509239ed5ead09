//! Theme files: `themes/<name>.yaml`.

use super::{Glyphs, Theme};
use ratatui::style::Style;

/// Why there is no such theme: a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ThemeError(pub String);

/// The bundled themes' names.
pub fn names() -> Vec<&'static str> {
    vec!["dark"]
}

pub(super) fn bundled(name: &str) -> Result<Theme, ThemeError> {
    Ok(Theme {
        name: name.to_owned(),
        styles: vec![Style::new(); 64],
        glyphs: Glyphs::UNICODE,
    })
}
