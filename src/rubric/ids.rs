//! The rule for ids of rubrics and evals, and for names of groups.

/// Checks an id. Cell names, screens and files show ids, so an id has no hidden characters, no surrounding blanks and
/// a maximum length.
pub(crate) fn check_id(id: &str) -> Result<(), &'static str> {
    if id.trim() != id || id.is_empty() {
        return Err("must not be empty or begin or end with a blank");
    }
    if id.chars().any(char::is_control) || crate::model::make_visible(id, false) != id {
        return Err("must not hold control or hidden characters");
    }
    if id.chars().count() > 120 {
        return Err("must have at most 120 characters");
    }
    Ok(())
}
