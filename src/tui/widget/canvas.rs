//! Where views draw: the buffer, the theme, and the places a click would hit.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::super::msg::Target;
use crate::theme::{Glyphs, Role, Theme};

/// What lies where, in drawing order; the last one wins.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Hits(pub(crate) Vec<(Rect, Target)>);

impl Hits {
    /// What a click at a position means.
    pub(crate) fn at(&self, column: u16, row: u16) -> Option<&(Rect, Target)> {
        let position = Position::new(column, row);
        self.0
            .iter()
            .rev()
            .find(|(area, _)| area.contains(position))
    }
}

/// A screen while it is drawn.
pub(crate) struct Canvas<'a> {
    /// The cells; write through the methods here.
    pub(crate) buffer: &'a mut Buffer,
    /// How things look.
    pub(crate) theme: &'a Theme,
    /// What a click would hit.
    pub(crate) hits: Hits,
}

impl<'a> Canvas<'a> {
    /// A canvas over a buffer.
    pub(crate) fn new(buffer: &'a mut Buffer, theme: &'a Theme) -> Self {
        Self {
            buffer,
            theme,
            hits: Hits::default(),
        }
    }

    /// The style of a role.
    pub(crate) fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }

    /// The marks.
    pub(crate) fn glyphs(&self) -> &'a Glyphs {
        self.theme.glyphs()
    }

    /// Notes what a click there means.
    pub(crate) fn hit(&mut self, area: Rect, target: Target) {
        self.hits.0.push((area, target));
    }
}
