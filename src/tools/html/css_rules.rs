//! The CSS declarations that decide whether text is visible.
//!
//! Reads `style` attributes, and rules of the page's own `style` elements for a tag, class or id. Skips other
//! selectors (position, state, medium), because their effect depends on more than the element.

use std::collections::HashMap;

/// The limit of CSS that is read per page, in bytes.
const MAX_CSS_BYTES: usize = 256 << 10;

pub(super) const WHITE: u32 = 0x00ff_ffff;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum Background {
    /// No declaration: white, unless a style sheet paints it.
    #[default]
    Unset,
    Known(u32),
    Unknown,
}

/// The rules of a page by selector: `p`, `.x`, `#x`, `p.x`, `p#x`.
#[derive(Debug, Default)]
pub(super) struct StyleRules {
    by_selector: HashMap<String, StyleDeclarations>,
    /// The CSS of the `style` element that is being read.
    pending_css: String,
    bytes_taken: usize,
}

/// Parsed declarations; `None` if the property is absent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StyleDeclarations {
    display_none: Option<bool>,
    visibility_hidden: Option<bool>,
    zero_opacity: Option<bool>,
    tiny_font: Option<bool>,
    transparent_text: Option<bool>,
    background_clipped: Option<bool>,
    pub(super) colour: Option<Background>,
    pub(super) background: Option<Background>,
}

impl StyleRules {
    /// Adds a piece of CSS, up to the limit.
    pub(super) fn push_css(&mut self, text: &str) {
        // Bounds the time for a page with very large style sheets.
        let room = MAX_CSS_BYTES.saturating_sub(self.bytes_taken);
        let text = &text[..text.floor_char_boundary(room)];
        self.bytes_taken += text.len();
        self.pending_css.push_str(text);
    }

    /// Parses the added CSS. Returns true if it may paint a background.
    pub(super) fn parse_pending_css(&mut self) -> bool {
        let sheet = strip_css_comments(&std::mem::take(&mut self.pending_css));
        let mut rest = sheet.as_str();
        while let Some(at) = rest.find(['{', ';']) {
            let (head, tail) = (rest[..at].trim(), &rest[at + 1..]);
            if rest[at..].starts_with(';') {
                // A statement without a block: `@import …;`
                rest = tail;
                continue;
            }
            let end = find_block_end(tail);
            // Rules inside `@media` and others depend on more than the element, so they are skipped.
            if !head.starts_with('@') {
                self.add_rule(head, &tail[..end]);
            }
            rest = tail.get(end + 1..).unwrap_or_default();
        }
        // CSS that was cut at the limit may contain a background later.
        sheet.to_ascii_lowercase().contains("background") || self.bytes_taken >= MAX_CSS_BYTES
    }

    fn add_rule(&mut self, heads: &str, body: &str) {
        let declarations = StyleDeclarations::parse(body);
        for head in heads.split(',').map(str::trim) {
            let simple = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '#');
            // Only a tag, class or id, alone or as tag with one of them. Other selectors depend on the
            // element's ancestors.
            let marks = head.matches(['.', '#']).count();
            if !head.is_empty() && head.chars().all(simple) && marks <= 1 {
                let tag = head.find(['.', '#']).unwrap_or(head.len());
                // HTML compares tag names without case, but classes and ids with case.
                let key = head[..tag].to_ascii_lowercase() + &head[tag..];
                self.by_selector
                    .entry(key)
                    .or_default()
                    .override_with(&declarations);
            }
        }
    }

    /// Combines the declarations that match an element, later and more specific ones last.
    pub(super) fn matching_declarations(
        &self,
        tag: &str,
        class: &str,
        id: Option<&str>,
    ) -> StyleDeclarations {
        let mut all = StyleDeclarations::default();
        if self.by_selector.is_empty() {
            return all;
        }
        let mut add = |key: &str| {
            if let Some(declarations) = self.by_selector.get(key) {
                all.override_with(declarations);
            }
        };
        // The order of specificity: a tag, then a class, then an id.
        add(tag);
        for class in class.split_ascii_whitespace() {
            add(&format!(".{class}"));
            add(&format!("{tag}.{class}"));
        }
        if let Some(id) = id {
            add(&format!("#{id}"));
            add(&format!("{tag}#{id}"));
        }
        all
    }
}

/// Returns the end of the block that `text` starts inside of.
fn find_block_end(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

impl StyleDeclarations {
    /// Parses the declarations of a `style` attribute or a block.
    pub(super) fn parse(style: &str) -> Self {
        let style = strip_css_comments(&style.to_ascii_lowercase());
        let mut declarations = Self::default();
        // The last of two declarations of a property wins.
        for (name, value) in style
            .split(';')
            .filter_map(|declarations| declarations.split_once(':'))
        {
            // A simplification: `!important` does not change which declaration wins.
            let value = value.trim().trim_end_matches("!important").trim();
            match name.trim() {
                "display" => declarations.display_none = Some(value == "none"),
                "visibility" => {
                    declarations.visibility_hidden = Some(matches!(value, "hidden" | "collapse"));
                }
                "opacity" => {
                    declarations.zero_opacity =
                        Some(parse_leading_number(value).is_some_and(|n| n <= 0.0));
                }
                "font-size" => declarations.tiny_font = Some(is_tiny_size(value)),
                "color" => {
                    declarations.transparent_text = Some(value == "transparent");
                    declarations.colour =
                        Some(parse_colour(value).map_or(Background::Unknown, Background::Known));
                }
                "background" | "background-color" => {
                    declarations.background = match value {
                        // These values let the background of the element around it show through.
                        "transparent" | "none" | "inherit" => declarations.background,
                        value => {
                            Some(parse_colour(value).map_or(Background::Unknown, Background::Known))
                        }
                    };
                }
                "background-clip" | "-webkit-background-clip" => {
                    // Text in the color `transparent` with a clipped background is a common visible gradient
                    // effect.
                    declarations.background_clipped = Some(true);
                }
                "background-image" => declarations.background = Some(Background::Unknown),
                _ => {}
            }
        }
        declarations
    }

    /// Replaces properties that `later` declares.
    pub(super) fn override_with(&mut self, later: &Self) {
        self.display_none = later.display_none.or(self.display_none);
        self.visibility_hidden = later.visibility_hidden.or(self.visibility_hidden);
        self.zero_opacity = later.zero_opacity.or(self.zero_opacity);
        self.tiny_font = later.tiny_font.or(self.tiny_font);
        self.transparent_text = later.transparent_text.or(self.transparent_text);
        self.background_clipped = later.background_clipped.or(self.background_clipped);
        self.colour = later.colour.or(self.colour);
        self.background = later.background.or(self.background);
    }

    /// Returns true if the element is invisible on any background.
    pub(super) fn hides_element(&self) -> bool {
        let is = |declarations: Option<bool>| declarations == Some(true);
        is(self.display_none)
            || is(self.visibility_hidden)
            || is(self.zero_opacity)
            || is(self.tiny_font)
            || (is(self.transparent_text) && !is(self.background_clipped))
    }
}

fn strip_css_comments(style: &str) -> String {
    let mut out = String::with_capacity(style.len());
    let mut rest = style;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    out + rest
}

/// Parses the number at the start of a value.
fn parse_leading_number(value: &str) -> Option<f64> {
    let end = value
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(value.len());
    value[..end].parse().ok()
}

/// Returns true for a font size of at most one pixel.
fn is_tiny_size(value: &str) -> bool {
    let unit =
        value.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
    parse_leading_number(value)
        .is_some_and(|n| n <= 0.0 || (n <= 1.0 && matches!(unit.trim(), "px" | "pt")))
}

/// Parses a color as 24 bits of RGB. Returns `None` for a syntax that is not supported.
pub(super) fn parse_colour(value: &str) -> Option<u32> {
    let value = value.trim().to_ascii_lowercase();
    match value.as_str() {
        "white" => return Some(WHITE),
        "black" => return Some(0),
        _ => {}
    }
    if let Some(hex) = value.strip_prefix('#') {
        // Hexadecimal colors have 3, 6 or 8 digits; the last two of 8 are the opacity.
        let n = u32::from_str_radix(hex, 16).ok()?;
        return match hex.len() {
            3 => Some((n >> 8) * 0x0011_0000 + (n >> 4 & 15) * 0x1100 + (n & 15) * 0x11),
            6 => Some(n),
            8 => Some(n >> 8),
            _ => None,
        };
    }
    let inner = value
        .strip_prefix("rgba")
        .or_else(|| value.strip_prefix("rgb"))?;
    let inner = inner.trim().strip_prefix('(')?.strip_suffix(')')?;
    // Both the older form with commas and the newer one with spaces and a slash.
    let mut all = inner.split([',', ' ', '/']).filter(|n| !n.is_empty());
    let mut next = || all.next()?.parse::<u8>().ok().map(u32::from);
    Some(next()? << 16 | next()? << 8 | next()?)
}
