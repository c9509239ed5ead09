//! The summary of an eval: its counts, its scores, its agreement with the labels, its definition and its examples.

use super::eval_definition::eval_definition;
use super::examples::example_blocks;
use super::{ContentCx, agreement, empty_row, heading, styled_line};
use crate::model::{ScoreBounds, pluralize};
use crate::theme::Role;
use crate::tui::state::cells::{CellsEntry, EvalInfo, LabelValue, LabelledScore, RowCounts};
use crate::tui::widget::flow::TextBlock;

/// The number of ranges of the histogram below the score 1.
const TENTHS: usize = 10;
/// The number of rows of the histogram: the score 1 has its own.
const SCORE_RANGES: usize = TENTHS + 1;
/// The columns of the longest bar.
const MAX_BAR_WIDTH: usize = 24;

/// Returns the text for a selected eval.
pub(super) fn eval_blocks<'a>(cx: &mut ContentCx<'a>) -> Option<Vec<TextBlock<'a>>> {
    let cells = &cx.app.session().cells;
    let Some(CellsEntry::Group(eval)) = cells.list.selected else {
        return None;
    };
    let info = cells.evals.get(eval as usize)?;
    // The group of a file without a rubric has no eval type.
    if info.eval_type.is_empty() {
        return None;
    }
    let counts = cells.groups.get(eval as usize)?.counts;
    let mut out = vec![
        headline(cx, info, eval),
        count_line(cx, &counts),
        empty_row(),
    ];
    if let Some(missing) = cx.explain_missing_key(eval) {
        out.extend(missing);
        out.push(empty_row());
    }
    let scores = cells.list_scores(eval);
    if !scores.is_empty() {
        out.extend(score_blocks(cx, &scores, info.decision_rule.bounds));
        out.push(empty_row());
    }
    out.extend(label_blocks(cx, eval));
    out.extend(agreement::summary_blocks(cx, eval));
    out.push(empty_row());
    out.push(key_line());
    out.extend(eval_definition(cx, eval));
    out.extend(example_blocks(cx, eval));
    Some(out)
}

/// Returns the rubric and the judges.
fn headline<'a>(cx: &ContentCx<'a>, info: &'a EvalInfo, eval: u32) -> TextBlock<'a> {
    let judges = cx.app.session().cells.list_judges(eval);
    let judges = match judges.as_slice() {
        [] => String::new(),
        [judge] => format!(" · judge {judge}"),
        several => format!(" · judges {}", several.join(", ")),
    };
    styled_line([
        (info.id.as_str(), Role::Title),
        (" · rubric ", Role::Muted),
        (info.rubric.as_str(), Role::Text),
        (judges.as_str(), Role::Muted),
    ])
}

/// Returns the number of decisions by state.
fn count_line<'a>(cx: &ContentCx<'a>, counts: &RowCounts) -> TextBlock<'a> {
    let glyphs = cx.glyphs();
    let not_run = if cx.app.reads_past_verdicts() {
        "not read yet"
    } else {
        "not run"
    };
    let all = [
        (counts.pass, glyphs.pass, "pass", Role::Pass),
        (counts.fail, glyphs.fail, "fail", Role::Fail),
        (counts.error, glyphs.error, "without a verdict", Role::Error),
        (
            counts.not_applicable,
            glyphs.not_applicable,
            "not applicable",
            Role::NotApplicable,
        ),
        (counts.skipped, glyphs.skipped, "skipped", Role::Skipped),
        (counts.live, glyphs.live[0], "being judged", Role::Live),
        (counts.never_run, glyphs.never, not_run, Role::Muted),
        (counts.hidden, "?", "hidden", Role::Muted),
        (counts.flipped, glyphs.flipped, "flipped", Role::Flipped),
        (counts.stale, glyphs.stale, "stale", Role::Stale),
    ];
    let mut pieces = vec![(format!("{}: ", pluralize(counts.rows, "cell")), Role::Muted)];
    let some = all.into_iter().filter(|(n, ..)| *n > 0);
    pieces.extend(some.map(|(n, mark, word, role)| (format!("{mark} {n} {word}  "), role)));
    styled_line(pieces)
}

/// Returns the histogram of the scores, with the labels of each range.
fn score_blocks<'a>(
    cx: &ContentCx<'a>,
    scores: &[LabelledScore],
    bounds: ScoreBounds,
) -> Vec<TextBlock<'a>> {
    let needs = match (bounds.min, bounds.max) {
        (Some(min), Some(max)) => format!(" (needs {min:.2} to {max:.2})"),
        (Some(min), None) => format!(" (needs {min:.2})"),
        (None, Some(max)) => format!(" (at most {max:.2})"),
        (None, None) => String::new(),
    };
    let mut ranges: [Vec<&LabelledScore>; SCORE_RANGES] = Default::default();
    for score in scores {
        ranges[range_of(score.score)].push(score);
    }
    let most = ranges.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let glyphs = cx.glyphs();
    let bar = if glyphs.ascii { "#" } else { "█" };
    let mut out = vec![heading(format!("scores{needs}"))];
    for (at, range) in ranges.iter().enumerate() {
        let labelled = |wanted: LabelValue| {
            let mut labels = range.iter().map(|score| score.label);
            labels
                .by_ref()
                .filter(|label| *label == Some(wanted))
                .count()
        };
        let labels: Vec<String> = [
            (labelled(LabelValue::Pass), glyphs.pass),
            (labelled(LabelValue::Fail), glyphs.fail),
        ]
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, mark)| format!("{mark} {n}"))
        .collect();
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("   labels {}", labels.join(" "))
        };
        // The longest bar has the full width, and every range with a score has a bar.
        let width = (range.len() * MAX_BAR_WIDTH).div_ceil(most);
        let count = match range.len() {
            0 => String::new(),
            n => format!(" {n}"),
        };
        let low = at as f64 / TENTHS as f64;
        out.push(styled_line([
            (format!("{low:.1} "), Role::Muted),
            (bar.repeat(width), Role::Accent),
            (count, Role::Text),
            (labels, Role::Label),
        ]));
    }
    out
}

/// Returns the range of a score. The last range contains only 1, because it is the most common score.
fn range_of(score: f64) -> usize {
    // A tenth such as 0.7 is not exact in binary, so it is moved up by less than any difference that matters.
    let tenth = (score.clamp(0.0, 1.0) * 10.0 + 1e-9).floor();
    (0..TENTHS)
        .find(|at| tenth < (*at + 1) as f64)
        .unwrap_or(TENTHS)
}

/// Returns the verdicts against the labels: a table of counts and the same in words.
fn label_blocks<'a>(cx: &ContentCx<'a>, eval: u32) -> Vec<TextBlock<'a>> {
    let tally = cx.app.session().cells.tally_agreement(eval);
    // A state of an earlier edit is compared with labels that may be younger than its verdicts.
    let mut out = vec![heading(if cx.app.shows_state() {
        "against your labels, as they are now"
    } else {
        "against your labels"
    })];
    let agreement = tally.agreement;
    if agreement.total() > 0 {
        let (pass, fail) = (cx.glyphs().pass, cx.glyphs().fail);
        let row = |name: String, one: String, other: String| {
            TextBlock::new(format!("{name:<12}{one:>10}{other:>10}"), Role::Text)
        };
        out.push(row(
            String::new(),
            format!("label {pass}"),
            format!("label {fail}"),
        ));
        out.push(row(
            format!("verdict {pass}"),
            agreement.true_pass.to_string(),
            agreement.false_pass.to_string(),
        ));
        out.push(row(
            format!("verdict {fail}"),
            agreement.false_fail.to_string(),
            agreement.true_fail.to_string(),
        ));
    }
    out.push(TextBlock::new(tally.format_counts(), Role::Muted));
    out
}

/// Returns the keys that act on the eval.
fn key_line<'a>() -> TextBlock<'a> {
    styled_line([
        ("r", Role::Key),
        (" judges these cells  ", Role::Muted),
        ("e", Role::Key),
        (" edits the eval  ", Role::Muted),
        ("enter", Role::Key),
        (" opens or closes the list", Role::Muted),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenths_begin_a_range_and_1_has_its_own() {
        let ranges = [0.0, 0.05, 0.1, 0.3, 0.7, 0.799_999_999_999_999_9, 0.95, 1.0].map(range_of);
        assert_eq!(ranges, [0, 0, 1, 3, 7, 8, 9, 10]);
        assert_eq!((range_of(-1.0), range_of(f64::NAN)), (0, 10));
    }
}
