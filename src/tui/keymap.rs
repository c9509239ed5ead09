//! Keys as text and back, and which command a key means where.
//!
//! Owns [`Chord`]: `a`, `R`, `ctrl-c`, `shift-tab`, `space`, `]`. A capital letter is the letter with shift.

use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with its modifiers, as one presses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Chord {
    /// The key.
    pub(crate) code: KeyCode,
    /// ctrl and alt; shift only where the key is no character.
    pub(crate) modifiers: KeyModifiers,
}

impl Chord {
    /// From a terminal's event.
    pub(crate) fn of(event: KeyEvent) -> Self {
        let mut modifiers =
            event.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        if matches!(event.code, KeyCode::Char(_)) {
            modifiers.remove(KeyModifiers::SHIFT);
        }
        if event.code == KeyCode::BackTab {
            modifiers.insert(KeyModifiers::SHIFT);
        }
        Self {
            code: event.code,
            modifiers,
        }
    }
}

const NAMED: [(&str, KeyCode); 17] = [
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

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        match (NAMED.iter().find(|(_, code)| *code == self.code), self.code) {
            (_, KeyCode::Char('-')) => f.write_str("-"),
            (_, KeyCode::Char('+')) => f.write_str("+"),
            (Some((name, _)), _) => f.write_str(name),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, KeyCode::F(n)) => write!(f, "f{n}"),
            (None, code) => write!(f, "{code:?}"),
        }
    }
}

impl FromStr for Chord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
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
        let code = match (chars.next(), chars.next()) {
            (Some(c), None) => KeyCode::Char(c),
            _ => NAMED
                .iter()
                .find(|(name, _)| *name == rest)
                .map(|(_, code)| *code)
                .ok_or_else(|| format!("`{text}` is no key"))?,
        };
        Ok(Self { code, modifiers })
    }
}
