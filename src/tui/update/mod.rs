//! The one reducer: what happened changes the model and says what is to be done.
//!
//! One file an area. Pure: no I/O, no clock but `model.now`, which the loop sets before each call.

mod copy;
mod cost_estimate;
mod examples;
mod focus;
mod footer_input;
mod keys;
mod labels;
mod mouse;
mod opened_item;
mod overlay;
mod panes;
mod replay;
mod replayed_evidence;
mod runs;
mod saves;
mod touched_evals;
mod tour;

use std::sync::Arc;

use super::effect::Effect;
use super::msg::Msg;
use super::state::App;
use super::state::notices::NoticeLevel;

/// What the workbench asks for when it opens.
pub(crate) fn request_initial_data(model: &mut App) -> Vec<Effect> {
    opened_item::request_initial_data(model)
}

/// Applies what happened.
pub(crate) fn update(model: &mut App, msg: Msg) -> Vec<Effect> {
    let mut effects = match msg {
        Msg::Key(chord) => {
            if model.ui.footer_input.is_none() {
                model.session_mut().cells.finish_filtering();
            }
            keys::handle_key(model, chord)
        }
        Msg::Pasted(text) => keys::handle_paste(model, &text),
        Msg::Mouse(mouse) => mouse::handle_mouse(model, mouse),
        Msg::Resized { width, height } => panes::handle_resize(model, width, height),
        Msg::FocusGained => vec![Effect::RescanFiles],
        Msg::TimePassed => handle_time_passed(model),
        Msg::Signalled(number) => keys::handle_signal(model, number),
        Msg::WorkerPanicked(what) => {
            model.notices.push(model.now, NoticeLevel::Error, what);
            Vec::new()
        }
        Msg::Refused(why) | Msg::WatchFailed(why) => {
            model.notices.push(model.now, NoticeLevel::Warning, why);
            Vec::new()
        }
        Msg::Drawn(hits) => {
            model.ui.hits = hits;
            Vec::new()
        }
        Msg::OutlineExtended { generation, facts } => {
            runs::handle_outlined(model, generation, facts)
        }
        Msg::OutlineEnded {
            generation,
            problem,
        } => runs::handle_outline_ended(model, generation, problem),
        Msg::NewestVerdictsRead {
            generation,
            verdicts: board,
            problems,
        } => runs::handle_newest_verdicts(model, generation, &board, problems),
        Msg::Reloaded { workspace, changed } => {
            let before = model.workspace().map(Arc::clone);
            let effects = saves::handle_reloaded(model, Arc::clone(&workspace), &changed);
            labels::report_problems(model, before.as_deref(), &workspace);
            effects
        }
        Msg::ReloadFailed { problems } => saves::handle_reload_failed(model, problems),
        Msg::ExamplesTried { number, trials } => examples::handle_tried(model, number, trials),
        Msg::ExamplesJudged {
            number,
            trials,
            problem,
        } => examples::handle_judged(model, number, trials, problem),
        Msg::RunStarted { ticket, run, dir } => runs::handle_run_started(model, ticket, run, dir),
        Msg::RunRefused { ticket, why } => runs::handle_run_refused(model, ticket, &why),
        Msg::RunEvents { ticket, events } => {
            let effects = runs::handle_run_events(model, ticket, &events);
            model.live_session.follow_events(model.now, ticket, &events);
            effects
        }
        Msg::RunEnded { ticket, problem } => runs::handle_run_ended(model, ticket, problem),
        Msg::Previewed { ticket, preview } if cost_estimate::is_awaiting_preview(model, ticket) => {
            cost_estimate::handle_preview(model, preview)
        }
        Msg::Previewed { ticket, preview } => overlay::handle_preview(model, ticket, preview),
        Msg::TraceRead { row, recorded } => focus::handle_trace_read(model, row, recorded),
        Msg::BlobRead { blob, text } => focus::handle_text_read(model, &blob, text),
        Msg::RequestRead { key, request } => focus::handle_request_read(model, &key, request),
        Msg::Highlighted { key, spans } => focus::handle_highlighted(model, key, spans),
        Msg::MarksFound { key, marks } => focus::marks_found(model, &key, &marks),
        Msg::DocumentRead { id, doc } => focus::handle_document_read(model, &id, doc),
        Msg::SourceRead {
            transcript: of,
            record,
        } => {
            focus::handle_source_read(model, &of, &record);
            Vec::new()
        }
        Msg::ReplayRead {
            run,
            dir,
            log,
            warnings,
        } => replay::handle_replay_read(model, run, dir, log, warnings),
        Msg::JudgesFound { row, judges } => overlay::handle_judges_found(model, row, judges),
        Msg::TranscriptsListed { file, listed } => opened_item::handle_listed(model, &file, listed),
        Msg::WorkspaceMade(made) => opened_item::handle_workspace_made(model, made),
        Msg::LabelWritten { number, written } => labels::handle_written(model, number, written),
        Msg::EditorClosed(how) => saves::handle_editor_closed(model, how),
        Msg::Copied(how) => {
            match how {
                Ok(what) => model.notices.push(model.now, NoticeLevel::Info, what),
                Err(why) => model.notices.push(model.now, NoticeLevel::Error, why),
            }
            Vec::new()
        }
    };
    // Whatever happened may have moved the focus, or made readable what is focused.
    effects.extend(focus::request_focused(model));
    effects.extend(opened_item::list_more_if_needed(model));
    tour::update_tour(model);
    effects
}

/// A moment came: everything that waits looks whether it was its own.
fn handle_time_passed(model: &mut App) -> Vec<Effect> {
    let mut effects = saves::handle_time_passed(model);
    effects.extend(replay::handle_time_passed(model));
    panes::handle_time_passed(model);
    runs::handle_time_passed(model);
    effects
}
