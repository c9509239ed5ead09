//! Theme files → what each role looks like, in colours and without any; and what code is made of.
//!
//! Owns roles with their fallbacks, the bundled themes (`themes/*.yaml`), glyphs with their ASCII forms, and the one home
//! of syntect ([`highlight`]), which tells the *role* of each piece of code, so that a theme change highlights nothing
//! anew. Refuses to know what is drawn: views name roles, never colours; and to look at the environment: [`Depth::of`] is
//! told what stands there.
//!
//! A look is laid over what is there: `fg` or `bg` it does not state shows through. So a screen is first filled with
//! [`Role::Text`], whose background is the ground everything else stands on.

mod code;
mod color_depth;
mod glyphs;
mod role;
mod theme_file;

pub use code::{CodeLanguage, highlight, highlight_while};
pub use color_depth::ColorDepth;
pub use glyphs::Glyphs;
pub use role::Role;
pub use theme_file::{ThemeError, bundled_names, bundled_source};

use std::path::Path;

use ratatui::style::Style;

/// How a screen looks: a style a role, and the characters marks are drawn with.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    /// As `--theme` takes it.
    pub name: String,
    /// A line about it.
    pub about: String,
    styles: Vec<Style>,
    glyphs: Glyphs,
    depth: ColorDepth,
    colour: bool,
}

impl Theme {
    fn new(name: &str, about: String, styles: Vec<Style>) -> Self {
        Self {
            name: name.to_owned(),
            about,
            styles,
            glyphs: Glyphs::UNICODE,
            depth: ColorDepth::TrueColour,
            colour: true,
        }
    }

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
        theme_file::load_bundled(name)
    }

    /// The theme of a user's file.
    pub fn from_file(path: &Path) -> Result<Self, ThemeError> {
        theme_file::load_file(path)
    }

    /// What `--theme` names: a bundled theme, else a file (with a `/` or a `.` in it).
    pub fn load(name: &str) -> Result<Self, ThemeError> {
        theme_file::load_named(name)
    }

    /// The theme of someone who chose none. `ansi` takes the terminal's own 16 colours, which a palette reduced to 16
    /// would only guess at.
    pub const fn default_for(depth: ColorDepth) -> &'static str {
        match depth {
            ColorDepth::TrueColour | ColorDepth::Indexed256 => "dark",
            ColorDepth::Ansi16 => "ansi",
        }
    }

    /// Another theme on the same terminal: in its depth, without colours and in ASCII where this one is.
    #[must_use]
    pub fn replaced_by(&self, to: Self) -> Self {
        let to = to.for_depth(self.depth);
        let to = if self.colour { to } else { to.without_colour() };
        if self.glyphs.ascii { to.in_ascii() } else { to }
    }

    /// The same in the colours a terminal can show.
    #[must_use]
    pub fn for_depth(mut self, depth: ColorDepth) -> Self {
        let ground = self.style(Role::Text);
        for style in &mut self.styles {
            *style = depth.reduce_style(*style, ground);
        }
        self.depth = depth;
        self
    }

    /// The same without colours: what differs, differs by weight, reversal and underlining (`NO_COLOR`).
    #[must_use]
    pub fn without_colour(mut self) -> Self {
        for role in Role::ALL {
            let style = &mut self.styles[*role as usize];
            style.fg = None;
            style.bg = None;
            style.underline_color = None;
            *style = style.add_modifier(role.fallback_modifier());
        }
        self.colour = false;
        self
    }

    /// The same with marks of ASCII alone.
    #[must_use]
    pub fn in_ascii(mut self) -> Self {
        self.glyphs = Glyphs::ASCII;
        self
    }
}

#[cfg(test)]
mod contrast_tests;
#[cfg(test)]
mod tests;
