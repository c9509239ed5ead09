//! The rule for ids of rubrics and evals, and for names of groups.

use thiserror::Error;

/// The largest number of characters of an id.
const MAX_CHARS: usize = 120;

/// The reason why a text is not a valid id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum IdError {
    /// The text is empty, or begins or ends with a blank.
    #[error("must not be empty or begin or end with a blank")]
    Blank,
    /// The text contains a character that people do not see.
    #[error("must not hold control or hidden characters")]
    HiddenCharacter,
    /// The text is too long.
    #[error("must have at most {MAX_CHARS} characters")]
    TooLong,
}

/// Checks an id. Cell names, screens and files show ids, so an id has no hidden characters, no surrounding blanks and
/// a maximum length.
pub(crate) fn check_id(id: &str) -> Result<(), IdError> {
    // Blanks at the ends are invisible in a list of ids.
    if id.trim() != id || id.is_empty() {
        return Err(IdError::Blank);
    }
    // Hidden characters could make two ids look the same.
    if id.chars().any(char::is_control) || crate::model::make_visible(id, false) != id {
        return Err(IdError::HiddenCharacter);
    }
    // Characters and not bytes, so that the limit is the same for every script.
    if id.chars().count() > MAX_CHARS {
        return Err(IdError::TooLong);
    }
    Ok(())
}
