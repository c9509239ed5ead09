//! The one reducer: what happened changes the model and says what is to be done.
//!
//! One file an area. Pure: no I/O, no clock but `model.now`, which the loop sets before each call.

mod copy;
mod examples;
mod files;
mod focus;
mod frozen;
mod keys;
mod labels;
mod mouse;
mod overlay;
mod panes;
mod replay;
mod rest;
mod runs;
mod saves;
mod touched;
mod tour;
mod typing;

use std::sync::Arc;

use super::effect::Effect;
use super::model::Model;
use super::model::notices::Level;
use super::msg::Msg;

/// What the workbench asks for when it opens.
pub(crate) fn opening(model: &mut Model) -> Vec<Effect> {
    files::opened(model)
}

/// Applies what happened.
pub(crate) fn update(model: &mut Model, msg: Msg) -> Vec<Effect> {
    let mut effects = match msg {
        Msg::Key(chord) => {
            if model.ui.typing.is_none() {
                model.desk_mut().cells.finish();
            }
            keys::pressed(model, chord)
        }
        Msg::Pasted(text) => keys::pasted(model, &text),
        Msg::Mouse(mouse) => mouse::moved(model, mouse),
        Msg::Resized { width, height } => panes::resized(model, width, height),
        Msg::FocusGained => vec![Effect::LookAgain],
        Msg::TimePassed => time_passed(model),
        Msg::Signalled(number) => keys::signalled(model, number),
        Msg::WorkerPanicked(what) => {
            model.notices.tell(model.now, Level::Error, what);
            Vec::new()
        }
        Msg::Refused(why) | Msg::WatchFailed(why) => {
            model.notices.tell(model.now, Level::Warning, why);
            Vec::new()
        }
        Msg::Drawn(hits) => {
            model.ui.hits = hits;
            Vec::new()
        }
        Msg::Outlined { generation, facts } => runs::outlined(model, generation, facts),
        Msg::OutlineEnded {
            generation,
            problem,
        } => runs::outline_ended(model, generation, problem),
        Msg::BoardRead {
            generation,
            board,
            problems,
        } => runs::board_read(model, generation, &board, problems),
        Msg::Reloaded { workspace, changed } => {
            let before = model.workspace().map(Arc::clone);
            let effects = saves::reloaded(model, Arc::clone(&workspace), &changed);
            labels::problems(model, before.as_deref(), &workspace);
            effects
        }
        Msg::ReloadFailed { problems } => saves::failed(model, problems),
        Msg::ExamplesTried { number, trials } => examples::tried(model, number, trials),
        Msg::ExamplesJudged {
            number,
            trials,
            problem,
        } => examples::judged(model, number, trials, problem),
        Msg::RunStarted { ticket, run, dir } => runs::started(model, ticket, run, dir),
        Msg::RunRefused { ticket, why } => runs::refused(model, ticket, &why),
        Msg::RunEvents { ticket, events } => {
            let effects = runs::events(model, ticket, &events);
            model.live.follow(model.now, ticket, &events);
            effects
        }
        Msg::RunEnded { ticket, problem } => runs::ended(model, ticket, problem),
        Msg::Previewed { ticket, preview } if rest::waits_for(model, ticket) => {
            rest::previewed(model, preview)
        }
        Msg::Previewed { ticket, preview } => overlay::previewed(model, ticket, preview),
        Msg::TraceRead { row, recorded } => focus::trace_read(model, row, recorded),
        Msg::TextRead { blob, text } => focus::text_read(model, &blob, text),
        Msg::RequestRead { key, request } => focus::request_read(model, &key, request),
        Msg::Highlighted { key, spans } => focus::highlighted(model, key, spans),
        Msg::MarksFound { key, marks } => focus::marks_found(model, &key, &marks),
        Msg::DocumentRead { id, doc } => focus::document_read(model, &id, doc),
        Msg::SourceRead { of, record } => {
            focus::source_read(model, &of, &record);
            Vec::new()
        }
        Msg::ReplayRead {
            run,
            dir,
            log,
            warnings,
        } => replay::read(model, run, dir, log, warnings),
        Msg::JudgesFound { row, judges } => overlay::judges_found(model, row, judges),
        Msg::TranscriptsListed { file, listed } => files::listed(model, &file, listed),
        Msg::WorkspaceMade(made) => files::made(model, made),
        Msg::LabelWritten { number, written } => labels::written(model, number, written),
        Msg::EditorClosed(how) => saves::editor_closed(model, how),
        Msg::Copied(how) => {
            match how {
                Ok(what) => model.notices.tell(model.now, Level::Info, what),
                Err(why) => model.notices.tell(model.now, Level::Error, why),
            }
            Vec::new()
        }
    };
    // Whatever happened may have moved the focus, or made readable what is focused.
    effects.extend(focus::look(model));
    effects.extend(files::near_the_end(model));
    tour::tick(model);
    effects
}

/// A moment came: everything that waits looks whether it was its own.
fn time_passed(model: &mut Model) -> Vec<Effect> {
    let mut effects = saves::time_passed(model);
    effects.extend(replay::time_passed(model));
    panes::time_passed(model);
    runs::time_passed(model);
    effects
}
