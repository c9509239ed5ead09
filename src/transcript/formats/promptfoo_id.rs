//! What a result of promptfoo is called: the one rule for its transcript and for the human ratings of the same file.

/// A result's own `id`; else `<eval>:<testIdx>:<promptIdx>` with `eval` the file's `evalId`, or the file's stem where it
/// has none. `None`: the result says neither (promptfoo before its third format), and the transcript is called by its
/// number in the file.
pub fn promptfoo_id(
    id: Option<&str>,
    eval: &str,
    test: Option<u64>,
    prompt: Option<u64>,
) -> Option<String> {
    match (id.filter(|id| !id.is_empty()), test, prompt) {
        (Some(id), _, _) => Some(id.to_owned()),
        (None, Some(test), Some(prompt)) => Some(format!("{eval}:{test}:{prompt}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::promptfoo_id;

    #[test]
    fn a_result_is_called_by_its_id_else_by_its_place_in_the_eval() {
        let id = |id, test, prompt| promptfoo_id(id, "eval-1", test, prompt);
        assert_eq!(id(Some("a"), Some(1), Some(2)).as_deref(), Some("a"));
        assert_eq!(
            id(Some(""), Some(1), Some(2)).as_deref(),
            Some("eval-1:1:2")
        );
        assert_eq!(id(None, Some(1), Some(0)).as_deref(), Some("eval-1:1:0"));
        assert_eq!(id(None, Some(1), None), None);
    }
}
