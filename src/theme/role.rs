//! The roles of the parts of the screen. A theme defines a style for each role.

use ratatui::style::Modifier;

/// One row per role: its documentation, its name in theme files, and its parent.
macro_rules! roles {
    ($($(#[$about:meta])* $role:ident $name:literal < $parent:expr;)+) => {
        /// The role of a part of the screen. A role without a style of its own has the style of its parent.
        /// [`Role::Text`] has no parent.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub enum Role {
            $($(#[$about])* $role,)+
        }

        impl Role {
            /// All roles in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$role,)+];

            /// Returns the name of the role in theme files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$role => $name,)+ }
            }

            /// Returns the role whose style applies if the theme defines none for this one.
            pub const fn parent(self) -> Option<Self> {
                match self { $(Self::$role => $parent,)+ }
            }
        }
    };
}

// A short name keeps each role below on one line.
use Role as R;

roles! {
    /// Everything without another role. Its background is the background of the screen.
    #[default]
    Text "text" < None;
    /// Less important text: hints, units, defaults, reasons why something is disabled.
    Muted "muted" < Some(R::Text);
    /// The name of a pane, an overlay or a section.
    Title "title" < Some(R::Text);
    /// The most prominent text: the program's name, the step of the tour.
    Accent "accent" < Some(R::Title);
    /// A key that the user can press.
    Key "key" < Some(R::Accent);
    /// Frames and dividers.
    Border "border" < Some(R::Muted);
    /// The frame of the focused pane.
    BorderFocus "border_focus" < Some(R::Accent);
    /// Drawn over the row under the cursor. A style without `fg` keeps the row's colors.
    Selected "selected" < Some(R::Text);
    /// The same in a pane without focus.
    SelectedUnfocused "selected_unfocused" < Some(R::Selected);
    /// Drawn over the matches of a search or filter.
    Match "match" < Some(R::Accent);
    /// A permanent badge: REPLAY, DEMO.
    Badge "badge" < Some(R::Accent);
    /// Progress and scroll bars.
    Bar "bar" < Some(R::Muted);
    /// A message that disappears.
    Toast "toast" < Some(R::Text);
    /// A warning: cost, a paused watch.
    Warning "warning" < Some(R::Accent);
    /// A cell or step that is running.
    Live "live" < Some(R::Accent);
    /// The outcome pass.
    Pass "pass" < Some(R::Text);
    /// The outcome fail.
    Fail "fail" < Some(R::Text);
    /// An error outcome, without a verdict.
    Error "error" < Some(R::Fail);
    /// The outcome `not_applicable`.
    NotApplicable "not_applicable" < Some(R::Muted);
    /// The outcome `skipped`.
    Skipped "skipped" < Some(R::Muted);
    /// A stale verdict.
    Stale "stale" < Some(R::Muted);
    /// A verdict that differs from the previous one.
    Flipped "flipped" < Some(R::Accent);
    /// A flip that now agrees with the label.
    Towards "towards" < Some(R::Pass);
    /// A flip that no longer agrees with the label.
    Away "away" < Some(R::Fail);
    /// The label of a person.
    Label "label" < Some(R::Accent);
    /// An added line of a diff.
    Added "added" < Some(R::Pass);
    /// A removed line of a diff.
    Removed "removed" < Some(R::Fail);
    /// The position line of a diff hunk.
    Hunk "hunk" < Some(R::Accent);
    /// A citation that occurs in its source.
    Found "found" < Some(R::Pass);
    /// A citation that does not occur in its source.
    Missing "missing" < Some(R::Fail);
    /// The mark that replaces an invisible or control character.
    Hostile "hostile" < Some(R::Error);
    /// The reasoning text of a judge.
    Thought "thought" < Some(R::Muted);
    /// The heading of a system message.
    System "system" < Some(R::Muted);
    /// The heading of a user message.
    User "user" < Some(R::Title);
    /// The heading of a message of the judged agent.
    Assistant "assistant" < Some(R::Title);
    /// The heading of a tool call or result.
    Tool "tool" < Some(R::Title);
    /// The reasoning of the judged agent.
    Reasoning "reasoning" < Some(R::Thought);
    /// The key of a mapping in code.
    CodeKey "code_key" < Some(R::Text);
    /// A string in code.
    CodeString "code_string" < Some(R::Text);
    /// A number in code.
    CodeNumber "code_number" < Some(R::CodeString);
    /// A keyword or constant in code: `true`, `null`, `&amp;`, `\n`.
    CodeKeyword "code_keyword" < Some(R::CodeNumber);
    /// A comment or quotation in code.
    CodeComment "code_comment" < Some(R::Muted);
    /// Brackets, commas and colons in code.
    CodePunctuation "code_punctuation" < Some(R::Muted);
    /// The name of a tag.
    CodeTag "code_tag" < Some(R::CodeKey);
    /// The name of a tag's attribute.
    CodeAttribute "code_attribute" < Some(R::CodeKey);
    /// A heading in Markdown.
    CodeHeading "code_heading" < Some(R::Title);
    /// Emphasized text in Markdown.
    CodeEmphasis "code_emphasis" < Some(R::Text);
    /// The target of a link.
    CodeLink "code_link" < Some(R::Accent);
}

impl Role {
    /// Returns the modifier that distinguishes the role from plain text on a screen without colors.
    pub(super) const fn fallback_modifier(self) -> Modifier {
        // `union` is a const function; the operator `|` is not.
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
    fn role_numbers_follow_the_order_of_all() {
        for (at, role) in Role::ALL.iter().enumerate() {
            assert_eq!(*role as usize, at);
        }
    }
}
