//! What a promptfoo result is called, for the reader of its transcripts and that of the human marks in it.

/// Its own `id`; a file that has none for it: `<eval or file stem>:<test>:<prompt>`, both numbers from 0.
pub fn promptfoo_id(own: Option<&str>, eval_or_stem: &str, test: u64, prompt: u64) -> String {
    match own.filter(|id| !id.is_empty()) {
        Some(id) => id.to_owned(),
        None => format!("{eval_or_stem}:{test}:{prompt}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_without_an_id_is_called_by_where_it_stands() {
        assert_eq!(promptfoo_id(Some("1da1"), "eval-8sA", 0, 3), "1da1");
        assert_eq!(promptfoo_id(None, "eval-8sA", 0, 3), "eval-8sA:0:3");
        assert_eq!(promptfoo_id(Some(""), "out", 2, 0), "out:2:0");
    }
}
