//! The messages that only the events of a session have.
//!
//! Responsible for sessions without items. In all other sessions, the events repeat the items, so they add nothing.

use super::super::super::fields::RawFields;
use super::super::response_items::ConversationBuilder;
use crate::model::{MessageRole, SourceText, TranscriptPart};

/// The texts of the events `user_message` and `agent_message`, in order.
#[derive(Debug, Default)]
pub(super) struct EventMessages<'a>(Vec<(MessageRole<'static>, SourceText<'a>)>);

impl<'a> EventMessages<'a> {
    /// Adds the text of an event of this type, if the event is a message.
    pub(super) fn add(&mut self, kind: &str, event: &RawFields<'a>) {
        let role = match kind {
            "user_message" => MessageRole::User,
            "agent_message" => MessageRole::Assistant,
            _ => return,
        };
        let text = event.filled_text("message");
        self.0.extend(text.map(|text| (role, text)));
    }

    /// Removes the user's last turns and everything after them.
    pub(super) fn roll_back(&mut self, turns: u64) {
        let roles = self.0.iter().map(|(role, _)| role);
        if let Some(from) = start_of_last_turns(roles, turns) {
            self.0.truncate(from);
        }
    }

    /// Moves the messages to a conversation that has none.
    pub(super) fn move_to(&mut self, conversation: &mut ConversationBuilder<'a>) {
        if !conversation.messages.is_empty() {
            return;
        }
        for (role, text) in self.0.drain(..) {
            conversation.push_message(role, vec![TranscriptPart::Text(text)]);
        }
    }
}

/// Returns the position of the first message of the user's last turns; `None` if there are no such turns.
pub(super) fn start_of_last_turns<'r, 'a: 'r>(
    roles: impl Iterator<Item = &'r MessageRole<'a>>,
    turns: u64,
) -> Option<usize> {
    let users = roles
        .enumerate()
        .filter(|(_, role)| **role == MessageRole::User);
    let users: Vec<usize> = users.map(|(at, _)| at).collect();
    let turns = usize::try_from(turns)
        .unwrap_or(usize::MAX)
        // The file may have lost the turns that were taken back.
        .min(users.len());
    users.get(users.len() - turns).copied()
}
