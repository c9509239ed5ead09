//! The current definition of an eval in its rubric.

use super::{ContentCx, LoadedText, empty_row, heading};
use crate::model::Digest;
use crate::rubric::Eval;
use crate::theme::{CodeLanguage, Role};
use crate::tui::state::shown_cell::{ShownCell, is_same_eval, resolve_shown_cell};
use crate::tui::widget::flow::TextBlock;

/// Returns the definition of a code check, or None for a judged eval.
pub(super) fn check_definition<'a>(
    cx: &mut ContentCx<'a>,
    shown: &ShownCell<'a>,
) -> Vec<TextBlock<'a>> {
    let session = cx.app.session();
    let Some(info) = session.cells.evals.get(shown.row.eval as usize) else {
        return Vec::new();
    };
    if info.judged {
        return Vec::new();
    }
    define_eval(cx, shown.row.eval, &|digest| is_same_eval(shown, digest))
}

/// Returns the current definition of an eval.
pub(super) fn eval_definition<'a>(cx: &mut ContentCx<'a>, eval: u32) -> Vec<TextBlock<'a>> {
    define_eval(cx, eval, &|_| true)
}

fn define_eval<'a>(
    cx: &mut ContentCx<'a>,
    eval: u32,
    same: &dyn Fn(&Digest) -> bool,
) -> Vec<TextBlock<'a>> {
    let session = cx.app.session();
    // The rows of a file without a rubric belong to no eval.
    let Some(info) = session.cells.evals.get(eval as usize) else {
        return Vec::new();
    };
    if info.eval_type.is_empty() {
        return Vec::new();
    }
    let mut out = vec![
        empty_row(),
        heading(format!("{} · {}", info.id, info.eval_type)),
    ];
    // The workspace may have another version of the rubric now.
    if cx.app.replay.is_some() || cx.app.workspace().is_none() {
        out.push(recorded_definition(cx, &info.rubric, &info.id));
        return out;
    }
    let found = cx
        .app
        .workspace()
        .and_then(|workspace| workspace.find_eval(&info.rubric, &info.id));
    let eval = found.map(|(rubric, at)| {
        let eval = &rubric.evals[at];
        (eval, rubric_source_of(&rubric.source, eval))
    });
    match eval {
        Some((eval, text)) => {
            // The rubric may have changed since the verdict.
            if !same(&eval.digest) {
                let note =
                    "this is the current definition; the verdict above belongs to an earlier one";
                out.push(TextBlock::new(note, Role::Stale));
            }
            out.push(cx.highlight_code(text, CodeLanguage::Yaml, None));
        }
        None => out.push(TextBlock::new(
            "its rubric is not in this workspace",
            Role::Muted,
        )),
    }
    out
}

/// Returns the definition of an eval in the rubric that an opened run stored.
fn recorded_definition<'a>(cx: &mut ContentCx<'a>, rubric: &str, eval: &str) -> TextBlock<'a> {
    let app = cx.app;
    let mut runs = app.runs().by_ticket.values();
    let shown = resolve_shown_cell(app).and_then(|shown| shown.header);
    let header = shown.or_else(|| runs.find_map(|run| run.state.header.as_deref()));
    let file = header.and_then(|header| {
        let path = &header.rubrics.iter().find(|known| known.id == rubric)?.path;
        let mut files = header.snapshots.iter();
        files.find(|file| file.path == *path)
    });
    let Some(file) = file else {
        let why = "the run stored no copy of its rubric";
        return TextBlock::new(why, Role::Muted);
    };
    match cx.load_blob(&file.blob) {
        LoadedText::Loaded { text, .. } => match find_entry(text, eval) {
            Some(from) => cx.highlight_code(entry_at(text, from), CodeLanguage::Yaml, None),
            None => cx.highlight_code(text, CodeLanguage::Yaml, None),
        },
        LoadedText::Reading(_) => TextBlock::new("reading the rubric of the run …", Role::Muted),
        LoadedText::Failed(why) => TextBlock::new(why, Role::Error),
    }
}

/// Returns the byte at which the list entry with this id begins in the YAML of a rubric.
fn find_entry(source: &str, id: &str) -> Option<usize> {
    let mut entry = 0;
    let mut at = 0;
    for line in source.split_inclusive('\n') {
        let text = line.trim_start();
        if text.starts_with("- ") {
            entry = at;
        }
        let value = text.trim_start_matches("- ").strip_prefix("id:");
        let value = value.map(|value| value.split(" #").next().unwrap_or_default());
        if value.is_some_and(|value| value.trim().trim_matches(['"', '\'']) == id) {
            return Some(entry);
        }
        at += line.len();
    }
    None
}

/// Returns the source lines of an eval: from its beginning to the next entry of the list.
fn rubric_source_of<'r>(source: &'r str, eval: &Eval) -> &'r str {
    // The limit avoids a panic if the span does not match the source.
    let at = eval.span.bytes.start.min(source.len());
    // Begin at the start of the line, so that the first line keeps its indent.
    let from = source
        .get(..at)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |nl| nl + 1);
    entry_at(source, from)
}

/// Returns the list entry that begins at a byte.
fn entry_at(source: &str, from: usize) -> &str {
    /// The largest number of lines; a longer eval is cut off.
    const LINES: usize = 200;
    let rest = source.get(from..).unwrap_or_default();
    let indent_of = |line: &str| line.len() - line.trim_start().len();
    let own_indent = indent_of(rest);
    let mut end = 0;
    for (number, line) in rest.split_inclusive('\n').enumerate() {
        let blank = line.trim().is_empty();
        // A line with the same or a smaller indent begins the next entry.
        if number > 0 && !blank && indent_of(line) <= own_indent || number == LINES {
            break;
        }
        end += line.len();
    }
    rest[..end].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_in_a_stored_rubric_ends_at_the_next_eval() {
        let rubric = "id: support\nevals:\n  - id: tone\n    type: llm_judge\n\n  - type: regex # first\n    id: \"greets\" # second\n    params: {}\n  - id: last\n";
        let text = |id| find_entry(rubric, id).map(|from| entry_at(rubric, from));
        assert_eq!(text("tone"), Some("  - id: tone\n    type: llm_judge"));
        assert_eq!(
            text("greets"),
            Some("  - type: regex # first\n    id: \"greets\" # second\n    params: {}")
        );
        assert_eq!(text("none"), None);
    }
}
