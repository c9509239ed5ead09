//! The cells of a decision that has several: their verdicts, the vote, and second opinions.

use std::fmt::Write as _;

use super::{ContentCx, EDITED_BY_HAND, pause_mark, styled_line};
use crate::model::{Decision, Outcome, PairChoice};
use crate::report::{describe_outcome, describe_panel_decision, describe_undecided};
use crate::theme::Role;
use crate::tui::state::App;
use crate::tui::state::cells::{RowSlot, RowSlotState};
use crate::tui::state::phase_text::describe_interruption;
use crate::tui::state::shown_cell::{ShownCell, shows_recorded_cell};
use crate::tui::widget::flow::TextBlock;

/// Returns the cells of a decision that has several, and the result of the vote.
pub(super) fn vote_blocks<'a>(cx: &ContentCx<'a>, shown: &ShownCell<'a>) -> Vec<TextBlock<'a>> {
    let session = cx.app.session();
    let undecided = match shown.row.decision {
        None => session.cells.explain_undecided(shown.row),
        Some(_) => None,
    };
    // A single cell is its own decision, without a vote. A branch names the trace that it continues.
    let is_branch = shown.slot.branch.is_some();
    if shown.row.all_slots().count() < 2 && undecided.is_none() && !is_branch {
        return Vec::new();
    }
    let mut out = Vec::new();
    // A panel names its judges. Repeats of one judge have only counts.
    if let Some(decision) = &shown.row.decision
        && let Some(panel) = &decision.panel
    {
        let name = |judge: u32| session.cells.judges.get(judge as usize);
        let names: Vec<&str> = panel
            .members
            .iter()
            .map(|member| name(member.judge).map_or("?", |judge| &judge.name))
            .collect();
        let (mark, role) = cx.outcome_mark(decision.outcome);
        out.push(styled_line([
            (
                format!("{mark} {} ", describe_outcome(decision.outcome)).as_str(),
                role,
            ),
            (describe_panel_decision(panel, &names).as_str(), Role::Muted),
        ]));
    } else if let Some(decision) = &shown.row.decision
        && shown.row.slots.len() > 1
    {
        let (mark, role) = cx.outcome_mark(decision.outcome);
        let votes = decision.votes;
        let eval = session.cells.evals.get(shown.row.eval as usize);
        let choice = decision
            .score
            .filter(|_| eval.is_some_and(|eval| eval.decision_rule.needs_all_repeats))
            .map_or_else(String::new, |score| {
                format!(", {}", PairChoice::from_score(score).describe())
            });
        out.push(styled_line([
            (
                format!("by vote {mark} {}", describe_outcome(decision.outcome)).as_str(),
                role,
            ),
            (
                format!(
                    "{choice}: {} pass, {} fail, {} not applicable, {} without a verdict{}",
                    votes.pass,
                    votes.fail,
                    votes.na,
                    votes.error,
                    describe_share(decision)
                )
                .as_str(),
                Role::Muted,
            ),
        ]));
    }
    if let Some(open) = undecided {
        let name = |judge: u32| {
            let entry = session.cells.judges.get(judge as usize);
            entry.map_or("?", |judge| judge.name.as_str())
        };
        let names: Vec<&str> = open
            .members
            .iter()
            .map(|member| name(member.judge))
            .collect();
        let next: Vec<&str> = open.next_judges.iter().map(|judge| name(*judge)).collect();
        out.push(styled_line([
            (
                describe_undecided(&open, &names, &next).as_str(),
                Role::Warning,
            ),
            (" (", Role::Muted),
            ("R", Role::Key),
            (")", Role::Muted),
        ]));
    }
    let decision = shown.row.decision.as_ref();
    let several = decision.is_some_and(|decision| decision.panel.is_some());
    // One line per cell, then the second opinions; a branch is below the trace that it continues.
    let slots: Vec<(u16, &RowSlot)> = shown.row.all_slots().collect();
    for (nth, depth) in order_by_origin(cx.app, &slots) {
        let (at, slot) = slots[nth];
        // The recording of a branch plans the cell that its origin judged.
        if slot.state == RowSlotState::NeverRun && !shown.row.family.is_empty() {
            continue;
        }
        let judge = slot
            .judge
            .and_then(|judge| session.cells.judges.get(judge as usize));
        let (mark, role, score) = match &slot.state {
            RowSlotState::NeverRun => (cx.glyphs().never, Role::Muted, None),
            RowSlotState::Live => (cx.glyphs().live[0], Role::Live, None),
            RowSlotState::Interrupted { .. } => (pause_mark(cx.glyphs()), Role::Warning, None),
            RowSlotState::Done { outcome, score, .. } => {
                let (mark, role) = cx.outcome_mark(*outcome);
                (mark, role, *score)
            }
        };
        let score = score
            .map(|score| format!(" {score:.2}"))
            .unwrap_or_default();
        let open = at == session.trace_panes.slot;
        // Second opinions follow the cells of the decision.
        let edited = format!("  {EDITED_BY_HAND}: doesn't count");
        let branch = slot.branch.as_ref().map(|origin| {
            let edited = if slot.by_human {
                format!(", {EDITED_BY_HAND}")
            } else {
                String::new()
            };
            // The trace that it continues may no longer be in the list.
            let parent = match depth {
                0 => format!(" of run {}", origin.run.letters()),
                _ => String::new(),
            };
            let interrupted = match slot.state {
                RowSlotState::Interrupted { paused_at } => {
                    format!(", {}", describe_interruption(paused_at))
                }
                _ => String::new(),
            };
            format!(
                "  branch{parent} from {}{edited}{interrupted}: doesn't count",
                origin.point
            )
        });
        let interrupted = match slot.state {
            RowSlotState::Interrupted { paused_at } => {
                let what = describe_interruption(paused_at);
                Some(format!("  {what}: doesn't count"))
            }
            _ => None,
        };
        let remark: &str = if shown.row.is_failed_slot(at) {
            "  re-run without a verdict: doesn't count"
        } else if let Some(branch) = &branch {
            branch
        } else if let Some(interrupted) = &interrupted {
            interrupted
        } else if shown.row.is_family_slot(at) {
            "  the recorded trace that the branch continues"
        } else if slot.by_human {
            &edited
        } else if nth >= shown.row.slots.len() && slot.repeat.is_some() {
            "  repeat: doesn't count"
        } else if nth >= shown.row.slots.len() {
            "  second opinion: doesn't count"
        } else {
            decision.map_or("", |decision| explain_ignored_vote(decision, slot.judge))
        };
        // The reason of the open cell appears in full below.
        let reason = match &slot.state {
            RowSlotState::Done {
                explanation: why, ..
            } if several && !open => first_reason_line(why),
            _ => String::new(),
        };
        out.push(TextBlock {
            indent: 2 + 2 * depth,
            lead: if open { cx.glyphs().cursor } else { "" }.into(),
            ..styled_line([
                (format!("#{} ", nth + 1).as_str(), Role::Muted),
                (judge.map_or("", |judge| judge.name.as_str()), Role::Text),
                (format!(" {mark}{score}").as_str(), role),
                (remark, Role::Muted),
                (reason.as_str(), Role::Muted),
            ])
        });
    }
    out.extend(summarize_repeats(shown));
    out
}

/// Returns the positions of the cells with their depths in the tree of branches: each branch is after the trace that it
/// continues, one level deeper.
fn order_by_origin(app: &App, slots: &[(u16, &RowSlot)]) -> Vec<(usize, u16)> {
    let session = app.session();
    let find_parent = |slot: &RowSlot| {
        let (origin, row) = (slot.branch.as_ref()?, session.trace_panes.row?);
        slots.iter().position(|(at, one)| {
            !std::ptr::eq(*one, slot)
                && shows_recorded_cell(session, (row, *at), &origin.run, origin.cell)
        })
    };
    let parents: Vec<Option<usize>> = slots.iter().map(|(_, slot)| find_parent(slot)).collect();
    let mut out = Vec::with_capacity(slots.len());
    for at in (0..slots.len()).filter(|at| parents[*at].is_none()) {
        push_family(&parents, at, 0, &mut out);
    }
    // Branches that a changed recording names as the parents of each other.
    for at in 0..slots.len() {
        if !out.iter().any(|(listed, _)| *listed == at) {
            out.push((at, 0));
        }
    }
    out
}

/// Adds a trace and its branches, each below the trace that it continues.
fn push_family(parents: &[Option<usize>], at: usize, depth: u16, out: &mut Vec<(usize, u16)>) {
    out.push((at, depth));
    for branch in (0..parents.len()).filter(|branch| parents[*branch] == Some(at)) {
        push_family(parents, branch, depth + 1, out);
    }
}

/// Returns the spread of the repeats that `*` judged: `5 repeats: 4 pass, 1 fail, scores 0.20 to 0.80`.
fn summarize_repeats<'a>(shown: &ShownCell<'_>) -> Option<TextBlock<'a>> {
    let repeats = shown.row.second_opinions.iter();
    let ended: Vec<(Outcome, Option<f64>)> = repeats
        .filter(|slot| slot.repeat.is_some() && !slot.by_human)
        .filter_map(|slot| match &slot.state {
            RowSlotState::Done { outcome, score, .. } => Some((*outcome, *score)),
            RowSlotState::NeverRun | RowSlotState::Live | RowSlotState::Interrupted { .. } => None,
        })
        .collect();
    if ended.len() < 2 {
        return None;
    }
    let count = |wanted| {
        ended
            .iter()
            .filter(|(outcome, _)| *outcome == wanted)
            .count()
    };
    let (pass, fail) = (count(Outcome::Pass), count(Outcome::Fail));
    let mut text = format!("{} repeats: {pass} pass, {fail} fail", ended.len());
    let rest = ended.len() - pass - fail;
    if rest > 0 {
        _ = write!(text, ", {rest} without pass or fail");
    }
    let scores = || ended.iter().filter_map(|(_, score)| *score);
    if scores().next().is_some() {
        let (least, most) = scores().fold((f64::MAX, f64::MIN), |(least, most), score| {
            (least.min(score), most.max(score))
        });
        _ = write!(text, ", scores {least:.2} to {most:.2}");
    }
    let is_stable = pass == ended.len() || fail == ended.len();
    Some(TextBlock::new(
        text,
        if is_stable { Role::Text } else { Role::Warning },
    ))
}

/// Returns the reason why the verdict of a cascade member doesn't decide, or an empty text if it does.
fn explain_ignored_vote(decision: &Decision, judge: Option<u32>) -> &'static str {
    if decision.counts_judge(judge) {
        return "";
    }
    let members = decision.panel.iter().flat_map(|panel| &panel.members);
    let before = decision
        .panel
        .as_ref()
        .and_then(|panel| panel.deciding_member);
    match (members.clone().position(|m| Some(m.judge) == judge), before) {
        // This member judged, but was not certain enough.
        (Some(position), Some(deciding)) if position < deciding => "  unsure, escalated",
        _ => "  not needed: an earlier judge was certain",
    }
}

/// Returns the winner's share of the votes: `; the winner has 2 of 3`.
fn describe_share(decision: &Decision) -> String {
    match decision.winning_share() {
        Some(share) if share.total > 1 => {
            format!("; the winner has {} of {}", share.won, share.total)
        }
        _ => String::new(),
    }
}

/// Returns the first line of a reason, shortened so that it does not fill the pane.
fn first_reason_line(why: &str) -> String {
    // The whole reason appears when the user opens the cell.
    const MOST: usize = 120;
    let line = why.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(MOST).collect();
    // The ellipsis also marks further lines.
    let more = if cut.len() < why.trim_end().len() {
        " …"
    } else {
        ""
    };
    match cut.as_str() {
        "" => String::new(),
        cut => format!("  {cut}{more}"),
    }
}
