//! Theme files → what each role looks like, in colours and without any; and what code is made of.
//!
//! Owns roles with their fallbacks, the bundled themes (`themes/*.yaml`), glyphs with their ASCII forms, and the one home
//! of syntect ([`highlight`]), which tells the *role* of each piece of code, so that a theme change highlights nothing
//! anew. Refuses to know what is drawn: views name roles, never colours.

mod code;
mod file;
mod glyphs;
mod role;

pub use code::{Lang, highlight};
pub use file::{ThemeError, names};
pub use glyphs::Glyphs;
pub use role::Role;

use ratatui::style::Style;

/// How a screen looks: a style a role, and the characters marks are drawn with.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    /// As `--theme` takes it.
    pub name: String,
    styles: Vec<Style>,
    glyphs: Glyphs,
}

impl Theme {
    /// What a role looks like.
    pub fn style(&self, role: Role) -> Style {
        self.styles[role as usize]
    }

    /// The characters of marks, borders and arrows.
    pub fn glyphs(&self) -> &Glyphs {
        &self.glyphs
    }

    /// A bundled theme by its name.
    pub fn bundled(name: &str) -> Result<Self, ThemeError> {
        file::bundled(name)
    }

    /// The same without colours: what differs, differs by weight, reversal and underlining (`NO_COLOR`).
    #[must_use]
    pub fn without_colour(mut self) -> Self {
        for style in &mut self.styles {
            style.fg = None;
            style.bg = None;
            style.underline_color = None;
        }
        self
    }

    /// The same with marks of ASCII alone.
    #[must_use]
    pub fn in_ascii(mut self) -> Self {
        self.glyphs = Glyphs::ASCII;
        self
    }
}
