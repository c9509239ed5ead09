//! Trust: a changed workspace waits for a key before it may do something new. A run waits before it sends a variable to
//! a new address.
//!
//! Security: an open workbench must not run a program or send a variable only because someone changed a file.

use std::path::PathBuf;
use std::sync::Arc;

use super::{labels, runs, saves};
use crate::model::Millis;
use crate::tui::effect::Effect;
use crate::tui::run_order::RunOrder;
use crate::tui::state::App;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::{Overlay, TrustQuestion};
use crate::tui::widget::flow::ScrollState;
use crate::workspace::Workspace;
use crate::workspace::trust::{Permission, SendPermission, find_new_permissions};

/// The time in which a key does not accept a question that replaced another one.
const READING_TIME: Millis = Millis(1000);

/// Applies a changed workspace, or asks first if it may do something that the last one could not.
pub(super) fn handle_reloaded(
    app: &mut App,
    workspace: Arc<Workspace>,
    changed: Vec<PathBuf>,
) -> Vec<Effect> {
    // An open question is about an older version. Its changes belong to this one.
    let mut all = std::mem::take(&mut app.saves.refused_changes);
    let mut asked: Option<Vec<Permission>> = None;
    app.overlays.retain(|overlay| match overlay {
        Overlay::ConfirmTrust {
            question:
                TrustQuestion::Reload {
                    changed,
                    permissions,
                    ..
                },
            ..
        } => {
            all.extend(changed.iter().cloned());
            asked = Some(permissions.clone());
            false
        }
        _ => true,
    });
    all.retain(|path| !changed.contains(path));
    all.extend(changed);
    if let Some(open) = app.workspace().map(Arc::clone) {
        // Whatever the workspace could do before stays allowed, for example after an undo in the editor.
        app.saves.allowed.extend(open.permissions.iter().cloned());
    }
    let new = find_new_permissions(&workspace.permissions, &app.saves.allowed);
    if new.is_empty() {
        return apply(app, &workspace, &all);
    }
    match asked {
        // The user may read the same question further.
        Some(asked) if asked == new => {}
        Some(_) => app.saves.question_changed_at = Some(app.now),
        None => app.saves.question_changed_at = None,
    }
    ask(
        app,
        TrustQuestion::Reload {
            workspace,
            changed: all,
            permissions: new,
        },
    );
    Vec::new()
}

/// Asks before a run that would send secrets to addresses that the user has not allowed.
pub(super) fn handle_unconfirmed(
    app: &mut App,
    order: RunOrder,
    sends: Vec<SendPermission>,
) -> Vec<Effect> {
    // Several runs of a save may need the same answer.
    for overlay in &mut app.overlays {
        if let Overlay::ConfirmTrust {
            question:
                TrustQuestion::Runs {
                    orders,
                    sends: known,
                },
            ..
        } = overlay
            && *known == sends
        {
            orders.push(order);
            return Vec::new();
        }
    }
    let orders = vec![order];
    // It states that a run judges, and the run waits for the answer.
    app.notices.dismiss();
    ask(app, TrustQuestion::Runs { orders, sends });
    Vec::new()
}

fn ask(app: &mut App, question: TrustQuestion) {
    let scroll = ScrollState::top();
    app.overlays
        .push(Overlay::ConfirmTrust { question, scroll });
}

/// Returns true if the open question replaced another one so shortly before that the user's key answers the other one.
pub(super) fn is_unread(app: &App) -> bool {
    let changed_at = app.saves.question_changed_at;
    changed_at.is_some_and(|at| app.now - at < READING_TIME)
}

/// The answer yes: records it, and continues.
pub(super) fn accept(app: &mut App, question: TrustQuestion) -> Vec<Effect> {
    match question {
        TrustQuestion::Reload {
            workspace,
            changed,
            permissions,
        } => {
            let sends = permissions
                .iter()
                .filter_map(|permission| match permission {
                    Permission::Send(send) => Some(send.clone()),
                    _ => None,
                });
            let mut effects = vec![Effect::AllowSends {
                root: workspace.root.clone(),
                sends: sends.collect(),
            }];
            app.saves.allowed.extend(permissions);
            effects.extend(apply(app, &workspace, &changed));
            effects
        }
        TrustQuestion::Runs { orders, sends } => {
            let root = orders.first().map(|order| order.workspace.root.clone());
            let allowed = root.map(|root| Effect::AllowSends { root, sends });
            let mut effects: Vec<Effect> = allowed.into_iter().collect();
            for order in orders {
                let save = order.is_of_save.then_some(app.saves.number);
                effects.push(runs::start_run(app, order, save));
            }
            effects
        }
    }
}

/// The answer no: the last allowed state stays.
pub(super) fn decline(app: &mut App, question: TrustQuestion) {
    let notice = match question {
        TrustQuestion::Reload { changed, .. } => {
            app.saves.refused_changes = changed;
            "the changed workspace is not used: the last allowed one stays; the next save asks again"
        }
        TrustQuestion::Runs { .. } => "nothing was sent and nothing was run",
    };
    app.notices.push(app.now, NoticeLevel::Warning, notice);
}

fn apply(app: &mut App, workspace: &Arc<Workspace>, changed: &[PathBuf]) -> Vec<Effect> {
    // `handle_reloaded` replaces the workspace.
    let before = app.workspace().map(Arc::clone);
    let effects = saves::handle_reloaded(app, Arc::clone(workspace), changed);
    labels::report_problems(app, before.as_deref(), workspace);
    effects
}

#[cfg(test)]
mod tests;
