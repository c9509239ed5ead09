//! The reader of tables of labels. The header names the columns; a header with `id` and `target` marks an Inspect
//! Scout table.

use super::label_file::{LabelFileReader, explain_invalid_verdict, new_label};
use super::scout;
use super::table_rows::{LabelTableRow, check_row_length, read_rows};
use crate::diag::{SourceSpan, find_nearest};
use crate::model::{WallTime, make_visible, parse_pass_or_fail};

const COLUMNS: [&str; 9] = [
    "transcript",
    "rubric",
    "eval",
    "passed",
    "label",
    "verdict",
    "score",
    "by",
    "at",
];
const NOTE_COLUMN: &str = "note";
/// The verdict of a person who looked and could not decide.
const UNSURE_WORD: &str = "unsure";

/// Reads the table.
pub(super) fn read(reader: &mut LabelFileReader<'_>) {
    let mut rows = read_rows(reader).into_iter();
    let Some(header) = rows.next() else { return };
    let names: Vec<String> = header
        .cells
        .iter()
        .map(|name| name.trim().to_owned())
        .collect();
    // These columns identify promptfoo's CSV export. It has verdicts, but no marks of people.
    if ["Status", "Score", "Named Scores"]
        .iter()
        .all(|column| names.iter().any(|name| name == column))
    {
        let message = "promptfoo's own table does not tell what people marked: export the eval as JSON (`promptfoo export eval ID -o results.json`) and name that";
        return reader.error(header.span, message);
    }
    for (nth, name) in names.iter().enumerate() {
        if !name.is_empty() && names[..nth].contains(name) {
            return reader.error(header.span, format!("two columns are called `{name}`"));
        }
    }
    let has_column = |name: &str| names.iter().any(|known| known == name);
    if has_column("transcript") {
        return read_native_table(reader, &names, &header.span, rows);
    }
    if has_column("id") || scout::is_headerless(&names) {
        return scout::read_table(reader, names, header.span, rows.collect());
    }
    let message = "the first line must name the columns: transcript, eval, passed (and rubric, score, by, at, note if known); or id and target, as Inspect Scout writes them";
    reader.error(header.span, message);
}

fn read_native_table(
    reader: &mut LabelFileReader<'_>,
    names: &[String],
    header: &SourceSpan,
    rows: impl Iterator<Item = LabelTableRow>,
) {
    // Step 1: check the header. An unknown column is only a warning, because sheets often have columns of
    // their own.
    let known = || COLUMNS.into_iter().chain([NOTE_COLUMN]);
    for name in names {
        if !name.is_empty() && !known().any(|known| known == name) {
            let near = find_nearest(name, known());
            let near = near.map_or_else(String::new, |n| format!("; did you mean `{n}`?"));
            let message = format!(
                "the column `{}` is not read{near}",
                make_visible(name, false)
            );
            reader.warning(header.clone(), message);
        }
    }
    let place = |name: &str| names.iter().position(|known| known == name);
    // A table may call the verdict's column `label` or `verdict`.
    let decides: Vec<&str> = ["passed", "label", "verdict"]
        .into_iter()
        .filter(|name| place(name).is_some())
        .collect();
    let &[decides] = &decides[..] else {
        let message = "one column must hold the verdict: `passed`, `label` or `verdict`";
        return reader.error(header.clone(), message);
    };
    if place("eval").is_none() && reader.defaults.eval.is_none() {
        let message = "no column names the eval: add `eval`, or say in dicta.yaml `labels: { path: …, eval: … }`";
        return reader.error(header.clone(), message);
    }
    for row in rows {
        if !check_row_length(reader, &row, names.len()) {
            continue;
        }
        // Step 2: read the rows. A broken row does not prevent the others.
        let cell = |name: &str| {
            let cell = place(name).and_then(|at| row.cells.get(at));
            cell.map(|cell| cell.trim()).filter(|cell| !cell.is_empty())
        };
        let Some(transcript) = cell("transcript") else {
            reader.error(row.span, "this row names no transcript");
            continue;
        };
        let Some(eval) = cell("eval").or(reader.defaults.eval.as_deref()) else {
            reader.error(row.span, "this row names no eval");
            continue;
        };
        // An empty cell is a row that the person has not judged yet.
        let Some(word) = cell(decides) else {
            reader.blank(row.span);
            continue;
        };
        let passed = match parse_pass_or_fail(word) {
            None if word.eq_ignore_ascii_case(UNSURE_WORD) => None,
            None => {
                reader.error(
                    row.span,
                    explain_invalid_verdict(decides, &format!("`{word}`")),
                );
                continue;
            }
            verdict => verdict,
        };
        // A decimal comma or a percent sign is an error and not a guess.
        let score = match cell("score").map(|text| (text, text.parse::<f64>())) {
            None => None,
            Some((_, Ok(score))) if score.is_finite() => Some(score),
            Some((text, _)) => {
                let text = make_visible(text, false);
                reader.error(row.span, format!("score must be a number (got `{text}`)"));
                continue;
            }
        };
        let owned = |name: &str| cell(name).map(str::to_owned);
        let mut found = new_label(transcript, eval, false);
        found.passed = passed;
        found.rubric = owned("rubric");
        found.score = score;
        found.by = owned("by");
        found.at = owned("at").map(WallTime);
        found.note = owned(NOTE_COLUMN);
        reader.add_label(found, row.span);
    }
}
