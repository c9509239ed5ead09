//! One line of typed text, with a cursor.

use crossterm::event::{KeyCode, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use unicode_segmentation::UnicodeSegmentation as _;

use super::super::key_chord::KeyChord;
use super::canvas::Canvas;
use super::glyph;
use crate::theme::Role;

/// Bytes a line may take: enough for any filter, too little to slow a frame.
const MAX_LINE_BYTES: usize = 4096;

/// A line being typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LineInput {
    /// What was typed.
    pub(crate) text: String,
    /// The cursor: a byte position on a grapheme boundary.
    pub(crate) cursor: usize,
}

impl LineInput {
    /// A line that holds something already, the cursor behind it.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            cursor: text.len(),
            text,
        }
    }

    /// Takes a key if it means something here; whether it did. Enter, esc, tab, up and down are the caller's.
    pub(crate) fn handle_key(&mut self, chord: KeyChord) -> bool {
        let control = chord.modifiers.contains(KeyModifiers::CONTROL);
        let alt = chord.modifiers.contains(KeyModifiers::ALT);
        match chord.code {
            KeyCode::Char(c) if !control && !alt => self.insert(c),
            KeyCode::Char('w') if control => self.delete_word(),
            KeyCode::Char('u') if control => self.delete_to_start(),
            KeyCode::Char('a') if control => self.move_to_start(),
            KeyCode::Char('e') if control => self.move_to_end(),
            KeyCode::Char('h') if control => self.delete_before(),
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

    /// Puts a character before the cursor. Controls are none.
    pub(crate) fn insert(&mut self, c: char) {
        if !c.is_control() {
            self.insert_text(c.encode_utf8(&mut [0; 4]));
        }
    }

    /// Puts a text before the cursor: line breaks and tabs become spaces, other controls go. Runs nothing.
    pub(crate) fn paste(&mut self, text: &str) {
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

    /// Removes the character before the cursor.
    pub(crate) fn delete_before(&mut self) {
        let from = self.previous_boundary();
        self.remove_range(from, self.cursor());
    }

    /// Removes the character at the cursor.
    pub(crate) fn delete_after(&mut self) {
        let to = self.next_boundary();
        self.remove_range(self.cursor(), to);
    }

    /// Removes the word before the cursor.
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

    /// Removes everything before the cursor.
    pub(crate) fn delete_to_start(&mut self) {
        self.remove_range(0, self.cursor());
    }

    /// One character to the left.
    pub(crate) fn move_left(&mut self) {
        self.cursor = self.previous_boundary();
    }

    /// One character to the right.
    pub(crate) fn move_right(&mut self) {
        self.cursor = self.next_boundary();
    }

    /// To the start.
    pub(crate) fn move_to_start(&mut self) {
        self.cursor = 0;
    }

    /// To the end.
    pub(crate) fn move_to_end(&mut self) {
        self.cursor = self.text.len();
    }

    /// Draws it in one row, the cursor always in sight.
    pub(crate) fn draw<T>(&self, canvas: &mut Canvas<'_, T>, area: Rect, role: Role) {
        let area = canvas.clip(area);
        if area.is_empty() {
            return;
        }
        let (room, cursor) = (usize::from(area.width), self.cursor());
        let style = canvas.style(role);
        let hostile = style.patch(canvas.style(Role::Hostile));
        canvas.blank(Rect { height: 1, ..area });
        // Columns before the cursor and of what is under it decide how far the row is shifted.
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
        let mut at = (None, 1);
        for unit in glyph::split_units(&self.text) {
            let width = unit.width(column);
            if at.0.is_none() && unit.bytes.end > cursor {
                at = (column.checked_sub(shift), width);
            }
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
                // Over a mark, which is reversed already, it is underlined and has the text's own colours.
                let marked = cell.modifier.contains(Modifier::REVERSED);
                cell.set_style(style.add_modifier(Modifier::REVERSED));
                if marked {
                    cell.modifier.insert(Modifier::UNDERLINED);
                }
            }
        }
    }

    /// The cursor, within the text whatever was written into the fields.
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

    /// The nearest cluster boundary at or after a byte: what was typed may have joined what followed.
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
