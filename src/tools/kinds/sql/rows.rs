//! Rows as a JSON array with one object per line, columns in order, with limits of rows and bytes.

use std::fmt::Write as _;

use crate::model::ToolResponse;

/// The limit of shown rows, in bytes.
pub(in super::super) const MAX_ROWS_BYTES: usize = 50_000;
/// The limit of shown bytes of a binary value.
const MAX_HEX_BYTES: usize = 32;

/// A response under construction. It holds the shown rows and one more, however many the statement returns.
pub(in super::super) struct JsonRows {
    /// The keys as JSON, each with the text before it.
    keys: Vec<String>,
    text: String,
    count: usize,
    max_rows: usize,
    cut: Option<RowsCut>,
}

#[derive(Clone, Copy)]
enum RowsCut {
    Rows,
    Bytes,
}

/// A value to be written.
pub(in super::super) enum SqlCell<'a> {
    /// JSON that is written as it is.
    Json(&'a str),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl JsonRows {
    /// Starts with these columns. Of equal names, all but the first get a number.
    pub(in super::super) fn new<'a>(
        columns: impl Iterator<Item = &'a str>,
        max_rows: usize,
    ) -> Self {
        let mut taken = indexmap::IndexSet::new();
        // Two columns may have the same name, but a JSON object's keys are unique.
        for name in columns {
            let mut unique = name.to_owned();
            let mut number = 2;
            while !taken.insert(unique.clone()) {
                unique = format!("{name}_{number}");
                number += 1;
            }
        }
        let key = |(at, name): (usize, &String)| {
            let mut key = String::from(if at == 0 { "" } else { ", " });
            write_json_text(&mut key, name);
            key.push_str(": ");
            key
        };
        Self {
            keys: taken.iter().enumerate().map(key).collect(),
            text: String::new(),
            count: 0,
            max_rows,
            cut: None,
        }
    }

    /// Adds the next row, whose cells `write` supplies one by one. Returns `Ok(false)` if no more rows are needed.
    pub(in super::super) fn push_row<E>(
        &mut self,
        mut write: impl FnMut(usize, &mut String) -> Result<(), E>,
    ) -> Result<bool, E> {
        // One row more than the limit shows that rows were left out.
        if self.count == self.max_rows {
            self.cut = Some(RowsCut::Rows);
            return Ok(false);
        }
        let before = self.text.len();
        self.text
            .push_str(if self.count == 0 { "  {" } else { ",\n  {" });
        for (at, key) in self.keys.iter().enumerate() {
            self.text.push_str(key);
            write(at, &mut self.text)?;
            if self.text.len() > MAX_ROWS_BYTES {
                self.cut = Some(RowsCut::Bytes);
                // A row is never cut, unless it is the only one.
                if self.count > 0 {
                    self.text.truncate(before);
                }
                return Ok(false);
            }
        }
        self.text.push('}');
        self.count += 1;
        Ok(true)
    }

    /// Returns the response. `changed` is the number of rows that a statement without columns changed.
    pub(in super::super) fn into_response(mut self, changed: u64) -> ToolResponse {
        // A statement without columns changes data and returns no rows.
        if self.keys.is_empty() {
            return ToolResponse::ok(format!("{changed} {} changed", row_noun(changed)));
        }
        let bytes = self.text.len() as u64;
        let count = self.count;
        let text = match self.cut {
            None if count == 0 => "[]\n0 rows".to_owned(),
            None => format!("[\n{}\n]", self.text),
            Some(RowsCut::Rows) => format!("[\n{}\n]\n\n[truncated at {count} rows]", self.text),
            Some(RowsCut::Bytes) if count == 0 => {
                self.text
                    .truncate(self.text.floor_char_boundary(MAX_ROWS_BYTES));
                format!("[\n{}\n\n[truncated at {MAX_ROWS_BYTES} bytes]", self.text)
            }
            Some(RowsCut::Bytes) => format!(
                "[\n{}\n]\n\n[truncated at {MAX_ROWS_BYTES} bytes, after {count} {}]",
                self.text,
                row_noun(count as u64)
            ),
        };
        ToolResponse {
            truncated: self.cut.is_some(),
            bytes,
            content_type: Some("application/json".to_owned()),
            ..ToolResponse::ok(text)
        }
    }
}

fn row_noun(count: u64) -> &'static str {
    if count == 1 { "row" } else { "rows" }
}

impl SqlCell<'_> {
    pub(in super::super) fn write(&self, out: &mut String) {
        match self {
            SqlCell::Json(text) => write_on_one_line(out, text),
            // One value longer than the whole response is cut here already.
            SqlCell::Text(text) => {
                write_json_text(out, &text[..text.floor_char_boundary(MAX_ROWS_BYTES)]);
            }
            SqlCell::Bytes(bytes) => {
                let _infallible = write!(out, "\"{} bytes: ", bytes.len());
                for byte in bytes.iter().take(MAX_HEX_BYTES) {
                    let _infallible = write!(out, "{byte:02x}");
                }
                out.push_str(if bytes.len() > MAX_HEX_BYTES {
                    "…\""
                } else {
                    "\""
                });
            }
        }
    }
}

fn write_json_text(out: &mut String, text: &str) {
    // Every text has a JSON representation.
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// Writes JSON on one line with numbers and keys as written. Stops where the response is cut anyway.
fn write_on_one_line(out: &mut String, json: &str) {
    let (mut inside, mut escaped) = (false, false);
    // One byte more than the limit keeps the check of the caller true.
    for c in json[..json.floor_char_boundary(MAX_ROWS_BYTES + 1)].chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => inside = !inside,
            ' ' | '\t' | '\n' | '\r' if !inside => continue,
            _ => {}
        }
        out.push(c);
        // The same white space as between the columns of a row.
        if !inside && matches!(c, ',' | ':') {
            out.push(' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(columns: &[&str], max: usize, rows: &[&[&str]]) -> ToolResponse {
        let mut all = JsonRows::new(columns.iter().copied(), max);
        for row in rows {
            let more = all.push_row(|at, out| {
                SqlCell::Text(row[at]).write(out);
                Ok::<(), ()>(())
            });
            if more == Ok(false) {
                break;
            }
        }
        all.into_response(0)
    }

    #[test]
    fn rows_are_one_per_line_with_distinct_columns_in_order() {
        let shown = answer(&["b", "a", "b", "b_2"], 9, &[&["1", "2", "3", "4"]]);
        assert_eq!(
            shown.text,
            "[\n  {\"b\": \"1\", \"a\": \"2\", \"b_2\": \"3\", \"b_2_2\": \"4\"}\n]"
        );
        assert!(!shown.truncated);
        let two = answer(&["a"], 9, &[&["1"], &["2"]]);
        assert_eq!(two.text, "[\n  {\"a\": \"1\"},\n  {\"a\": \"2\"}\n]");
        assert!(serde_json::from_str::<serde_json::Value>(&two.text).is_ok());
    }

    #[test]
    fn empty_and_truncated_results_are_marked() {
        assert_eq!(answer(&["a"], 9, &[]).text, "[]\n0 rows");
        let many = answer(&["a"], 1, &[&["1"], &["2"]]);
        assert_eq!(many.text, "[\n  {\"a\": \"1\"}\n]\n\n[truncated at 1 rows]");
        assert!(many.truncated);
        let exact = answer(&["a"], 2, &[&["1"], &["2"]]);
        assert!(!exact.truncated, "two rows of two are all of them");
        let long = "é".repeat(MAX_ROWS_BYTES);
        let one = answer(&["a"], 9, &[&[&long]]);
        assert!(one.truncated && one.text.ends_with("é\n\n[truncated at 50000 bytes]"));
        assert!(one.text.len() < MAX_ROWS_BYTES + 100);
        let second = answer(&["a"], 9, &[&["1"], &[&long]]);
        assert_eq!(
            second.text,
            "[\n  {\"a\": \"1\"}\n]\n\n[truncated at 50000 bytes, after 1 row]"
        );
    }

    #[test]
    fn bytes_are_written_with_their_count_and_json_on_one_line() {
        let shown = |cell: SqlCell<'_>| {
            let mut out = String::new();
            cell.write(&mut out);
            out
        };
        assert_eq!(shown(SqlCell::Bytes(&[0, 255])), "\"2 bytes: 00ff\"");
        let forty = shown(SqlCell::Bytes(&[1; 40]));
        assert!(forty.starts_with("\"40 bytes: 0101") && forty.ends_with("01…\""));
        let json = "{ \"a\" : [1.50,\n 12345678901234567890123],\n \"b \\\" ,\" : null }";
        assert_eq!(
            shown(SqlCell::Json(json)),
            "{\"a\": [1.50, 12345678901234567890123], \"b \\\" ,\": null}"
        );
    }
}
