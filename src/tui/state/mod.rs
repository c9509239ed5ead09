//! The state of the workbench as data: one file per subject, a map of runs, a stack of overlays. Does no I/O and
//! reads no clock.

pub(crate) mod agent_comparison;
pub(crate) mod cells;
pub(crate) mod document;
pub(crate) mod edit_report;
pub(crate) mod examples;
pub(crate) mod filled_panes;
pub(crate) mod finding_marks;
pub(crate) mod first_judging;
pub(crate) mod follow;
pub(crate) mod follow_ups;
pub(crate) mod judge_trace;
pub(crate) mod label_edits;
pub(crate) mod labelling;
mod metadata_text;
pub(crate) mod noise_reads;
pub(crate) mod notices;
pub(crate) mod opened_file;
pub(crate) mod overlay;
pub(crate) mod pane;
pub(crate) mod past_verdict_wait;
pub(crate) mod pauses;
pub(crate) mod phase_text;
pub(crate) mod piece_range;
pub(crate) mod progress;
pub(crate) mod queue_options;
pub(crate) mod readable_request;
pub(crate) mod replay;
pub(crate) mod replay_marks;
pub(crate) mod review;
pub(crate) mod runs;
pub(crate) mod saves;
pub(crate) mod session_view;
pub(crate) mod shown_cell;
pub(crate) mod statistics;
pub(crate) mod step_list;
pub(crate) mod text_cache;
pub(crate) mod tour;
pub(crate) mod trace_screen;
pub(crate) mod transcript_source;
pub(crate) mod variants;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ratatui::layout::Size;

use super::click_target::ClickTarget;
use super::key_chord::KeyChord;
use super::run_order::RunOrder;
use super::screen_choices::ScreenChoices;
use super::widget::canvas::HitMap;
use super::widget::flow::TextSearch;
use super::widget::line_input::LineInput;
use crate::judge::Breakpoint;
use crate::model::{DisagreementCause, Millis};
use crate::theme::Theme;
use crate::workspace::Workspace;
use cells::RowId;
use cells::completion::FilterCompletion;
use edit_report::{EditReport, EvalRename, count_movable_labels};
use examples::ExamplesState;
use first_judging::FirstJudging;
use follow_ups::FollowUpOrder;
use label_edits::LabelEdits;
use labelling::LabellingState;
use noise_reads::NoiseReads;
use notices::Notices;
use opened_file::OpenedFileState;
use overlay::Overlay;
use pane::{LayoutParams, Pane, PaneDivider, PaneSplits, ScreenLayout};
use past_verdict_wait::PastVerdictWait;
use pauses::EditTarget;
use progress::{ProgressLayout, ProgressPane, ProgressScreen, TextRows};
use replay::{ReplayStart, ReplayState};
use review::{ReviewScreen, ReviewText};
use runs::{RunTicket, TrackedRuns};
use saves::SavesState;
use session_view::SessionView;
use text_cache::TextCache;
use tour::Tour;

/// The delay after the first key of a sequence until dicta shows the possible next keys.
pub(crate) const KEY_HINT_DELAY: Millis = Millis(300);
/// The time between two frames of the spinner.
pub(crate) const SPINNER_INTERVAL: Millis = Millis(125);

/// The item that the workbench shows.
#[derive(Debug, Clone)]
pub(crate) enum OpenedItem {
    /// A workspace.
    Workspace(Arc<Workspace>),
    /// A file of transcripts without a workspace.
    TranscriptFile(PathBuf),
    /// A recording without a workspace.
    Recording,
}

/// The app: the whole state of the workbench.
#[derive(Debug)]
pub(crate) struct App {
    /// The time of the current update. The event loop sets it.
    pub(crate) now: Millis,
    pub(crate) opened: OpenedItem,
    /// Increases with each order of the outline and the newest verdicts. Results with an older number are ignored.
    pub(crate) generation: u64,
    /// The cells and runs of the opened workspace.
    pub(crate) live_session: SessionView,
    pub(crate) replay: Option<ReplayState>,
    /// The start settings of the next replay.
    pub(crate) replay_start: ReplayStart,
    /// The transcripts of a file without a workspace.
    pub(crate) opened_file: OpenedFileState,
    pub(crate) saves: SavesState,
    /// The saves and runs that wait for the verdicts of past runs.
    pub(crate) past_verdict_wait: PastVerdictWait,
    /// The order of the reads of the noise runs.
    pub(crate) noise_reads: NoiseReads,
    /// Labels that were set here and are not in the loaded file yet.
    pub(crate) label_edits: LabelEdits,
    /// The queue, the draws and the figures.
    pub(crate) labelling: LabellingState,
    /// The judges that lack their key, each with a sentence that names it.
    pub(crate) missing_keys: BTreeMap<String, String>,
    /// Increases with each order to find warnings. Results with an older number are ignored.
    pub(crate) warnings_number: u64,
    /// The results of the evals' examples.
    pub(crate) examples: ExamplesState,
    /// The progress screen.
    pub(crate) progress: ProgressScreen,
    /// The reading screen.
    pub(crate) review: ReviewScreen,
    pub(crate) texts: TextCache,
    pub(crate) overlays: Vec<Overlay>,
    pub(crate) notices: Notices,
    /// The tour of the demo.
    pub(crate) tour: Option<Tour>,
    pub(crate) ui: UiState,
    /// The last ticket that was assigned.
    pub(crate) last_ticket: u64,
    /// The stops at which judge traces pause.
    pub(crate) breakpoints: Vec<Breakpoint>,
    /// The number of runs of variants, which the session does not list.
    pub(crate) judged_variants: usize,
    /// Orders that wait for their preview.
    pub(crate) awaiting_preview: Vec<RunOrder>,
    /// True to judge a workspace without a recorded run when it opens; see [`FirstJudging`].
    pub(crate) judges_on_open: bool,
    /// The judging on opening, until it starts or proves unnecessary.
    pub(crate) first_judging: Option<FirstJudging>,
    /// The exit code; set when the program is about to end.
    pub(crate) exit_code: Option<u8>,
}

/// The state of the screen itself: size, focus, input.
#[derive(Debug)]
pub(crate) struct UiState {
    pub(crate) size: Size,
    /// True after the first frame.
    pub(crate) first_frame_drawn: bool,
    pub(crate) theme: Arc<Theme>,
    pub(crate) focus: Pane,
    /// The pane that is visible if there is room for only one next to the cells.
    pub(crate) tab_pane: Pane,
    pub(crate) zoomed: bool,
    /// True if the trace screen is open. It is visible while the focused cell has a judge trace.
    pub(crate) trace_open: bool,
    pub(crate) splits: PaneSplits,
    /// The keys of an unfinished sequence, and the time of the first one.
    pub(crate) pending_keys: Vec<KeyChord>,
    pub(crate) pending_since: Millis,
    /// The open line in the footer.
    pub(crate) footer_input: Option<FooterInput>,
    /// A search in a large text that continues at the next wake.
    pub(crate) pending_search: Option<PendingPaneSearch>,
    pub(crate) drag: Option<PaneDivider>,
    /// The areas of the last frame that a click can hit.
    pub(crate) hits: HitMap<ClickTarget>,
    /// The number of the spinner's frame.
    pub(crate) spinner_frame: usize,
    /// The choices that dicta remembers for the next start.
    pub(crate) choices: ScreenChoices,
    /// The choices as they are in the file. `None`: this session remembers nothing.
    pub(crate) saved_choices: Option<ScreenChoices>,
}

/// A search that continues at the next wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingPaneSearch {
    pub(crate) pane: Pane,
    /// True if it goes to the next match, false if it goes to the previous one.
    pub(crate) forward: bool,
}

/// An open line in the footer.
#[derive(Debug, Clone)]
pub(crate) enum FooterInput {
    /// A filter of the cells, the filter before it, the problem if it does not parse, and the keys and values that can
    /// continue it.
    Filter {
        input: LineInput,
        previous: String,
        problem: Option<String>,
        completion: FilterCompletion,
    },
    /// A search in a pane, and the search before it.
    Search {
        input: LineInput,
        pane: Pane,
        previous: Option<TextSearch>,
    },
    /// A note on a decision.
    Note { input: LineInput, row: RowId },
    /// A text on the reading screen.
    Review {
        input: LineInput,
        purpose: ReviewText,
    },
    /// The clause that settled a disagreement, with its cause.
    Clause {
        input: LineInput,
        row: RowId,
        cause: DisagreementCause,
    },
    /// A question to the judge about its verdict.
    FollowUp {
        input: LineInput,
        target: Box<FollowUpOrder>,
    },
    /// A text of a judge trace, and the reason why dicta can't use it.
    StepEdit {
        input: LineInput,
        target: EditTarget,
        problem: Option<String>,
    },
    /// A text after `/` where nothing can be searched, and the reason. Without this line, its letters would be keys, and
    /// some keys write files.
    Refused {
        input: LineInput,
        reason: &'static str,
    },
}

impl FooterInput {
    /// Returns the typed line.
    pub(crate) fn input_mut(&mut self) -> &mut LineInput {
        match self {
            Self::Filter { input, .. }
            | Self::Search { input, .. }
            | Self::Note { input, .. }
            | Self::Review { input, .. }
            | Self::Clause { input, .. }
            | Self::FollowUp { input, .. }
            | Self::StepEdit { input, .. }
            | Self::Refused { input, .. } => input,
        }
    }
}

impl App {
    /// Creates the state for an opened item. Nothing is loaded yet.
    pub(crate) fn new(opened: OpenedItem, size: Size, theme: Theme) -> Self {
        let tour = match &opened {
            // The tour explains the demo's own rubric, so it exists only there.
            OpenedItem::Workspace(workspace) if workspace.is_demo => Some(Tour::default()),
            _ => None,
        };
        let tab = match &opened {
            // Without a rubric there is no verdict to show.
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
            past_verdict_wait: PastVerdictWait::default(),
            noise_reads: NoiseReads::default(),
            label_edits: LabelEdits::default(),
            labelling: LabellingState::default(),
            missing_keys: BTreeMap::new(),
            warnings_number: 0,
            examples: ExamplesState::default(),
            progress: ProgressScreen::default(),
            review: ReviewScreen::default(),
            texts: TextCache::default(),
            overlays: Vec::new(),
            notices: Notices::default(),
            tour,
            ui: UiState {
                size,
                first_frame_drawn: false,
                theme: Arc::new(theme),
                focus: Pane::Cells,
                tab_pane: tab,
                zoomed: false,
                trace_open: false,
                splits: PaneSplits::default(),
                pending_keys: Vec::new(),
                pending_since: Millis(0),
                footer_input: None,
                pending_search: None,
                drag: None,
                hits: HitMap::default(),
                spinner_frame: 0,
                choices: ScreenChoices::default(),
                saved_choices: None,
            },
            last_ticket: 0,
            breakpoints: Vec::new(),
            judged_variants: 0,
            awaiting_preview: Vec::new(),
            judges_on_open: false,
            first_judging: None,
            exit_code: None,
        }
    }

    /// Applies the choices of earlier sessions, and remembers those of this one.
    pub(crate) fn restore_choices(&mut self, choices: ScreenChoices) {
        if let Some(splits) = choices.splits {
            self.ui.splits = splits;
        }
        let order = self
            .workspace()
            .and_then(|open| choices.order_in(&open.root));
        if let Some(sort) = order {
            self.live_session.cells.sort = sort;
        }
        if let Some(tour) = &mut self.tour {
            tour.hidden = choices.tour_ended == Some(true);
        }
        self.ui.choices = choices.clone();
        self.ui.saved_choices = Some(choices);
    }

    /// Returns the visible session: the replay's, or the live one.
    pub(crate) fn session(&self) -> &SessionView {
        self.replay
            .as_ref()
            .map_or(&self.live_session, |replay| &replay.session)
    }

    /// Returns the visible session, as [`Self::session`] does.
    pub(crate) fn session_mut(&mut self) -> &mut SessionView {
        match &mut self.replay {
            Some(replay) => &mut replay.session,
            None => &mut self.live_session,
        }
    }

    /// Returns the workspace, if one is open.
    pub(crate) fn workspace(&self) -> Option<&Arc<Workspace>> {
        match &self.opened {
            OpenedItem::Workspace(workspace) => Some(workspace),
            _ => None,
        }
    }

    /// Returns the newest report without the flips that a blind screen hides.
    pub(crate) fn visible_report(&self) -> Option<Cow<'_, EditReport>> {
        let report = self.saves.report.as_ref()?;
        Some(report.without_hidden(&self.live_session.cells))
    }

    /// Returns the renamed evals whose labels still have the old name, with the numbers of labels. Without such evals,
    /// those that were probably renamed and edited at once.
    pub(crate) fn movable_labels(&self) -> Vec<(EvalRename, u64)> {
        let (Some(workspace), Some(report)) = (self.workspace(), &self.saves.report) else {
            return Vec::new();
        };
        match count_movable_labels(&report.renames, workspace) {
            renames if renames.is_empty() => count_movable_labels(&report.replaced, workspace),
            renames => renames,
        }
    }

    /// Returns a new ticket.
    pub(crate) fn next_ticket(&mut self) -> RunTicket {
        self.last_ticket += 1;
        RunTicket(self.last_ticket)
    }

    /// Computes the layout of the screen.
    pub(crate) fn layout(&self) -> ScreenLayout {
        if self.shows_progress() || self.shows_review() {
            return ScreenLayout::without_panes(self.ui.size);
        }
        ScreenLayout::from_params(&LayoutParams {
            size: self.ui.size,
            focus: self.ui.focus,
            tab_pane: self.ui.tab_pane,
            zoomed: self.ui.zoomed,
            splits: self.ui.splits,
            problems: u16::from(self.shows_load_errors()) + u16::from(self.shows_example_misses()),
            // A state has no time line.
            replay: self
                .replay
                .as_ref()
                .is_some_and(|replay| replay.state_number.is_none()),
            tour: self.shows_tour(),
            // The report is about the live workspace, not about a replay.
            changes: self.replay.is_none()
                && (self.shows_edit() || !self.saves.problems.is_empty()),
            filled: filled_panes::find_filled_panes(self),
            labelling: self.shows_labelling(),
            question_rows: self.count_question_rows(),
            compares_traces: self.session().trace_screen.other_slot.is_some(),
        })
    }

    /// Returns true if there is an edit to show and its pane is not closed.
    fn shows_edit(&self) -> bool {
        self.saves.report.is_some() && !self.saves.changes_closed
    }

    /// Returns true if the progress screen is visible. A replay or a state that it opened covers it.
    pub(crate) fn shows_progress(&self) -> bool {
        self.progress.open && self.replay.is_none() && !self.review.open
    }

    /// Returns true if the reading screen is visible.
    pub(crate) fn shows_review(&self) -> bool {
        self.review.open && self.replay.is_none()
    }

    /// Computes the layout of the progress screen.
    pub(crate) fn progress_layout(&self) -> ProgressLayout {
        let screen = &self.progress;
        let tab = screen.tab.unwrap_or(ProgressPane::Flips);
        let area = self.layout().middle();
        let headline = screen.headline_rows(area.width, area.height).len();
        // A large screen shows the text next to the flips.
        let edit = (!ProgressLayout::shows_all_parts(area))
            .then(|| screen.edit_rows(area.width, self.ui.theme.glyphs()).len());
        let rows = |many: usize| u16::try_from(many).unwrap_or(u16::MAX);
        let text = TextRows {
            headline: rows(headline).max(1),
            edit: rows(edit.unwrap_or(0)),
        };
        ProgressLayout::compute(area, screen.items.len(), screen.focus, tab, text)
    }

    /// Returns true if the screen shows the state of a revision.
    pub(crate) fn shows_state(&self) -> bool {
        let replay = self.replay.as_ref();
        replay.is_some_and(|replay| replay.state_number.is_some())
    }

    /// Returns true while visible rows may lack the verdict of a past run. A row without one may not be called "not run".
    pub(crate) fn reads_past_verdicts(&self) -> bool {
        self.replay.is_none() && self.past_verdict_wait.is_reading()
    }

    /// Returns true if the screen shows a file of transcripts without a rubric.
    pub(crate) fn shows_unjudged_file(&self) -> bool {
        self.replay.is_none() && matches!(self.opened, OpenedItem::TranscriptFile(_))
    }

    /// Returns true if the changes pane shows the errors of files that do not load. They concern the live workspace
    /// only.
    pub(crate) fn shows_load_errors(&self) -> bool {
        self.replay.is_none() && !self.saves.problems.is_empty()
    }

    /// Returns true if missed examples are shown. They concern the live workspace only.
    pub(crate) fn shows_example_misses(&self) -> bool {
        self.replay.is_none() && self.examples.misses().next().is_some()
    }

    /// Returns true if a changed workspace waits for the user's answer.
    pub(crate) fn asks_about_reload(&self) -> bool {
        self.overlays.iter().any(Overlay::asks_about_reload)
    }

    /// Returns true if `q` only goes one step back: it leaves the zoom or the replay.
    pub(crate) fn steps_back_on_quit(&self) -> bool {
        let leaves_replay = self.replay.as_ref();
        let leaves_replay = leaves_replay.is_some_and(|replay| !replay.quits_on_leave);
        self.ui.zoomed || leaves_replay
    }

    /// Returns true if keys or values that can continue the typed filter are listed.
    pub(crate) fn offers_completion(&self) -> bool {
        match &self.ui.footer_input {
            Some(FooterInput::Filter { completion, .. }) => !completion.offers.is_empty(),
            _ => false,
        }
    }

    /// Returns true if the tour is shown. It concerns the live workspace only.
    pub(crate) fn shows_tour(&self) -> bool {
        let hidden = self.tour.as_ref().is_none_or(|tour| tour.hidden);
        let covered = self.progress.open || self.review.open || self.shows_trace_screen();
        !hidden && self.replay.is_none() && !covered && self.workspace().is_some()
    }

    /// Returns the next time at which the app changes by itself: a notice disappears, a wait ends, a replay
    /// continues, the spinner turns.
    pub(crate) fn next_wake(&self) -> Option<Millis> {
        // A time in the past causes no wake, or the loop would never sleep.
        let toast = self.notices.toast_until.filter(|until| *until > self.now);
        let which_key = (!self.ui.pending_keys.is_empty())
            .then(|| self.ui.pending_since + KEY_HINT_DELAY)
            .filter(|at| *at > self.now);
        // The spinner only turns while a run is live, and not in a paused replay.
        let mark = self
            .runs()
            .live()
            .next()
            .filter(|_| self.replay.as_ref().is_none_or(ReplayState::is_playing))
            .map(|_| self.next_spinner_turn());
        // The order of many rows may lag behind the results.
        let order = self.session().cells.next_order_update();
        [toast, which_key, mark, order, self.next_work()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the time of the next spinner frame. If all judges wait for a retry, only the seconds of the countdown
    /// change.
    fn next_spinner_turn(&self) -> Millis {
        /// A countdown shows whole seconds.
        const COUNT: Millis = Millis(1000);
        let mut live = self.runs().live();
        let apart = if live.all(|(_, run)| run.is_only_backing_off()) {
            COUNT
        } else {
            SPINNER_INTERVAL
        };
        // All frames are at multiples of the interval, so several spinners turn together.
        self.now + apart.since(Millis(self.now.0 % apart.0))
    }

    /// Returns the next wake that does more than change the picture. Tests wait for it.
    pub(crate) fn next_work(&self) -> Option<Millis> {
        // Saves wait for the examples of their evals.
        let saved = self
            .saves
            .next_wake()
            .filter(|_| !self.examples.is_judging() && !self.asks_about_reload());
        let played = self
            .replay
            .as_ref()
            .and_then(|replay| replay.next_wake(self.now));
        // A search continues at once.
        let search = self.ui.pending_search.map(|_| self.now);
        // The order of many rows may lag behind the results.
        let order = self
            .session()
            .cells
            .next_order_update()
            // A due time in the past means now.
            .map(|due| due.max(self.now));
        [saved, played, search, order].into_iter().flatten().min()
    }

    /// Returns the runs of the visible session.
    pub(crate) fn runs(&self) -> &TrackedRuns {
        &self.session().runs
    }
}
