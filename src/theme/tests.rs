//! Themes as files, and what is left of them without colors and on poor terminals.

mod contrast;

use std::fs;
use std::path::Path;

use ratatui::style::{Color, Modifier, Style};

use super::*;

/// A theme of a user's file of this text.
fn load_user_theme(text: &str) -> Result<Theme, ThemeError> {
    let dir = tempfile::tempdir().expect("a folder for a test");
    let path = dir.path().join("mine.yaml");
    fs::write(&path, text).expect("a test's file is written");
    Theme::from_file(&path).map_err(|error| strip_folder(error, dir.path()))
}

/// The same error without the folder it happened in.
fn strip_folder(error: ThemeError, dir: &Path) -> ThemeError {
    match error {
        ThemeError::Refused(mut faults) => {
            for fault in &mut faults {
                let below = fault.file.strip_prefix(dir).map(Path::to_owned);
                fault.file = below.unwrap_or_else(|_| fault.file.clone());
            }
            ThemeError::Refused(faults)
        }
        unknown @ ThemeError::Unknown(_) => unknown,
    }
}

fn load_error(text: &str) -> String {
    load_user_theme(text)
        .expect_err("the theme is refused")
        .to_string()
}

fn bundled() -> Vec<Theme> {
    let load = |name| Theme::bundled(name).expect("a bundled theme loads");
    bundled_names().into_iter().map(load).collect()
}

#[test]
fn bundled_themes_load_and_have_a_description() {
    assert_eq!(
        bundled_names(),
        ["dark", "light", "high-contrast", "colour-blind", "ansi"]
    );
    for theme in bundled() {
        assert!(!theme.about.is_empty(), "{}", theme.name);
    }
}

#[test]
fn user_theme_states_only_differences() {
    let mine = load_user_theme("inherits: dark\nroles:\n  pass: {fg: cyan, bold: true}\n")
        .expect("it loads");
    let dark = Theme::bundled("dark").expect("it loads");
    let cyan = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);
    assert_eq!(mine.style(Role::Pass), cyan);
    assert_eq!(mine.style(Role::Towards), cyan, "its children follow");
    assert_eq!(mine.style(Role::Fail), dark.style(Role::Fail));
}

#[test]
fn palette_color_replaces_inherited_color_in_every_role() {
    let mine =
        load_user_theme("inherits: dark\npalette: {green: \"#010203\"}\n").expect("it loads");
    let green = Some(Color::Rgb(1, 2, 3));
    assert_eq!(mine.style(Role::Pass).fg, green);
    assert_eq!(mine.style(Role::CodeString).fg, green);
}

#[test]
fn theme_without_selection_style_shows_selection_by_weight() {
    let mine = load_user_theme("roles:\n  text: {fg: \"#ffffff\", bg: black}\n  accent: red\n")
        .expect("loads");
    let text = Style::new().fg(Color::Rgb(255, 255, 255)).bg(Color::Black);
    let selected = text.add_modifier(Modifier::REVERSED);
    assert_eq!(mine.style(Role::Selected), selected);
    assert_eq!(mine.style(Role::Key), Style::new().fg(Color::Red));
    assert_eq!(mine.style(Role::Towards), text);
}

#[test]
fn theme_error_names_position_and_nearest_name() {
    let cases = [
        (
            "roles:\n  text: \"#fff\"\n  pas: red\n",
            "mine.yaml:2:9: unknown color `#fff`: a name of the palette, \"#rrggbb\", default, or a color of the terminal \
             such as bright-red; mine.yaml:3:3: unknown key `pas`; did you mean `pass`?",
        ),
        (
            "palette: {leaf: \"#00ff00\"}\nroles:\n  pass: leef\n",
            "mine.yaml:3:9: unknown color `leef`; did you mean `leaf`?",
        ),
        (
            "roles:\n  text: {fg: red, blod: true}\n",
            "mine.yaml:2:19: unknown key `blod`; did you mean `bold`?",
        ),
        (
            "palette:\n  leaf: #00ff00\n",
            "mine.yaml:2:7: must be a color (got nothing; is there an unquoted `#rrggbb`?)",
        ),
        (
            "palette: {default: red}\n",
            "mine.yaml:1:11: `default` is already a color; choose another name",
        ),
        (
            "rolls: {}\n",
            "mine.yaml:1:1: unknown key `rolls`; did you mean `roles`?",
        ),
        (
            "inherits: drak\n",
            "mine.yaml:1:11: unknown theme `drak`; did you mean `dark`?",
        ),
        (
            "inherits: ./mine.yaml\n",
            "mine.yaml:1:11: `./mine.yaml` inherits itself",
        ),
        (
            "roles: {text: {bold: yes}}\n",
            "mine.yaml:1:22: bold must be true or false (got the text \"yes\")",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(load_error(text), expected, "{text}");
    }
}

#[test]
fn themes_that_inherit_from_each_other_are_refused() {
    let dir = tempfile::tempdir().expect("a folder for a test");
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).expect("a test's file is written");
        path
    };
    let one = write("one.yaml", "inherits: two.yaml\n");
    write("two.yaml", "inherits: ./one.yaml\n");
    let error = Theme::from_file(&one)
        .expect_err("a circle has no start")
        .to_string();
    assert!(
        error.ends_with("two.yaml:1:11: `./one.yaml` inherits itself"),
        "{error}"
    );

    write("base.yaml", "inherits: light\nroles: {pass: magenta}\n");
    let child = write("child.yaml", "inherits: base.yaml\n");
    let theme = Theme::from_file(&child).expect("it loads");
    assert_eq!(theme.style(Role::Pass).fg, Some(Color::Magenta));
}

#[test]
fn theme_is_chosen_by_name_or_by_file() {
    assert_eq!(Theme::load("light"), Theme::bundled("light"));
    let unknown = Theme::load("hihg-contrast").expect_err("no such theme");
    assert_eq!(
        unknown.to_string(),
        "unknown theme `hihg-contrast`; did you mean `high-contrast`?"
    );
    let missing = Theme::load("./no/such.yaml").expect_err("no such file");
    assert!(
        missing
            .to_string()
            .starts_with("./no/such.yaml: cannot be read: "),
        "{missing}"
    );
}

#[test]
fn hostile_theme_files_are_refused_and_shown() {
    assert_eq!(
        Theme::load("\u{1b}[2J")
            .expect_err("no such theme")
            .to_string(),
        "unknown theme `␛[2J`; the themes are dark, light, high-contrast, colour-blind, ansi (the path of your own \
         file must contain `/` or `.`)"
    );
    let message = load_error("roles: {\"\\e[2J\": red}\n");
    assert!(!message.contains('\u{1b}'), "{message:?}");
    assert!(load_error(&"#".repeat(2 << 20)).contains("larger than"));
    assert_eq!(
        load_error(""),
        "mine.yaml:1:1: the file must be a mapping (got nothing)"
    );
}

#[test]
fn themes_without_colors_distinguish_important_roles() {
    for theme in bundled() {
        let theme = theme.without_color();
        let text = theme.style(Role::Text);
        for role in Role::ALL {
            let style = theme.style(*role);
            assert_eq!(
                (style.fg, style.bg, style.underline_color),
                (None, None, None),
                "{} {role:?}",
                theme.name
            );
        }
        for role in [
            Role::Selected,
            Role::SelectedUnfocused,
            Role::Match,
            Role::BorderFocus,
            Role::Stale,
            Role::Flipped,
            Role::Hunk,
            Role::Hostile,
            Role::Badge,
            Role::Missing,
        ] {
            assert_ne!(theme.style(role), text, "{} {role:?}", theme.name);
        }
        for (one, other) in [
            (Role::BorderFocus, Role::Border),
            (Role::Selected, Role::SelectedUnfocused),
            (Role::Match, Role::Selected),
            (Role::Added, Role::Removed),
            (Role::Stale, Role::Flipped),
        ] {
            assert_ne!(
                theme.style(one),
                theme.style(other),
                "{} {one:?} {other:?}",
                theme.name
            );
        }
        // A match in a selected row is still seen.
        let selected = theme.style(Role::Selected);
        assert_ne!(selected.patch(theme.style(Role::Match)), selected);
    }
}

#[test]
fn selection_and_focus_are_visible_at_every_color_depth() {
    for depth in [
        ColorDepth::TrueColor,
        ColorDepth::Indexed256,
        ColorDepth::Ansi16,
    ] {
        for theme in bundled() {
            let theme = theme.for_depth(depth);
            let text = theme.style(Role::Text);
            for role in Role::ALL {
                let style = theme.style(*role);
                let reversed = style.add_modifier.contains(Modifier::REVERSED);
                let behind = style.bg.or(text.bg);
                let seen = reversed || style.fg != behind || behind == Some(Color::Reset);
                assert!(seen, "{} {role:?} {depth:?}", theme.name);
            }
            for role in [Role::Selected, Role::SelectedUnfocused, Role::Match] {
                let laid = text.patch(theme.style(role));
                assert_ne!(laid, text, "{} {role:?} {depth:?}", theme.name);
            }
            let border = theme.style(Role::Border);
            assert_ne!(theme.style(Role::BorderFocus), border, "{}", theme.name);
        }
    }
}

#[test]
fn reduced_theme_uses_only_colors_of_the_terminal() {
    for theme in bundled() {
        for role in Role::ALL {
            let few = theme.clone().for_depth(ColorDepth::Ansi16).style(*role);
            let more = theme.clone().for_depth(ColorDepth::Indexed256).style(*role);
            for color in [few.fg, few.bg].into_iter().flatten() {
                assert!(!matches!(color, Color::Rgb(..) | Color::Indexed(_)));
            }
            for color in [more.fg, more.bg].into_iter().flatten() {
                assert!(!matches!(color, Color::Rgb(..)));
            }
        }
    }
}

#[test]
fn ansi_theme_is_readable_on_light_and_dark_grounds() {
    let safe = [
        Color::Reset,
        Color::Red,
        Color::Green,
        Color::Magenta,
        Color::Cyan,
    ];
    let theme = Theme::bundled("ansi").expect("it loads");
    for role in Role::ALL {
        let style = theme.style(*role);
        for color in [style.fg, style.bg].into_iter().flatten() {
            assert!(safe.contains(&color), "{role:?}: {color:?}");
        }
    }
}

#[test]
fn replaced_theme_keeps_terminal_settings() {
    let plain = Theme::bundled("dark")
        .expect("it loads")
        .for_depth(ColorDepth::Ansi16)
        .without_color()
        .in_ascii();
    let light = Theme::bundled("light").expect("it loads");
    let switched = plain.replaced_by(light.clone());
    assert_eq!(
        switched,
        light
            .for_depth(ColorDepth::Ansi16)
            .without_color()
            .in_ascii()
    );
    assert_eq!(Theme::default_for(ColorDepth::TrueColor), "dark");
    assert_eq!(Theme::default_for(ColorDepth::Ansi16), "ansi");
}
