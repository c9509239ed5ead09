//! The current definition of an eval in its rubric.

use super::{ContentCx, empty_row, heading};
use crate::model::Digest;
use crate::rubric::Eval;
use crate::theme::{CodeLanguage, Role};
use crate::tui::state::shown_cell::{ShownCell, is_same_eval};
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

/// Returns the source lines of an eval: from its beginning to the next entry of the list.
fn rubric_source_of<'r>(source: &'r str, eval: &Eval) -> &'r str {
    /// The largest number of lines; a longer eval is cut off.
    const LINES: usize = 200;
    // The limit avoids a panic if the span does not match the source.
    let at = eval.span.bytes.start.min(source.len());
    // Begin at the start of the line, so that the first line keeps its indent.
    let from = source
        .get(..at)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |nl| nl + 1);
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
