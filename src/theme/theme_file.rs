//! Theme files: the bundled `themes/<name>.yaml`, and a user's file given with `--theme FILE`.
//!
//! ```yaml
//! about: one line, shown in lists
//! inherits: dark              # optional: a bundled theme or a file next to this one; only differences follow
//! palette:                    # names for colors; an inherited name may get another color
//!   leaf: "#7fd88f"           # quoted, because YAML reads # as a comment
//!   ground: default           # the terminal's own color
//!   ink: bright-white         # black red green yellow blue magenta cyan white, and bright- of each
//! roles:                      # the style of each `Role`, by its name in snake_case
//!   text: {fg: ink, bg: ground}   # bg: the background of the whole screen
//!   pass: leaf                # a color of the palette, or written out
//!   flipped: {fg: leaf, bold: true, underline: true}   # also dim, italic, reverse
//! ```
//!
//! A role in the file replaces the whole inherited style. A missing role has the style of its nearest ancestor in the
//! file ([`Role::parent`]). If that is `text`, it has the weight that it would have without colors, so that a file of
//! three lines still shows the selection. Missing parts of a style keep the color below.
//!
//! Reports unknown keys, roles and colors with their position and the nearest name.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ratatui::style::{Color, Modifier, Style};
use serde_json::Value;

use super::{Role, Theme};
use crate::diag::yaml::{self, DiagnosticCollector, MappingDecoder, YamlDoc, describe_value};
use crate::diag::{Diagnostic, find_nearest};
use crate::model::{escape_pointer_step, make_visible};
use crate::storage::read_regular_text;

/// The bundled themes in the order of lists.
const BUNDLED_THEMES: &[(&str, &str)] = &[
    ("dark", include_str!("../../themes/dark.yaml")),
    ("light", include_str!("../../themes/light.yaml")),
    (
        "high-contrast",
        include_str!("../../themes/high-contrast.yaml"),
    ),
    (
        "colour-blind",
        include_str!("../../themes/colour-blind.yaml"),
    ),
    ("ansi", include_str!("../../themes/ansi.yaml")),
];

/// The terminal colors by name.
const TERMINAL_COLORS: &[(&str, Color)] = &[
    ("default", Color::Reset),
    ("black", Color::Black),
    ("red", Color::Red),
    ("green", Color::Green),
    ("yellow", Color::Yellow),
    ("blue", Color::Blue),
    ("magenta", Color::Magenta),
    ("cyan", Color::Cyan),
    // ratatui calls the colors 7 and 15 `Gray` and `White`.
    ("white", Color::Gray),
    ("bright-black", Color::DarkGray),
    ("bright-red", Color::LightRed),
    ("bright-green", Color::LightGreen),
    ("bright-yellow", Color::LightYellow),
    ("bright-blue", Color::LightBlue),
    ("bright-magenta", Color::LightMagenta),
    ("bright-cyan", Color::LightCyan),
    ("bright-white", Color::White),
];

/// An error in the choice or the file of a theme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThemeError {
    /// The name is neither a bundled theme nor a file. Contains a sentence for the user.
    Unknown(String),
    /// The theme file has errors.
    Refused(Vec<Diagnostic>),
}

impl fmt::Display for ThemeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(why) => f.write_str(why),
            Self::Refused(faults) => {
                for (at, fault) in faults.iter().enumerate() {
                    let between = if at == 0 { "" } else { "; " };
                    write!(f, "{between}{fault}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ThemeError {}

/// Returns the names of the bundled themes.
pub fn bundled_names() -> Vec<&'static str> {
    BUNDLED_THEMES.iter().map(|(name, _)| *name).collect()
}

/// Returns the file of a bundled theme.
pub fn bundled_source(name: &str) -> Option<&'static str> {
    let found = BUNDLED_THEMES.iter().find(|(bundled, _)| *bundled == name);
    found.map(|(_, text)| *text)
}

pub(super) fn load_bundled(name: &str) -> Result<Theme, ThemeError> {
    // Check the name first: `parse_bundled` would report an unknown theme as an empty file.
    if bundled_source(name).is_none() {
        return Err(ThemeError::Unknown(unknown_theme_message(name)));
    }
    let sheet = ThemeFile::parse_bundled(name, &mut Vec::new()).map_err(ThemeError::Refused)?;
    Ok(sheet.to_theme(name))
}

pub(super) fn load_file(path: &Path) -> Result<Theme, ThemeError> {
    let sheet = ThemeFile::from_file(path, &mut Vec::new()).map_err(ThemeError::Refused)?;
    Ok(sheet.to_theme(&path.display().to_string()))
}

pub(super) fn load_named(name: &str) -> Result<Theme, ThemeError> {
    if bundled_source(name).is_none() && is_theme_path(name) {
        load_file(Path::new(name))
    } else {
        load_bundled(name)
    }
}

/// Returns true if the name is a path: no bundled theme has a dot or a slash in its name.
fn is_theme_path(name: &str) -> bool {
    name.contains(['/', '.'])
}

fn unknown_theme_message(name: &str) -> String {
    let visible_name = make_visible(name, false);
    match find_nearest(name, bundled_names()) {
        Some(near) => format!("unknown theme `{visible_name}`; did you mean `{near}`?"),
        None => format!(
            "unknown theme `{visible_name}`; the themes are {} (the path of your own file must contain `/` or `.`)",
            bundled_names().join(", ")
        ),
    }
}

/// A color of a role.
#[derive(Debug, Clone, PartialEq)]
enum ThemeColor {
    /// A name in the palette.
    Named(String),
    /// A color written out.
    Literal(Color),
}

/// The style of a role in the file.
#[derive(Debug, Clone, Default, PartialEq)]
struct RoleLook {
    fg: Option<ThemeColor>,
    bg: Option<ThemeColor>,
    weight: Modifier,
}

/// A theme file combined with those it inherits from.
#[derive(Debug, Default)]
struct ThemeFile {
    about: String,
    palette: HashMap<String, Color>,
    roles: BTreeMap<Role, RoleLook>,
}

impl ThemeFile {
    /// Parses a bundled theme. `chain` contains the files that inherit from it, to find circles.
    fn parse_bundled(name: &str, chain: &mut Vec<PathBuf>) -> Result<Self, Vec<Diagnostic>> {
        let path = PathBuf::from(format!("themes/{name}.yaml"));
        let text = bundled_source(name).unwrap_or_default();
        chain.push(path.clone());
        Self::parse(&Arc::from(text), &path, chain)
    }

    fn from_file(path: &Path, chain: &mut Vec<PathBuf>) -> Result<Self, Vec<Diagnostic>> {
        let refused = |why: String| vec![Diagnostic::error("unreadable", path, why)];
        let text = read_regular_text(path, yaml::MAX_BYTES as u64)
            .map_err(|error| refused(format!("cannot be read: {error}")))?;
        // Canonical paths make two spellings of one file equal, so that the chain finds circles.
        chain.push(path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        Self::parse(&Arc::from(text), path, chain)
    }

    fn parse(
        text: &Arc<str>,
        path: &Path,
        chain: &mut Vec<PathBuf>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let doc = yaml::read_document(text, path)?;
        let problems = DiagnosticCollector::from_doc(&doc);
        let mut fields = MappingDecoder::new(&doc, "", &problems);
        let about = fields.text("about");
        let mut sheet = match fields.text("inherits") {
            None => Self::default(),
            Some(name) => match load_inherited(&name, path, chain) {
                // Errors inside the inherited file end the load, because they belong to another file.
                Ok(sheet) => sheet?,
                Err(why) => {
                    // The name is wrong in this file. Continue, so that the user sees its other errors too.
                    fields.error("inherits", "inherits", why);
                    Self::default()
                }
            },
        };
        // A description belongs to one file and is not inherited.
        sheet.about = about.unwrap_or_default();
        // Read the palette before the roles, which use its names.
        if fields.mapping("palette").is_some() {
            sheet.take_palette(&doc, &problems);
        }
        if let Some(roles) = fields.mapping("roles") {
            sheet.take_roles(roles, &doc, &problems);
        }
        // `finish` reports the keys that were not read, so it comes last.
        fields.finish();
        let faults = problems.into_sorted();
        if faults.is_empty() {
            Ok(sheet)
        } else {
            Err(faults)
        }
    }

    fn take_palette(&mut self, doc: &YamlDoc, problems: &DiagnosticCollector) {
        let Some(Value::Object(palette)) = doc.value.pointer("/palette") else {
            return;
        };
        for (name, value) in palette {
            let pointer = format!("/palette/{}", escape_pointer_step(name));
            // A palette may redefine names such as `green`, but neither `default` nor a literal color.
            if name == "default" || name.starts_with('#') {
                let why = format!("`{name}` is already a color; choose another name");
                problems.error(doc.key_span(&pointer), "value", why);
                continue;
            }
            match value.as_str().and_then(parse_literal_color) {
                Some(color) => {
                    self.palette.insert(name.clone(), color);
                }
                None => problems.error(
                    doc.span(&pointer),
                    "colour",
                    describe_invalid_color(value, []),
                ),
            }
        }
    }

    fn take_roles(
        &mut self,
        mut roles: MappingDecoder<'_>,
        doc: &YamlDoc,
        problems: &DiagnosticCollector,
    ) {
        for role in Role::ALL {
            let look = match roles.value(role.name()) {
                None => continue,
                Some(Value::Object(_)) => {
                    let at = roles.pointer(role.name());
                    self.parse_look(MappingDecoder::new(doc, &at, problems), &roles, *role)
                }
                // Any other value is the foreground color.
                Some(value) => RoleLook {
                    fg: self.parse_color(value, role.name(), &roles),
                    ..RoleLook::default()
                },
            };
            self.roles.insert(*role, look);
        }
        roles.finish();
    }

    fn parse_look(
        &self,
        mut stated: MappingDecoder<'_>,
        roles: &MappingDecoder<'_>,
        role: Role,
    ) -> RoleLook {
        let mut look = RoleLook::default();
        for (key, paint) in [("fg", &mut look.fg), ("bg", &mut look.bg)] {
            if let Some(value) = stated.value(key) {
                *paint = self.parse_color(value, &format!("{}/{key}", role.name()), roles);
            }
        }
        for (key, weight) in [
            ("bold", Modifier::BOLD),
            ("dim", Modifier::DIM),
            ("italic", Modifier::ITALIC),
            ("underline", Modifier::UNDERLINED),
            ("reverse", Modifier::REVERSED),
        ] {
            if stated.boolean(key) == Some(true) {
                look.weight |= weight;
            }
        }
        stated.finish();
        look
    }

    fn parse_color(
        &self,
        value: &Value,
        inside: &str,
        roles: &MappingDecoder<'_>,
    ) -> Option<ThemeColor> {
        if let Some(name) = value.as_str() {
            // The palette precedes the terminal colors, so that a theme can redefine `green`.
            if self.palette.contains_key(name) {
                return Some(ThemeColor::Named(name.to_owned()));
            }
            if let Some(color) = parse_literal_color(name) {
                return Some(ThemeColor::Literal(color));
            }
        }
        let names = self.palette.keys().map(String::as_str);
        roles.error_at(inside, "colour", describe_invalid_color(value, names));
        None
    }

    fn to_theme(&self, name: &str) -> Theme {
        // Resolve palette names only now: a color of this file's palette also changes inherited roles.
        let color = |paint: &Option<ThemeColor>| match paint.as_ref()? {
            ThemeColor::Named(name) => self.palette.get(name).copied(),
            ThemeColor::Literal(color) => Some(*color),
        };
        let style = |look: &RoleLook| Style {
            fg: color(&look.fg),
            bg: color(&look.bg),
            add_modifier: look.weight,
            ..Style::new()
        };
        let styles = Role::ALL
            .iter()
            .map(|role| {
                let ancestors = std::iter::successors(Some(*role), |role| role.parent());
                let stated = ancestors
                    // Only `text` is left as an ancestor, so the role also gets its fallback modifier.
                    .filter(|role| *role != Role::Text)
                    .find_map(|role| self.roles.get(&role));
                stated.map_or_else(
                    || {
                        let text = self.roles.get(&Role::Text).map(style);
                        text.unwrap_or_default()
                            .add_modifier(role.fallback_modifier())
                    },
                    style,
                )
            })
            .collect();
        Theme::new(name, self.about.clone(), styles)
    }
}

/// Loads the theme that a file inherits from. The outer error concerns the name, the inner one the named file.
fn load_inherited(
    name: &str,
    from: &Path,
    chain: &mut Vec<PathBuf>,
) -> Result<Result<ThemeFile, Vec<Diagnostic>>, String> {
    let known = bundled_source(name).is_some();
    if !known && !is_theme_path(name) {
        return Err(unknown_theme_message(name));
    }
    let path = if known {
        // `parse_bundled` adds the same path to the chain.
        PathBuf::from(format!("themes/{name}.yaml"))
    } else {
        // A relative path starts at the folder of the file that contains it.
        let sibling = from.parent().unwrap_or(Path::new("")).join(name);
        sibling.canonicalize().unwrap_or(sibling)
    };
    if chain.contains(&path) {
        return Err(format!("`{}` inherits itself", make_visible(name, false)));
    }
    Ok(if known {
        ThemeFile::parse_bundled(name, chain)
    } else {
        ThemeFile::from_file(&path, chain)
    })
}

/// Parses a color that is written out.
fn parse_literal_color(written: &str) -> Option<Color> {
    if let Some(hex) = written.strip_prefix('#') {
        let hex =
            Some(hex).filter(|hex| hex.len() == 6 && hex.bytes().all(|b| b.is_ascii_hexdigit()))?;
        // All six bytes are ASCII, so the slices end between characters.
        let part = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).ok();
        return Some(Color::Rgb(part(0)?, part(2)?, part(4)?));
    }
    let found = TERMINAL_COLORS.iter().find(|(name, _)| *name == written);
    found.map(|(_, color)| *color)
}

fn describe_invalid_color<'n>(value: &Value, names: impl IntoIterator<Item = &'n str>) -> String {
    let Some(written) = value.as_str() else {
        // YAML reads an unquoted `#rrggbb` as a comment, so the value is null.
        let hint = if value.is_null() {
            "; is there an unquoted `#rrggbb`?"
        } else {
            ""
        };
        return format!("must be a color (got {}{hint})", describe_value(value));
    };
    let mut known: Vec<&str> = names.into_iter().collect();
    known.extend(TERMINAL_COLORS.iter().map(|(name, _)| *name));
    // The palette has no order. Sort, so that the suggestion is always the same.
    known.sort_unstable();
    match find_nearest(written, known) {
        Some(near) => format!("unknown color `{written}`; did you mean `{near}`?"),
        None => format!(
            "unknown color `{written}`: a name of the palette, \"#rrggbb\", default, or a color of the terminal such as bright-red"
        ),
    }
}
