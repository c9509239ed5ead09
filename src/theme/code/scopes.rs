//! The mapping from the scopes of a syntax to roles.

use std::sync::OnceLock;

use syntect::highlighting::{
    Color, ScopeSelectors, Style, StyleModifier, Theme, ThemeItem, ThemeSettings,
};

use crate::theme::Role;

/// The selector with the longest match on a token's deepest scope gives its role. Outer scopes only break a tie.
const SCOPE_ROLES: &[(&str, Role)] = &[
    ("comment, punctuation.definition.comment", Role::CodeComment),
    ("string, punctuation.definition.string", Role::CodeString),
    ("constant.numeric", Role::CodeNumber),
    (
        "constant.language, constant.character, constant.other, keyword, storage, support.constant",
        Role::CodeKeyword,
    ),
    (
        "punctuation, keyword.operator.assignment",
        Role::CodePunctuation,
    ),
    (
        // The JSON syntax gives an object's key the scope of a string.
        "meta.structure.dictionary.key string, meta.structure.dictionary.key string punctuation.definition.string",
        Role::CodeKey,
    ),
    (
        "entity.name.function, support.type.property-name, support.function, variable.parameter",
        Role::CodeKey,
    ),
    // The YAML syntax calls a mapping's key a tag, even inside a string scope.
    ("source.yaml entity.name.tag", Role::CodeKey),
    (
        "entity.name.other.anchor, variable.other.alias",
        Role::CodeLink,
    ),
    ("entity.name.tag, meta.tag.sgml.doctype", Role::CodeTag),
    ("entity.other.attribute-name", Role::CodeAttribute),
    // The `&` and `;` of an HTML entity have the role of the entity.
    ("constant.character.entity punctuation", Role::CodeKeyword),
    (
        "markup.heading, entity.name.section, punctuation.definition.heading",
        Role::CodeHeading,
    ),
    (
        "markup.bold, markup.italic, punctuation.definition.bold, punctuation.definition.italic",
        Role::CodeEmphasis,
    ),
    ("markup.underline.link", Role::CodeLink),
    ("markup.raw, markup.raw punctuation", Role::CodeString),
    ("markup.quote", Role::CodeComment),
    ("invalid", Role::Error),
];

/// Returns a syntect theme whose colors encode roles: the red channel is the number of a role, 0 is plain text.
/// syntect returns colors only.
pub(super) fn role_theme() -> &'static Theme {
    static THEME: OnceLock<Theme> = OnceLock::new();
    THEME.get_or_init(|| Theme {
        settings: ThemeSettings {
            foreground: Some(encode_role(Role::Text)),
            ..ThemeSettings::default()
        },
        scopes: SCOPE_ROLES
            .iter()
            .filter_map(|(selectors, role)| {
                // A test checks that every selector parses.
                let scope: ScopeSelectors = selectors.parse().ok()?;
                let style = StyleModifier {
                    foreground: Some(encode_role(*role)),
                    ..StyleModifier::default()
                };
                Some(ThemeItem { scope, style })
            })
            .collect(),
        ..Theme::default()
    })
}

fn encode_role(role: Role) -> Color {
    Color {
        // There are fewer than 256 roles, so the number fits.
        r: role as u8,
        g: 0,
        b: 0,
        a: 0,
    }
}

/// Returns the role of a token, or None for plain text.
pub(super) fn decode_role(style: Style) -> Option<Role> {
    let role = Role::ALL.get(usize::from(style.foreground.r)).copied();
    role.filter(|role| *role != Role::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_selector_parses_and_every_role_decodes() {
        assert_eq!(role_theme().scopes.len(), SCOPE_ROLES.len());
        for role in Role::ALL.iter().skip(1) {
            let style = Style {
                foreground: encode_role(*role),
                ..Style::default()
            };
            assert_eq!(super::decode_role(style), Some(*role));
        }
    }
}
