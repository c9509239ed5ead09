//! The text of the verdict pane: the reasoning while it streams, then the verdict with its citations, the label and
//! the facts of the cell.

use super::eval_definition::{check_definition, eval_definition};
use super::eval_summary::eval_blocks;
use super::examples::example_blocks;
use super::findings::{finding_block, verdict_part_blocks};
use super::judge_output::{pause_hint, push_judge_output};
use super::votes::vote_blocks;
use super::{
    ContentCx, LoadedText, empty_row, explain_no_cell, heading, label_mark, name_with_mark,
    pause_mark, styled_line,
};
use crate::event::UnparsedVerdict;
use crate::judge::ClaimFinding;
use crate::model::{
    CellResult, Citation, Outcome, ProviderKind, TokenUsage, Verdict, make_visible, pluralize,
};
use crate::report::describe_outcome;
use crate::theme::Role;
use crate::tui::state::cells::{LabelValue, RowSlotState, compute_label_agreement};
use crate::tui::state::judge_trace::RecordedCellState;
use crate::tui::state::phase_text::{count_attempts, describe_phase_in_full};
use crate::tui::state::replay::format_recorded_at;
use crate::tui::state::shown_cell::{ShownCell, TraceAvailability, resolve_shown_cell};
use crate::tui::state::trace_screen::FoundClaims;
use crate::tui::widget::flow::{TextBlock, TextSource};

/// Returns the text of the pane.
pub(super) fn build_source<'a>(cx: &mut ContentCx<'a>) -> Box<dyn TextSource + 'a> {
    Box::new(verdict_blocks(cx))
}

/// Returns the text as blocks.
pub(super) fn verdict_blocks<'a>(cx: &mut ContentCx<'a>) -> Vec<TextBlock<'a>> {
    let Some(shown) = resolve_shown_cell(cx.app) else {
        // With a selected group, the pane shows the eval of the group.
        return eval_blocks(cx).unwrap_or_else(explain_no_cell);
    };
    // Nothing was judged yet, but the definition and the label of the row can be shown.
    if shown.availability == TraceAvailability::NeverRun
        && shown.slot.state == RowSlotState::NeverRun
    {
        let mut out = cx.explain_empty_trace(&shown, "").unwrap_or_default();
        out.extend(label_without_verdict(cx, &shown));
        out.extend(draft_note(cx));
        // Without a verdict, the question is the first thing to read.
        out.extend(eval_definition(cx, shown.row.eval));
        out.extend(example_blocks(cx, shown.row.eval));
        return out;
    }
    let mut out = vec![headline_block(cx, &shown)];
    out.extend(pause_hint(cx));
    out.extend(stale_block(&shown));
    out.extend(failed_rerun_block(cx, &shown));
    out.extend(interruption_block(cx, &shown));
    out.extend(flip_block(cx, &shown));
    out.extend(vote_blocks(cx, &shown));
    if let Some(result) = shown.result {
        push_result(cx, &shown, result, &mut out);
    } else {
        if let RowSlotState::Done {
            explanation: why, ..
        } = &shown.slot.state
        {
            out.push(TextBlock::new(&**why, Role::Text));
        }
        // The row knows the outcome before its recording is read; the details follow.
        if let (TraceAvailability::Loading | TraceAvailability::Failed(_), Some(waiting)) =
            (shown.availability, cx.explain_empty_trace(&shown, ""))
        {
            out.push(empty_row());
            out.extend(waiting);
        }
    }
    out.extend(label_details(cx));
    out.extend(labels_of_people(cx));
    out.extend(closed_disagreement(cx));
    out.extend(draft_note(cx));
    out.extend(note_blocks(cx));
    // While the judge works, the pane follows its text, and the examples would push that down.
    if !matches!(shown.slot.state, RowSlotState::Live) {
        out.extend(example_blocks(cx, shown.row.eval));
    }
    out.extend(check_definition(cx, &shown));
    let has_verdict = shown_verdict(&shown).is_some();
    push_judge_output(cx, &shown, has_verdict, &mut out);
    out
}

/// Returns the verdict to show: the result's, or the one just parsed from a streaming reply.
pub(crate) fn shown_verdict<'a>(shown: &ShownCell<'a>) -> Option<&'a Verdict> {
    let result = shown.result.and_then(|result| result.verdict.as_deref());
    // The last turn has its verdict before the cell has a result.
    result.or_else(|| shown.turns().last()?.verdict.as_ref())
}

/// Returns the headline: `✗ fail 0.30 (needs 0.70)   label ✓ disagrees`.
fn headline_block<'a>(cx: &ContentCx<'a>, shown: &ShownCell<'a>) -> TextBlock<'a> {
    // The decision may have been rescored since, so the row's state has priority over the outcome in the
    // cell's own run.
    let done = match (&shown.slot.state, shown.result) {
        (RowSlotState::Done { outcome, score, .. }, _) => Some((*outcome, *score)),
        (_, Some(result)) => Some((result.outcome, result.score)),
        (_, None) => None,
    };
    let Some((outcome, score)) = done else {
        if let Some(what) = shown.describe_interruption() {
            let text = format!("{} {what}, without a verdict", pause_mark(cx.glyphs()));
            return styled_line([(text.as_str(), Role::Warning)]);
        }
        let phase = shown
            .trace
            .and_then(|cell| describe_phase_in_full(cell, shown.now));
        let phase = phase.unwrap_or_else(|| "no result".to_owned());
        let label = shown
            .row
            .label
            .map(|label| format!("   label {}", label_mark(label, cx.glyphs())));
        return styled_line([
            (phase.as_str(), Role::Live),
            (label.as_deref().unwrap_or_default(), Role::Label),
        ]);
    };
    let (mark, role) = cx.outcome_mark(outcome);
    let score = score
        .map(|score| format!(" {score:.2}"))
        .unwrap_or_default();
    let needs = describe_bounds(shown)
        .map(|needs| format!(" ({needs})"))
        .unwrap_or_default();
    let (label, agrees, judged) = describe_label(cx, shown, outcome);
    styled_line([
        (
            format!("{mark} {}", describe_outcome(outcome)).as_str(),
            role,
        ),
        (score.as_str(), role),
        (needs.as_str(), Role::Muted),
        (label.as_str(), Role::Label),
        (agrees, judged),
    ])
}

/// Returns the label, the agreement of the outcome with it, and the role of the agreement.
fn describe_label(
    cx: &ContentCx<'_>,
    shown: &ShownCell<'_>,
    outcome: Outcome,
) -> (String, &'static str, Role) {
    let Some(label) = shown.row.label else {
        let text = if shown.row.sealed {
            "   label sealed"
        } else {
            ""
        };
        return (text.to_owned(), "", Role::Text);
    };
    let text = format!("   label {} ", label_mark(label, cx.glyphs()));
    match compute_label_agreement(Some(label), outcome).filter(|_| outcome.is_verdict()) {
        Some(true) => (text, "agrees", Role::Towards),
        Some(false) => (text, "disagrees", Role::Away),
        None if label == LabelValue::Unsure => (text, describe_undecided(cx), Role::Muted),
        None => (text, "", Role::Text),
    }
}

/// Returns the reason why a label counts nowhere: a person is unsure, or no verdict has the majority of the people.
fn describe_undecided(cx: &ContentCx<'_>) -> &'static str {
    let session = cx.app.session();
    let row = session.trace_panes.row;
    match row.filter(|row| session.cells.people_differ(*row)) {
        None => "unsure",
        Some(row) if session.cells.closed_cause(row).is_some() => "undecided: people differ",
        Some(_) => "undecided: people differ, D closes it",
    }
}

/// Returns author, time and note of the label, as far as they are known.
fn label_details<'a>(cx: &ContentCx<'a>) -> Option<TextBlock<'a>> {
    let session = cx.app.session();
    let label = session.cells.row_label(session.trace_panes.row?)?;
    let by = label.by.as_ref().map(|by| format!("by {by}"));
    let at = label.at.as_ref().map(|at| format_recorded_at(&at.0));
    let origin = (!label.has_origin()).then_some("origin unknown");
    let signed: Vec<String> = by.into_iter().chain(at).collect();
    let signed = format!("labelled {}", signed.join(", "));
    let signed: Vec<&str> = std::iter::once(signed.trim_end()).chain(origin).collect();
    let note = label.note.as_deref().unwrap_or_default();
    let row = session.cells.row(session.trace_panes.row?)?;
    if let Some(drift) = row.to_confirm {
        let value = label_mark(LabelValue::from_passed(label.passed), cx.glyphs());
        let text = format!(
            "label {value} to confirm: the {} changed. a confirms it, p f u answer again",
            drift.as_str()
        );
        return Some(TextBlock::new(text, Role::Label));
    }
    if row.shot {
        let text =
            "a shot or a copy of one: the judge saw its text with a label, so it measures nothing";
        return Some(TextBlock::new(text.to_owned(), Role::Label));
    }
    if signed == ["labelled"] && note.is_empty() {
        return None;
    }
    let signed = signed.join(", ");
    let between = if note.is_empty() { "" } else { ": " };
    Some(styled_line([
        (signed.as_str(), Role::Muted),
        (between, Role::Muted),
        (note, Role::Label),
    ]))
}

/// Returns the labels of several people next to each other: `labels: ann ✓, bo ✗`. `None` if one person labelled.
fn labels_of_people<'a>(cx: &ContentCx<'a>) -> Option<TextBlock<'a>> {
    let session = cx.app.session();
    let labels = session.cells.list_row_labels(session.trace_panes.row?);
    if labels.len() < 2 {
        return None;
    }
    let marks = labels.iter().map(|(by, value)| {
        let mark = label_mark(*value, cx.glyphs());
        format!("{by} {mark}")
    });
    let marks: Vec<String> = marks.collect();
    let row = session.cells.row(session.trace_panes.row?)?;
    let figures = cx.app.eval_figures(row.eval);
    let pair = figures.and_then(|figures| figures.figures.people.closest_pair());
    let agreement = pair.map_or_else(String::new, |pair| {
        format!(
            "; {} and {} agree on {} of {} in this eval",
            pair.first, pair.second, pair.same, pair.common
        )
    });
    let text = format!("labels: {}{agreement}", marks.join(", "));
    Some(TextBlock::new(
        make_visible(&text, false).into_owned(),
        Role::Muted,
    ))
}

/// Returns the cause with which the user closed the disagreement.
fn closed_disagreement<'a>(cx: &ContentCx<'a>) -> Option<TextBlock<'a>> {
    let session = cx.app.session();
    let (cause, settled_by) = session.cells.closed_cause(session.trace_panes.row?)?;
    let settled_by = settled_by.map_or_else(String::new, |text| format!(", clause: {text}"));
    let text = format!("disagreement closed: {}{settled_by}", cause.as_str());
    Some(TextBlock::new(
        make_visible(&text, false).into_owned(),
        Role::Label,
    ))
}

/// Returns the note that waits for the label.
pub(super) fn draft_note<'a>(cx: &ContentCx<'a>) -> Option<TextBlock<'a>> {
    let row = cx.app.session().trace_panes.row?;
    let note = cx.app.labelling.draft_notes.get(&row)?;
    Some(styled_line([
        ("note, saved with the label: ", Role::Muted),
        (&*make_visible(note, false), Role::Label),
    ]))
}

fn label_without_verdict<'a>(cx: &ContentCx<'a>, shown: &ShownCell<'a>) -> Option<TextBlock<'a>> {
    let mark = label_mark(shown.row.label?, cx.glyphs());
    Some(styled_line([
        (format!("label {mark}").as_str(), Role::Label),
        (", set by a person", Role::Muted),
    ]))
}

/// Returns the bounds of the run that decided, for the headline.
fn describe_bounds(shown: &ShownCell<'_>) -> Option<String> {
    let decides = &shown.deciding_eval?.decision_settings;
    let number = |name| decides.get(name).and_then(serde_json::Value::as_f64);
    match (number("min_score"), number("max_score")) {
        (Some(min), Some(max)) => Some(format!("needs {min:.2} to {max:.2}")),
        (Some(min), None) => Some(format!("needs {min:.2}")),
        (None, Some(max)) => Some(format!("at most {max:.2}")),
        (None, None) => None,
    }
}

/// Returns the notes that the run recorded on the cell.
fn note_blocks<'a>(cx: &ContentCx<'a>) -> Vec<TextBlock<'a>> {
    let RecordedCellState::Loaded { recorded, .. } = &cx.app.session().trace_panes.recorded else {
        return Vec::new();
    };
    let notes = recorded.notes.iter();
    notes
        .map(|note| styled_line([("note: ", Role::Muted), (note.as_str(), Role::Warning)]))
        .collect()
}

fn stale_block<'a>(shown: &ShownCell<'a>) -> Option<TextBlock<'a>> {
    let why = shown.row.stale?.explain();
    Some(styled_line([
        ("stale: ", Role::Stale),
        (why, Role::Stale),
        ("; ", Role::Muted),
        ("r", Role::Key),
        (" judges the cell again", Role::Muted),
    ]))
}

/// Returns the error of a re-run that ended without a verdict. The pane shows the earlier verdict, or the attempt itself.
fn failed_rerun_block<'a>(cx: &ContentCx<'a>, shown: &ShownCell<'a>) -> Option<TextBlock<'a>> {
    let failed = shown.row.visible_failed_rerun()?;
    if shown.row.is_failed_slot(cx.app.session().trace_panes.slot) {
        let verdict = shown.row.decision.as_ref()?;
        let (name, role) = name_with_mark(verdict.outcome, cx.glyphs());
        return Some(styled_line([
            ("the decision keeps its earlier verdict: ", Role::Muted),
            (name.as_str(), role),
        ]));
    }
    let colon = if failed.error.is_empty() { "" } else { ": " };
    Some(styled_line([
        (
            format!(
                "{} the last re-run ended without a verdict: {}",
                cx.glyphs().error,
                describe_outcome(failed.outcome)
            )
            .as_str(),
            Role::Error,
        ),
        (colon, Role::Error),
        (&*failed.error, Role::Text),
        ("; the earlier verdict stays; ", Role::Muted),
        ("r", Role::Key),
        (" judges the cell again", Role::Muted),
    ]))
}

/// Returns what an interrupted attempt leaves: the earlier verdict of the decision, if there is one, or where the attempt is.
fn interruption_block<'a>(cx: &ContentCx<'a>, shown: &ShownCell<'a>) -> Option<TextBlock<'a>> {
    let attempt = shown.row.interrupted_attempt()?;
    let again = [
        ("; ", Role::Muted),
        ("r", Role::Key),
        (" judges the cell again", Role::Muted),
    ];
    if cx.app.session().trace_panes.slot != attempt {
        let mark = pause_mark(cx.glyphs());
        let nth = shown.row.all_slots().position(|(at, _)| at == attempt)?;
        let what = format!("{mark} the last attempt was interrupted: #{}", nth + 1);
        let lead = [(what.as_str(), Role::Warning)];
        return Some(styled_line(lead.into_iter().chain(again)));
    }
    let earlier = shown.row.decision.as_ref();
    let earlier = earlier.map(|decision| name_with_mark(decision.outcome, cx.glyphs()));
    let lead = match &earlier {
        Some((verdict, role)) => [
            ("the decision keeps its earlier verdict: ", Role::Muted),
            (verdict.as_str(), *role),
        ],
        None => [
            ("the decision has no verdict yet", Role::Muted),
            ("", Role::Muted),
        ],
    };
    Some(styled_line(lead.into_iter().chain(again)))
}

/// Returns the previous verdict of a flip: `⇄ was ✓ pass 0.90: why`.
fn flip_block<'a>(cx: &ContentCx<'a>, shown: &ShownCell<'a>) -> Option<TextBlock<'a>> {
    // The flip is that of the decision, to which a second opinion does not belong.
    if shown.is_second_opinion() {
        return None;
    }
    let before = shown.row.flipped.as_ref()?;
    let flips = cx.app.saves.report.iter().flat_map(|report| &report.flips);
    let is_live = cx.app.replay.is_none();
    let same_row = |row| is_live && Some(row) == cx.app.live_session.trace_panes.row;
    let arithmetic = flips
        .filter(|flip| same_row(flip.row))
        .find_map(|flip| flip.arithmetic.as_deref());
    let (mark, role) = cx.outcome_mark(before.outcome);
    let score = before
        .score
        .map(|score| format!(" {score:.2}"))
        .unwrap_or_default();
    let why = if before.explanation.is_empty() {
        ""
    } else {
        ": "
    };
    Some(styled_line([
        (
            format!("{} was ", cx.glyphs().flipped).as_str(),
            Role::Flipped,
        ),
        (
            format!("{mark} {}{score}", describe_outcome(before.outcome)).as_str(),
            role,
        ),
        (why, Role::Muted),
        // The explanations are equal if only the bounds changed.
        (arithmetic.unwrap_or(&before.explanation), Role::Muted),
    ]))
}

fn push_result<'a>(
    cx: &mut ContentCx<'a>,
    shown: &ShownCell<'a>,
    result: &'a CellResult,
    out: &mut Vec<TextBlock<'a>>,
) {
    if let Some(error) = &result.error {
        out.push(TextBlock::new(error.as_str(), Role::Error));
    }
    // Calling a source judge again would return the same verdict; dicta omits the advice.
    let is_imported = shown.judge_spec().is_some_and(super::is_source_judge);
    if let Some(advice) = suggest_fix(result).filter(|_| !is_imported) {
        // `r` calls the eval's own judge, so a second opinion needs `J`.
        let key = if shown.is_second_opinion() {
            "J calls"
        } else {
            "r calls"
        };
        out.push(TextBlock::new(advice.replace("r calls", key), Role::Muted));
    }
    // A replay calls no judge, so it suggests none.
    if result.outcome == Outcome::NotApplicable && is_rules_judge(shown) && cx.app.replay.is_none()
    {
        out.push(styled_line([
            ("`rules` can't check the criteria: ", Role::Muted),
            ("J", Role::Key),
            (" lists the available judges", Role::Muted),
        ]));
    }
    let verdict = shown_verdict(shown);
    let reason = verdict.map_or(result.explanation.as_str(), |verdict| {
        verdict.reasoning.as_str()
    });
    match verdict {
        // A finding of a check has lines with marks. The reasoning of a judge is prose.
        None => out.extend(reason.lines().map(finding_block)),
        Some(_) if reason.is_empty() => {}
        Some(_) => out.push(TextBlock::new(reason, Role::Text)),
    }
    let places = cx.app.session().transcript_pane.marks.places.len();
    if places > 0 {
        out.push(styled_line([
            ("c", Role::Key),
            (
                format!(
                    " shows it in the transcript ({})",
                    pluralize(places as u64, "place")
                )
                .as_str(),
                Role::Muted,
            ),
        ]));
    }
    if let Some(verdict) = verdict {
        if let Some(calibrated) = verdict
            .calibrated
            .as_ref()
            .filter(|_| !verdict.parts.is_empty())
        {
            out.push(TextBlock::new(calibrated.summary_line(), Role::Text));
        }
        out.extend(verdict_part_blocks(cx, verdict));
        // The explanation can contain more than the reasoning, such as the score's cut-off. With parts it
        // only repeats them.
        let adds_explanation = verdict.parts.is_empty() && result.explanation != verdict.reasoning;
        if !result.explanation.is_empty() && adds_explanation {
            out.push(TextBlock::new(result.explanation.as_str(), Role::Text));
        }
        push_verdict_details(cx, verdict, out);
    }
    if let Some(UnparsedVerdict { why, raw }) =
        shown.turns().last().and_then(|turn| turn.unparsed.as_ref())
    {
        out.push(empty_row());
        out.push(heading("no valid verdict"));
        // The result's error may already contain this reason.
        if result.error.as_deref() != Some(why.as_str()) {
            out.push(TextBlock::new(why.as_str(), Role::Error));
        }
        out.push(TextBlock {
            indent: 2,
            ..match cx.load_text(raw) {
                LoadedText::Loaded { text, .. } => TextBlock::new(text, Role::Text),
                LoadedText::Reading(_) => TextBlock::new("reading …", Role::Muted),
                LoadedText::Failed(why) => TextBlock::new(why, Role::Error),
            }
        });
    }
    out.extend(fact_blocks(shown, result));
}

/// Adds what the judge submitted in addition to its reasoning.
fn push_verdict_details<'a>(
    cx: &ContentCx<'a>,
    verdict: &'a Verdict,
    out: &mut Vec<TextBlock<'a>>,
) {
    let selected = cx.app.session().trace_panes.selected_citation;
    // The citations, then the key that selects them.
    for (at, citation) in verdict.citations.iter().enumerate() {
        out.push(citation_block(cx, citation, selected == Some(at)));
    }
    if !verdict.citations.is_empty() {
        out.push(styled_line([
            ("c", Role::Key),
            (" goes to the next citation", Role::Muted),
        ]));
    }
    // Below: what a person should check.
    if let Some(raw) = verdict.raw_score {
        out.push(TextBlock::new(
            format!("score as the judge wrote it: {raw}"),
            Role::Muted,
        ));
    }
    if let Some(why) = &verdict.contradiction {
        out.push(styled_line([
            (
                "the reasoning seems to contradict the verdict: ",
                Role::Warning,
            ),
            (why.as_str(), Role::Text),
        ]));
    }
    for what in &verdict.hidden {
        out.push(styled_line([
            ("hidden from readers: ", Role::Warning),
            (what.as_str(), Role::Text),
        ]));
    }
    for change in &verdict.repaired {
        out.push(styled_line([
            ("repaired: ", Role::Warning),
            (change.what.as_str(), Role::Text),
        ]));
    }
}

/// Returns a citation: `“quote” found in message 4`.
fn citation_block<'a>(
    cx: &ContentCx<'a>,
    citation: &'a Citation,
    is_selected: bool,
) -> TextBlock<'a> {
    let elsewhere = find_elsewhere(cx, citation);
    let source = format!(" in {}", citation.source);
    let (found, source, role) = match &elsewhere {
        _ if citation.found => (" found", source.as_str(), Role::Found),
        // The places elsewhere name the source, too.
        Some(places) => (places.as_str(), "", Role::Warning),
        None => (" NOT FOUND", source.as_str(), Role::Missing),
    };
    let quote = if is_selected { Role::Match } else { Role::Text };
    TextBlock {
        indent: 2,
        lead: if is_selected { cx.glyphs().cursor } else { "" }.into(),
        ..styled_line([
            (format!("“{}”", citation.quote).as_str(), quote),
            (found, role),
            (source, Role::Muted),
        ])
    }
}

/// Returns where a quote occurs that its source lacks: ` not in message 4, found in message 6`. `None` if it occurs nowhere,
/// or if dicta has not searched.
fn find_elsewhere(cx: &ContentCx<'_>, citation: &Citation) -> Option<String> {
    let session = cx.app.session();
    let FoundClaims { key, claims, .. } = &session.trace_screen.claims;
    // The claims may be those of the cell before.
    let is_current = key.as_ref()?.slot.row == session.trace_panes.row?;
    let claim = claims.iter().find(|claim| {
        claim.finding == ClaimFinding::FoundElsewhere
            && claim.text == citation.quote
            && claim.cited.as_ref() == Some(&citation.source)
    });
    let claim = claim.filter(|_| is_current)?;
    let places = claim.describe_elsewhere()?;
    Some(format!(" not in {}, {places}", citation.source))
}

/// Returns usage, cost and origin of the verdict.
fn fact_blocks<'a>(shown: &ShownCell<'a>, result: &'a CellResult) -> Vec<TextBlock<'a>> {
    let mut facts = Vec::new();
    // The facts in order: origin, usage, attempts, duration, run.
    if let Some(run) = &result.cached {
        facts.push(format!("from run {}", run.letters()));
    }
    if result.by_human {
        facts.push(super::EDITED_BY_HAND.to_owned());
    }
    match result.usage {
        // Without a call, there are neither tokens nor a cost.
        Some(_) if result.needed_no_call() => facts.push("no judge call".to_owned()),
        Some(usage) => facts.push(describe_usage(usage, result, shown)),
        None => {}
    }
    if let (all, failed @ 1..) = count_attempts(shown.turns()) {
        facts.push(format!("{all} attempts, {failed} failed"));
    }
    if result.duration_ms.0 > 0 {
        facts.push(result.duration_ms.to_string());
    }
    if let Some(run) = shown.run.filter(|run| result.cached.as_ref() != Some(*run)) {
        facts.push(format!("run {}", run.letters()));
    }
    let label = shown
        .header
        .map(|header| header.label.as_str())
        .unwrap_or_default();
    let mut out = vec![empty_row(), TextBlock::new(facts.join(" · "), Role::Muted)];
    if !label.is_empty() {
        out.push(TextBlock::new(label, Role::Muted));
    }
    out
}

fn describe_usage(usage: TokenUsage, result: &CellResult, shown: &ShownCell<'_>) -> String {
    let tokens = match (usage.input, usage.output) {
        (Some(input), Some(output)) => format!("{input} + {output} tokens"),
        _ => "tokens unknown".to_owned(),
    };
    let cost = match result.cost_usd {
        // A refused call costs nothing. That doesn't make a paid judge free.
        Some(0.0)
            if shown
                .judge_spec()
                .is_some_and(|judge| !judge.config.is_free()) =>
        {
            "no cost".to_owned()
        }
        Some(0.0) => "free".to_owned(),
        Some(cost) => format!("${cost:.4}"),
        None if shown
            .judge_spec()
            .is_some_and(|judge| judge.config.is_free()) =>
        {
            "free (local)".to_owned()
        }
        None => "cost unknown".to_owned(),
    };
    format!(
        "{} · {tokens} · {cost}",
        pluralize(usage.calls, "judge call")
    )
}

/// Returns true for the built-in judge `rules`, which parses only simple criteria.
fn is_rules_judge(shown: &ShownCell<'_>) -> bool {
    shown
        .judge_spec()
        .is_some_and(|judge| judge.config.provider == ProviderKind::Rules)
}

/// Returns advice for an outcome that is not a verdict.
fn suggest_fix(result: &CellResult) -> Option<&'static str> {
    // The beginning of `ProviderError::Cut`. In that case no limit of the judge was reached.
    let cut = |why: &String| why.starts_with("the reply was cut");
    Some(match result.outcome {
        Outcome::Pass | Outcome::Fail | Outcome::NotApplicable | Outcome::Skipped => return None,
        Outcome::CheckError => {
            "not a fail: the check ended in an error. e opens it; 6 shows its input"
        }
        Outcome::JudgeError => "not a fail: the judge call failed. r calls it again",
        Outcome::Unparsed => {
            "not a fail: the reply contains no valid verdict. r calls the judge again; the reply is below"
        }
        Outcome::TurnLimit => "not a fail: raise the judge's max_turns, or simplify the criteria",
        Outcome::Truncated if result.error.as_ref().is_some_and(cut) => {
            "not a fail: the reply was cut off. r calls the judge again"
        }
        Outcome::Truncated => {
            "not a fail: raise the judge's max_output_tokens, or call it again with r"
        }
        Outcome::Timeout => "not a fail: raise the judge's timeout_s, or call it again with r",
        Outcome::Budget => "not a fail: the run reached a limit in dicta.yaml before this cell",
        Outcome::Cancelled => "not a fail: the cell was cancelled. r runs it again",
    })
}
