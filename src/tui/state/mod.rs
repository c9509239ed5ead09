//! The workbench as data: one sub-state a subject, a map of runs, a stack of overlays. No I/O, no clock, no terminal.

pub(crate) mod cells;
pub(crate) mod document;
pub(crate) mod examples;
pub(crate) mod finding_marks;
pub(crate) mod follow;
pub(crate) mod judge_trace;
pub(crate) mod label_edits;
mod metadata_text;
pub(crate) mod notices;
pub(crate) mod opened_file;
pub(crate) mod overlay;
pub(crate) mod pane;
pub(crate) mod phase_text;
pub(crate) mod readable_request;
pub(crate) mod replay;
pub(crate) mod runs;
pub(crate) mod saves;
pub(crate) mod session_view;
pub(crate) mod shown_cell;
pub(crate) mod statistics;
pub(crate) mod text_cache;
pub(crate) mod tour;
pub(crate) mod transcript_source;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use ratatui::layout::Size;

use super::click_target::ClickTarget;
use super::key_chord::KeyChord;
use super::run_order::RunOrder;
use super::widget::canvas::HitMap;
use super::widget::flow::TextSearch;
use super::widget::line_input::LineInput;
use crate::model::Millis;
use crate::theme::Theme;
use crate::workspace::Workspace;
use examples::ExamplesState;
use label_edits::LabelEdits;
use notices::Notices;
use opened_file::OpenedFileState;
use overlay::Overlay;
use pane::{LayoutParams, Pane, PaneDivider, PaneSplits, ScreenLayout};
use replay::{ReplayStart, ReplayState};
use runs::{RunTicket, TrackedRuns};
use saves::{SaveReport, SavesState};
use session_view::SessionView;
use text_cache::TextCache;
use tour::Tour;

/// How long after the first key of several the others are shown.
pub(crate) const KEY_HINT_DELAY: Millis = Millis(300);
/// The turning mark turns so often.
pub(crate) const SPINNER_INTERVAL: Millis = Millis(125);

/// What was opened.
#[derive(Debug, Clone)]
pub(crate) enum OpenedItem {
    /// A workspace.
    Workspace(Arc<Workspace>),
    /// A file of transcripts, with no workspace around it.
    TranscriptFile(PathBuf),
    /// A recording alone.
    Recording,
}

/// The whole state.
#[derive(Debug)]
pub(crate) struct App {
    /// The clock's reading at this update.
    pub(crate) now: Millis,
    pub(crate) opened: OpenedItem,
    /// Rises whenever the outline and the board are asked for anew; older answers are ignored.
    pub(crate) generation: u64,
    /// The live desk.
    pub(crate) live_session: SessionView,
    pub(crate) replay: Option<ReplayState>,
    /// How the next recording that is read opens.
    pub(crate) replay_start: ReplayStart,
    /// The transcripts of a bare file.
    pub(crate) opened_file: OpenedFileState,
    pub(crate) saves: SavesState,
    /// What people say, while it is being changed here.
    pub(crate) label_edits: LabelEdits,
    /// What became of the evals' own examples.
    pub(crate) examples: ExamplesState,
    pub(crate) texts: TextCache,
    pub(crate) overlays: Vec<Overlay>,
    pub(crate) notices: Notices,
    /// On the demo.
    pub(crate) tour: Option<Tour>,
    pub(crate) ui: UiState,
    /// The last ticket given out.
    pub(crate) last_ticket: u64,
    /// Orders that wait for their preview.
    pub(crate) awaiting_preview: Vec<RunOrder>,
    /// The end was asked for: the exit code.
    pub(crate) exit_code: Option<u8>,
}

/// What belongs to the screen, not to the work.
#[derive(Debug)]
pub(crate) struct UiState {
    pub(crate) size: Size,
    pub(crate) theme: Arc<Theme>,
    pub(crate) focus: Pane,
    /// The pane shown where only one of the others is.
    pub(crate) tab_pane: Pane,
    pub(crate) zoomed: bool,
    pub(crate) splits: PaneSplits,
    /// Keys of a chord so far, and since when.
    pub(crate) pending_keys: Vec<KeyChord>,
    pub(crate) pending_since: Millis,
    /// The line being typed.
    pub(crate) footer_input: Option<FooterInput>,
    /// A search in a large text that goes on at the next wake: where, and whether onwards.
    pub(crate) pending_search: Option<(Pane, bool)>,
    pub(crate) drag: Option<PaneDivider>,
    /// What lay where when the last frame was drawn.
    pub(crate) hits: HitMap<ClickTarget>,
    /// The turning mark's frame.
    pub(crate) spinner_frame: usize,
}

/// The line being typed in the footer.
#[derive(Debug, Clone)]
pub(crate) enum FooterInput {
    /// A filter of the cells; what it was before, and why what is typed is no filter.
    Filter {
        input: LineInput,
        previous: String,
        problem: Option<String>,
    },
    /// A search in a pane; what was searched for before.
    Search {
        input: LineInput,
        pane: Pane,
        previous: Option<TextSearch>,
    },
}

impl App {
    /// A workbench on a place.
    pub(crate) fn new(opened: OpenedItem, size: Size, theme: Theme) -> Self {
        let tour = match &opened {
            OpenedItem::Workspace(workspace) if workspace.is_demo => Some(Tour::default()),
            _ => None,
        };
        let tab = match &opened {
            // There is no verdict to see.
            OpenedItem::TranscriptFile(_) => Pane::Transcript,
            _ => Pane::Verdict,
        };
        Self {
            now: Millis(0),
            opened,
            generation: 0,
            live_session: SessionView::default(),
            replay: None,
            replay_start: ReplayStart::default(),
            opened_file: OpenedFileState::default(),
            saves: SavesState::default(),
            label_edits: LabelEdits::default(),
            examples: ExamplesState::default(),
            texts: TextCache::default(),
            overlays: Vec::new(),
            notices: Notices::default(),
            tour,
            ui: UiState {
                size,
                theme: Arc::new(theme),
                focus: Pane::Cells,
                tab_pane: tab,
                zoomed: false,
                splits: PaneSplits::default(),
                pending_keys: Vec::new(),
                pending_since: Millis(0),
                footer_input: None,
                pending_search: None,
                drag: None,
                hits: HitMap::default(),
                spinner_frame: 0,
            },
            last_ticket: 0,
            awaiting_preview: Vec::new(),
            exit_code: None,
        }
    }

    /// What one looks at: the replay's desk, or the live one.
    pub(crate) fn session(&self) -> &SessionView {
        self.replay
            .as_ref()
            .map_or(&self.live_session, |replay| &replay.session)
    }

    /// See [`Model::desk`].
    pub(crate) fn session_mut(&mut self) -> &mut SessionView {
        match &mut self.replay {
            Some(replay) => &mut replay.session,
            None => &mut self.live_session,
        }
    }

    /// The workspace, if one is open.
    pub(crate) fn workspace(&self) -> Option<&Arc<Workspace>> {
        match &self.opened {
            OpenedItem::Workspace(workspace) => Some(workspace),
            _ => None,
        }
    }

    /// The newest report, as far as it may be seen.
    pub(crate) fn visible_report(&self) -> Option<Cow<'_, SaveReport>> {
        let report = self.saves.report.as_ref()?;
        Some(report.without_hidden(&self.live_session.cells))
    }

    /// A ticket nobody has.
    pub(crate) fn next_ticket(&mut self) -> RunTicket {
        self.last_ticket += 1;
        RunTicket(self.last_ticket)
    }

    /// Where everything stands.
    pub(crate) fn layout(&self) -> ScreenLayout {
        ScreenLayout::from_params(&LayoutParams {
            size: self.ui.size,
            focus: self.ui.focus,
            tab_pane: self.ui.tab_pane,
            zoomed: self.ui.zoomed,
            splits: self.ui.splits,
            problems: u16::try_from(self.saves.problems.len())
                .unwrap_or(u16::MAX)
                .saturating_add(u16::from(self.shows_example_misses()))
                .min(4),
            replay: self.replay.is_some(),
            tour: self.shows_tour(),
            // What a save moved is the live desk's; a recording has nothing to do with it.
            changes: self.saves.report.is_some() && self.replay.is_none(),
            hide_trace: self.shows_unjudged_file(),
        })
    }

    /// Whether a file of transcripts is looked at that no rubric judges.
    pub(crate) fn shows_unjudged_file(&self) -> bool {
        self.replay.is_none() && matches!(self.opened, OpenedItem::TranscriptFile(_))
    }

    /// Whether it is to be shown that examples miss: they are of what is live.
    pub(crate) fn shows_example_misses(&self) -> bool {
        self.replay.is_none() && self.examples.misses().next().is_some()
    }

    /// Whether the tour is on: it belongs to what is live.
    pub(crate) fn shows_tour(&self) -> bool {
        let hidden = self.tour.as_ref().is_none_or(|tour| tour.hidden);
        !hidden && self.replay.is_none() && self.workspace().is_some()
    }

    /// The next moment something happens by itself (a toast ends, a wait is over, a recording goes on, a mark turns).
    pub(crate) fn next_wake(&self) -> Option<Millis> {
        let toast = self.notices.toast_until.filter(|until| *until > self.now);
        let which_key = (!self.ui.pending_keys.is_empty())
            .then(|| self.ui.pending_since + KEY_HINT_DELAY)
            .filter(|at| *at > self.now);
        let mark = self
            .runs()
            .live()
            .next()
            .filter(|_| self.replay.as_ref().is_none_or(ReplayState::is_playing))
            .map(|_| self.next_spinner_turn());
        // Order that lags behind what was judged.
        let order = self.session().cells.next_order_update();
        [toast, which_key, mark, order, self.next_work()]
            .into_iter()
            .flatten()
            .min()
    }

    /// When a live run looks different by itself: a mark turns while something works; where everything waits for another
    /// attempt only seconds are counted.
    fn next_spinner_turn(&self) -> Millis {
        /// A countdown is told in seconds.
        const COUNT: Millis = Millis(1000);
        let mut live = self.runs().live();
        let apart = if live.all(|(_, run)| run.is_only_backing_off()) {
            COUNT
        } else {
            SPINNER_INTERVAL
        };
        self.now + apart.since(Millis(self.now.0 % apart.0))
    }

    /// Of these, the next one that does more than to draw something anew.
    pub(crate) fn next_work(&self) -> Option<Millis> {
        // Judges of cells wait for the examples of their evals.
        let saved = self
            .saves
            .next_wake()
            .filter(|_| !self.examples.is_judging());
        let played = self
            .replay
            .as_ref()
            .and_then(|replay| replay.next_wake(self.now));
        let search = self.ui.pending_search.map(|_| self.now);
        // The order of many cells may lag behind results for a moment.
        let order = self
            .session()
            .cells
            .next_order_update()
            .map(|due| due.max(self.now));
        [saved, played, search, order].into_iter().flatten().min()
    }

    /// The runs of what one looks at.
    pub(crate) fn runs(&self) -> &TrackedRuns {
        &self.session().runs
    }
}
