//! The number of colors that a terminal shows, and the conversion of colors to fewer.

use ratatui::style::{Color, Modifier, Style};

/// The number of colors that a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColorDepth {
    /// Any RGB color.
    TrueColor,
    /// The 240 fixed colors of xterm, and the 16 basic ones.
    Indexed256,
    /// The 16 basic colors, which the user configured in the terminal.
    Ansi16,
}

/// Terminals with all colors that can be recognized by `TERM` alone, because ssh and sudo drop `COLORTERM`.
const TRUE_COLOR_TERMS: &[&str] = &[
    "alacritty",
    "foot",
    "wezterm",
    "xterm-ghostty",
    "xterm-kitty",
];

/// The levels of a channel in xterm's color cube.
const CUBE_LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
/// The 16 basic colors in the order of their numbers.
const ANSI_COLORS: [Color; 16] = [
    Color::Black,
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
    Color::Gray,
    Color::DarkGray,
    Color::LightRed,
    Color::LightGreen,
    Color::LightYellow,
    Color::LightBlue,
    Color::LightMagenta,
    Color::LightCyan,
    Color::White,
];

impl ColorDepth {
    /// Detects the depth from `COLORTERM` and `TERM`.
    pub fn detect(colorterm: Option<&str>, term: Option<&str>) -> Self {
        let term = term.unwrap_or("");
        // GNU screen passes `COLORTERM` on but garbles RGB colors.
        let screen = term.starts_with("screen.");
        let has_rgb = matches!(colorterm, Some("truecolor" | "24bit")) || term.ends_with("-direct");
        if !screen && (has_rgb || TRUE_COLOR_TERMS.iter().any(|name| term.starts_with(name))) {
            Self::TrueColor
        // GNU screen with `COLORTERM` shows 256 colors, although its RGB colors fail.
        } else if has_rgb || term.contains("256col") {
            Self::Indexed256
        } else {
            Self::Ansi16
        }
    }

    /// Reduces a style to this depth. `ground` is the style of plain text.
    pub(super) fn reduce_style(self, look: Style, ground: Style) -> Style {
        match self {
            Self::TrueColor => look,
            Self::Indexed256 => Style {
                fg: look.fg.map(nearest_indexed),
                bg: look.bg.map(nearest_indexed),
                underline_color: look.underline_color.map(nearest_indexed),
                ..look
            },
            Self::Ansi16 => reduce_to_16(look, ground),
        }
    }
}

fn reduce_to_16(look: Style, ground: Style) -> Style {
    let mut reduced = Style {
        fg: look.fg.map(nearest_ansi),
        bg: look.bg.map(nearest_ansi),
        underline_color: look.underline_color.map(nearest_ansi),
        ..look
    };
    // Plain text defines the background, so the comparisons with the background don't apply to it.
    if look == ground {
        return reduced;
    }
    // No basic color is near a tinted background: it would be invisible, or hide one of the colors on it. So
    // use reverse.
    if matches!(look.bg, Some(Color::Rgb(..))) && look.fg.is_none() {
        reduced.bg = None;
        return reduced.add_modifier(Modifier::REVERSED);
    }
    // After the reduction, text and background can be the same color. Then use the plain text color instead.
    let behind = reduced.bg.or(ground.bg.map(nearest_ansi));
    if reduced.fg.is_some() && reduced.fg == behind {
        reduced.fg = ground.fg.map(nearest_ansi);
        if reduced.fg == behind {
            reduced.fg = ground.bg.map(nearest_ansi);
        }
    }
    reduced
}

/// Returns the nearest of the 240 fixed colors, which no user reconfigures.
fn nearest_indexed(color: Color) -> Color {
    let Color::Rgb(r, g, b) = color else {
        return color;
    };
    (16..=u8::MAX)
        .min_by_key(|index| {
            let (r2, g2, b2) = indexed_to_rgb(*index);
            let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
            // The weights approximate the eye's sensitivity to red, green and blue.
            2 * square(r, r2) + 4 * square(g, g2) + 3 * square(b, b2)
        })
        .map_or(color, Color::Indexed)
}

/// Returns the RGB value of one of the 240 fixed colors.
pub(super) fn indexed_to_rgb(index: u8) -> (u8, u8, u8) {
    // The 24 grays from 232 on follow the color cube, in steps of 10.
    if let Some(step) = index.checked_sub(232) {
        let grey = 8 + 10 * step;
        return (grey, grey, grey);
    }
    // The cube has 6×6×6 colors and begins at number 16.
    let at = index.saturating_sub(16);
    let level = |n: u8| CUBE_LEVELS[usize::from(n % 6)];
    (level(at / 36), level(at / 6), level(at))
}

/// Returns a basic color, chosen by hue first. By distance, every pastel color would become gray.
fn nearest_ansi(color: Color) -> Color {
    let Color::Rgb(r, g, b) = color else {
        return color;
    };
    let (low, high) = (r.min(g).min(b), r.max(g).max(b));
    // A low saturation: a gray.
    if u16::from(high - low) * 4 < u16::from(high) {
        return match low.midpoint(high) {
            0..0x40 => Color::Black,
            0x40..0xA0 => Color::DarkGray,
            0xA0..0xD0 => Color::Gray,
            _ => Color::White,
        };
    }
    // A channel above the middle of the lightest and darkest channel belongs to the hue.
    let middle = low.midpoint(high);
    // The basic colors number their hues by bits: red 1, green 2, blue 4.
    let hue = [(r, 1), (g, 2), (b, 4)]
        .iter()
        .filter(|(part, _)| *part > middle)
        .map(|(_, bit)| *bit)
        .sum::<usize>();
    // The bright variant of a color is 8 places later in the list.
    let bright = if high > 0xB0 { 8 } else { 0 };
    ANSI_COLORS[hue + bright]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_depth_is_detected_from_colorterm_and_term() {
        use ColorDepth::{Ansi16, Indexed256, TrueColor};
        let cases = [
            (Some("truecolor"), Some("xterm-256color"), TrueColor),
            (Some("24bit"), Some("tmux-256color"), TrueColor),
            (None, Some("xterm-256color"), Indexed256),
            (Some("yes"), Some("screen-256color"), Indexed256),
            (Some("truecolor"), Some("screen.xterm-256color"), Indexed256),
            (None, Some("xterm-direct"), TrueColor),
            (None, Some("xterm-kitty"), TrueColor),
            (None, Some("foot"), TrueColor),
            (None, Some("linux"), Ansi16),
            (None, Some("xterm"), Ansi16),
            (Some(""), Some("vt220"), Ansi16),
            (None, None, Ansi16),
        ];
        for (colorterm, term, depth) in cases {
            assert_eq!(
                ColorDepth::detect(colorterm, term),
                depth,
                "{colorterm:?} {term:?}"
            );
        }
    }

    #[test]
    fn fixed_colors_reduce_to_themselves() {
        for index in 16..=u8::MAX {
            let (r, g, b) = indexed_to_rgb(index);
            let Color::Indexed(found) = nearest_indexed(Color::Rgb(r, g, b)) else {
                unreachable!("an RGB color is always reduced")
            };
            // Two greys are in both the cube and the ramp.
            assert_eq!(indexed_to_rgb(found), (r, g, b), "{index}");
        }
        assert_eq!(nearest_indexed(Color::Green), Color::Green);
        assert_eq!(nearest_indexed(Color::Reset), Color::Reset);
    }

    #[test]
    fn pastel_keeps_its_hue_among_16_colors() {
        assert_eq!(
            nearest_ansi(Color::Rgb(0x7F, 0xD8, 0x8F)),
            Color::LightGreen
        );
        assert_eq!(nearest_ansi(Color::Rgb(0xFF, 0x7B, 0x85)), Color::LightRed);
        assert_eq!(nearest_ansi(Color::Rgb(0x14, 0x6C, 0x2E)), Color::Green);
        assert_eq!(nearest_ansi(Color::Rgb(0x16, 0x18, 0x1D)), Color::Black);
        assert_eq!(nearest_ansi(Color::Rgb(0xFA, 0xFA, 0xF8)), Color::White);
    }
}
