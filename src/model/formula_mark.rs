//! The mark that keeps a spreadsheet from calculating a text of a table.
//!
//! Responsible for adding the mark to a cell, and for removing exactly the marks that dicta added. A spreadsheet takes a
//! cell that begins with `=` for a formula, which can call other programs and send data. Numbers need no mark.

use std::borrow::Cow;

/// The mark. Spreadsheets show it as part of the text.
const MARK: char = '\'';
/// The characters that begin a formula, with their full-width forms, and the white space that some spreadsheets remove
/// before them.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '＝', '＋', '－', '＠', '\t', '\r', '\n'];
/// The columns by which a reader recognizes a table of dicta.
const OWN_COLUMNS: [&str; 3] = ["transcript", "eval_type", "flags"];

/// Returns a cell with a mark if a spreadsheet would calculate it, or if it begins like a marked cell.
pub fn mark_formula(cell: &str) -> Cow<'_, str> {
    if needs_mark(cell) {
        format!("{MARK}{cell}").into()
    } else {
        cell.into()
    }
}

/// Returns the cell that [`mark_formula`] had.
pub fn unmark_formula(cell: &str) -> &str {
    match cell.strip_prefix(MARK) {
        Some(rest) if needs_mark(rest) => rest,
        _ => cell,
    }
}

/// Returns true if dicta wrote a table with these columns, so that its cells have marks.
pub fn has_formula_marks<'c>(columns: &(impl Iterator<Item = &'c str> + Clone)) -> bool {
    OWN_COLUMNS
        .iter()
        .all(|own| columns.clone().any(|column| column == *own))
}

fn needs_mark(cell: &str) -> bool {
    cell.trim_start_matches(MARK).starts_with(FORMULA_STARTS) && !is_number(cell)
}

fn is_number(cell: &str) -> bool {
    // Rust also parses `-inf`, which spreadsheets take for a formula.
    let digits_only = cell
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    digits_only && cell.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn formulas_have_a_mark_and_numbers_have_none() {
        for (cell, expected) in [
            (
                "=HYPERLINK(\"http://evil\")",
                "'=HYPERLINK(\"http://evil\")",
            ),
            ("+1+1", "'+1+1"),
            ("-2+3+cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0"),
            ("@SUM(1)", "'@SUM(1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "'\r=1"),
            ("＝1+1", "'＝1+1"),
            ("-inf", "'-inf"),
            ("-", "'-"),
            ("'=1", "''=1"),
            ("-1.5", "-1.5"),
            ("+2", "+2"),
            ("-1e-7", "-1e-7"),
            ("0.25", "0.25"),
            ("a=b", "a=b"),
            ("'quoted'", "'quoted'"),
            ("", ""),
        ] {
            assert_eq!(mark_formula(cell), expected, "{cell:?}");
            assert_eq!(unmark_formula(expected), cell);
        }
        // A table of another program keeps its own marks.
        assert!(!has_formula_marks(
            &["transcript", "eval", "passed"].into_iter()
        ));
        let own = ["cell", "transcript", "eval_type", "flags"];
        assert!(has_formula_marks(&own.into_iter()));
    }

    proptest! {
        #[test]
        fn unmarked_cell_is_the_cell(cell in "['=+@\\t\\r\\n1.e-]{0,5}|\\PC{0,8}") {
            let marked = mark_formula(&cell);
            prop_assert_eq!(unmark_formula(&marked), &cell);
            prop_assert!(is_number(&marked) || !marked.starts_with(FORMULA_STARTS));
        }
    }
}
