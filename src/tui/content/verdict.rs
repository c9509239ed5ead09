//! What was decided: the reasoning as it streams, then the verdict with its citations, and the human's label beside it.

use super::asked::{definition, of_eval};
use super::examples::examples;
use super::found::{found, parts};
use super::said::said;
use super::votes::votes;
use super::{Ink, Text, gap, heading, human, no_cell, rich};
use crate::model::{CellResult, Citation, Outcome, ProviderKind, TokenUsage, Verdict, pluralize};
use crate::report::describe_outcome;
use crate::theme::Role;
use crate::tui::model::cells::{Human, SlotState, towards};
use crate::tui::model::phase::{attempts, phase_line};
use crate::tui::model::replay::moment;
use crate::tui::model::trace::{Loaded, Shown, Wait, shown};
use crate::tui::widget::flow::{Block, Source};

/// The pane's text.
pub(super) fn source<'a>(ink: &mut Ink<'a>) -> Box<dyn Source + 'a> {
    let Some(shown) = shown(ink.model) else {
        return Box::new(of_eval(ink).unwrap_or_else(no_cell));
    };
    if shown.wait == Wait::NeverRun && shown.slot.state == SlotState::Never {
        let mut out = ink.waiting(&shown, "").unwrap_or_default();
        out.extend(label_alone(ink, &shown));
        out.extend(examples(ink, &shown));
        out.extend(definition(ink, &shown));
        return Box::new(out);
    }
    let mut out = vec![headline(ink, &shown)];
    out.extend(stale(&shown));
    out.extend(flipped(ink, &shown));
    out.extend(votes(ink, &shown));
    if let Some(result) = shown.result {
        decided(ink, &shown, result, &mut out);
    } else {
        if let SlotState::Done { why, .. } = &shown.slot.state {
            out.push(Block::new(&**why, Role::Text));
        }
        if let (Wait::Reading | Wait::Failed(_), Some(waiting)) =
            (shown.wait, ink.waiting(&shown, ""))
        {
            out.push(gap());
            out.extend(waiting);
        }
    }
    out.extend(signed(ink));
    out.extend(notes(ink));
    out.extend(examples(ink, &shown));
    out.extend(definition(ink, &shown));
    said(ink, &shown, &mut out);
    Box::new(out)
}

/// The verdict that is shown: the result's, or the one just read from a reply.
pub(crate) fn of<'a>(shown: &Shown<'a>) -> Option<&'a Verdict> {
    let result = shown.result.and_then(|result| result.verdict.as_deref());
    result.or_else(|| shown.turns().last()?.verdict.as_ref())
}

/// `✗ fail 0.30 (needs 0.70)   label ✓ disagrees`.
fn headline<'a>(ink: &Ink<'a>, shown: &Shown<'a>) -> Block<'a> {
    // A past verdict may have been decided otherwise since: its own run's word is not the last one.
    let done = match (&shown.slot.state, shown.result) {
        (SlotState::Done { outcome, score, .. }, _) => Some((*outcome, *score)),
        (_, Some(result)) => Some((result.outcome, result.score)),
        (_, None) => None,
    };
    let Some((outcome, score)) = done else {
        let phase = shown.cell.and_then(|cell| phase_line(cell, shown.now));
        let phase = phase.unwrap_or_else(|| "no result".to_owned());
        let label = shown
            .row
            .label
            .map(|label| format!("   label {}", human(label, ink.glyphs())));
        return rich([
            (phase.as_str(), Role::Live),
            (label.as_deref().unwrap_or_default(), Role::Label),
        ]);
    };
    let (mark, role) = ink.mark(outcome);
    let score = score
        .map(|score| format!(" {score:.2}"))
        .unwrap_or_default();
    let needs = needs(shown)
        .map(|needs| format!(" ({needs})"))
        .unwrap_or_default();
    let (label, agrees, judged) = label(ink, shown, outcome);
    rich([
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

/// The human's verdict, and whether this one is the same.
fn label(ink: &Ink<'_>, shown: &Shown<'_>, outcome: Outcome) -> (String, &'static str, Role) {
    let Some(label) = shown.row.label else {
        return (String::new(), "", Role::Text);
    };
    let text = format!("   label {} ", human(label, ink.glyphs()));
    match towards(Some(label), outcome).filter(|_| outcome.is_verdict()) {
        Some(true) => (text, "agrees", Role::Towards),
        Some(false) => (text, "disagrees", Role::Away),
        None if label == Human::Unsure => (text, "unsure", Role::Muted),
        None => (text, "", Role::Text),
    }
}

/// Who said so, when and why, as far as that is known.
fn signed<'a>(ink: &Ink<'a>) -> Option<Block<'a>> {
    let desk = ink.model.desk();
    let label = desk.cells.label_of(desk.trace.row?)?;
    let by = label.by.as_ref().map(|by| format!("by {by}"));
    let at = label.at.as_ref().map(|at| moment(&at.0));
    let signed: Vec<String> = by.into_iter().chain(at).collect();
    let note = label.note.as_deref().unwrap_or_default();
    if signed.is_empty() && note.is_empty() {
        return None;
    }
    let signed = format!("labelled {}", signed.join(", "));
    let between = if note.is_empty() { "" } else { ": " };
    Some(rich([
        (signed.trim_end(), Role::Muted),
        (between, Role::Muted),
        (note, Role::Label),
    ]))
}

fn label_alone<'a>(ink: &Ink<'a>, shown: &Shown<'a>) -> Option<Block<'a>> {
    let mark = human(shown.row.label?, ink.glyphs());
    Some(rich([
        (format!("label {mark}").as_str(), Role::Label),
        (", what a person said", Role::Muted),
    ]))
}

/// What only decides, of the run that decided.
fn needs(shown: &Shown<'_>) -> Option<String> {
    let decides = &shown.decided?.decision_settings;
    let number = |name| decides.get(name).and_then(serde_json::Value::as_f64);
    match (number("min_score"), number("max_score")) {
        (Some(min), Some(max)) => Some(format!("needs {min:.2} to {max:.2}")),
        (Some(min), None) => Some(format!("needs {min:.2}")),
        (None, Some(max)) => Some(format!("at most {max:.2}")),
        (None, None) => None,
    }
}

/// What the run noted about the cell.
fn notes<'a>(ink: &Ink<'a>) -> Vec<Block<'a>> {
    let Loaded::Here(_, recorded) = &ink.model.desk().trace.recorded else {
        return Vec::new();
    };
    let notes = recorded.notes.iter();
    notes
        .map(|note| rich([("note: ", Role::Muted), (note.as_str(), Role::Warning)]))
        .collect()
}

fn stale<'a>(shown: &Shown<'a>) -> Option<Block<'a>> {
    let why = shown.row.stale?.why();
    Some(rich([
        ("stale: ", Role::Stale),
        (why, Role::Stale),
        ("; ", Role::Muted),
        ("r", Role::Key),
        (" judges it again", Role::Muted),
    ]))
}

/// `⇄ was ✓ pass 0.90: why`.
fn flipped<'a>(ink: &Ink<'a>, shown: &Shown<'a>) -> Option<Block<'a>> {
    let before = shown.row.flipped.as_ref()?;
    let (mark, role) = ink.mark(before.outcome);
    let score = before
        .score
        .map(|score| format!(" {score:.2}"))
        .unwrap_or_default();
    let why = if before.why.is_empty() { "" } else { ": " };
    Some(rich([
        (
            format!("{} was ", ink.glyphs().flipped).as_str(),
            Role::Flipped,
        ),
        (
            format!("{mark} {}{score}", describe_outcome(before.outcome)).as_str(),
            role,
        ),
        (why, Role::Muted),
        (&*before.why, Role::Muted),
    ]))
}

fn decided<'a>(
    ink: &mut Ink<'a>,
    shown: &Shown<'a>,
    result: &'a CellResult,
    out: &mut Vec<Block<'a>>,
) {
    if let Some(error) = &result.error {
        out.push(Block::new(error.as_str(), Role::Error));
    }
    // Asking again would find the same.
    let told = shown.judge().is_some_and(super::of_source);
    if let Some(advice) = advice(result).filter(|_| !told) {
        // `r` asks the eval's own judge.
        let key = if shown.is_aside() { "J asks" } else { "r asks" };
        out.push(Block::new(advice.replace("r asks", key), Role::Muted));
    }
    if result.outcome == Outcome::NotApplicable && by_rules(shown) && ink.model.replay.is_none() {
        out.push(rich([
            ("rules could not read this: ", Role::Muted),
            ("J", Role::Key),
            (" shows real judges at hand", Role::Muted),
        ]));
    }
    let verdict = of(shown);
    let reason = verdict.map_or(result.explanation.as_str(), |verdict| {
        verdict.reasoning.as_str()
    });
    match verdict {
        None => out.extend(reason.lines().map(found)),
        Some(_) if reason.is_empty() => {}
        Some(_) => out.push(Block::new(reason, Role::Text)),
    }
    let places = ink.model.desk().document.marks.places.len();
    if places > 0 {
        out.push(rich([
            ("c", Role::Key),
            (
                format!(
                    " goes to where that stands ({})",
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
            out.push(Block::new(calibrated.summary_line(), Role::Text));
        }
        out.extend(parts(ink, verdict));
        // What was decided beside the reasoning: a cut-off score, say. With parts it only says them again.
        let told = verdict.parts.is_empty() && result.explanation != verdict.reasoning;
        if !result.explanation.is_empty() && told {
            out.push(Block::new(result.explanation.as_str(), Role::Text));
        }
        stated(ink, verdict, out);
    }
    if let Some((why, raw)) = shown.turns().last().and_then(|turn| turn.unparsed.as_ref()) {
        out.push(gap());
        out.push(heading("no valid verdict"));
        if result.error.as_deref() != Some(why.as_str()) {
            out.push(Block::new(why.as_str(), Role::Error));
        }
        out.push(Block {
            indent: 2,
            ..match ink.text(raw) {
                Text::Here(text, _) => Block::new(text, Role::Text),
                Text::Reading(_) => Block::new("reading …", Role::Muted),
                Text::Failed(why) => Block::new(why, Role::Error),
            }
        });
    }
    out.extend(facts(shown, result));
}

/// What the judge stated beside its reasoning.
fn stated<'a>(ink: &Ink<'a>, verdict: &'a Verdict, out: &mut Vec<Block<'a>>) {
    let gone_to = ink.model.desk().trace.citation;
    for (at, citation) in verdict.citations.iter().enumerate() {
        out.push(cited(ink, citation, gone_to == Some(at)));
    }
    if !verdict.citations.is_empty() {
        out.push(rich([
            ("c", Role::Key),
            (" goes to the next place cited", Role::Muted),
        ]));
    }
    if let Some(raw) = verdict.raw_score {
        out.push(Block::new(
            format!("the judge's own score: {raw}"),
            Role::Muted,
        ));
    }
    if let Some(why) = &verdict.contradiction {
        out.push(rich([
            (
                "the reason seems to contradict the verdict: ",
                Role::Warning,
            ),
            (why.as_str(), Role::Text),
        ]));
    }
    for what in &verdict.hidden {
        out.push(rich([
            ("hidden from readers: ", Role::Warning),
            (what.as_str(), Role::Text),
        ]));
    }
    for change in &verdict.repaired {
        out.push(rich([
            ("repaired: ", Role::Warning),
            (change.what.as_str(), Role::Text),
        ]));
    }
}

/// `“quote” message 4 found`.
fn cited<'a>(ink: &Ink<'a>, citation: &'a Citation, gone_to: bool) -> Block<'a> {
    let (found, role) = if citation.found {
        ("found", Role::Found)
    } else {
        ("NOT FOUND", Role::Missing)
    };
    let quote = if gone_to { Role::Match } else { Role::Text };
    Block {
        indent: 2,
        lead: if gone_to { ink.glyphs().cursor } else { "" }.into(),
        ..rich([
            (format!("“{}”", citation.quote).as_str(), quote),
            (format!(" {} ", citation.source).as_str(), Role::Muted),
            (found, role),
        ])
    }
}

/// What it took, and where it comes from.
fn facts<'a>(shown: &Shown<'a>, result: &'a CellResult) -> Vec<Block<'a>> {
    let mut facts = Vec::new();
    if let Some(run) = &result.cached {
        facts.push(format!("taken from run {}", run.letters()));
    }
    if result.by_human {
        facts.push("a person changed something on the way".to_owned());
    }
    if let Some(usage) = result.usage {
        facts.push(took(usage, result, shown));
    }
    if let (all, failed @ 1..) = attempts(shown.turns()) {
        facts.push(format!("{all} attempts, {failed} failed"));
    }
    if result.duration_ms.0 > 0 {
        facts.push(result.duration_ms.to_string());
    }
    if let Some(run) = shown.run {
        facts.push(format!("run {}", run.letters()));
    }
    let label = shown
        .header
        .map(|header| header.label.as_str())
        .unwrap_or_default();
    let mut out = vec![gap(), Block::new(facts.join(" · "), Role::Muted)];
    if !label.is_empty() {
        out.push(Block::new(label, Role::Muted));
    }
    out
}

fn took(usage: TokenUsage, result: &CellResult, shown: &Shown<'_>) -> String {
    let tokens = match (usage.input, usage.output) {
        (Some(input), Some(output)) => format!("{input} + {output} tokens"),
        _ => "tokens unknown".to_owned(),
    };
    let cost = match result.cost_usd {
        // A refused call costs nothing; that does not make the judge a free one.
        Some(0.0) if shown.judge().is_some_and(|judge| !judge.config.is_free()) => {
            "nothing billed".to_owned()
        }
        Some(0.0) => "free".to_owned(),
        Some(cost) => format!("${cost:.4}"),
        None if shown.judge().is_some_and(|judge| judge.config.is_free()) => {
            "free (local)".to_owned()
        }
        None => "cost unknown".to_owned(),
    };
    format!(
        "{} · {tokens} · {cost}",
        pluralize(usage.calls, "judge call")
    )
}

/// Whether it was the built-in judge, which knows a few clauses.
fn by_rules(shown: &Shown<'_>) -> bool {
    shown
        .judge()
        .is_some_and(|judge| judge.config.provider == ProviderKind::Rules)
}

/// What to do about an outcome that is no verdict.
fn advice(result: &CellResult) -> Option<&'static str> {
    // How `ProviderError::Cut` begins: no limit of the judge's was reached.
    let cut = |why: &String| why.starts_with("the reply was cut");
    Some(match result.outcome {
        Outcome::Pass | Outcome::Fail | Outcome::NotApplicable | Outcome::Skipped => return None,
        Outcome::CheckError => {
            "not a fail: the check could not decide. e opens it; 6 shows what it was given"
        }
        Outcome::JudgeError => "not a fail: the judge could not be asked. r asks again",
        Outcome::Unparsed => {
            "not a fail: no verdict could be read. r asks again; what the judge wrote is below"
        }
        Outcome::TurnLimit => {
            "not a fail: raise the judge's max_turns, or ask for less in the criteria"
        }
        Outcome::Truncated if result.error.as_ref().is_some_and(cut) => {
            "not a fail: the reply ended before its end. r asks again"
        }
        Outcome::Truncated => {
            "not a fail: raise the judge's max_output_tokens, or ask again with r"
        }
        Outcome::Timeout => "not a fail: raise the judge's timeout_s, or ask again with r",
        Outcome::Budget => "not a fail: a limit of dicta.yaml was reached before it was judged",
        Outcome::Cancelled => "not a fail: it was stopped. r runs it again",
    })
}
