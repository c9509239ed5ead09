//! The warnings of a workspace: those of loading it, and those that `dicta check` finds. Each appears once in the log.

use std::collections::HashSet;
use std::sync::Arc;

use indexmap::IndexSet;

use crate::diag::Diagnostic;
use crate::model::{make_visible, pluralize};
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::notices::{NoticeLevel, Notices};
use crate::workspace::Workspace;

/// Orders the warnings that need the transcripts or the verdicts.
pub(super) fn request_warnings(app: &mut App, workspace: &Arc<Workspace>) -> Effect {
    app.warnings_number += 1;
    Effect::FindWarnings {
        number: app.warnings_number,
        workspace: Arc::clone(workspace),
    }
}

/// Adds the found warnings to the log.
pub(super) fn handle_found(app: &mut App, number: u64, warnings: &[Diagnostic]) -> Vec<Effect> {
    // A newer order replaced this one.
    if number == app.warnings_number {
        report_new(app, warnings);
    }
    Vec::new()
}

/// Adds the warnings that are not in the log yet, and shows one notice about them.
pub(super) fn report_new(app: &mut App, warnings: &[Diagnostic]) {
    let (new, are_same_verdict) = list_new(&app.notices, warnings);
    let what = match new.as_slice() {
        [] => return,
        // Each run can give these. In full, they would hide the flips of a save, or the keys of a new workspace.
        all if are_same_verdict => {
            format!(
                "{} with one verdict everywhere",
                pluralize(all.len(), "eval")
            )
        }
        [one] => {
            app.notices
                .push(app.now, NoticeLevel::Warning, one.as_str());
            return;
        }
        several => pluralize(several.len(), "new warning"),
    };
    let shows = if new.len() == 1 {
        "L shows the warning"
    } else {
        "L lists them"
    };
    for text in new {
        app.notices.log_only(app.now, NoticeLevel::Warning, text);
    }
    app.notices
        .push(app.now, NoticeLevel::Info, format!("{what}: {shows}"));
}

/// Returns the warnings that are not in the log yet, each once, and true if all are about evals with one verdict.
fn list_new(notices: &Notices, warnings: &[Diagnostic]) -> (Vec<String>, bool) {
    let logged = notices.log.iter().map(|notice| notice.text.as_str());
    let logged: HashSet<&str> = logged.collect();
    let mut new: IndexSet<String> = IndexSet::new();
    let mut are_same_verdict = true;
    for warning in warnings {
        let text = format_warning(warning);
        if !logged.contains(text.as_str()) && new.insert(text) {
            are_same_verdict &= warning.code == "same-verdict";
        }
    }
    (new.into_iter().collect(), are_same_verdict)
}

/// Formats a warning with its place and its suggested fix.
fn format_warning(warning: &Diagnostic) -> String {
    let text = make_visible(&warning.to_string(), false).into_owned();
    match &warning.help {
        Some(help) => {
            // A text can end with "did you mean `x`?".
            let joint = if text.ends_with('?') { " " } else { "; " };
            format!("{text}{joint}{}", make_visible(help, false))
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Size;

    use super::*;
    use crate::theme::Theme;
    use crate::tui::state::OpenedItem;

    fn app() -> App {
        let theme = Theme::bundled("dark").expect("a theme");
        App::new(OpenedItem::Recording, Size::new(80, 24), theme)
    }

    #[test]
    fn each_warning_is_logged_once_with_its_fix() {
        let mut app = app();
        let one = Diagnostic::warning("cannot-fail", "r.yaml", "`short` cannot fail")
            .help("let it ask for something");
        let other = Diagnostic::warning("unknown-tool", "r.yaml", "no transcript calls `x`");
        report_new(&mut app, std::slice::from_ref(&one));
        report_new(&mut app, &[one.clone(), other.clone()]);
        let texts: Vec<&str> = app.notices.log.iter().map(|n| n.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "r.yaml: `short` cannot fail; let it ask for something",
                "r.yaml: no transcript calls `x`",
            ]
        );
        let asks = Diagnostic::warning("unknown-tool", "r.yaml", "no tool `x`; did you mean `y`?")
            .help("rename it");
        let asked = format_warning(&asks);
        assert!(asked.ends_with("did you mean `y`? rename it"), "{asked}");
        app.notices = crate::tui::state::notices::Notices::default();
        app.warnings_number = 2;
        handle_found(&mut app, 1, std::slice::from_ref(&one));
        assert_eq!(app.notices.log, []);
        handle_found(&mut app, 2, &[one, other]);
        assert_eq!(app.notices.log.len(), 3);
        let notice = app.notices.newest.as_ref().map(|n| n.text.as_str());
        assert_eq!(notice, Some("2 new warnings: L lists them"));
    }

    #[test]
    fn equal_verdicts_are_one_short_line_and_in_the_log_in_full() {
        let mut app = app();
        let same = |file| Diagnostic::warning("same-verdict", file, "`a` passed everywhere");
        for (warnings, expected) in [
            (
                &[same("a.yaml"), same("b.yaml")][..],
                "2 evals with one verdict everywhere: L lists them",
            ),
            // The first one is known.
            (
                &[same("a.yaml"), same("c.yaml")],
                "1 eval with one verdict everywhere: L shows the warning",
            ),
        ] {
            report_new(&mut app, warnings);
            let notice = app.notices.newest.as_ref().map(|n| n.text.as_str());
            assert_eq!(notice, Some(expected));
        }
        assert!(app.notices.contains("c.yaml: `a` passed everywhere"));
    }
}
