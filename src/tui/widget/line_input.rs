//! A line of typed text with a cursor. Responsible for editing and drawing; the caller handles enter, esc and tab.

use crossterm::event::{KeyCode, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use unicode_segmentation::UnicodeSegmentation as _;

use super::super::key_chord::KeyChord;
use super::canvas::Canvas;
use super::glyph;
use crate::theme::Role;

/// The longest line, in bytes: enough for any filter, and short enough to draw in every frame.
const MAX_LINE_BYTES: usize = 4096;

/// A line of typed text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LineInput {
    /// The typed text.
    pub(crate) text: String,
    /// The cursor: a byte position on a grapheme boundary.
    pub(crate) cursor: usize,
    /// True for a suggestion, which the first typed character replaces.
    is_suggestion: bool,
}

impl LineInput {
    /// Returns a line with a text, and the cursor after it.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            cursor: text.len(),
            text,
            is_suggestion: false,
        }
    }

    /// Returns a line with a suggestion. The first typed character replaces it; other keys edit it.
    pub(crate) fn suggestion(text: impl Into<String>) -> Self {
        Self {
            is_suggestion: true,
            ..Self::new(text)
        }
    }

    /// Handles a key that edits the line. Returns false for other keys, such as enter, esc, tab, up and down.
    pub(crate) fn handle_key(&mut self, chord: KeyChord) -> bool {
        let control = chord.modifiers.contains(KeyModifiers::CONTROL);
        let alt = chord.modifiers.contains(KeyModifiers::ALT);
        let is_typed = matches!(chord.code, KeyCode::Char(_)) && !control && !alt;
        self.drop_suggestion(is_typed);
        match chord.code {
            KeyCode::Char(c) if !control && !alt => self.insert(c),
            KeyCode::Char('w') if control => self.delete_word(),
            KeyCode::Char('u') if control => self.delete_to_start(),
            KeyCode::Char('a') if control => self.move_to_start(),
            KeyCode::Char('e') if control => self.move_to_end(),
            // Some terminals send ctrl-h for the backspace key.
            KeyCode::Char('h') if control => self.delete_before(),
            // Terminals differ in the modifier that they send for deleting a word.
            KeyCode::Backspace if alt || control => self.delete_word(),
            KeyCode::Backspace => self.delete_before(),
            KeyCode::Delete => self.delete_after(),
            KeyCode::Left => self.move_left(),
            KeyCode::Right => self.move_right(),
            KeyCode::Home => self.move_to_start(),
            KeyCode::End => self.move_to_end(),
            _ => return false,
        }
        true
    }

    /// Ends a suggestion, and deletes it if the user types another text.
    fn drop_suggestion(&mut self, is_typed: bool) {
        if std::mem::take(&mut self.is_suggestion) && is_typed {
            self.text.clear();
            self.cursor = 0;
        }
    }

    /// Inserts a character before the cursor. Ignores control characters.
    pub(crate) fn insert(&mut self, c: char) {
        if !c.is_control() {
            self.insert_text(c.encode_utf8(&mut [0; 4]));
        }
    }

    /// Inserts a text before the cursor. Replaces line breaks and tabs by spaces and drops other control characters,
    /// so a paste runs no command.
    pub(crate) fn paste(&mut self, text: &str) {
        self.drop_suggestion(true);
        // Cut first, so that the cost of a huge paste is small.
        let end = text.floor_char_boundary(MAX_LINE_BYTES);
        let clean: String = text[..end]
            .replace("\r\n", "\n")
            .chars()
            .map(|c| {
                if matches!(c, '\n' | '\r' | '\t') {
                    ' '
                } else {
                    c
                }
            })
            .filter(|c| !c.is_control())
            .collect();
        self.insert_text(&clean);
    }

    /// Deletes the character before the cursor.
    pub(crate) fn delete_before(&mut self) {
        let from = self.previous_boundary();
        self.remove_range(from, self.cursor());
    }

    /// Deletes the character at the cursor.
    pub(crate) fn delete_after(&mut self) {
        let to = self.next_boundary();
        self.remove_range(self.cursor(), to);
    }

    /// Deletes the word before the cursor.
    pub(crate) fn delete_word(&mut self) {
        let head = &self.text[..self.cursor()];
        let word = head.trim_end();
        let from = word
            .char_indices()
            .rev()
            .find(|(_, c)| c.is_whitespace())
            .map_or(0, |(at, c)| at + c.len_utf8());
        self.remove_range(from, self.cursor());
    }

    /// Deletes everything before the cursor.
    pub(crate) fn delete_to_start(&mut self) {
        self.remove_range(0, self.cursor());
    }

    /// Moves the cursor one character to the left.
    pub(crate) fn move_left(&mut self) {
        self.cursor = self.previous_boundary();
    }

    /// Moves the cursor one character to the right.
    pub(crate) fn move_right(&mut self) {
        self.cursor = self.next_boundary();
    }

    /// Moves the cursor to the start.
    pub(crate) fn move_to_start(&mut self) {
        self.cursor = 0;
    }

    /// Moves the cursor to the end.
    pub(crate) fn move_to_end(&mut self) {
        self.cursor = self.text.len();
    }

    /// Draws the line in one row and scrolls it so that the cursor is visible.
    pub(crate) fn draw<T>(&self, canvas: &mut Canvas<'_, T>, area: Rect, role: Role) {
        let area = canvas.clip(area);
        if area.is_empty() {
            return;
        }
        let (room, cursor) = (usize::from(area.width), self.cursor());
        let style = canvas.style(role);
        let hostile = style.patch(canvas.style(Role::Hostile));
        canvas.blank(Rect { height: 1, ..area });
        // The columns before and under the cursor determine the horizontal scroll position.
        let mut column = 0;
        let mut under = 1;
        for unit in glyph::split_units(&self.text) {
            if unit.bytes.end > cursor {
                under = unit.width(column);
                break;
            }
            column += unit.width(column);
        }
        let shift = (column + under).saturating_sub(room).min(column);
        let mut column = 0;
        // The column and the width of the cursor.
        let mut at = (None, 1);
        for unit in glyph::split_units(&self.text) {
            let width = unit.width(column);
            if at.0.is_none() && unit.bytes.end > cursor {
                at = (column.checked_sub(shift), width);
            }
            // A unit that begins left of the visible part is left out.
            if column >= shift {
                canvas.draw_unit(area, column - shift, &unit, style, hostile);
            }
            column += width;
            if column >= shift + room {
                break;
            }
        }
        let (from, wide) = (at.0.unwrap_or(column - shift), at.1.max(1));
        for column in from.min(room - 1)..(from + wide).min(room) {
            let x = area.x + u16::try_from(column).unwrap_or(0);
            if let Some(cell) = canvas.buffer.cell_mut((x, area.y)) {
                // A mark is already reversed, so on it the cursor is underlined, in the colors of the text.
                let marked = cell.modifier.contains(Modifier::REVERSED);
                cell.set_style(style.add_modifier(Modifier::REVERSED));
                if marked {
                    cell.modifier.insert(Modifier::UNDERLINED);
                }
            }
        }
    }

    /// Returns the cursor, limited to the text, because other code can write to the fields.
    fn cursor(&self) -> usize {
        self.text.floor_char_boundary(self.cursor)
    }

    fn previous_boundary(&self) -> usize {
        let head = &self.text[..self.cursor()];
        head.grapheme_indices(true)
            .next_back()
            .map_or(0, |(at, _)| at)
    }

    fn next_boundary(&self) -> usize {
        let cursor = self.cursor();
        let next = self.text[cursor..].graphemes(true).next();
        cursor + next.map_or(0, str::len)
    }

    fn insert_text(&mut self, text: &str) {
        let cursor = self.cursor();
        let room = MAX_LINE_BYTES.saturating_sub(self.text.len());
        let text = &text[..text.floor_char_boundary(room)];
        self.text.insert_str(cursor, text);
        self.cursor = self.boundary_at_or_after(cursor + text.len());
    }

    fn remove_range(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = self.boundary_at_or_after(from);
    }

    /// Returns the grapheme boundary at or after a byte: a typed character may have joined the following one.
    fn boundary_at_or_after(&self, byte: usize) -> usize {
        self.text
            .grapheme_indices(true)
            .map(|(at, _)| at)
            .find(|at| *at >= byte)
            .unwrap_or(self.text.len())
    }
}

#[cfg(test)]
mod tests;
