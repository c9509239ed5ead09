//! The workbench as data: one sub-state a subject, a map of runs, a stack of overlays. No I/O, no clock, no terminal.

pub(crate) mod bare;
pub(crate) mod cells;
pub(crate) mod desk;
pub(crate) mod document;
pub(crate) mod examples;
pub(crate) mod follow;
pub(crate) mod labels;
pub(crate) mod marks;
pub(crate) mod notices;
pub(crate) mod overlay;
pub(crate) mod pane;
pub(crate) mod phase;
pub(crate) mod replay;
pub(crate) mod request;
pub(crate) mod runs;
pub(crate) mod saves;
pub(crate) mod source;
pub(crate) mod statistics;
pub(crate) mod texts;
mod told;
pub(crate) mod tour;
pub(crate) mod trace;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use ratatui::layout::Size;

use super::keymap::Chord;
use super::widget::canvas::Hits;
use super::widget::flow::Find;
use super::widget::input::Input;
use crate::model::Millis;
use crate::theme::Theme;
use crate::workspace::Workspace;
use bare::Bare;
use desk::Desk;
use examples::Examples;
use labels::Labelling;
use notices::Notices;
use overlay::Overlay;
use pane::{Divider, Layout, Pane, Splits, Wish};
use replay::{Opening, Replay};
use runs::{Runs, Ticket};
use saves::{Report, Saves};
use texts::Texts;
use tour::Tour;

/// How long after the first key of several the others are shown.
pub(crate) const WHICH_KEY: Millis = Millis(300);
/// The turning mark turns so often.
pub(crate) const TURN: Millis = Millis(125);

/// What was opened.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// A workspace.
    Workspace(Arc<Workspace>),
    /// A file of transcripts, with no workspace around it.
    Bare(PathBuf),
    /// A recording alone.
    Recording,
}

/// The whole state.
#[derive(Debug)]
pub(crate) struct Model {
    /// The clock's reading at this update.
    pub(crate) now: Millis,
    pub(crate) place: Place,
    /// Rises whenever the outline and the board are asked for anew; older answers are ignored.
    pub(crate) generation: u64,
    /// The live desk.
    pub(crate) live: Desk,
    pub(crate) replay: Option<Replay>,
    /// How the next recording that is read opens.
    pub(crate) opening: Opening,
    /// The transcripts of a bare file.
    pub(crate) bare: Bare,
    pub(crate) saves: Saves,
    /// What people say, while it is being changed here.
    pub(crate) labels: Labelling,
    /// What became of the evals' own examples.
    pub(crate) examples: Examples,
    pub(crate) texts: Texts,
    pub(crate) overlays: Vec<Overlay>,
    pub(crate) notices: Notices,
    /// On the demo.
    pub(crate) tour: Option<Tour>,
    pub(crate) ui: Ui,
    /// The last ticket given out.
    pub(crate) tickets: u64,
    /// Orders that wait for their preview.
    pub(crate) previewing: Vec<super::effect::RunOrder>,
    /// The end was asked for: the exit code.
    pub(crate) quitting: Option<u8>,
}

/// What belongs to the screen, not to the work.
#[derive(Debug)]
pub(crate) struct Ui {
    pub(crate) size: Size,
    pub(crate) theme: Arc<Theme>,
    pub(crate) focus: Pane,
    /// The pane shown where only one of the others is.
    pub(crate) tab: Pane,
    pub(crate) zoom: bool,
    pub(crate) splits: Splits,
    /// Keys of a chord so far, and since when.
    pub(crate) pending: Vec<Chord>,
    pub(crate) pending_since: Millis,
    /// The line being typed.
    pub(crate) typing: Option<Typing>,
    /// A search in a large text that goes on at the next wake: where, and whether onwards.
    pub(crate) searching: Option<(Pane, bool)>,
    pub(crate) drag: Option<Divider>,
    /// What lay where when the last frame was drawn.
    pub(crate) hits: Hits,
    /// The turning mark's frame.
    pub(crate) frame: usize,
}

/// The line being typed in the footer.
#[derive(Debug, Clone)]
pub(crate) enum Typing {
    /// A filter of the cells; what it was before, and why what is typed is no filter.
    Filter {
        input: Input,
        before: String,
        problem: Option<String>,
    },
    /// A search in a pane; what was searched for before.
    Search {
        input: Input,
        pane: Pane,
        before: Option<Find>,
    },
}

impl Model {
    /// A workbench on a place.
    pub(crate) fn new(place: Place, size: Size, theme: Theme) -> Self {
        let tour = match &place {
            Place::Workspace(workspace) if workspace.is_demo => Some(Tour::default()),
            _ => None,
        };
        let tab = match &place {
            // There is no verdict to see.
            Place::Bare(_) => Pane::Transcript,
            _ => Pane::Verdict,
        };
        Self {
            now: Millis(0),
            place,
            generation: 0,
            live: Desk::default(),
            replay: None,
            opening: Opening::default(),
            bare: Bare::default(),
            saves: Saves::default(),
            labels: Labelling::default(),
            examples: Examples::default(),
            texts: Texts::default(),
            overlays: Vec::new(),
            notices: Notices::default(),
            tour,
            ui: Ui {
                size,
                theme: Arc::new(theme),
                focus: Pane::Cells,
                tab,
                zoom: false,
                splits: Splits::default(),
                pending: Vec::new(),
                pending_since: Millis(0),
                typing: None,
                searching: None,
                drag: None,
                hits: Hits::default(),
                frame: 0,
            },
            tickets: 0,
            previewing: Vec::new(),
            quitting: None,
        }
    }

    /// What one looks at: the replay's desk, or the live one.
    pub(crate) fn desk(&self) -> &Desk {
        self.replay
            .as_ref()
            .map_or(&self.live, |replay| &replay.desk)
    }

    /// See [`Model::desk`].
    pub(crate) fn desk_mut(&mut self) -> &mut Desk {
        match &mut self.replay {
            Some(replay) => &mut replay.desk,
            None => &mut self.live,
        }
    }

    /// The workspace, if one is open.
    pub(crate) fn workspace(&self) -> Option<&Arc<Workspace>> {
        match &self.place {
            Place::Workspace(workspace) => Some(workspace),
            _ => None,
        }
    }

    /// The newest report, as far as it may be seen.
    pub(crate) fn report(&self) -> Option<Cow<'_, Report>> {
        let report = self.saves.report.as_ref()?;
        Some(report.seen(&self.live.cells))
    }

    /// A ticket nobody has.
    pub(crate) fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    /// Where everything stands.
    pub(crate) fn layout(&self) -> Layout {
        Layout::of(&Wish {
            size: self.ui.size,
            focus: self.ui.focus,
            tab: self.ui.tab,
            zoom: self.ui.zoom,
            splits: self.ui.splits,
            problems: u16::try_from(self.saves.problems.len())
                .unwrap_or(u16::MAX)
                .saturating_add(u16::from(self.example_misses()))
                .min(4),
            replay: self.replay.is_some(),
            tour: self.tour_shown(),
            // What a save moved is the live desk's; a recording has nothing to do with it.
            changes: self.saves.report.is_some() && self.replay.is_none(),
            bare: self.is_bare(),
        })
    }

    /// Whether a file of transcripts is looked at that no rubric judges.
    pub(crate) fn is_bare(&self) -> bool {
        self.replay.is_none() && matches!(self.place, Place::Bare(_))
    }

    /// Whether it is to be shown that examples miss: they are of what is live.
    pub(crate) fn example_misses(&self) -> bool {
        self.replay.is_none() && self.examples.misses().next().is_some()
    }

    /// Whether the tour is on: it belongs to what is live.
    pub(crate) fn tour_shown(&self) -> bool {
        let hidden = self.tour.as_ref().is_none_or(|tour| tour.hidden);
        !hidden && self.replay.is_none() && self.workspace().is_some()
    }

    /// The next moment something happens by itself (a toast ends, a wait is over, a recording goes on, a mark turns).
    pub(crate) fn next_wake(&self) -> Option<Millis> {
        let toast = self.notices.until.filter(|until| *until > self.now);
        let which_key = (!self.ui.pending.is_empty())
            .then(|| self.ui.pending_since + WHICH_KEY)
            .filter(|at| *at > self.now);
        let mark = self
            .runs()
            .live()
            .next()
            .filter(|_| self.replay.as_ref().is_none_or(Replay::playing))
            .map(|_| self.next_turn());
        // Order that lags behind what was judged.
        let order = self.desk().cells.due();
        [toast, which_key, mark, order, self.next_work()]
            .into_iter()
            .flatten()
            .min()
    }

    /// When a live run looks different by itself: a mark turns while something works; where everything waits for another
    /// attempt only seconds are counted.
    fn next_turn(&self) -> Millis {
        /// A countdown is told in seconds.
        const COUNT: Millis = Millis(1000);
        let mut live = self.runs().live();
        let apart = if live.all(|(_, run)| run.only_counts_down()) {
            COUNT
        } else {
            TURN
        };
        self.now + apart.since(Millis(self.now.0 % apart.0))
    }

    /// Of these, the next one that does more than to draw something anew.
    pub(crate) fn next_work(&self) -> Option<Millis> {
        // Judges of cells wait for the examples of their evals.
        let saved = self.saves.next_wake().filter(|_| !self.examples.judging());
        let played = self
            .replay
            .as_ref()
            .and_then(|replay| replay.next_wake(self.now));
        let search = self.ui.searching.map(|_| self.now);
        // The order of many cells may lag behind results for a moment.
        let order = self.desk().cells.due().map(|due| due.max(self.now));
        [saved, played, search, order].into_iter().flatten().min()
    }

    /// The runs of what one looks at.
    pub(crate) fn runs(&self) -> &Runs {
        &self.desk().runs
    }
}
