//! Reads and records draws, and computes the figures of evals on other threads.

use std::path::PathBuf;
use std::sync::Arc;

use super::Runtime;
use crate::compare::{DrawQuota, DrawRequest, QueueEval, StratumProperty};
use crate::tui::history_view::Shared;
use crate::tui::label_figures::{
    FiguresInput, StateFiguresInput, compute_screen_figures, compute_state_figures,
};
use crate::tui::msg::Msg;
use crate::tui::state::runs::RunTicket;
use crate::tui::task_failure::TaskFailure;
use crate::workspace::Workspace;
use crate::workspace::label_draws::{add_chosen_draw, read_draws};

impl Runtime {
    /// Reads the draws of a file of labels.
    pub(super) fn read_draws(&self, file: PathBuf) {
        let failed = file.clone();
        self.spawn_blocking(
            move || Msg::DrawsRead {
                draws: read_draws(&file)
                    .map(Shared::from)
                    .map_err(TaskFailure::new),
                file,
            },
            move |why| Msg::DrawsRead {
                file: failed,
                draws: Err(why),
            },
        );
    }

    /// Reads the repeats of the noise runs of a workspace. A newer order replaces one that waits, except for the order
    /// after a measurement, whose result the screen reports. Both can run at once, so the app compares their numbers.
    pub(super) fn read_noise(
        &self,
        number: u64,
        workspace: Arc<Workspace>,
        measured: Option<RunTicket>,
    ) {
        let (past, env) = (self.past_verdicts.clone(), self.deps.env.clone());
        let failed = workspace.root.clone();
        let read = move || Msg::NoiseRead {
            number,
            noise: Ok(past.read_noise(&workspace, &env).into()),
            root: workspace.root.clone(),
            measured,
        };
        let on_failure = move |why| Msg::NoiseRead {
            number,
            root: failed,
            measured,
            noise: Err(why),
        };
        if measured.is_some() {
            self.spawn_blocking(read, on_failure);
        } else {
            self.noise_reads
                .submit(&self.outbox, move |_| Some(read()), on_failure);
        }
    }

    /// Draws and records the draw.
    pub(super) fn draw_labels(
        &self,
        file: PathBuf,
        eval: u32,
        items: Shared<QueueEval>,
        by: Option<StratumProperty>,
        size: usize,
    ) {
        let request = DrawRequest {
            by,
            quota: DrawQuota::Total(size),
            seed: fastrand::u64(..=u64::from(u32::MAX)),
            at: self.deps.clock.wall_time(),
            excludes_hidden: false,
        };
        self.spawn_blocking(
            move || {
                let draw = || {
                    // Another program may have drawn since, so the file decides.
                    let draws = add_chosen_draw(&file, |draws| items.draw(&request, draws))?;
                    Ok(draws.and_then(|mut draws| draws.pop()).map(Box::new))
                };
                Msg::LabelsDrawn {
                    eval,
                    drawn: draw().map_err(
                        |error: crate::workspace::label_draws::LabelDrawsError| {
                            TaskFailure::new(error)
                        },
                    ),
                }
            },
            move |why| Msg::LabelsDrawn {
                eval,
                drawn: Err(why),
            },
        );
    }

    /// Computes the figures of an eval of an opened state.
    pub(super) fn compute_state_figures(&self, input: Shared<StateFiguresInput>) {
        let (number, eval) = (input.number, input.position);
        self.spawn_blocking(
            move || {
                let figures = read_draws(&input.labels_file).map_err(TaskFailure::new);
                let figures = figures.and_then(|draws| {
                    let figures = compute_state_figures(&input, &draws);
                    figures.ok_or_else(|| "the state has no such eval".into())
                });
                Msg::StateFiguresComputed {
                    number,
                    eval,
                    figures: figures.map(Shared::from),
                }
            },
            move |why| Msg::StateFiguresComputed {
                number,
                eval,
                figures: Err(why),
            },
        );
    }

    /// Computes the figures of an eval.
    pub(super) fn compute_figures(&self, eval: u32, version: u64, input: Shared<FiguresInput>) {
        self.spawn_blocking(
            move || Msg::FiguresComputed {
                eval,
                version,
                figures: Ok(compute_screen_figures(&input).into()),
            },
            move |why| Msg::FiguresComputed {
                eval,
                version,
                figures: Err(why),
            },
        );
    }
}
