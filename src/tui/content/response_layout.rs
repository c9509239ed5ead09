//! Layouts of a tool response: folded JSON, a table of rows, and rendered Markdown.
//!
//! Pure functions of a text. Each has a size limit, because they run for every frame.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::styled_line;
use crate::model::pluralize;
use crate::theme::{Role, StyledSpan};
use crate::tui::widget::flow::TextBlock;
use crate::tui::widget::styled_row::StyledRow;

/// The largest text that is laid out, in bytes.
const MAX_BYTES: usize = 64 << 10;
/// The largest number of rows and columns of a table.
const MAX_ROWS: usize = 200;
const MAX_COLUMNS: usize = 8;
/// The widest column of a table.
const MAX_CELL_WIDTH: usize = 28;

/// Lays out JSON with everything below `depth` folded to its size. Returns None if the text is not JSON or too large.
pub(super) fn fold_json(text: &str, depth: u8) -> Option<String> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    if !value.is_object() && !value.is_array() {
        return None;
    }
    let mut out = String::new();
    write_folded(&value, depth, 0, &mut out);
    Some(out)
}

fn write_folded(value: &Value, depth: u8, indent: usize, out: &mut String) {
    let pad = |out: &mut String, indent: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(indent));
    };
    match value {
        Value::Object(fields) if fields.is_empty() => out.push_str("{}"),
        Value::Array(items) if items.is_empty() => out.push_str("[]"),
        Value::Object(fields) if depth == 0 => {
            let count = pluralize(fields.len(), "field");
            _ = write!(out, "▸ {{{count}}}");
        }
        Value::Array(items) if depth == 0 => {
            let count = pluralize(items.len(), "item");
            _ = write!(out, "▸ [{count}]");
        }
        Value::Object(fields) => {
            out.push('{');
            for (at, (name, value)) in fields.iter().enumerate() {
                pad(out, indent + 1);
                out.push_str(&Value::String(name.clone()).to_string());
                out.push_str(": ");
                write_folded(value, depth - 1, indent + 1, out);
                if at + 1 < fields.len() {
                    out.push(',');
                }
            }
            pad(out, indent);
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                pad(out, indent + 1);
                write_folded(item, depth - 1, indent + 1, out);
                if at + 1 < items.len() {
                    out.push(',');
                }
            }
            pad(out, indent);
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// Lays out rows as a table: a JSON list of flat objects, or one object a line. Returns None for any other text.
pub(super) fn lay_out_table<'a>(text: &str) -> Option<Vec<TextBlock<'a>>> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let rows = read_rows(text)?;
    let is_flat = |row: &Map<String, Value>| {
        row.values()
            .all(|value| !value.is_object() && !value.is_array())
    };
    if rows.len() < 2 || !rows.iter().all(is_flat) {
        return None;
    }
    let mut columns: Vec<&String> = Vec::new();
    for name in rows.iter().flat_map(Map::keys) {
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    let hidden = columns.len().saturating_sub(MAX_COLUMNS);
    columns.truncate(MAX_COLUMNS);
    let cell = |row: &Map<String, Value>, name: &String| match row.get(name) {
        None => "–".to_owned(),
        Some(Value::String(text)) => clip(text),
        Some(other) => clip(&other.to_string()),
    };
    let width = |text: &str| StyledRow::new(text, Role::Text).width();
    let widths: Vec<usize> = columns
        .iter()
        .map(|name| {
            let cells = rows
                .iter()
                .take(MAX_ROWS)
                .map(|row| width(&cell(row, name)));
            cells.max().unwrap_or(0).max(width(&clip(name)))
        })
        .collect();
    let line = |cells: Vec<String>| -> String {
        let padded = cells.into_iter().zip(&widths).map(|(cell, wide)| {
            let gap = wide.saturating_sub(width(&cell));
            format!("{cell}{}", " ".repeat(gap))
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let heads = columns.iter().map(|name| clip(name)).collect();
    let mut out = vec![TextBlock::new(line(heads), Role::CodeKey)];
    for row in rows.iter().take(MAX_ROWS) {
        let cells = columns.iter().map(|name| cell(row, name)).collect();
        out.push(TextBlock::new(line(cells), Role::Text));
    }
    let more = rows.len().saturating_sub(MAX_ROWS);
    if more > 0 || hidden > 0 {
        let text = format!(
            "{} and {}: x shows everything",
            pluralize(more, "more row"),
            pluralize(hidden, "more column")
        );
        out.push(TextBlock::new(text, Role::Muted));
    }
    Some(out)
}

fn read_rows(text: &str) -> Option<Vec<Map<String, Value>>> {
    let object = |value: Value| match value {
        Value::Object(fields) => Some(fields),
        _ => None,
    };
    match serde_json::from_str::<Value>(text.trim()) {
        Ok(Value::Array(items)) => items.into_iter().map(object).collect(),
        Ok(_) => None,
        // A database returns one object a line.
        Err(_) => text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| object(serde_json::from_str(line).ok()?))
            .collect(),
    }
}

fn clip(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|c| if c == '\n' { ' ' } else { c })
        .collect();
    match line.char_indices().nth(MAX_CELL_WIDTH) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Renders Markdown: headings, lists, links, emphasis and code. Returns None if the text is too large.
pub(super) fn render_markdown<'a>(text: &str) -> Option<Vec<TextBlock<'a>>> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let mut in_code = false;
    let mut out = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        let indent = u16::try_from((line.len() - trimmed.len()).min(16)).unwrap_or(0);
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            in_code = !in_code;
            continue;
        }
        if in_code {
            out.push(TextBlock::new(line.to_owned(), Role::CodeString));
            continue;
        }
        let hashes = trimmed.bytes().take_while(|byte| *byte == b'#').count();
        let block = if (1..=6).contains(&hashes) && trimmed[hashes..].starts_with(' ') {
            let (text, _) = render_inline(trimmed[hashes..].trim());
            TextBlock::new(text, Role::Title)
        } else if let Some(rest) = ["- ", "* ", "+ "]
            .iter()
            .find_map(|mark| trimmed.strip_prefix(mark))
        {
            inline_block(rest, indent + 2, "•")
        } else if let Some(rest) = trimmed.strip_prefix("> ") {
            inline_block(rest, indent + 2, "│")
        } else {
            inline_block(trimmed, indent, "")
        };
        out.push(block);
    }
    Some(out)
}

fn inline_block<'a>(text: &str, indent: u16, lead: &'static str) -> TextBlock<'a> {
    let (text, spans) = render_inline(text);
    TextBlock {
        text: text.into(),
        role: Role::Text,
        spans: spans.into(),
        indent,
        lead: lead.into(),
    }
}

/// Renders links, emphasis and code within a line.
fn render_inline(text: &str) -> (String, Vec<StyledSpan>) {
    let mut out = String::new();
    let mut spans = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let marked = [
            ("**", Role::Title),
            ("__", Role::Title),
            ("`", Role::CodeString),
        ]
        .into_iter()
        .find_map(|(mark, role)| {
            let body = rest.strip_prefix(mark)?;
            let end = body.find(mark).filter(|end| *end > 0)?;
            Some((&body[..end], &body[end + mark.len()..], role))
        });
        if let Some((body, after, role)) = marked {
            let from = out.len();
            out.push_str(body);
            spans.push(StyledSpan::new(from..out.len(), role));
            rest = after;
        } else if let Some((label, url, after)) = read_link(rest) {
            let from = out.len();
            out.push_str(label);
            spans.push(StyledSpan::new(from..out.len(), Role::Accent));
            let from = out.len();
            // The address stays visible: a page can lie about where a link leads.
            _ = write!(out, " ({url})");
            spans.push(StyledSpan::new(from..out.len(), Role::Muted));
            rest = after;
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    (out, spans)
}

/// Reads `[label](url)` at the beginning of a text.
fn read_link(text: &str) -> Option<(&str, &str, &str)> {
    let body = text.strip_prefix('[')?;
    let close = body.find("](")?;
    let label = &body[..close];
    let after = &body[close + 2..];
    let end = after.find(')')?;
    (!label.is_empty() && !label.contains('\n')).then_some((
        label,
        &after[..end],
        &after[end + 1..],
    ))
}

/// Returns a note about the layout and the key that shows the raw text.
pub(super) fn layout_note<'a>(what: &str) -> TextBlock<'a> {
    styled_line([
        (what, Role::Muted),
        (" · ", Role::Muted),
        ("z", Role::Key),
        (" unfolds, ", Role::Muted),
        ("Z", Role::Key),
        (" folds, ", Role::Muted),
        ("x", Role::Key),
        (" raw", Role::Muted),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(blocks: &[TextBlock<'_>]) -> Vec<String> {
        blocks.iter().map(|block| block.text.to_string()).collect()
    }

    #[test]
    fn json_below_the_level_is_folded_to_its_size() {
        let text = r#"{"a": {"b": [1, 2], "c": 3}, "d": []}"#;
        assert_eq!(
            fold_json(text, 1).as_deref(),
            Some("{\n  \"a\": ▸ {2 fields},\n  \"d\": []\n}")
        );
        assert_eq!(
            fold_json(text, 2).as_deref(),
            Some("{\n  \"a\": {\n    \"b\": ▸ [2 items],\n    \"c\": 3\n  },\n  \"d\": []\n}")
        );
        assert_eq!(
            fold_json(r#"{"a": {"b": 1}, "c": [1]}"#, 1).as_deref(),
            Some("{\n  \"a\": ▸ {1 field},\n  \"c\": ▸ [1 item]\n}")
        );
        assert_eq!(fold_json("plain", 2), None);
        assert_eq!(fold_json("12", 2), None);
    }

    #[test]
    fn rows_of_a_database_become_a_table() {
        let rows = r#"[{"order":"NW-50031","total":169.0},{"order":"NW-1","note":"gift"}]"#;
        let table = lay_out_table(rows).expect("rows");
        assert_eq!(
            texts(&table),
            [
                "order     total  note",
                "NW-50031  169.0  –",
                "NW-1      –      gift"
            ]
        );
        let lines = "{\"a\":1}\n{\"a\":2}\n";
        assert_eq!(texts(&lay_out_table(lines).expect("rows")), ["a", "1", "2"]);
        assert!(
            lay_out_table(r#"[{"a":{"b":1}},{"a":2}]"#).is_none(),
            "nested rows fold"
        );
        assert!(
            lay_out_table(r#"[{"a":1}]"#).is_none(),
            "one row reads better as fields"
        );
    }

    #[test]
    fn markdown_shows_the_address_of_a_link() {
        let blocks =
            render_markdown("# Head\n- see [docs](https://a.example) **now**\n```\n# code\n```\n");
        let blocks = blocks.expect("small");
        assert_eq!(
            texts(&blocks),
            ["Head", "see docs (https://a.example) now", "# code"]
        );
        assert_eq!(blocks[0].role, Role::Title);
        assert_eq!(blocks[1].lead, "•");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_laid_out(text in "([\\[\\](){}\"'`*_#:,a-z0-9 ]|\n|é){0,60}") {
            for block in render_markdown(&text).unwrap_or_default() {
                for span in &*block.spans {
                    proptest::prop_assert!(block.text.get(span.range.clone()).is_some());
                }
            }
            let _rows = lay_out_table(&text);
            let _folded = fold_json(&text, 2);
        }
    }
}
