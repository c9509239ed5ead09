//! What a thing on the screen is, so that a theme can say what it looks like.

use ratatui::style::Modifier;

/// One row a role: what it is (its documentation), its name in theme files, and its parent.
macro_rules! roles {
    ($($(#[$about:meta])* $role:ident $name:literal < $parent:expr;)+) => {
        /// What a piece of the screen is. Each has a parent whose look it takes where a theme is silent; [`Role::Text`] has
        /// none.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub enum Role {
            $($(#[$about])* $role,)+
        }

        impl Role {
            /// All of them, in the order they are declared.
            pub const ALL: &'static [Self] = &[$(Self::$role,)+];

            /// As theme files call it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$role => $name,)+ }
            }

            /// Whose look it takes where a theme is silent.
            pub const fn parent(self) -> Option<Self> {
                match self { $(Self::$role => $parent,)+ }
            }
        }
    };
}

use Role as R;

roles! {
    /// Everything that is nothing else. Its background is the whole screen's.
    #[default]
    Text "text" < None;
    /// Of less weight: hints, units, what a default says, why something is disabled.
    Muted "muted" < Some(R::Text);
    /// A pane's, an overlay's, a section's name.
    Title "title" < Some(R::Text);
    /// What the eye should find first: the program's name, the tour's step.
    Accent "accent" < Some(R::Title);
    /// A key that can be pressed.
    Key "key" < Some(R::Accent);
    /// Frames and dividers.
    Border "border" < Some(R::Muted);
    /// The frame of the pane that keys go to.
    BorderFocus "border_focus" < Some(R::Accent);
    /// Laid over the row under the cursor. A look without `fg` leaves the row its colours.
    Selected "selected" < Some(R::Text);
    /// The same in a pane that keys do not go to.
    SelectedUnfocused "selected_unfocused" < Some(R::Selected);
    /// Laid over what a search or a filter found.
    Match "match" < Some(R::Accent);
    /// A standing sign: REPLAY, DEMO.
    Badge "badge" < Some(R::Accent);
    /// Progress and scroll bars.
    Bar "bar" < Some(R::Muted);
    /// A message that goes away.
    Toast "toast" < Some(R::Text);
    /// Worth a look before going on: money, a paused watch.
    Warning "warning" < Some(R::Accent);
    /// A judge works on it now.
    Live "live" < Some(R::Accent);
    /// A verdict: passed.
    Pass "pass" < Some(R::Text);
    /// A verdict: failed.
    Fail "fail" < Some(R::Text);
    /// No verdict: something went wrong.
    Error "error" < Some(R::Fail);
    /// No verdict: does not apply.
    NotApplicable "not_applicable" < Some(R::Muted);
    /// No verdict: left out.
    Skipped "skipped" < Some(R::Muted);
    /// A verdict that may not hold any more.
    Stale "stale" < Some(R::Muted);
    /// A verdict that is another than before.
    Flipped "flipped" < Some(R::Accent);
    /// A flip to the human's label.
    Towards "towards" < Some(R::Pass);
    /// A flip away from it.
    Away "away" < Some(R::Fail);
    /// The human's verdict.
    Label "label" < Some(R::Accent);
    /// A line that came.
    Added "added" < Some(R::Pass);
    /// A line that went.
    Removed "removed" < Some(R::Fail);
    /// Where in a file a change stands.
    Hunk "hunk" < Some(R::Accent);
    /// A citation that stands in the transcript.
    Found "found" < Some(R::Pass);
    /// A citation that does not.
    Missing "missing" < Some(R::Fail);
    /// The mark of a character that would not be seen, or obeyed.
    Hostile "hostile" < Some(R::Error);
    /// What a judge thinks aloud.
    Thought "thought" < Some(R::Muted);
    /// Who speaks: the system.
    System "system" < Some(R::Muted);
    /// Who speaks: the user.
    User "user" < Some(R::Title);
    /// Who speaks: the judged agent.
    Assistant "assistant" < Some(R::Title);
    /// Who speaks: a tool, or a call of it.
    Tool "tool" < Some(R::Title);
    /// What the judged agent thought.
    Reasoning "reasoning" < Some(R::Thought);
    /// A mapping's key.
    CodeKey "code_key" < Some(R::Text);
    /// A text in code.
    CodeString "code_string" < Some(R::Text);
    /// A number in code.
    CodeNumber "code_number" < Some(R::CodeString);
    /// `true`, `null`, `&amp;`, `\n`, words of a language.
    CodeKeyword "code_keyword" < Some(R::CodeNumber);
    /// A comment, a quotation.
    CodeComment "code_comment" < Some(R::Muted);
    /// Brackets, commas, colons.
    CodePunctuation "code_punctuation" < Some(R::Muted);
    /// The name of a tag.
    CodeTag "code_tag" < Some(R::CodeKey);
    /// The name of a tag's attribute.
    CodeAttribute "code_attribute" < Some(R::CodeKey);
    /// A heading.
    CodeHeading "code_heading" < Some(R::Title);
    /// Words with emphasis.
    CodeEmphasis "code_emphasis" < Some(R::Text);
    /// The target of a link.
    CodeLink "code_link" < Some(R::Accent);
}

impl Role {
    /// What tells it from text where there are no colours.
    pub(super) const fn fallback_modifier(self) -> Modifier {
        const fn both(a: Modifier, b: Modifier) -> Modifier {
            a.union(b)
        }
        match self {
            R::Selected | R::Toast | R::Hostile => Modifier::REVERSED,
            R::SelectedUnfocused | R::Missing | R::Away | R::CodeLink => Modifier::UNDERLINED,
            R::Match => both(Modifier::REVERSED, Modifier::UNDERLINED),
            R::Badge => both(Modifier::REVERSED, Modifier::BOLD),
            R::Flipped => both(Modifier::BOLD, Modifier::UNDERLINED),
            R::Stale => both(Modifier::DIM, Modifier::ITALIC),
            R::Muted | R::Border | R::CodeComment => Modifier::DIM,
            R::Thought | R::Reasoning | R::CodeEmphasis => Modifier::ITALIC,
            R::Title
            | R::Accent
            | R::Key
            | R::BorderFocus
            | R::Warning
            | R::Live
            | R::Fail
            | R::Error
            | R::Added
            | R::Hunk
            | R::CodeKey
            | R::CodeTag
            | R::CodeHeading => Modifier::BOLD,
            R::Text
            | R::Bar
            | R::Pass
            | R::NotApplicable
            | R::Skipped
            | R::Towards
            | R::Label
            | R::Removed
            | R::Found
            | R::System
            | R::User
            | R::Assistant
            | R::Tool
            | R::CodeString
            | R::CodeNumber
            | R::CodeKeyword
            | R::CodePunctuation
            | R::CodeAttribute => Modifier::empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_descends_from_text() {
        for role in Role::ALL {
            let mut at = *role;
            let mut steps = 0;
            while let Some(parent) = at.parent() {
                at = parent;
                steps += 1;
                assert!(steps < Role::ALL.len(), "{role:?} is its own ancestor");
            }
            assert_eq!(at, Role::Text);
        }
    }

    #[test]
    fn names_are_the_variants_in_snake_case() {
        for role in Role::ALL {
            let mut snake = String::new();
            for c in format!("{role:?}").chars() {
                if c.is_uppercase() && !snake.is_empty() {
                    snake.push('_');
                }
                snake.extend(c.to_lowercase());
            }
            assert_eq!(role.name(), snake);
        }
    }

    #[test]
    fn the_order_of_all_is_the_order_of_styles() {
        for (at, role) in Role::ALL.iter().enumerate() {
            assert_eq!(*role as usize, at);
        }
    }
}
