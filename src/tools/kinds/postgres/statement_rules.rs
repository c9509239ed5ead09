//! The check of a statement by its first keyword.
//!
//! The server decides what a statement may do within the transaction. This check refuses statements that would leave
//! that transaction, and those without a usable response.

/// The statements that a read-only source runs.
const READ_KEYWORDS: &[&str] = &["SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN"];
/// The statements that no source runs. dicta manages transactions itself, and COPY has its own protocol and can start
/// programs on the server.
const FORBIDDEN_KEYWORDS: &[&str] = &[
    "ABORT",
    "BEGIN",
    "COMMIT",
    "COPY",
    "DEALLOCATE",
    "DISCARD",
    "END",
    "LISTEN",
    "LOAD",
    "PREPARE",
    "RELEASE",
    "RESET",
    "ROLLBACK",
    "SAVEPOINT",
    "SET",
    "START",
];

/// Returns the reason why a statement is not sent; `None` if it is allowed.
pub(super) fn explain_refused_statement(statement: &str, writable: bool) -> Option<String> {
    let word = first_word(statement).to_ascii_uppercase();
    if word.is_empty() {
        return Some("the statement says nothing".to_owned());
    }
    // Most of these end dicta's own transaction, or outlive it on a reused connection.
    if FORBIDDEN_KEYWORDS.contains(&word.as_str()) {
        return Some(format!("{word} is not allowed in a tool's statement"));
    }
    if writable || READ_KEYWORDS.contains(&word.as_str()) {
        return None;
    }
    let list = READ_KEYWORDS.join(", ");
    Some(format!(
        "a statement on a read-only source begins with one of {list} (`writable: true` opens the source)"
    ))
}

/// Returns the first keyword, after white space, comments and opening parentheses.
fn first_word(statement: &str) -> &str {
    let mut rest = statement;
    loop {
        // A query may be in parentheses.
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = skip_block_comment(comment);
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphabetic() && c != '_');
            return &rest[..end.unwrap_or(rest.len())];
        }
    }
}

/// Returns the text after a block comment; block comments nest.
fn skip_block_comment(inside: &str) -> &str {
    let (mut depth, mut at) = (1, 0);
    while depth > 0 {
        let (open, close) = (inside[at..].find("/*"), inside[at..].find("*/"));
        // A comment without an end hides the rest of the statement.
        let Some(close) = close else { return "" };
        match open {
            Some(open) if open < close => (depth, at) = (depth + 1, at + open + 2),
            _ => (depth, at) = (depth - 1, at + close + 2),
        }
    }
    &inside[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_source_accepts_only_reading_statements() {
        for good in [
            "SELECT 1",
            " \n select 1",
            "((SELECT 1) UNION SELECT 2)",
            "-- why\nWITH a AS (SELECT 1) TABLE a",
            "/* a /* b */ DELETE */ values (1)",
            "SHOW server_version",
            "EXPLAIN SELECT 1",
        ] {
            assert_eq!(explain_refused_statement(good, false), None, "{good}");
        }
        for bad in [
            "INSERT INTO a VALUES (1)",
            "DO $$ BEGIN END $$",
            "CALL f()",
            "/* SELECT */ DELETE FROM a",
            "SELECTED",
            "",
            "-- SELECT 1",
            "/* /* */ SELECT 1",
            "1",
        ] {
            assert!(explain_refused_statement(bad, false).is_some(), "{bad}");
        }
    }

    #[test]
    fn transaction_and_copy_statements_are_refused_on_every_source() {
        for bad in [
            "COMMIT",
            "copy a to program 'x'",
            "SET x = 1",
            "rollback; SELECT 1",
        ] {
            let reason = explain_refused_statement(bad, true).expect("refused");
            assert!(
                reason.ends_with("is not allowed in a tool's statement"),
                "{reason}"
            );
        }
        assert_eq!(
            explain_refused_statement("INSERT INTO a VALUES (1)", true),
            None
        );
    }
}
