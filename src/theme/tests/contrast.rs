//! Checks that the bundled themes are readable.
//!
//! Measures contrast by WCAG 2, also in the colors that people with red-green color blindness see (Machado, Oliveira,
//! Fernandes 2009).

use ratatui::style::Color;

use super::super::color_depth::indexed_to_rgb;
use super::super::*;

/// The roles that need a contrast of at least 3, as WCAG 2 requires for graphics. All other roles need 4.5.
const FAINT: &[Role] = &[Role::Muted, Role::Stale, Role::Border, Role::Bar];

/// Returns the linear light of an RGB or indexed color.
fn light(color: Color) -> [f64; 3] {
    let (r, g, b) = match color {
        Color::Rgb(r, g, b) => (r, g, b),
        Color::Indexed(index) => indexed_to_rgb(index),
        other => unreachable!("{other:?} is the terminal's"),
    };
    [r, g, b].map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    })
}

fn times(matrix: [[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2])
}

fn contrast(one: Color, other: Color) -> f64 {
    let luminance = |color| {
        let [r, g, b] = light(color);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Returns the contrast of a role's text on each possible background: its own or the screen's, and the selections.
fn contrasts(theme: &Theme, role: Role) -> Vec<(String, f64)> {
    let style = theme.style(role);
    let ground = theme.style(Role::Text).bg.expect("the ground is stated");
    let mut grounds = vec![("its ground".to_owned(), style.bg.unwrap_or(ground))];
    if style.bg.is_none() || role == Role::Text {
        for over in [Role::Selected, Role::SelectedUnfocused] {
            let over_style = theme.style(over);
            if let (None, Some(bg)) = (over_style.fg, over_style.bg) {
                grounds.push((format!("{over:?}"), bg));
            }
        }
    }
    let Some(fg) = style.fg else {
        return Vec::new();
    };
    grounds
        .into_iter()
        .map(|(name, ground)| (name, contrast(fg, ground)))
        .collect()
}

fn check(theme: &Theme, least: f64, least_faint: f64) {
    let mut weak = Vec::new();
    for role in Role::ALL {
        let faint = FAINT.contains(role);
        let least = if faint { least_faint } else { least };
        for (ground, contrast) in contrasts(theme, *role) {
            // Frames are never selected.
            let frame = matches!(role, Role::Border | Role::Bar) && ground != "its ground";
            if contrast < least && !frame {
                weak.push(format!("{role:?} on {ground}: {contrast:.2} < {least}"));
            }
        }
    }
    assert!(weak.is_empty(), "{}: {weak:#?}", theme.name);
}

#[test]
fn contrast_matches_wcag_for_known_pairs() {
    let (black, white) = (Color::Rgb(0, 0, 0), Color::Rgb(255, 255, 255));
    assert!((contrast(black, white) - 21.0).abs() < 1e-9);
    assert!((contrast(Color::Rgb(0x76, 0x76, 0x76), white) - 4.54).abs() < 0.01);
}

#[test]
fn every_theme_can_be_read() {
    for name in ["dark", "light", "colour-blind"] {
        check(&Theme::bundled(name).expect("it loads"), 4.5, 3.0);
    }
    check(
        &Theme::bundled("high-contrast").expect("it loads"),
        7.0,
        7.0,
    );
}

#[test]
fn every_theme_can_be_read_in_256_colors() {
    for name in ["dark", "light", "colour-blind"] {
        let theme = Theme::bundled(name).expect("it loads");
        check(&theme.for_depth(ColorDepth::Indexed256), 4.5, 3.0);
    }
    let theme = Theme::bundled("high-contrast").expect("it loads");
    check(&theme.for_depth(ColorDepth::Indexed256), 7.0, 7.0);
}

/// Converts a color to CIE L*a*b* (D65). A distance of 10 is obvious side by side, 2.3 is barely visible.
fn lab(light: [f64; 3]) -> [f64; 3] {
    const XYZ: [[f64; 3]; 3] = [
        [0.412_456, 0.357_576, 0.180_438],
        [0.212_673, 0.715_152, 0.072_175],
        [0.019_334, 0.119_192, 0.950_304],
    ];
    let [x, y, z] = times(XYZ, light);
    let f = |t: f64| {
        if t > 0.008_856 {
            t.cbrt()
        } else {
            7.787 * t + 16.0 / 116.0
        }
    };
    let (x, y, z) = (f(x / 0.950_47), f(y), f(z / 1.088_83));
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

fn distance(one: Color, other: Color, eye: [[f64; 3]; 3]) -> f64 {
    let seen = |color| lab(times(eye, light(color)).map(|part| part.clamp(0.0, 1.0)));
    let (one, other) = (seen(one), seen(other));
    (0..3)
        .map(|at| (one[at] - other[at]).powi(2))
        .sum::<f64>()
        .sqrt()
}

const PROTANOPIA: [[f64; 3]; 3] = [
    [0.152_286, 1.052_583, -0.204_868],
    [0.114_503, 0.786_281, 0.099_216],
    [-0.003_882, -0.048_116, 1.051_998],
];
const DEUTERANOPIA: [[f64; 3]; 3] = [
    [0.367_322, 0.860_646, -0.227_968],
    [0.280_085, 0.672_501, 0.047_413],
    [-0.011_820, 0.042_940, 0.968_881],
];

#[test]
fn verdicts_differ_with_color_vision_deficiency() {
    let full = Theme::bundled("colour-blind").expect("it loads");
    let few = full.clone().for_depth(ColorDepth::Indexed256);
    let pairs = [
        (Role::Pass, Role::Fail),
        (Role::Pass, Role::Flipped),
        (Role::Fail, Role::Flipped),
        (Role::Pass, Role::Error),
        (Role::Fail, Role::Error),
        (Role::Flipped, Role::Error),
        (Role::Towards, Role::Away),
        (Role::Added, Role::Removed),
        (Role::Found, Role::Missing),
    ];
    for theme in [full, few] {
        let color = |role| theme.style(role).fg.expect("a verdict has a color");
        for (eye, matrix) in [("protanopia", PROTANOPIA), ("deuteranopia", DEUTERANOPIA)] {
            for (one, other) in pairs {
                let apart = distance(color(one), color(other), matrix);
                assert!(apart > 25.0, "{one:?} {other:?} in {eye}: {apart:.1}");
            }
        }
    }
}

#[test]
fn color_vision_simulation_matches_known_values() {
    let (red, green) = (Color::Rgb(200, 60, 60), Color::Rgb(110, 110, 40));
    let normal = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    assert!(distance(red, green, normal) > 50.0);
    assert!(distance(red, green, DEUTERANOPIA) < 20.0);
    let grey = times(PROTANOPIA, [0.5, 0.5, 0.5]);
    assert!(grey.iter().all(|part| (part - 0.5).abs() < 1e-3));
}
