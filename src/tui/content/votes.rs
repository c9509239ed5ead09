//! The cells of a decision that has several: what each said, what they decided together, and who was asked besides.

use super::{Ink, rich};
use crate::report::words;
use crate::theme::Role;
use crate::tui::model::cells::SlotState;
use crate::tui::model::trace::Shown;
use crate::tui::widget::flow::Block;

/// The cells of a decision that has several, and what they decided together.
pub(super) fn votes<'a>(ink: &Ink<'a>, shown: &Shown<'a>) -> Vec<Block<'a>> {
    if shown.row.all_slots().count() < 2 {
        return Vec::new();
    }
    let desk = ink.model.desk();
    let mut out = Vec::new();
    if let Some(decision) = &shown.row.decision
        && shown.row.slots.len() > 1
    {
        let (mark, role) = ink.mark(decision.outcome);
        let votes = decision.votes;
        out.push(rich([
            (
                format!("by vote {mark} {}", words(decision.outcome)).as_str(),
                role,
            ),
            (
                format!(
                    ": {} pass, {} fail, {} not applicable, {} without a verdict",
                    votes.pass, votes.fail, votes.na, votes.error
                )
                .as_str(),
                Role::Muted,
            ),
        ]));
    }
    for (nth, (at, slot)) in shown.row.all_slots().enumerate() {
        let judge = slot
            .judge
            .and_then(|judge| desk.cells.judges.get(judge as usize));
        let (mark, role, score) = match &slot.state {
            SlotState::Never => (ink.glyphs().never, Role::Muted, None),
            SlotState::Live => (ink.glyphs().live[0], Role::Live, None),
            SlotState::Done { outcome, score, .. } => {
                let (mark, role) = ink.mark(*outcome);
                (mark, role, *score)
            }
        };
        let score = score
            .map(|score| format!(" {score:.2}"))
            .unwrap_or_default();
        let open = at == desk.trace.slot;
        let beside = if nth < shown.row.slots.len() {
            ""
        } else {
            "  asked with J: decides nothing"
        };
        out.push(Block {
            indent: 2,
            lead: if open { ink.glyphs().cursor } else { "" }.into(),
            ..rich([
                (format!("#{} ", nth + 1).as_str(), Role::Muted),
                (judge.map_or("", |(name, _)| name), Role::Text),
                (format!(" {mark}{score}").as_str(), role),
                (beside, Role::Muted),
            ])
        });
    }
    out
}
