//! `Y`: the variants screen. Lists the variants of the workspace's files, shows their diffs, judges one and takes one.

use super::notices::push_info;
use crate::tui::effect::Effect;
use crate::tui::history_view::{RubricEdit, RubricEditOrder, Shared};
use crate::tui::key_chord::KeyChord;
use crate::tui::state::App;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::variants::{VariantListing, VariantsRead, VariantsScreen};
use crate::tui::task_failure::TaskFailure;
use crate::tui::widget::flow::ScrollState;

/// Opens the screen. The files and the recorded verdicts are read in the background.
pub(super) fn open(app: &mut App) -> Vec<Effect> {
    let Some(workspace) = app.workspace().cloned() else {
        return push_info(app, "no workspace is open");
    };
    let number = app.next_ticket().0;
    app.overlays
        .push(Overlay::Variants(VariantsScreen::new(number)));
    vec![Effect::ListVariants { number, workspace }]
}

fn find_screen(app: &mut App, number: u64) -> Option<&mut VariantsScreen> {
    let mut screens = app.overlays.iter_mut().filter_map(|overlay| match overlay {
        Overlay::Variants(screen) => Some(screen),
        _ => None,
    });
    screens.find(|screen| screen.number == number)
}

/// Shows which variants are read.
pub(super) fn handle_read(app: &mut App, number: u64, read: VariantsRead) {
    if let Some(screen) = find_screen(app, number) {
        screen.read = Some(read);
    }
}

/// Stores a listing. A closed screen, or one that waits for a newer listing, ignores it.
pub(super) fn handle_listed(
    app: &mut App,
    number: u64,
    listed: Result<Shared<VariantListing>, TaskFailure>,
) -> Vec<Effect> {
    if let Some(screen) = find_screen(app, number) {
        screen.listing = Some(listed.map_err(|why| why.to_string()));
        screen.selected = screen.selected.min(screen.count().saturating_sub(1));
        screen.is_judging = false;
    }
    Vec::new()
}

/// Reports the end of a run of a variant, and reads the figures again.
pub(super) fn handle_judged(
    app: &mut App,
    number: u64,
    name: &str,
    done: Result<(), TaskFailure>,
) -> Vec<Effect> {
    app.judged_variants = app.judged_variants.saturating_sub(1);
    match done {
        Ok(()) => {
            push_info(app, format!("variant {name}: judged"));
        }
        Err(why) => {
            let why = format!("variant {name} is not judged: {why}");
            app.notices.push(app.now, NoticeLevel::Error, why);
        }
    }
    let workspace = app.workspace().cloned();
    let is_open = find_screen(app, number).is_some();
    let order = workspace.filter(|_| is_open);
    order
        .map(|workspace| Effect::ListVariants { number, workspace })
        .into_iter()
        .collect()
}

/// Handles a key. Returns `None` if the screen closes.
pub(super) fn handle_key(
    app: &mut App,
    mut screen: VariantsScreen,
    chord: KeyChord,
) -> (Option<VariantsScreen>, Vec<Effect>) {
    let key = chord.to_string();
    if screen.asks_to_judge {
        let effects = match key.as_str() {
            // The question may appear while the user types, so a letter that panes use does not accept it.
            "Y" => {
                screen.asks_to_judge = false;
                judge(app, &mut screen)
            }
            "n" | "N" => {
                screen.asks_to_judge = false;
                Vec::new()
            }
            _ => Vec::new(),
        };
        return (Some(screen), effects);
    }
    match key.as_str() {
        "r" if screen.is_judging => {
            let effects = push_info(app, "a variant is being judged");
            (Some(screen), effects)
        }
        "r" => {
            let Some(one) = screen.selected() else {
                return (Some(screen), Vec::new());
            };
            if one.figures.without_verdict == 0 {
                let effects =
                    push_info(app, "every dev label has a verdict of this variant already");
                return (Some(screen), effects);
            }
            // The calls of the selected variant are stated before they are made, also if they are below the limit.
            if one.calls.is_empty() {
                let effects = judge(app, &mut screen);
                return (Some(screen), effects);
            }
            screen.asks_to_judge = true;
            (Some(screen), Vec::new())
        }
        "t" => {
            let taken = screen.selected().and_then(|one| {
                let what = format!("variant {}", one.figures.name);
                Some((what, one.change.clone()?))
            });
            let Some((what, change)) = taken else {
                let effects = push_info(app, "this variant changes nothing");
                return (Some(screen), effects);
            };
            let edit = RubricEdit {
                what,
                changes: vec![change],
            };
            let workspace = app.workspace().cloned();
            let effects = workspace.map(|workspace| Effect::EditRubrics {
                workspace,
                order: RubricEditOrder::Write(edit),
            });
            (None, effects.into_iter().collect())
        }
        "home" | "g" => {
            screen.scroll.scroll_to_start();
            (Some(screen), Vec::new())
        }
        "end" | "G" => {
            screen.scroll.scroll_to_end();
            (Some(screen), Vec::new())
        }
        _ => (Some(screen), Vec::new()),
    }
}

/// `enter`: shows the diff of the selected variant, or the list again.
pub(super) fn switch_diff(screen: &mut VariantsScreen) {
    if !screen.asks_to_judge && screen.selected().is_some() {
        screen.shows_diff = !screen.shows_diff;
        screen.scroll = ScrollState::top();
    }
}

fn judge(app: &mut App, screen: &mut VariantsScreen) -> Vec<Effect> {
    if app.workspace().is_none() {
        return Vec::new();
    }
    let Some(Ok(listing)) = &screen.listing else {
        return Vec::new();
    };
    screen.is_judging = true;
    app.judged_variants += 1;
    vec![Effect::JudgeVariant {
        number: screen.number,
        listing: listing.clone(),
        position: screen.selected,
    }]
}
