//! The reducer: it applies a message to the app and returns the effects to carry out.
//!
//! Each file is responsible for one area. Pure: it does no I/O and reads no clock except `app.now`, which the loop
//! sets before each call.

mod choices;
mod commands;
mod copy;
mod cost_consent;
mod cost_estimate;
mod examples;
mod focus;
mod footer_input;
mod keys;
mod labels;
mod mouse;
mod notices;
mod opened_item;
mod overlay;
mod overlay_input;
mod panes;
mod quit;
mod replay;
mod replayed_evidence;
mod runs;
mod save_runs;
mod saves;
mod touched_evals;
mod tour;
mod trust;
mod warnings;

use super::effect::Effect;
use super::msg::Msg;
use super::state::App;
use super::state::notices::NoticeLevel;

/// Returns the effects that load what the app shows first.
pub(crate) fn request_initial_data(app: &mut App) -> Vec<Effect> {
    opened_item::request_initial_data(app)
}

/// Applies a message to the app.
pub(crate) fn update(app: &mut App, msg: Msg) -> Vec<Effect> {
    let mut effects = match msg {
        Msg::Key(chord) => {
            // A command acts on the filtered rows, so the filter must be complete.
            if app.ui.footer_input.is_none() {
                app.session_mut().cells.finish_filtering();
            }
            keys::handle_key(app, chord)
        }
        Msg::Pasted(text) => keys::handle_paste(app, &text),
        Msg::Mouse(mouse) => mouse::handle_mouse(app, mouse),
        Msg::Resized { width, height } => panes::handle_resize(app, width, height),
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
            Vec::new()
        }
        Msg::OutlineExtended { generation, facts } => runs::handle_outlined(app, generation, facts),
        Msg::OutlineEnded {
            generation,
            problem,
        } => runs::handle_outline_ended(app, generation, problem),
        Msg::NewestVerdictsRead {
            generation,
            verdicts: board,
            problems,
        } => runs::handle_newest_verdicts(app, generation, &board, problems),
        Msg::Reloaded { workspace, changed } => trust::handle_reloaded(app, workspace, changed),
        Msg::ReloadFailed { problems } => saves::handle_reload_failed(app, problems),
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
        Msg::RunEnded { ticket, problem } => runs::handle_run_ended(app, ticket, problem),
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
        Msg::DocumentRead { id, doc } => focus::handle_document_read(app, &id, doc),
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
        Msg::JudgesFound { row, judges } => overlay::handle_judges_found(app, row, judges),
        Msg::TranscriptsListed { file, listed } => opened_item::handle_listed(app, &file, listed),
        Msg::WorkspaceMade(made) => opened_item::handle_workspace_made(app, made),
        Msg::LabelWritten { number, written } => labels::handle_written(app, number, written),
        Msg::EditorClosed(how) => saves::handle_editor_closed(app, how),
        Msg::Copied(how) => {
            match how {
                Ok(what) => app.notices.push(app.now, NoticeLevel::Info, what),
                Err(why) => app.notices.push(app.now, NoticeLevel::Error, why),
            }
            Vec::new()
        }
    };
    // Last, because any message may move the focus or load the data that the focused item needs.
    effects.extend(focus::request_focused(app));
    effects.extend(opened_item::list_more_if_needed(app));
    tour::update_tour(app);
    effects.extend(choices::remember_changes(app));
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
