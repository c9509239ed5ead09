//! What a style says of how text is shown: a `style` attribute, and rules of the page's own sheets for a tag, class or id.
//! Rules that take more than that to know whether they apply (a place, a state, a medium) are not read.

use std::collections::HashMap;

use super::unshown::{Ground, WHITE};

/// So much of the page's sheets is read, in bytes.
const MAX_SHEETS: usize = 256 << 10;

/// Rules by what they are for: `p`, `.x`, `#x`, `p.x`, `p#x`.
#[derive(Debug, Default)]
pub(super) struct Rules {
    by: HashMap<String, Said>,
    /// The sheet that is being read.
    heard: String,
    taken: usize,
}

/// What was said; `None` where nothing was.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Said {
    none: Option<bool>,
    unseen: Option<bool>,
    clear: Option<bool>,
    tiny: Option<bool>,
    transparent: Option<bool>,
    clipped: Option<bool>,
    pub(super) colour: Option<Ground>,
    pub(super) ground: Option<Ground>,
}

impl Rules {
    /// Takes in a piece of a sheet.
    pub(super) fn hear(&mut self, text: &str) {
        let room = MAX_SHEETS.saturating_sub(self.taken);
        let text = &text[..text.floor_char_boundary(room)];
        self.taken += text.len();
        self.heard.push_str(text);
    }

    /// Learns what was heard. Whether it paints any ground.
    pub(super) fn learn(&mut self) -> bool {
        let sheet = without_comments(&std::mem::take(&mut self.heard));
        let mut rest = sheet.as_str();
        while let Some(at) = rest.find(['{', ';']) {
            let (head, tail) = (rest[..at].trim(), &rest[at + 1..]);
            if rest[at..].starts_with(';') {
                // `@import …;`
                rest = tail;
                continue;
            }
            let end = block_end(tail);
            if !head.starts_with('@') {
                self.rule(head, &tail[..end]);
            }
            rest = tail.get(end + 1..).unwrap_or_default();
        }
        // A sheet that was cut may have said so later.
        sheet.to_ascii_lowercase().contains("background") || self.taken >= MAX_SHEETS
    }

    fn rule(&mut self, heads: &str, body: &str) {
        let said = Said::read(body);
        for head in heads.split(',').map(str::trim) {
            let simple = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '#');
            let marks = head.matches(['.', '#']).count();
            if !head.is_empty() && head.chars().all(simple) && marks <= 1 {
                let tag = head.find(['.', '#']).unwrap_or(head.len());
                let key = head[..tag].to_ascii_lowercase() + &head[tag..];
                self.by.entry(key).or_default().add(&said);
            }
        }
    }

    /// What they say of an element.
    pub(super) fn of(&self, tag: &str, class: &str, id: Option<&str>) -> Said {
        let mut all = Said::default();
        if self.by.is_empty() {
            return all;
        }
        let mut add = |key: &str| {
            if let Some(said) = self.by.get(key) {
                all.add(said);
            }
        };
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

/// Where the block ends that `text` begins inside of.
fn block_end(text: &str) -> usize {
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

impl Said {
    /// Reads declarations.
    pub(super) fn read(style: &str) -> Self {
        let style = without_comments(&style.to_ascii_lowercase());
        let mut said = Self::default();
        // Of two declarations the last counts.
        for (name, value) in style.split(';').filter_map(|said| said.split_once(':')) {
            let value = value.trim().trim_end_matches("!important").trim();
            match name.trim() {
                "display" => said.none = Some(value == "none"),
                "visibility" => said.unseen = Some(matches!(value, "hidden" | "collapse")),
                "opacity" => said.clear = Some(number(value).is_some_and(|n| n <= 0.0)),
                "font-size" => said.tiny = Some(is_tiny(value)),
                "color" => {
                    said.transparent = Some(value == "transparent");
                    said.colour = Some(colour(value).map_or(Ground::Unknown, Ground::Known));
                }
                "background" | "background-color" => {
                    said.ground = match value {
                        "transparent" | "none" | "inherit" => said.ground,
                        value => Some(colour(value).map_or(Ground::Unknown, Ground::Known)),
                    };
                }
                "background-clip" | "-webkit-background-clip" => said.clipped = Some(true),
                "background-image" => said.ground = Some(Ground::Unknown),
                _ => {}
            }
        }
        said
    }

    /// Takes over what is said later.
    pub(super) fn add(&mut self, later: &Self) {
        self.none = later.none.or(self.none);
        self.unseen = later.unseen.or(self.unseen);
        self.clear = later.clear.or(self.clear);
        self.tiny = later.tiny.or(self.tiny);
        self.transparent = later.transparent.or(self.transparent);
        self.clipped = later.clipped.or(self.clipped);
        self.colour = later.colour.or(self.colour);
        self.ground = later.ground.or(self.ground);
    }

    /// Whether nothing is to be seen of the element, whatever is behind it.
    pub(super) fn hides(&self) -> bool {
        let is = |said: Option<bool>| said == Some(true);
        is(self.none)
            || is(self.unseen)
            || is(self.clear)
            || is(self.tiny)
            || (is(self.transparent) && !is(self.clipped))
    }
}

fn without_comments(style: &str) -> String {
    let mut out = String::with_capacity(style.len());
    let mut rest = style;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    out + rest
}

/// The number a value begins with.
fn number(value: &str) -> Option<f64> {
    let end = value
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(value.len());
    value[..end].parse().ok()
}

/// Nothing, or a pixel.
fn is_tiny(value: &str) -> bool {
    let unit =
        value.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
    number(value).is_some_and(|n| n <= 0.0 || (n <= 1.0 && matches!(unit.trim(), "px" | "pt")))
}

/// A colour as 24 bits; `None` for what is not read here.
pub(super) fn colour(value: &str) -> Option<u32> {
    let value = value.trim().to_ascii_lowercase();
    match value.as_str() {
        "white" => return Some(WHITE),
        "black" => return Some(0),
        _ => {}
    }
    if let Some(hex) = value.strip_prefix('#') {
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
    let mut all = inner.split([',', ' ', '/']).filter(|n| !n.is_empty());
    let mut next = || all.next()?.parse::<u8>().ok().map(u32::from);
    Some(next()? << 16 | next()? << 8 | next()?)
}
