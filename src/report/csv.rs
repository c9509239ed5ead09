//! `--format csv`: one row per cell, and tables of other lists.
//!
//! Responsible for the columns and the quotes. A text that a spreadsheet would calculate gets a mark, which dicta
//! removes when it reads the table.

use std::borrow::Cow;
use std::io::{self, Write};

use serde_json::Value;

use super::flags::append_flags;
use super::{ReportRow, ReportWriter, ResultRow};
use crate::model::{make_visible, mark_formula};

/// The columns of results; the same names as in JSON lines. `flags` has a line for each mark of the verdict.
const COLUMNS: [&str; 19] = [
    "cell",
    "transcript",
    "rubric",
    "eval",
    "eval_type",
    "message",
    "judge",
    "repeat",
    "outcome",
    "passed",
    "score",
    "explanation",
    "error",
    "cost_usd",
    "duration_ms",
    "cached",
    "label",
    "shot",
    "flags",
];

/// Writes a table of results.
pub struct CsvReportWriter<'w> {
    out: io::BufWriter<Box<dyn Write + 'w>>,
    terminal: bool,
    has_header: bool,
}

impl<'w> CsvReportWriter<'w> {
    /// Returns a writer to `out`. With `terminal`, visible marks replace characters that a terminal executes or hides.
    pub fn new(out: Box<dyn Write + 'w>, terminal: bool) -> Self {
        Self {
            out: io::BufWriter::with_capacity(64 * 1024, out),
            terminal,
            has_header: false,
        }
    }

    fn write_header(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_header, true) {
            writeln!(self.out, "{}", COLUMNS.join(","))?;
        }
        Ok(())
    }

    fn write_result(&mut self, row: &ResultRow<'_>) -> io::Result<()> {
        let (name, result) = (row.name, row.result);
        let number = |n: Option<u32>| n.map_or_else(String::new, |n| n.to_string());
        let decimal = |n: Option<f64>| n.map_or_else(String::new, |n| n.to_string());
        let truth = |b: Option<bool>| b.map_or("", |b| if b { "true" } else { "false" });
        let fields: [Cow<'_, str>; COLUMNS.len()] = [
            name.to_string().into(),
            name.transcript.into(),
            name.rubric.into(),
            name.eval.into(),
            row.eval_type.into(),
            number(name.message).into(),
            name.judge.unwrap_or_default().into(),
            number(name.repeat).into(),
            result.outcome.as_str().into(),
            truth(result.outcome.passed()).into(),
            decimal(result.score).into(),
            result.explanation.as_str().into(),
            result.error.as_deref().unwrap_or_default().into(),
            decimal(result.cost_usd).into(),
            result.duration_ms.0.to_string().into(),
            truth(Some(result.cached.is_some())).into(),
            truth(row.label).into(),
            truth(row.is_shot.then_some(true)).into(),
            append_flags("", result).into(),
        ];
        let line = join_fields(fields.iter().map(AsRef::as_ref));
        let line = if self.terminal {
            make_visible(&line, true)
        } else {
            line.into()
        };
        writeln!(self.out, "{line}")
    }
}

impl ReportWriter for CsvReportWriter<'_> {
    fn write_row(&mut self, row: &ReportRow<'_>) -> io::Result<()> {
        match row {
            ReportRow::Header(_) => self.write_header(),
            ReportRow::Result(row) => self.write_result(row),
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_header()?;
        self.out.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Formats JSON objects as a table. The keys of the first object are the columns; a list or object is a JSON text.
pub fn format_csv(rows: &[Value]) -> String {
    let Some(columns) = rows.first().and_then(Value::as_object) else {
        return String::new();
    };
    let mut out = join_fields(columns.keys().map(String::as_str));
    out.push('\n');
    for row in rows {
        let fields: Vec<String> = columns
            .keys()
            .map(|column| match &row[column] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })
            .collect();
        out.push_str(&join_fields(fields.iter().map(String::as_str)));
        out.push('\n');
    }
    out
}

/// Joins the fields of a row, with quotes where necessary (RFC 4180), and with marks on formulas.
pub(super) fn join_fields<'f>(fields: impl Iterator<Item = &'f str>) -> String {
    let fields: Vec<Cow<'_, str>> = fields
        .map(|field| {
            let field = mark_formula(field);
            if field.contains(['"', ',', '\n', '\r']) {
                format!("\"{}\"", field.replace('"', "\"\"")).into()
            } else {
                field
            }
        })
        .collect();
    fields.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_with_separators_have_quotes() {
        assert_eq!(
            join_fields(["a", "b,c", "say \"x\"", "two\nlines", ""].into_iter()),
            "a,\"b,c\",\"say \"\"x\"\"\",\"two\nlines\","
        );
    }

    #[test]
    fn formulas_have_a_mark_inside_the_quotes() {
        assert_eq!(
            join_fields(["=1", "=a,b", "-0.5", "- \"x\"", "ok"].into_iter()),
            "'=1,\"'=a,b\",-0.5,\"'- \"\"x\"\"\",ok"
        );
        let rows = [json!({"run": "=1", "pass": -2})];
        assert_eq!(format_csv(&rows), "run,pass\n'=1,-2\n");
    }

    #[test]
    fn objects_become_rows_with_the_keys_of_the_first() {
        let rows = [
            json!({"run": "kvqa", "pass": 2, "label": null}),
            json!({"run": "abcd", "pass": 3, "label": ["x", "y"]}),
        ];
        assert_eq!(
            format_csv(&rows),
            "run,pass,label\nkvqa,2,\nabcd,3,\"[\"\"x\"\",\"\"y\"\"]\"\n"
        );
        assert_eq!(format_csv(&[]), "");
    }
}
