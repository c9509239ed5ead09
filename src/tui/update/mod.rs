//! The reducer: it applies a message to the app and returns the effects to carry out.
//!
//! Each file is responsible for one area. Pure: it does no I/O and reads no clock except `app.now`, which the loop
//! sets before each call.

mod blind;
mod branches;
mod choices;
mod commands;
mod copy;
mod cost_consent;
mod cost_estimate;
mod edits;
mod example_edit;
mod examples;
mod figures;
mod first_judging;
mod focus;
mod follow_ups;
mod footer_input;
mod keys;
mod label_moves;
mod label_notes;
mod label_queues;
mod labels;
mod mouse;
mod notices;
mod opened_item;
mod overlay;
mod overlay_input;
mod panes;
mod pauses;
mod progress;
mod progress_scores;
mod quit;
mod repeats;
mod replay;
mod replayed_evidence;
mod review;
mod review_counts;
mod review_modes;
mod review_suggest;
mod review_undo;
mod review_write;
mod runs;
mod save_runs;
mod saves;
mod state_export;
mod step_edits;
mod touched_evals;
mod tour;
mod trace_screen;
mod trust;
mod variants;
mod warnings;

use super::effect::Effect;
use super::msg::{MouseAction, Msg};
use super::state::App;
use super::state::label_edits::HeldReload;
use super::state::notices::NoticeLevel;

/// Returns the effects that load what the app shows first.
pub(crate) fn request_initial_data(app: &mut App) -> Vec<Effect> {
    opened_item::request_initial_data(app)
}

/// Opens the reading screen, as `dicta review` does.
pub(crate) fn open_review(app: &mut App) -> Vec<Effect> {
    review::open(app, None)
}

/// Applies a message to the app.
pub(crate) fn update(app: &mut App, msg: Msg) -> Vec<Effect> {
    if figures::changes_figures(&msg) {
        app.labelling.figures.version += 1;
    }
    let mut effects = match msg {
        Msg::Key(chord) => {
            // A command acts on the filtered rows, so the filter must be complete.
            if app.ui.footer_input.is_none() {
                app.session_mut().cells.finish_filtering();
            }
            // A queue that begins after this key would move the cursor under the next one.
            let waited = app.labelling.waiting_queue.take().is_some();
            let effects = keys::handle_key(app, chord);
            if waited {
                label_queues::report_dropped(app);
            }
            effects
        }
        Msg::Pasted(text) => keys::handle_paste(app, &text),
        Msg::Mouse(mouse) => {
            app.notices.end_written();
            // As a key, a click means that the user has seen the notice.
            if mouse.action == MouseAction::Pressed {
                app.notices.dismiss();
            }
            mouse::handle_mouse(app, mouse)
        }
        Msg::Resized { width, height } => {
            let effects = panes::handle_resize(app, width, height);
            trace_screen::keep_selection_visible(app);
            effects
        }
        // The user may have edited files in another window.
        Msg::FocusGained => vec![Effect::RescanFiles],
        Msg::TimePassed => handle_time_passed(app),
        Msg::Signalled(number) => quit::handle_signal(app, number),
        Msg::WorkerPanicked(what) => {
            app.notices.push(app.now, NoticeLevel::Error, what);
            Vec::new()
        }
        Msg::Refused(why) | Msg::WatchFailed(why) => {
            app.notices.push(app.now, NoticeLevel::Warning, why);
            Vec::new()
        }
        Msg::Drawn(hits) => {
            app.ui.hits = hits;
            app.ui.first_frame_drawn = true;
            // The rows of a replay are those of another session.
            if app.replay.is_none() {
                let drawn = app.ui.hits.0.iter().filter_map(|hit| hit.target.row());
                app.live_session.cells.remember_revealed(drawn);
            }
            Vec::new()
        }
        Msg::ReviewOpened {
            number,
            session,
            undo,
            at,
        } => review::handle_opened(app, number, session, undo, at),
        Msg::ReviewWritten { order, written } => {
            let mut effects = review::handle_written(app, *order, written);
            // The keys that waited are about the transcript that follows.
            effects.extend(review::request_shown(app));
            effects.extend(keys::handle_held(app));
            effects
        }
        Msg::ModesCounted { number, counted } => {
            review_counts::handle_counted(app, number, counted);
            Vec::new()
        }
        Msg::DraftHitsCounted { mode, hits } => review_modes::handle_hits(app, &mode, &hits),
        Msg::GroupsSuggested { number, groups } => {
            review_suggest::handle_groups(app, number, groups)
        }
        Msg::SuggestionsEstimated { number, estimated } => {
            review_suggest::handle_estimated(app, number, estimated)
        }
        Msg::SuggestionProgress { number, phrase } => {
            review_suggest::handle_progress(app, number, phrase)
        }
        Msg::SuggestionsMade { number, made } => review_suggest::handle_made(app, number, made),
        Msg::ReviewEvalWritten(written) => {
            let mut effects = review_modes::handle_eval_written(app, written);
            effects.extend(keys::handle_held(app));
            effects
        }
        Msg::ReviewEvalUndone { step, done, unkept } => {
            let mut effects = review_undo::handle_eval_undone(app, *step, done, unkept);
            effects.extend(keys::handle_held(app));
            effects
        }
        Msg::UndoForgotten(unkept) => {
            review_undo::report_unkept(app, unkept);
            Vec::new()
        }
        Msg::OutlineExtended { generation, batch } => runs::handle_outlined(app, generation, batch),
        Msg::OutlineEnded {
            generation,
            problem,
        } => runs::handle_outline_ended(app, generation, problem),
        Msg::NewestVerdictsRead {
            generation,
            verdicts: board,
            problems,
        } => runs::handle_newest_verdicts(app, generation, &board, problems),
        Msg::EditRead(read) => edits::handle_edit_read(app, read),
        Msg::LabelsRenamed(moved) => label_moves::handle_labels_renamed(app, moved),
        Msg::LabelMoveUndone { moved, restored } => {
            label_moves::handle_move_undone(app, moved, restored)
        }
        Msg::Reloaded { workspace, changed } => {
            handle_reloaded(app, HeldReload { workspace, changed })
        }
        Msg::ReloadFailed { problems } => saves::handle_reload_failed(app, problems),
        Msg::KeysChecked(missing) => {
            app.missing_keys = missing;
            Vec::new()
        }
        Msg::WarningsFound { number, warnings } => warnings::handle_found(app, number, &warnings),
        Msg::ExamplesTried { number, trials } => examples::handle_tried(app, number, trials),
        Msg::ExamplesPreviewed {
            number,
            workspace,
            evals,
            calls,
        } => cost_consent::handle_examples_preview(app, number, workspace, evals, calls),
        Msg::ExamplesJudged {
            number,
            evals,
            trials,
            problem,
        } => examples::handle_judged(app, number, evals, trials, problem),
        Msg::StateExported(written) => state_export::handle_exported(app, written),
        Msg::NoiseRead {
            number,
            root,
            measured,
            noise,
        } => repeats::handle_noise_read(app, number, &root, measured, noise),
        Msg::RunStarted { ticket, run, dir } => runs::handle_run_started(app, ticket, run, dir),
        Msg::RunRefused { ticket, why } => runs::handle_run_refused(app, ticket, &why),
        Msg::RunUnconfirmed { order, sends } => {
            runs::forget_run(app, order.ticket);
            trust::handle_unconfirmed(app, *order, sends)
        }
        Msg::RunEvents { ticket, events } => {
            let effects = runs::handle_run_events(app, ticket, &events);
            // The follow mode needs the cells that the events have just changed.
            app.live_session.follow_events(app.now, ticket, &events);
            effects
        }
        Msg::RunEnded { ticket, problem } => {
            let mut effects = runs::handle_run_ended(app, ticket, problem);
            effects.extend(progress::read_again(app));
            effects
        }
        Msg::FollowUpsRead { key, list } => follow_ups::handle_read(app, &key, &list),
        Msg::FollowUpPriced { order, calls } => follow_ups::handle_priced(app, order, calls),
        Msg::FollowUpAnswered { key, answered } => follow_ups::handle_answered(app, &key, answered),
        Msg::TracePaused {
            ticket,
            cell,
            name,
            point,
            at,
        } => pauses::handle_paused(app, ticket, cell, name.map(|name| *name), point, *at),
        Msg::TextEdited { target, edited } => step_edits::handle_text_edited(app, &target, edited),
        // The estimate of what a save leaves out asks no question.
        Msg::Previewed { ticket, preview } if cost_estimate::is_awaiting_preview(app, ticket) => {
            cost_estimate::handle_preview(app, preview)
        }
        Msg::Previewed { ticket, preview } => cost_consent::handle_preview(app, ticket, preview),
        Msg::TraceRead { row, recorded } => focus::handle_trace_read(app, row, recorded),
        Msg::BlobRead { blob, text } => focus::handle_text_read(app, &blob, text),
        Msg::RequestRead { key, request } => focus::handle_request_read(app, &key, request),
        Msg::Highlighted { key, spans } => focus::handle_highlighted(app, key, spans),
        Msg::MarksFound { key, marks } => focus::handle_marks_found(app, &key, &marks),
        Msg::DocumentRead { id, doc } => {
            review::handle_document_read(app, &id, &doc);
            focus::handle_document_read(app, &id, doc)
        }
        Msg::SourceRead {
            transcript: of,
            record,
        } => {
            focus::handle_source_read(app, &of, &record);
            Vec::new()
        }
        Msg::ReplayRead {
            run,
            dir,
            log,
            warnings,
            integrity,
        } => replay::handle_replay_read(app, run, dir, log, warnings, integrity),
        Msg::FamilyRead { ticket, family } => replay::handle_family_read(app, ticket, &family),
        Msg::ReplayPartRead { ticket, part } => replay::handle_part_read(app, ticket, part),
        Msg::HistoryRead { number, view } => progress::handle_history_read(app, number, view),
        Msg::HistoryCounted { number, facts } => progress::handle_counted(app, number, facts),
        Msg::StatesCompared {
            number,
            pair,
            compared,
        } => progress::handle_compared(app, number, pair, compared),
        Msg::ReasonsRead { number, reasons } => progress::handle_reasons(app, number, reasons),
        Msg::StateRead { number, read } => replay::handle_state_read(app, number, read),
        Msg::BaselineSet { entry, done } => progress::handle_baseline_set(app, entry, done),
        Msg::RestorePlanned(plan) => progress::handle_restore_planned(app, plan),
        Msg::RubricsWritten { undoes, written } => {
            progress::handle_rubrics_written(app, undoes, written)
        }
        Msg::DrawsRead { file, draws } => label_queues::handle_draws_read(app, &file, draws),
        Msg::LabelsDrawn { eval, drawn } => label_queues::handle_drawn(app, eval, drawn),
        Msg::FiguresComputed {
            eval,
            version,
            figures,
        } => figures::handle_computed(app, eval, version, figures),
        Msg::StateFiguresComputed {
            number,
            eval,
            figures,
        } => figures::handle_state_computed(app, number, eval, figures),
        Msg::VariantsListed { number, listed } => variants::handle_listed(app, number, listed),
        Msg::VariantsRead { number, read } => {
            variants::handle_read(app, number, read);
            Vec::new()
        }
        Msg::VariantJudged { number, name, done } => {
            variants::handle_judged(app, number, &name, done)
        }
        Msg::JudgesFound { row, judges } => overlay::handle_judges_found(app, row, judges),
        Msg::TranscriptsListed { file, listed } => opened_item::handle_listed(app, &file, listed),
        Msg::WorkspaceMade(made) => opened_item::handle_workspace_made(app, made),
        Msg::LabelWritten { number, written } => {
            let mut effects = labels::handle_written(app, number, *written);
            effects.extend(progress::count_again(app));
            if let Some(reload) = app.label_edits.release_reload() {
                effects.extend(handle_reloaded(app, reload));
            }
            effects
        }
        Msg::EditorClosed(how) => saves::handle_editor_closed(app, how),
        Msg::Copied(how) => {
            match how {
                Ok(what) => app.notices.push(app.now, NoticeLevel::Info, what),
                Err(why) => app.notices.push(app.now, NoticeLevel::Error, why),
            }
            Vec::new()
        }
    };
    // Any message may be the last one that they wait for.
    effects.extend(release_waiting(app));
    effects.extend(label_queues::accept_waiting(app));
    effects.extend(first_judging::start_if_due(app));
    // Last, because any message may move the focus or load the data that the focused item needs.
    effects.extend(focus::request_focused(app));
    effects.extend(trace_screen::request_shown(app));
    effects.extend(opened_item::list_more_if_needed(app));
    effects.extend(progress::request_shown(app));
    effects.extend(figures::request_figures(app));
    effects.extend(review::request_shown(app));
    tour::update_tour(app);
    effects.extend(choices::remember_changes(app));
    app.past_verdict_wait.hold_runs(&mut effects);
    effects
}

/// Lets saves and runs go on that waited for the verdicts of past runs.
fn release_waiting(app: &mut App) -> Vec<Effect> {
    let cells = &app.live_session.cells;
    let rows_filled = !cells.has_rows_to_fill();
    let rows_known = cells.outline_complete || cells.outline_error.is_some();
    // The orders of the user come first, because they are older than what the save judges.
    let mut effects = app.past_verdict_wait.advance(rows_filled, rows_known);
    if let Some(reload) = app.past_verdict_wait.release_reload() {
        effects.extend(handle_reloaded(app, reload));
    }
    effects
}

/// Applies a reload, unless it waits for the result of a label's write or for the verdicts of past runs.
fn handle_reloaded(app: &mut App, reload: HeldReload) -> Vec<Effect> {
    let Some(reload) = app.label_edits.admit_reload(reload) else {
        return Vec::new();
    };
    // A label that the user sets is written to a file, but it is not a save.
    let is_save = !labels::list_other_files(&reload.workspace, &reload.changed).is_empty();
    let Some(reload) = app.past_verdict_wait.admit_reload(reload) else {
        if is_save {
            let why = "a file was saved: dicta reads the earlier verdicts first";
            app.notices.push(app.now, NoticeLevel::Info, why);
        }
        return Vec::new();
    };
    let mut effects = trust::handle_reloaded(app, reload.workspace, reload.changed);
    // Labels may have changed.
    effects.extend(progress::count_again(app));
    effects
}

/// Handles a timer: each area checks its own due times.
fn handle_time_passed(app: &mut App) -> Vec<Effect> {
    let mut effects = save_runs::handle_time_passed(app);
    effects.extend(replay::handle_time_passed(app));
    panes::handle_time_passed(app);
    runs::handle_time_passed(app);
    effects
}
