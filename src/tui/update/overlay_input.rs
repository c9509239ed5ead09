//! Keys, clicks and the wheel on the topmost overlay.
//!
//! Responsible for the selection in an overlay, for its text, and for what `enter` and `esc` do there. Does not open
//! overlays and does not carry out what the user chose: the file of each area does.

use std::sync::Arc;

use crossterm::event::KeyCode;
use ratatui::layout::Size;

use super::notices::push_info;
use super::{
    branches, commands, cost_consent, follow_ups, footer_input, label_notes, label_queues, pauses,
    progress, quit, repeats, replay, review_suggest, runs, state_export, trust, variants,
};
use crate::model::DisagreementCause;
use crate::theme::{self, Theme};
use crate::tui::command;
use crate::tui::content;
use crate::tui::effect::Effect;
use crate::tui::key_chord::KeyChord;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::{self, Overlay};
use crate::tui::state::queue_options::QUEUE_SIZES;
use crate::tui::state::transcript_source::SourceOverlay;
use crate::tui::state::{App, statistics};
use crate::tui::widget::line_input::LineInput;

/// Handles a key for the topmost overlay.
pub(super) fn handle_key(app: &mut App, chord: KeyChord) -> Vec<Effect> {
    // The overlay is taken from the stack, and is put back if it stays open.
    let Some(mut top) = app.overlays.pop() else {
        return Vec::new();
    };
    let key = chord.to_string();
    if key == "ctrl-c" {
        // Closes the overlay, and runs continue. If the question was to quit, ctrl-c acts as it does without an
        // overlay.
        let was_quit_question = matches!(top, Overlay::QuitWhileRunning);
        close(app, top);
        return if was_quit_question {
            quit::cancel_or_quit(app)
        } else {
            Vec::new()
        };
    }
    // In these overlays, letters are text.
    let takes_text = matches!(
        top,
        Overlay::Help { .. }
            | Overlay::SeekTo(_)
            | Overlay::RepeatCount(_)
            | Overlay::ExportFile { .. }
            | Overlay::Breakpoints { .. }
    );
    // In the question to quit, q accepts.
    if key == "esc" || (key == "q" && !takes_text && !matches!(top, Overlay::QuitWhileRunning)) {
        close(app, top);
        return Vec::new();
    }
    let steps = match chord.code {
        KeyCode::Up => Some(-1),
        KeyCode::Down => Some(1),
        KeyCode::Char('k') if !takes_text => Some(-1),
        KeyCode::Char('j') if !takes_text => Some(1),
        // Overlays of different heights share one page step.
        KeyCode::PageUp => Some(-10),
        KeyCode::PageDown => Some(10),
        _ => None,
    };
    if let Some(steps) = steps {
        move_selection(app, &mut top, steps);
        app.overlays.push(top);
        return Vec::new();
    }
    if key == "/" && !takes_text {
        app.overlays.push(top);
        // The letters of a word would choose, accept or write.
        let reason = command::explain_no_search(app);
        return footer_input::open_refused(app, reason);
    }
    if chord.code == KeyCode::Enter {
        return accept_selection(app, top);
    }
    if let Overlay::Variants(screen) = top {
        let (screen, effects) = variants::handle_key(app, screen, chord);
        app.overlays.extend(screen.map(Overlay::Variants));
        return effects;
    }
    match &mut top {
        // Without a typed text, space sets or removes the selected line, and the list stays open.
        Overlay::Breakpoints { input, selected } if key == "space" && input.text.is_empty() => {
            let selected = *selected;
            app.overlays.push(top);
            return pauses::toggle_breakpoint(app, "", selected).unwrap_or_default();
        }
        // Tab limits the typed or selected breakpoint to the focused cell.
        Overlay::Breakpoints { input, selected } if key == "tab" => {
            if let Some(text) = pauses::limit_to_focused_cell(app, &input.text, *selected) {
                *input = LineInput::new(text);
            }
        }
        Overlay::Help { search, selected } => {
            // The key that opened the help also closes it.
            if key == "?" && search.text.is_empty() {
                return Vec::new();
            }
            if search.handle_key(chord) {
                // The old selection may be out of the new list.
                *selected = 0;
            }
        }
        Overlay::SeekTo(input)
        | Overlay::RepeatCount(input)
        | Overlay::ExportFile { input, .. }
        | Overlay::Breakpoints { input, .. } => {
            input.handle_key(chord);
        }
        Overlay::ConfirmTrust { question, scroll } => match key.as_str() {
            // The question may appear while the user types, so a letter that other panes use does not accept it.
            "Y" if trust::is_unread(app) => {
                app.overlays.push(top);
                return push_info(app, "the question changed: read it, then answer");
            }
            "Y" => return trust::accept(app, question.clone()),
            "n" | "N" => {
                trust::decline(app, question.clone());
                return Vec::new();
            }
            "home" | "g" => scroll.scroll_to_start(),
            "end" | "G" => scroll.scroll_to_end(),
            _ => return explain_answers(app, top),
        },
        Overlay::Log { scroll }
        | Overlay::Statistics { scroll }
        | Overlay::Agreement { scroll, .. }
        | Overlay::Source(SourceOverlay { scroll, .. }) => match key.as_str() {
            "home" | "g" => scroll.scroll_to_start(),
            "end" | "G" => scroll.scroll_to_end(),
            _ => {}
        },
        Overlay::ConfirmCost { .. }
        | Overlay::ConfirmExamples(_)
        | Overlay::ConfirmSuggestion { .. }
        | Overlay::ConfirmFollowUp { .. }
        | Overlay::ConfirmRestore(_)
        | Overlay::QuitWhileRunning => {
            let accepts_quit = key == "q" && matches!(top, Overlay::QuitWhileRunning);
            match key.as_str() {
                // A question after a save may appear while the user types, so a letter that panes use does not
                // accept it.
                "y" if top.appears_by_itself() => return explain_answers(app, top),
                "y" | "Y" => return accept_question(app, top),
                _ if accepts_quit => return accept_question(app, top),
                "n" | "N" => {
                    close(app, top);
                    return Vec::new();
                }
                _ => return explain_answers(app, top),
            }
        }
        Overlay::LabelQueues { size, .. } => match key.as_str() {
            "h" | "left" | "-" => *size = size.saturating_sub(1),
            "l" | "right" | "+" => *size = (*size + 1).min(QUEUE_SIZES.len() - 1),
            _ => {}
        },
        Overlay::CloseDisagreement { row, .. } => {
            let row = *row;
            let causes = DisagreementCause::ALL.iter();
            let mut initials = causes.map(|cause| cause.as_str().get(..1));
            if let Some(at) = initials.position(|initial| initial == Some(key.as_str())) {
                return label_notes::accept_cause(app, row, at);
            }
        }
        Overlay::Judges {
            order,
            judges,
            selected,
            ..
        } if key == "o" => match overlay::select_judge(judges.as_deref(), *selected) {
            Ok(_) => order.recorded_only = !order.recorded_only,
            Err(why) => {
                let why = why.to_owned();
                app.overlays.push(top);
                return push_info(app, why);
            }
        },
        Overlay::Judges {
            judges, selected, ..
        } if matches!(key.as_str(), "b" | "m") => {
            let chosen = judges.as_ref().and_then(|found| found.get(*selected));
            let chosen = chosen.and_then(|found| found.judge.clone());
            let Some(judge) = chosen.filter(|_| app.shows_trace_screen()) else {
                app.overlays.push(top);
                return push_info(
                    app,
                    "a branch needs the trace screen and an available judge",
                );
            };
            return match key.as_str() {
                "b" => branches::branch_with_judge(app, &judge),
                _ => branches::ask_model(app, &judge),
            };
        }
        Overlay::Judges { .. } | Overlay::Themes { .. } | Overlay::Variants(_) => {}
    }
    app.overlays.push(top);
    Vec::new()
}

/// Pastes a text into the overlay's line; returns false if it has none.
pub(super) fn handle_paste(app: &mut App, text: &str) -> bool {
    match app.overlays.last_mut() {
        Some(
            Overlay::Help { search: input, .. }
            | Overlay::SeekTo(input)
            | Overlay::RepeatCount(input)
            | Overlay::ExportFile { input, .. }
            | Overlay::Breakpoints { input, .. },
        ) => {
            input.paste(text);
            true
        }
        _ => false,
    }
}

/// Handles a click on a line: selects it. On the selected line, and on a command in the help, it acts as enter.
pub(super) fn handle_click(app: &mut App, line: usize) -> Vec<Effect> {
    let Some(mut top) = app.overlays.pop() else {
        return Vec::new();
    };
    match &mut top {
        Overlay::Help { selected, .. } => {
            // Help has no preview, so one click is enough.
            *selected = line;
            return accept_selection(app, top);
        }
        Overlay::Themes { selected, .. }
        | Overlay::Judges { selected, .. }
        | Overlay::LabelQueues { selected, .. }
        | Overlay::Breakpoints { selected, .. }
        | Overlay::CloseDisagreement { selected, .. } => {
            if *selected == line {
                return accept_selection(app, top);
            }
            let steps = i64::try_from(line).unwrap_or(0) - i64::try_from(*selected).unwrap_or(0);
            move_selection(app, &mut top, steps);
        }
        // Line 0 is the answer yes, line 1 the answer no.
        Overlay::ConfirmCost { .. }
        | Overlay::ConfirmExamples(_)
        | Overlay::ConfirmSuggestion { .. }
        | Overlay::ConfirmFollowUp { .. }
        | Overlay::ConfirmRestore(_)
        | Overlay::QuitWhileRunning => {
            if line == 0 {
                return accept_question(app, top);
            }
            close(app, top);
            return Vec::new();
        }
        Overlay::Log { .. }
        | Overlay::ConfirmTrust { .. }
        | Overlay::Statistics { .. }
        | Overlay::Agreement { .. }
        | Overlay::Variants(_)
        | Overlay::Source(_)
        | Overlay::SeekTo(_)
        | Overlay::RepeatCount(_)
        | Overlay::ExportFile { .. } => {}
    }
    app.overlays.push(top);
    Vec::new()
}

/// Scrolls the topmost overlay.
pub(super) fn handle_scroll(app: &mut App, rows: i64) -> Vec<Effect> {
    if let Some(mut top) = app.overlays.pop() {
        move_selection(app, &mut top, rows);
        app.overlays.push(top);
    }
    Vec::new()
}

/// Moves the selection, or scrolls the text.
fn move_selection(app: &mut App, top: &mut Overlay, steps: i64) {
    let moved = |selected: usize, count: usize| {
        // The selection stops at both ends.
        let to = i64::try_from(selected).unwrap_or(0).saturating_add(steps);
        usize::try_from(to.max(0))
            .unwrap_or(0)
            .min(count.saturating_sub(1))
    };
    match top {
        Overlay::Help { search, selected } => {
            *selected = moved(*selected, overlay::search_commands(&search.text).len());
        }
        Overlay::Themes { selected, .. } => {
            *selected = moved(*selected, theme::bundled_names().len());
            if let Some(name) = theme::bundled_names().get(*selected) {
                // Each theme is shown while the user moves over it.
                apply_theme(app, name);
            }
        }
        Overlay::Judges {
            judges: found,
            selected,
            ..
        } => {
            *selected = moved(*selected, found.as_ref().map_or(0, Vec::len));
        }
        Overlay::LabelQueues {
            options, selected, ..
        } => *selected = moved(*selected, options.len()),
        Overlay::CloseDisagreement { selected, .. } => {
            *selected = moved(*selected, DisagreementCause::ALL.len());
        }
        Overlay::Variants(screen) if screen.shows_diff => {
            let area = log_area(app.ui.size);
            // The blocks are of the whole screen, so the scroll state is copied.
            let mut scroll = screen.scroll.clone();
            scroll.scroll_rows(&screen.to_blocks(), area, steps);
            screen.scroll = scroll;
        }
        Overlay::Variants(screen) => screen.selected = moved(screen.selected, screen.count()),
        Overlay::Breakpoints { selected, .. } => {
            *selected = moved(*selected, app.list_breakpoints().len());
        }
        Overlay::Agreement { eval, scroll } => {
            let area = log_area(app.ui.size);
            scroll.scroll_rows(&content::agreement_blocks(app, *eval), area, steps);
        }
        Overlay::Log { scroll } => {
            let area = log_area(app.ui.size);
            scroll.scroll_rows(&overlay::build_log(app), area, steps);
        }
        Overlay::ConfirmTrust { question, scroll } => {
            let area = log_area(app.ui.size);
            scroll.scroll_rows(&question.to_blocks(), area, steps);
        }
        Overlay::Statistics { scroll } => {
            let area = log_area(app.ui.size);
            scroll.scroll_rows(&statistics::build_statistics(app), area, steps);
        }
        Overlay::Source(view) => {
            let area = log_area(app.ui.size);
            // The blocks borrow the view, so the scroll state is copied.
            let mut scroll = view.scroll.clone();
            scroll.scroll_rows(&view.to_blocks(), area, steps);
            view.scroll = scroll;
        }
        Overlay::ConfirmCost { .. }
        | Overlay::ConfirmExamples(_)
        | Overlay::ConfirmSuggestion { .. }
        | Overlay::ConfirmFollowUp { .. }
        | Overlay::ConfirmRestore(_)
        | Overlay::QuitWhileRunning
        | Overlay::SeekTo(_)
        | Overlay::RepeatCount(_)
        | Overlay::ExportFile { .. } => {}
    }
}

/// Returns the size of the text in the log overlay.
pub(crate) fn log_area(size: Size) -> Size {
    Size::new(
        // The border and the margin take these columns and rows; 120 columns are easy to read.
        size.width.saturating_sub(6).min(120).saturating_sub(2),
        size.height.saturating_sub(4).saturating_sub(2),
    )
}

/// Applies a bundled theme with the colors of this terminal.
fn apply_theme(app: &mut App, name: &str) {
    match Theme::bundled(name) {
        Ok(theme) => app.ui.theme = Arc::new(app.ui.theme.replaced_by(theme)),
        Err(why) => app
            .notices
            .push(app.now, NoticeLevel::Error, why.to_string()),
    }
}

/// Closes an overlay: undoes the preview of a theme if none was chosen, and answers a question of trust or cost with no.
fn close(app: &mut App, top: Overlay) {
    match top {
        Overlay::Themes { previous, .. } => app.ui.theme = previous,
        Overlay::ConfirmTrust { question, .. } => trust::decline(app, question),
        Overlay::ConfirmCost { .. } | Overlay::ConfirmExamples(_) => {
            cost_consent::decline(app, &top);
        }
        Overlay::ConfirmSuggestion { .. } => review_suggest::decline(app),
        Overlay::ConfirmFollowUp { order, .. } => follow_ups::decline(app, &order),
        _ => {}
    }
}

/// `enter`: accepts the selected line. Questions are answered only with a letter, so that a stray enter spends no
/// money.
fn accept_selection(app: &mut App, top: Overlay) -> Vec<Effect> {
    match top {
        Overlay::Help { search, selected } => {
            let found = overlay::list_help(app, &search.text);
            let Some(spec) = found.get(selected) else {
                // The overlay was taken from the stack, and it stays open.
                app.overlays.push(Overlay::Help { search, selected });
                return push_info(app, "no key is called that");
            };
            commands::run_command(app, spec.command)
        }
        Overlay::Themes { selected, .. } => {
            let name = theme::bundled_names()
                .get(selected)
                .copied()
                .unwrap_or_default();
            app.ui.choices.theme = Some(name.to_owned());
            let next = if app.ui.saved_choices.is_some() {
                "dicta starts with it from now on".to_owned()
            } else {
                format!("`--theme {name}` starts with it")
            };
            push_info(app, format!("theme {name}; {next}"))
        }
        Overlay::Judges {
            row,
            order,
            judges: found,
            selected,
        } => {
            let chosen = overlay::select_judge(found.as_deref(), selected);
            let judge = match chosen.cloned().map_err(str::to_owned) {
                Ok(judge) => judge,
                Err(why) => {
                    app.overlays.push(Overlay::Judges {
                        row,
                        order,
                        judges: found,
                        selected,
                    });
                    return push_info(app, why);
                }
            };
            let (mut order, costs) = (order, !judge.is_free());
            order.judge = Some(judge);
            runs::start_or_ask(app, order, costs, &[row])
        }
        // The line stays open until the file is written: after a failure, people correct the name.
        Overlay::ExportFile { entry, input } => {
            let text = input.text.clone();
            app.overlays.push(Overlay::ExportFile { entry, input });
            state_export::export_state(app, entry, &text)
        }
        Overlay::Breakpoints { input, selected } => {
            let toggled = pauses::toggle_breakpoint(app, &input.text, selected);
            match toggled {
                Ok(effects) => effects,
                // The user can correct the input.
                Err(why) => {
                    app.overlays.push(Overlay::Breakpoints { input, selected });
                    push_info(app, why)
                }
            }
        }
        Overlay::RepeatCount(input) => match repeats::repeat_focused(app, &input.text) {
            Ok(effects) => effects,
            Err(why) => {
                app.overlays.push(Overlay::RepeatCount(input));
                push_info(app, why)
            }
        },
        Overlay::SeekTo(input) => match replay::seek_to_typed(app, &input.text) {
            Ok(effects) => effects,
            // The user can correct the input, so it stays open.
            Err(why) => {
                app.overlays.push(Overlay::SeekTo(input));
                push_info(app, why)
            }
        },
        // A stray enter must neither allow nor refuse.
        question @ (Overlay::ConfirmTrust { .. }
        | Overlay::ConfirmCost { .. }
        | Overlay::ConfirmExamples(_)
        | Overlay::ConfirmSuggestion { .. }
        | Overlay::ConfirmFollowUp { .. }
        | Overlay::ConfirmRestore(_)) => explain_answers(app, question),
        Overlay::LabelQueues {
            eval,
            options,
            selected,
            size,
        } => match options.into_iter().nth(selected) {
            Some(option) => label_queues::accept_queue(app, eval, option, size),
            None => Vec::new(),
        },
        Overlay::CloseDisagreement { row, selected } => {
            label_notes::accept_cause(app, row, selected)
        }
        Overlay::Variants(mut screen) => {
            variants::switch_diff(&mut screen);
            app.overlays.push(Overlay::Variants(screen));
            Vec::new()
        }
        Overlay::QuitWhileRunning
        | Overlay::Log { .. }
        | Overlay::Agreement { .. }
        | Overlay::Statistics { .. }
        | Overlay::Source(_) => Vec::new(),
    }
}

/// Keeps a question open after a key that answers nothing, and shows the keys that do.
fn explain_answers(app: &mut App, question: Overlay) -> Vec<Effect> {
    let keys = question.answer_keys();
    app.overlays.push(question);
    push_info(app, format!("the question waits for an answer: {keys}"))
}

fn accept_question(app: &mut App, top: Overlay) -> Vec<Effect> {
    match top {
        Overlay::ConfirmCost { order, preview } => cost_consent::accept_run(app, order, &preview),
        Overlay::ConfirmExamples(question) => cost_consent::accept_examples(app, question),
        Overlay::ConfirmSuggestion { order, .. } => review_suggest::send(app, order),
        Overlay::ConfirmFollowUp { order, .. } => follow_ups::send(*order),
        Overlay::ConfirmRestore(plan) => progress::accept_restore(app, plan),
        Overlay::QuitWhileRunning => quit::quit_with_code(app, 0),
        _ => Vec::new(),
    }
}
