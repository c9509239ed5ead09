//! The colors of the screen: theme files, the style of each role, and syntax highlighting.
//!
//! Responsible for roles and their fallbacks, the bundled themes (`themes/*.yaml`), the glyphs and their ASCII forms,
//! and syntect, whose only home is [`highlight`]. `highlight` returns roles, not colors, so a change of the theme
//! needs no new highlighting. Does not draw: views name roles, never colors. Does not read the environment:
//! [`ColorDepth::detect`] gets its values as arguments.
//!
//! A style is drawn over the existing content: a missing `fg` or `bg` keeps the color below it. So a screen is first
//! filled with [`Role::Text`], whose background is the background of everything else.

mod code;
mod color_depth;
mod glyphs;
mod role;
mod theme_file;

pub use code::{CodeLanguage, StyledSpan, highlight, highlight_while};
pub use color_depth::ColorDepth;
pub use glyphs::Glyphs;
pub use role::Role;
pub use theme_file::{ThemeError, bundled_names, bundled_source};

use std::path::Path;

use ratatui::style::Style;

/// The appearance of the screen: a style for each role, and the glyphs.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    /// The name, as `--theme` accepts it.
    pub name: String,
    /// A description in one line.
    pub about: String,
    styles: Vec<Style>,
    glyphs: Glyphs,
    depth: ColorDepth,
    color: bool,
}

impl Theme {
    fn new(name: &str, about: String, styles: Vec<Style>) -> Self {
        Self {
            name: name.to_owned(),
            about,
            styles,
            glyphs: Glyphs::UNICODE,
            depth: ColorDepth::TrueColor,
            color: true,
        }
    }

    /// Returns the style of a role.
    pub fn style(&self, role: Role) -> Style {
        // The list of styles has the order of `Role::ALL`.
        self.styles[role as usize]
    }

    /// Returns the characters of marks and borders.
    pub fn glyphs(&self) -> &Glyphs {
        &self.glyphs
    }

    /// Returns a bundled theme by name.
    pub fn bundled(name: &str) -> Result<Self, ThemeError> {
        theme_file::load_bundled(name)
    }

    /// Loads the theme of a file.
    pub fn from_file(path: &Path) -> Result<Self, ThemeError> {
        theme_file::load_file(path)
    }

    /// Loads the theme that `--theme` names: a file if the name contains `/` or `.`, else a bundled theme.
    pub fn load(name: &str) -> Result<Self, ThemeError> {
        theme_file::load_named(name)
    }

    /// Returns the name of the default theme. With 16 colors that is `ansi`, which uses the terminal's own colors; a
    /// reduced palette would only approximate them.
    pub const fn default_for(depth: ColorDepth) -> &'static str {
        match depth {
            ColorDepth::TrueColor | ColorDepth::Indexed256 => "dark",
            ColorDepth::Ansi16 => "ansi",
        }
    }

    /// Returns another theme for the same terminal: with the same color depth, colorless and ASCII settings.
    #[must_use]
    pub fn replaced_by(&self, to: Self) -> Self {
        let to = to.for_depth(self.depth);
        let to = if self.color { to } else { to.without_color() };
        if self.glyphs.ascii { to.in_ascii() } else { to }
    }

    /// Reduces the theme to the colors that a terminal can show.
    #[must_use]
    pub fn for_depth(mut self, depth: ColorDepth) -> Self {
        // Copy the plain text style first, because the loop reduces it too.
        let ground = self.style(Role::Text);
        for style in &mut self.styles {
            *style = depth.reduce_style(*style, ground);
        }
        self.depth = depth;
        self
    }

    /// Removes all colors (`NO_COLOR`); roles then differ by weight, reversal and underlining.
    #[must_use]
    pub fn without_color(mut self) -> Self {
        for role in Role::ALL {
            let style = &mut self.styles[*role as usize];
            style.fg = None;
            style.bg = None;
            style.underline_color = None;
            // The theme may set modifiers of its own, so add this one to them.
            *style = style.add_modifier(role.fallback_modifier());
        }
        self.color = false;
        self
    }

    /// Replaces the marks by ASCII characters.
    #[must_use]
    pub fn in_ascii(mut self) -> Self {
        self.glyphs = Glyphs::ASCII;
        self
    }
}

#[cfg(test)]
mod tests;
