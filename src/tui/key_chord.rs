//! One form for each key: the type [`KeyChord`], its text form and its parser.
//!
//! Terminals send one key in several ways: shift with a letter or the capital, ctrl-i for tab. [`KeyChord`] has one
//! form for each. The text form is `a`, `R`, `ctrl-c`, `shift-tab`, `space` or `]`. A capital letter is the letter
//! with shift.

use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyChord {
    /// The key.
    pub(crate) code: KeyCode,
    /// The modifiers ctrl and alt. Shift is set only if the key is not a character.
    pub(crate) modifiers: KeyModifiers,
}

impl KeyChord {
    /// Converts an event of the terminal.
    pub(crate) fn from_event(event: KeyEvent) -> Self {
        Self::normalize(event.code, event.modifiers)
    }

    /// Returns a key without modifiers.
    pub(crate) const fn plain(code: KeyCode) -> Self {
        Self {
            code,
            modifiers: KeyModifiers::NONE,
        }
    }

    /// Converts the variants that terminals send for one key to one form.
    fn normalize(code: KeyCode, modifiers: KeyModifiers) -> Self {
        // Other modifiers, such as super, are used by no command.
        let mut modifiers =
            modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        let mut code = code;
        if let KeyCode::Char(c) = code {
            if modifiers.contains(KeyModifiers::CONTROL) {
                // Older terminals send the same control character for both keys.
                let key = match c.to_ascii_lowercase() {
                    'i' => KeyCode::Tab,
                    'm' | 'j' => KeyCode::Enter,
                    'h' => KeyCode::Backspace,
                    '[' => KeyCode::Esc,
                    other => KeyCode::Char(other),
                };
                if !matches!(key, KeyCode::Char(_)) {
                    modifiers.remove(KeyModifiers::CONTROL);
                }
                code = key;
            } else if modifiers.contains(KeyModifiers::SHIFT) {
                // Some terminals send `a` with shift, others send `A`.
                code = KeyCode::Char(c.to_ascii_uppercase());
            }
            // The character already contains the shift, so one key has one form.
            modifiers.remove(KeyModifiers::SHIFT);
        }
        // Terminals send shift-tab as Tab with shift or as BackTab.
        if code == KeyCode::Tab && modifiers.contains(KeyModifiers::SHIFT) {
            code = KeyCode::BackTab;
        }
        if code == KeyCode::BackTab {
            modifiers.insert(KeyModifiers::SHIFT);
        }
        Self { code, modifiers }
    }
}

const NAMED_KEYS: [(&str, KeyCode); 17] = [
    ("space", KeyCode::Char(' ')),
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backtab", KeyCode::BackTab),
    ("backspace", KeyCode::Backspace),
    ("del", KeyCode::Delete),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("minus", KeyCode::Char('-')),
    ("plus", KeyCode::Char('+')),
];

impl fmt::Display for KeyChord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The table contains `backtab`, but people know the key as shift-tab.
        if self.code == KeyCode::BackTab {
            return f.write_str("shift-tab");
        }
        for (modifier, name) in [
            (KeyModifiers::CONTROL, "ctrl-"),
            (KeyModifiers::ALT, "alt-"),
            (KeyModifiers::SHIFT, "shift-"),
        ] {
            if self.modifiers.contains(modifier) {
                f.write_str(name)?;
            }
        }
        match (
            NAMED_KEYS.iter().find(|(_, code)| *code == self.code),
            self.code,
        ) {
            // Help shows the character itself. The names `minus` and `plus` are only for parsing.
            (_, KeyCode::Char('-')) => f.write_str("-"),
            (_, KeyCode::Char('+')) => f.write_str("+"),
            (Some((name, _)), _) => f.write_str(name),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, KeyCode::F(n)) => write!(f, "f{n}"),
            (None, code) => write!(f, "{code:?}"),
        }
    }
}

/// A text that names no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` isn't a key")]
pub(crate) struct KeySyntaxError {
    text: String,
}

impl FromStr for KeyChord {
    type Err = KeySyntaxError;

    fn from_str(text: &str) -> Result<Self, KeySyntaxError> {
        // `shift-` plus `tab` would parse as another key code.
        if text == "shift-tab" {
            return Ok(Self {
                code: KeyCode::BackTab,
                modifiers: KeyModifiers::SHIFT,
            });
        }
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text;
        loop {
            let (modifier, after) = if let Some(after) = rest.strip_prefix("ctrl-") {
                (KeyModifiers::CONTROL, after)
            } else if let Some(after) = rest.strip_prefix("alt-") {
                (KeyModifiers::ALT, after)
            } else if let Some(after) = rest.strip_prefix("shift-") {
                (KeyModifiers::SHIFT, after)
            } else {
                break;
            };
            modifiers |= modifier;
            rest = after;
        }
        let mut chars = rest.chars();
        // A text of one character is that character, also `-`.
        let code = match (chars.next(), chars.next()) {
            (Some(c), None) => KeyCode::Char(c),
            _ => NAMED_KEYS
                .iter()
                .find(|(name, _)| *name == rest)
                .map(|(_, code)| *code)
                .or_else(|| parse_function_key(rest))
                .ok_or_else(|| KeySyntaxError {
                    text: text.to_owned(),
                })?,
        };
        // A parsed key must be equal to the key that a terminal sends.
        Ok(Self::normalize(code, modifiers))
    }
}

fn parse_function_key(text: &str) -> Option<KeyCode> {
    let number: u8 = text.strip_prefix('f')?.parse().ok()?;
    // Terminals report up to 24 function keys.
    (1..=24).contains(&number).then_some(KeyCode::F(number))
}

#[cfg(test)]
mod tests;
