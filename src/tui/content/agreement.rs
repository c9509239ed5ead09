//! The figures of an eval against labels: in the summary of the eval, and with details in an overlay.
//!
//! Formats figures that were computed before. `report::agreement_text` has the words, which `dicta agree` prints too.

use super::{ContentCx, empty_row, heading, styled_line};
use crate::compare::statistics::SelfFlipRate;
use crate::model::{make_visible, pluralize, quote_shell_word};
use crate::report::agreement_text::{
    AgreementStep, answer_whether_good, describe_debug, describe_details, describe_label_gaps,
    describe_measured, describe_people, describe_reference, explain_details, find_next_step,
    has_labels,
};
use crate::theme::Role;
use crate::tui::state::App;
use crate::tui::state::labelling::ScreenFigures;
use crate::tui::widget::flow::TextBlock;

/// The columns of the names of figures, with the space after them.
const NAME_COLUMNS: u16 = 11;

/// Returns the lines about the figures of an eval for its summary.
pub(super) fn summary_blocks<'a>(cx: &ContentCx<'a>, eval: u32) -> Vec<TextBlock<'a>> {
    if cx.app.live_session.cells.blind {
        return Vec::new();
    }
    if cx.app.shows_state() {
        let key = [
            ("I", Role::Key),
            (" is the judge good enough in this state?", Role::Muted),
        ];
        return vec![empty_row(), styled_line(key)];
    }
    if cx.app.replay.is_some() {
        return Vec::new();
    }
    let Some(figures) = cx.app.eval_figures(eval) else {
        return Vec::new();
    };
    if !has_labels(&figures.figures) && figures.noise.is_err() && figures.reference.is_none() {
        return Vec::new();
    }
    let mut out = vec![empty_row(), heading("is the judge good enough?")];
    out.extend(whole_block(cx.app, eval));
    out.extend(figure_blocks(cx.app, figures));
    out.push(styled_line([
        ("I", Role::Key),
        (" shows the details  ", Role::Muted),
        ("Q", Role::Key),
        (" draws what to label", Role::Muted),
    ]));
    out
}

/// Returns the text of the overlay: the answer, the figures, the details, and what to do next.
pub(crate) fn agreement_blocks(app: &App, eval: u32) -> Vec<TextBlock<'_>> {
    let Some(figures) = app.eval_figures(eval) else {
        return vec![explain_missing_figures(app)];
    };
    let whole = if app.shows_state() {
        measured_whole_block(app, eval, figures)
    } else {
        whole_block(app, eval)
    };
    let mut out: Vec<TextBlock<'_>> = whole.into_iter().collect();
    // The next step follows the answer. An opened state is read only, so it has none.
    let step_row = out.len() + 1;
    out.extend(figure_blocks(app, figures));
    if let Some(step) = find_next_step(&figures.figures).filter(|_| !app.shows_state()) {
        out.insert(
            step_row,
            TextBlock::new(
                match name_measured_whole(app, eval) {
                    Some(whole) => describe_whole_step(step, &whole),
                    None => describe_next_step(step).to_owned(),
                },
                Role::Key,
            ),
        );
    }
    let details = describe_details(&figures.figures);
    if !details.is_empty() {
        out.push(empty_row());
        out.push(heading("details"));
        out.extend(lines(details, Role::Text));
    }
    out.push(empty_row());
    out.push(heading("what the words mean"));
    let words = [
        "TPR: of the decisions that should pass, the share that the judge passes. TNR: of those that should fail, the share that it fails.",
        "In 95% of samples, the range contains the value of all these decisions. Other transcripts can differ more. With under 20 labels of a class, the range comes first; with under 5, no number appears.",
        "The judge is good enough if both lower limits are above what you need. Compare κ with the ceiling: the κ between two people.",
        "Only labels drawn by chance count here: Q draws decisions, B hides their verdicts, p f u label them.",
    ];
    let words = words.into_iter().chain(explain_details(&figures.figures));
    out.extend(words.map(|line| TextBlock::new(line, Role::Muted)));
    out.into_iter().map(indent_figure).collect()
}

/// Moves the name of a figure into the indent, so that a wrapped row keeps the columns of the table.
fn indent_figure(block: TextBlock<'_>) -> TextBlock<'_> {
    let is_row = |name: &str, rest: &str| {
        name.is_ascii() && name.ends_with("  ") && !name.starts_with(' ') && !rest.starts_with(' ')
    };
    let parts = block
        .text
        .split_at_checked(usize::from(NAME_COLUMNS))
        .filter(|&(name, rest)| block.spans.is_empty() && is_row(name, rest))
        .map(|(name, rest)| (name.to_owned(), rest.to_owned()));
    match parts {
        Some((name, rest)) => TextBlock {
            lead: name.into(),
            indent: NAME_COLUMNS,
            ..TextBlock::new(rest, block.role)
        },
        None => block,
    }
}

/// Returns the line in the place of figures that are absent.
fn explain_missing_figures<'a>(app: &App) -> TextBlock<'a> {
    let asked = app.labelling.state_figures.as_ref();
    let failed = asked.and_then(|asked| asked.computed.as_ref()?.as_ref().err());
    match failed.filter(|_| app.shows_state()) {
        Some(why) => TextBlock::new(
            format!("dicta could not compute the figures: {why}"),
            Role::Error,
        ),
        None => TextBlock::new("computing the figures …", Role::Muted),
    }
}

/// Returns the line about a part of an opened state whose figures are those of the whole.
fn measured_whole_block<'a>(
    app: &App,
    eval: u32,
    figures: &ScreenFigures,
) -> Option<TextBlock<'a>> {
    let info = app.session().cells.evals.get(eval as usize)?;
    let whole = &figures.figures.eval;
    (info.id != *whole).then(|| {
        let name = make_visible(whole, false);
        let text = format!("of {name}: all parts together, because labels are about the whole");
        TextBlock::new(text, Role::Muted)
    })
}

/// Returns the name of the whole whose figures the screen shows for a part: `support/tone`. It can contain hidden
/// characters, because a command needs the exact name.
fn name_measured_whole(app: &App, eval: u32) -> Option<String> {
    let cells = &app.live_session.cells;
    let whole = cells.measured_whole(eval)?;
    let rubric = &cells.evals.get(eval as usize)?.rubric;
    Some(format!("{rubric}/{}", whole.id))
}

/// Returns the command that brings a better answer about a whole. The rows of the screen are its parts, so its labels are
/// set in a shell.
fn describe_whole_step(step: AgreementStep, name: &str) -> String {
    // A quoted word shows hidden characters as escapes, which the shell reads as the characters.
    let name = quote_shell_word(name);
    let command = match step {
        AgreementStep::Draw => format!("`dicta label --queue random --eval {name}` draws"),
        AgreementStep::LabelDrawn => "`dicta label CELL pass|fail` labels".to_owned(),
        AgreementStep::Confirm => {
            format!("`dicta label --queue to-confirm --eval {name}` lists")
        }
        AgreementStep::DrawMore => format!("`dicta label plan --eval {name} --draw` draws"),
        AgreementStep::AddTranscripts => return describe_next_step(step).to_owned(),
    };
    format!("next, in a shell: {command} the decisions of all parts together")
}

/// Returns the line about a part of an eval, which states whose figures follow. `None` for another eval.
fn whole_block<'a>(app: &App, eval: u32) -> Option<TextBlock<'a>> {
    let cells = &app.live_session.cells;
    let whole = cells.evals.get(eval as usize)?.part_of.as_ref()?;
    let name = make_visible(&whole.id, false);
    let text = if cells.measured_whole(eval).is_some() {
        let parts = pluralize(cells.list_sibling_parts(eval).len() as u64, "part");
        format!("of {name}: {parts} together, because labels are about the whole")
    } else {
        format!("a part of {name}, with labels of its own")
    };
    Some(TextBlock::new(text, Role::Muted))
}

/// Returns the keys that bring a better answer.
const fn describe_next_step(step: AgreementStep) -> &'static str {
    match step {
        AgreementStep::Draw => {
            "next: esc, then Q and random draw what to label; B hides the verdicts, p f u label"
        }
        AgreementStep::LabelDrawn => "next: esc, then Q goes on with the draw; p f u label",
        AgreementStep::Confirm => {
            "next: esc, then Q and to confirm list them; a confirms a label, p f u change it"
        }
        AgreementStep::DrawMore => "next: esc, then Q draws more; p f u label",
        AgreementStep::AddTranscripts => {
            "next: every decision has a label, so add transcripts like these and label them, too"
        }
    }
}

fn figure_blocks<'a>(app: &App, figures: &ScreenFigures) -> Vec<TextBlock<'a>> {
    let eval = &figures.figures;
    let mut out = vec![TextBlock::new(answer_whether_good(eval), Role::Text)];
    if let Some(why) = &app.labelling.draws.problem {
        let why = make_visible(why, false);
        out.push(TextBlock::new(
            format!("the draws can't be read: {why}"),
            Role::Error,
        ));
    }
    out.extend(lines(describe_measured(eval), Role::Text));
    if let Ok(noise) = &figures.noise {
        out.push(TextBlock::new(describe_noise(noise), Role::Text));
    }
    out.extend(lines(describe_people(eval), Role::Text));
    if let Some(reference) = &figures.reference {
        out.extend(lines(describe_reference(reference), Role::Text));
    }
    out.extend(lines(describe_label_gaps(eval), Role::Muted));
    if figures.stale > 0 {
        let stale = pluralize(figures.stale, "stale verdict");
        let text = format!("{stale} of another revision, judge or transcript, in no figure");
        out.push(TextBlock::new(text, Role::Stale));
    }
    out.extend(describe_debug(eval).map(|line| TextBlock::new(line, Role::Muted)));
    out
}

/// Returns the line about the noise of the judge.
fn describe_noise(noise: &SelfFlipRate) -> String {
    format!(
        "noise      {:.2}–{:.2} ({:.2}) of pairs of repeats differ, over {}",
        noise.interval.lower,
        noise.interval.upper,
        noise.rate,
        pluralize(noise.cells, "decision")
    )
}

fn lines<'a>(texts: Vec<String>, role: Role) -> impl Iterator<Item = TextBlock<'a>> {
    texts
        .into_iter()
        .map(move |text| TextBlock::new(make_visible(&text, false).into_owned(), role))
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Size;

    use super::*;
    use crate::model::{Digest, EvalWhole};
    use crate::theme::Theme;
    use crate::tui::state::OpenedItem;
    use crate::tui::state::cells::tests::outlined;

    #[test]
    fn wrapped_figure_keeps_the_columns_of_the_table() {
        let block = indent_figure(TextBlock::new("TPR        1.00  agrees", Role::Text));
        assert_eq!(
            (&*block.lead, &*block.text, block.indent),
            ("TPR        ", "1.00  agrees", NAME_COLUMNS)
        );
        for sentence in [
            "next: esc, then Q draws more",
            "too few",
            "            1.00",
        ] {
            let block = indent_figure(TextBlock::new(sentence, Role::Text));
            assert_eq!((&*block.text, block.indent), (sentence, 0));
        }
    }

    #[test]
    fn command_names_a_whole_with_a_hidden_character_exactly() {
        let theme = Theme::bundled("dark").expect("bundled");
        let mut app = App::new(OpenedItem::Recording, Size::new(80, 24), theme);
        let mut cells = outlined(&["a"], &["tone.1?"]);
        cells.evals[0].part_of = Some(EvalWhole {
            id: "to\u{200b}ne".to_owned(),
            question: Digest::hash_bytes(b"tone"),
        });
        app.live_session.cells = cells;
        let name = name_measured_whole(&app, 0).expect("a part");
        assert_eq!(
            describe_whole_step(AgreementStep::DrawMore, &name),
            "next, in a shell: `dicta label plan --eval $'r/to\\U0000200Bne' --draw` draws the decisions of all parts together"
        );
    }
}
