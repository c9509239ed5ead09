//! The command table: the single list of the user's commands.
//!
//! Dispatch, footer, which-key box, help, the README's key table and `dicta keys` are generated from [`COMMANDS`]. To
//! add a command, add a variant, a row, and a case in `update`. A row is data; `update` contains the actions.

mod enabled;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use super::state::App;
use enabled::always;
pub(crate) use enabled::{count_flips, explain_no_search};

/// An action of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum UiCommand {
    Quit,
    Cancel,
    Suspend,
    Redraw,
    Help,
    Log,
    Statistics,
    Themes,
    TourHide,
    Back,
    NextPane,
    PreviousPane,
    PaneLeft,
    PaneRight,
    Pane1,
    Pane2,
    Pane3,
    Pane4,
    Pane5,
    Pane6,
    Pane7,
    ToggleChanges,
    Zoom,
    Up,
    Down,
    PageUp,
    PageDown,
    HalfUp,
    HalfDown,
    Top,
    Bottom,
    Enter,
    NextProblem,
    PreviousProblem,
    Search,
    NextMatch,
    PreviousMatch,
    Sort,
    LabelPass,
    LabelFail,
    LabelUnsure,
    LabelConfirm,
    LabelRemove,
    LabelBack,
    NextUnlabelled,
    LabelNote,
    LabelQueues,
    LabelAdvance,
    LabelClose,
    Agreement,
    Variants,
    LabelMove,
    Blind,
    Run,
    RunAll,
    Edit,
    SaveExample,
    Auto,
    Pages,
    Judges,
    Repeat,
    Replay,
    MakeWorkspace,
    PreviousStep,
    NextStep,
    Citation,
    NextMessage,
    PreviousMessage,
    Raw,
    Source,
    CopyValue,
    CopyRaw,
    CopyMessage,
    CopyName,
    CopyCommand,
    PlayPause,
    StepEvent,
    StepTurn,
    StepCell,
    StepBack,
    Slower,
    Faster,
    SeekBack,
    SeekOn,
    SeekTo,
    NextFailure,
    TraceUnfold,
    TraceFold,
    TraceCompare,
    TraceBranch,
    TraceAsk,
    TraceWhatIf,
    TraceWhatIfArguments,
    Breakpoints,
    PauseStep,
    PauseContinue,
    PauseContinueAll,
    PauseSkip,
    PauseEdit,
    Review,
    ReviewNoFailure,
    ReviewNote,
    ReviewUnsure,
    ReviewSkip,
    ReviewPrevious,
    ReviewNext,
    ReviewUndo,
    ReviewModes,
    ReviewMore,
    ReviewCounts,
    ModesCounts,
    CountsOpen,
    CountsEval,
    ModesMark,
    ModesAssign,
    ModesCreate,
    ModesRename,
    ModesDefine,
    ModesMerge,
    ModesSplit,
    ModesUngroup,
    ModesUndo,
    ModesNearer,
    ModesFurther,
    ModesAskJudge,
    ModesAccept,
    ModesDiscard,
    ModesAnswers,
    ModesEval,
    DraftWrite,
    AnswerYes,
    AnswerNo,
    AnswerNext,
    AnswerPrevious,
    AnswerUndo,
    DraftUndo,
    Progress,
    ProgressOpen,
    ProgressRuns,
    ProgressCompare,
    ProgressBaseline,
    ProgressReplay,
    ProgressRestore,
    ProgressExport,
    ProgressUndo,
    NextEval,
    PreviousEval,
    RaiseThreshold,
    LowerThreshold,
    RaiseThresholdFinely,
    LowerThresholdFinely,
}

/// The part of the screen in which a command works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CommandScope {
    /// Everywhere, unless a narrower scope uses the same key.
    Global,
    /// While the cells have the focus.
    Cells,
    /// While the cells or the verdict have the focus.
    Verdicts,
    /// While the transcript has the focus.
    Transcript,
    /// While a recording plays.
    Replay,
    /// While the trace screen is visible.
    Trace,
    /// While the trace screen shows a paused trace.
    Paused,
    /// While the progress screen is visible.
    Progress,
    /// While the reading screen shows a transcript.
    Review,
    /// While the reading screen shows notes and modes.
    Modes,
    /// While the reading screen asks about modes.
    Answers,
    /// While the reading screen lists drafts of an eval.
    Drafts,
    /// While the reading screen shows the table of modes.
    Counts,
}

impl CommandScope {
    /// Returns the name of the part of the screen for lists of keys.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Global => "everywhere",
            Self::Cells => "cells",
            Self::Verdicts => "cells, verdict",
            Self::Transcript => "transcript",
            Self::Replay => "replay",
            Self::Trace => "trace screen",
            Self::Paused => "paused trace",
            Self::Progress => "progress screen",
            Self::Review => "reading screen",
            Self::Modes => "notes and modes",
            Self::Answers => "questions about modes",
            Self::Drafts => "drafts of an eval",
            Self::Counts => "table of modes",
        }
    }
}

/// A row of the command table.
#[derive(Debug)]
pub(crate) struct CommandSpec {
    /// The command that the row describes.
    pub(crate) command: UiCommand,
    /// The stable name, for configuration and tests.
    pub(crate) id: &'static str,
    /// The title in the footer and in help: a few words.
    pub(crate) title: &'static str,
    /// The description in help and in the README: one sentence.
    pub(crate) help: &'static str,
    /// The part of the screen in which it works.
    pub(crate) scope: CommandScope,
    /// The keys; the keys of a sequence are separated by spaces.
    pub(crate) keys: &'static [&'static str],
    /// The heading in help.
    pub(crate) group: &'static str,
    /// The rank in the footer: 1 is the first, 0 never appears.
    pub(crate) footer_rank: u8,
    /// Returns Ok if the command can run now, else a sentence on what to do first.
    pub(crate) enabled: fn(&App) -> Result<(), &'static str>,
}

impl CommandSpec {
    /// Returns Ok if the command can run now, else the reason. Checks the scope before the command's own condition.
    pub(crate) fn check_usable(&self, app: &App) -> Result<(), &'static str> {
        // The scope is checked first: its sentence names the pane to go to.
        enabled::check_scope(app, self.scope)?;
        enabled::check_screen(app, self)?;
        (self.enabled)(app)
    }

    /// Returns the keys for people: `up, k`; the keys of a sequence with spaces, `y v`.
    pub(crate) fn keys_text(&self) -> String {
        self.keys.join(", ")
    }
}

/// Returns the row of a command.
pub(crate) fn find_spec(command: UiCommand) -> Option<&'static CommandSpec> {
    COMMANDS.iter().find(|spec| spec.command == command)
}

/// Returns the headings in the order of the table.
pub(crate) fn list_groups() -> Vec<&'static str> {
    let mut groups: Vec<&'static str> = Vec::new();
    // The table keeps groups together, so the first row of a group gives its place.
    for spec in COMMANDS {
        if !groups.contains(&spec.group) {
            groups.push(spec.group);
        }
    }
    groups
}

/// Returns the table as Markdown, for `dicta keys --format markdown` and the README.
pub(crate) fn render_markdown() -> String {
    let mut out = String::from("| keys | where | do |\n|---|---|---|\n");
    for group in list_groups() {
        let _infallible = writeln!(out, "| **{group}** | | |");
        for spec in COMMANDS.iter().filter(|spec| spec.group == group) {
            let keys: Vec<String> = spec.keys.iter().map(|key| format!("`{key}`")).collect();
            let (keys, place) = (keys.join(" "), spec.scope.as_str());
            let _infallible = writeln!(out, "| {keys} | {place} | {} |", spec.help);
        }
    }
    out
}

/// Returns the table as plain text: keys, the part of the screen, and descriptions.
pub(crate) fn render_plain() -> String {
    let mut out = String::new();
    for group in list_groups() {
        let _infallible = writeln!(out, "{group}");
        for spec in COMMANDS.iter().filter(|spec| spec.group == group) {
            let (keys, place) = (spec.keys_text(), spec.scope.as_str());
            let _infallible = writeln!(out, "  {keys:<18} {place:<22} {}", spec.help);
        }
    }
    out
}

/// All commands, in the order of help.
#[rustfmt::skip]
pub(crate) const COMMANDS: &[CommandSpec] = &[
    CommandSpec { command: UiCommand::Quit, id: "quit", title: "quit", scope: CommandScope::Global, keys: &["q"], group: "Program", footer_rank: 8, enabled: always,
        help: "Closes the overlay, the zoom or the replay, or else quits dicta. Asks first while a run that you started is active. Where you type, q is text." },
    CommandSpec { command: UiCommand::Cancel, id: "cancel", title: "cancel", scope: CommandScope::Global, keys: &["ctrl-c"], group: "Program", footer_rank: 0, enabled: always,
        help: "Cancels the active run, or else quits dicta." },
    CommandSpec { command: UiCommand::Suspend, id: "suspend", title: "suspend", scope: CommandScope::Global, keys: &["ctrl-z"], group: "Program", footer_rank: 0, enabled: always,
        help: "Suspends dicta as a shell job; `fg` resumes it." },
    CommandSpec { command: UiCommand::Redraw, id: "redraw", title: "redraw", scope: CommandScope::Global, keys: &["ctrl-l"], group: "Program", footer_rank: 0, enabled: always,
        help: "Draws the whole screen again." },
    CommandSpec { command: UiCommand::Help, id: "help", title: "help", scope: CommandScope::Global, keys: &["?"], group: "Program", footer_rank: 9, enabled: always,
        help: "Lists every key that works here. Type to search; enter runs the selected command." },
    CommandSpec { command: UiCommand::Log, id: "log", title: "log", scope: CommandScope::Global, keys: &["L"], group: "Program", footer_rank: 0, enabled: always,
        help: "Lists all errors, warnings, saves and flips of this session." },
    CommandSpec { command: UiCommand::Statistics, id: "statistics", title: "run statistics", scope: CommandScope::Global, keys: &["S"], group: "Program", footer_rank: 0, enabled: always,
        help: "Shows calls, repairs, errors, times, tokens and cost by judge and tool." },
    CommandSpec { command: UiCommand::Themes, id: "themes", title: "themes", scope: CommandScope::Global, keys: &["T"], group: "Program", footer_rank: 0, enabled: always,
        help: "Chooses a theme, also for the next start; each theme is previewed as you move." },
    CommandSpec { command: UiCommand::TourHide, id: "tour.hide", title: "hide the tour", scope: CommandScope::Global, keys: &["0"], group: "Program", footer_rank: 0, enabled: enabled::tour,
        help: "Hides or shows the tour in the footer." },
    CommandSpec { command: UiCommand::Back, id: "back", title: "back", scope: CommandScope::Global, keys: &["esc"], group: "Panes", footer_rank: 0, enabled: always,
        help: "Goes back one step: closes the overlay, the zoom, the filter or the pane. Never quits." },
    CommandSpec { command: UiCommand::NextPane, id: "pane.next", title: "next pane", scope: CommandScope::Global, keys: &["tab"], group: "Panes", footer_rank: 4, enabled: always,
        help: "Moves the focus to the next pane." },
    CommandSpec { command: UiCommand::PreviousPane, id: "pane.previous", title: "previous pane", scope: CommandScope::Global, keys: &["shift-tab"], group: "Panes", footer_rank: 0, enabled: always,
        help: "Moves the focus to the previous pane." },
    CommandSpec { command: UiCommand::PaneLeft, id: "pane.left", title: "pane to the left", scope: CommandScope::Global, keys: &["left", "h"], group: "Panes", footer_rank: 0, enabled: always,
        help: "Moves the focus to the pane on the left." },
    CommandSpec { command: UiCommand::PaneRight, id: "pane.right", title: "pane to the right", scope: CommandScope::Global, keys: &["right", "l"], group: "Panes", footer_rank: 0, enabled: always,
        help: "Moves the focus to the pane on the right." },
    CommandSpec { command: UiCommand::Pane1, id: "pane.1", title: "cells", scope: CommandScope::Global, keys: &["1"], group: "Panes", footer_rank: 0, enabled: always,
        help: "Focuses the cells." },
    CommandSpec { command: UiCommand::Pane2, id: "pane.2", title: "prompt", scope: CommandScope::Global, keys: &["2"], group: "Panes", footer_rank: 0, enabled: enabled::prompt,
        help: "Focuses the prompt of the shown turn, or the text that a code check judged." },
    CommandSpec { command: UiCommand::Pane3, id: "pane.3", title: "function call", scope: CommandScope::Global, keys: &["3"], group: "Panes", footer_rank: 0, enabled: enabled::function_call,
        help: "Focuses the tool calls of the shown turn." },
    CommandSpec { command: UiCommand::Pane4, id: "pane.4", title: "fetched content", scope: CommandScope::Global, keys: &["4"], group: "Panes", footer_rank: 0, enabled: enabled::fetched_content,
        help: "Focuses the tool responses of the shown turn." },
    CommandSpec { command: UiCommand::Pane5, id: "pane.5", title: "verdict", scope: CommandScope::Global, keys: &["5"], group: "Panes", footer_rank: 0, enabled: enabled::verdict,
        help: "Focuses the verdict and its reasoning, the finding of a code check, or the summary of an eval." },
    CommandSpec { command: UiCommand::Pane6, id: "pane.6", title: "transcript", scope: CommandScope::Global, keys: &["6"], group: "Panes", footer_rank: 0, enabled: enabled::transcript_pane,
        help: "Focuses the judged transcript." },
    CommandSpec { command: UiCommand::Pane7, id: "pane.7", title: "changes", scope: CommandScope::Global, keys: &["7"], group: "Panes", footer_rank: 0, enabled: always,
        help: "Focuses the changes of the last edit, or the errors of a file that does not load." },
    CommandSpec { command: UiCommand::ToggleChanges, id: "changes.close", title: "close the changes", scope: CommandScope::Global, keys: &["w"], group: "Panes", footer_rank: 0, enabled: enabled::changes,
        help: "Closes the changes until the next edit, or shows them again." },
    CommandSpec { command: UiCommand::Zoom, id: "zoom", title: "zoom", scope: CommandScope::Global, keys: &["+"], group: "Panes", footer_rank: 6, enabled: always,
        help: "Shows the focused pane on the whole screen, or returns to all panes." },
    CommandSpec { command: UiCommand::Up, id: "up", title: "up", scope: CommandScope::Global, keys: &["up", "k"], group: "Moving", footer_rank: 0, enabled: always,
        help: "Moves up one row." },
    CommandSpec { command: UiCommand::Down, id: "down", title: "down", scope: CommandScope::Global, keys: &["down", "j"], group: "Moving", footer_rank: 0, enabled: always,
        help: "Moves down one row." },
    CommandSpec { command: UiCommand::PageUp, id: "page.up", title: "page up", scope: CommandScope::Global, keys: &["pageup", "ctrl-b"], group: "Moving", footer_rank: 0, enabled: always,
        help: "Moves up one page." },
    CommandSpec { command: UiCommand::PageDown, id: "page.down", title: "page down", scope: CommandScope::Global, keys: &["pagedown", "ctrl-f"], group: "Moving", footer_rank: 0, enabled: always,
        help: "Moves down one page." },
    CommandSpec { command: UiCommand::HalfUp, id: "half.up", title: "half a page up", scope: CommandScope::Global, keys: &["ctrl-u"], group: "Moving", footer_rank: 0, enabled: always,
        help: "Moves up half a page." },
    CommandSpec { command: UiCommand::HalfDown, id: "half.down", title: "half a page down", scope: CommandScope::Global, keys: &["ctrl-d"], group: "Moving", footer_rank: 0, enabled: always,
        help: "Moves down half a page." },
    CommandSpec { command: UiCommand::Top, id: "top", title: "first row", scope: CommandScope::Global, keys: &["home", "g"], group: "Moving", footer_rank: 0, enabled: always,
        help: "Goes to the first row." },
    CommandSpec { command: UiCommand::Bottom, id: "bottom", title: "last row", scope: CommandScope::Global, keys: &["end", "G"], group: "Moving", footer_rank: 0, enabled: always,
        help: "Goes to the last row and follows a growing text again." },
    CommandSpec { command: UiCommand::Enter, id: "enter", title: "open", scope: CommandScope::Global, keys: &["enter"], group: "Moving", footer_rank: 0, enabled: enabled::enter,
        help: "Opens the selection: opens or closes a group, opens the trace screen of a judged cell, folds or unfolds a step, goes to the cell of a flip." },
    CommandSpec { command: UiCommand::NextProblem, id: "problem.next", title: "next problem", scope: CommandScope::Global, keys: &["]"], group: "Moving", footer_rank: 2, enabled: enabled::problems,
        help: "Goes to the next failure, flip or error, or to the next disagreement if those come first." },
    CommandSpec { command: UiCommand::PreviousProblem, id: "problem.previous", title: "previous problem", scope: CommandScope::Global, keys: &["["], group: "Moving", footer_rank: 0, enabled: enabled::problems,
        help: "Goes to the previous failure, flip or error, or to the previous disagreement if those come first." },
    CommandSpec { command: UiCommand::Search, id: "search", title: "search", scope: CommandScope::Global, keys: &["/"], group: "Finding", footer_rank: 3, enabled: always,
        help: "Filters the cells (`outcome:fail eval:tone words`), or searches the text of another pane. tab and shift-tab choose a listed key or value of the filter." },
    CommandSpec { command: UiCommand::NextMatch, id: "match.next", title: "next match", scope: CommandScope::Global, keys: &["n"], group: "Finding", footer_rank: 1, enabled: enabled::matches,
        help: "Goes to the next match of the search." },
    CommandSpec { command: UiCommand::PreviousMatch, id: "match.previous", title: "previous match", scope: CommandScope::Global, keys: &["N"], group: "Finding", footer_rank: 0, enabled: enabled::matches,
        help: "Goes to the previous match of the search." },
    CommandSpec { command: UiCommand::Sort, id: "sort", title: "sort", scope: CommandScope::Cells, keys: &["o"], group: "Finding", footer_rank: 0, enabled: enabled::problems,
        help: "Sorts the cells: failures first, disagreements with your labels first, unlabelled first, or file order." },
    CommandSpec { command: UiCommand::LabelPass, id: "label.pass", title: "label: pass", scope: CommandScope::Global, keys: &["p"], group: "Labelling", footer_rank: 0, enabled: enabled::label,
        help: "Labels the focused decision as pass and writes the labels file at once." },
    CommandSpec { command: UiCommand::LabelFail, id: "label.fail", title: "label: fail", scope: CommandScope::Global, keys: &["f"], group: "Labelling", footer_rank: 0, enabled: enabled::label,
        help: "Labels the focused decision as fail." },
    CommandSpec { command: UiCommand::LabelUnsure, id: "label.unsure", title: "label: unsure", scope: CommandScope::Global, keys: &["u"], group: "Labelling", footer_rank: 0, enabled: enabled::label,
        help: "Labels the focused decision as unsure. Agreement counts exclude it." },
    CommandSpec { command: UiCommand::LabelConfirm, id: "label.confirm", title: "confirm the label", scope: CommandScope::Global, keys: &["a"], group: "Labelling", footer_rank: 1, enabled: enabled::label_to_confirm,
        help: "Confirms the label after its question or transcript changed. Until then, the label counts nowhere." },
    CommandSpec { command: UiCommand::LabelRemove, id: "label.remove", title: "remove the label", scope: CommandScope::Verdicts, keys: &["x"], group: "Labelling", footer_rank: 0, enabled: enabled::labelled,
        help: "Removes the label of the focused decision (in the cells and the verdict)." },
    CommandSpec { command: UiCommand::LabelBack, id: "label.back", title: "undo a label", scope: CommandScope::Global, keys: &["U"], group: "Labelling", footer_rank: 0, enabled: enabled::label_back,
        help: "Undoes the last label change; press again to undo earlier ones." },
    CommandSpec { command: UiCommand::NextUnlabelled, id: "label.next", title: "next unlabelled", scope: CommandScope::Global, keys: &["s"], group: "Labelling", footer_rank: 0, enabled: enabled::problems,
        help: "Goes to the next open decision of the label queue, or without a queue to the next one without a label." },
    CommandSpec { command: UiCommand::LabelQueues, id: "label.queues", title: "label queue", scope: CommandScope::Global, keys: &["Q"], group: "Labelling", footer_rank: 0, enabled: enabled::label_queues,
        help: "Chooses what to label next: drawn by chance to measure the judge, or chosen by a rule to debug. The first row shows the purpose and the progress." },
    CommandSpec { command: UiCommand::LabelNote, id: "label.note", title: "note", scope: CommandScope::Global, keys: &["i"], group: "Labelling", footer_rank: 0, enabled: enabled::label,
        help: "Types a note. dicta saves it with the label, also if the label comes later." },
    CommandSpec { command: UiCommand::LabelAdvance, id: "label.advance", title: "advance", scope: CommandScope::Global, keys: &["K"], group: "Labelling", footer_rank: 0, enabled: enabled::blind,
        help: "Switches whether a label goes on to the next decision of the queue, also for the next start." },
    CommandSpec { command: UiCommand::LabelClose, id: "label.close", title: "close a disagreement", scope: CommandScope::Global, keys: &["D"], group: "Labelling", footer_rank: 0, enabled: enabled::disagreement,
        help: "Closes a disagreement with its cause (the rubric, the label, or an unclear specification) and the clause that settled it." },
    CommandSpec { command: UiCommand::Agreement, id: "agreement", title: "judge good?", scope: CommandScope::Global, keys: &["I"], group: "Labelling", footer_rank: 1, enabled: enabled::agreement,
        help: "Answers \"is my judge good enough?\": TPR, TNR, agreement, the corrected pass rate and the noise of the selected eval, with intervals and details." },
    CommandSpec { command: UiCommand::Variants, id: "variants", title: "variants", scope: CommandScope::Global, keys: &["Y"], group: "Labelling", footer_rank: 0, enabled: enabled::variants,
        help: "Lists the variants of `variants.yaml` with their figures on the dev labels. Shows the diff of each, judges one, and writes one into the rubric." },
    CommandSpec { command: UiCommand::LabelMove, id: "label.move", title: "move labels", scope: CommandScope::Global, keys: &["M"], group: "Labelling", footer_rank: 0, enabled: enabled::label_move,
        help: "Moves the labels of a renamed eval to its new name." },
    CommandSpec { command: UiCommand::Blind, id: "blind", title: "blind", scope: CommandScope::Global, keys: &["B"], group: "Labelling", footer_rank: 0, enabled: enabled::blind,
        help: "Hides each verdict until you label it, or shows all verdicts again." },
    CommandSpec { command: UiCommand::Run, id: "run.focused", title: "run", scope: CommandScope::Global, keys: &["r"], group: "Judging", footer_rank: 1, enabled: enabled::run,
        help: "Judges the focused cell again, without the cache. On an eval, judges its cells that no current verdict covers." },
    CommandSpec { command: UiCommand::RunAll, id: "run.all", title: "run all", scope: CommandScope::Global, keys: &["R"], group: "Judging", footer_rank: 1, enabled: enabled::run_all,
        help: "Judges what the filter shows, or every cell without a filter. Unchanged verdicts come from the cache. Asks first if the cost is unknown or above `confirm_usd`." },
    CommandSpec { command: UiCommand::Edit, id: "edit", title: "edit", scope: CommandScope::Global, keys: &["e"], group: "Judging", footer_rank: 1, enabled: enabled::edit,
        help: "Opens the rubric in $VISUAL or $EDITOR at the focused eval, or a file that does not load at its error." },
    CommandSpec { command: UiCommand::SaveExample, id: "example.save", title: "keep as example", scope: CommandScope::Global, keys: &["E"], group: "Judging", footer_rank: 0, enabled: enabled::save_example,
        help: "Writes the judged message into the rubric as an `example` of the eval, with its label as `expect`. Comments in the file stay." },
    CommandSpec { command: UiCommand::Auto, id: "auto", title: "auto", scope: CommandScope::Global, keys: &["A"], group: "Judging", footer_rank: 0, enabled: enabled::auto,
        help: "Switches between judging changed evals on save and only marking them stale." },
    CommandSpec { command: UiCommand::Pages, id: "pages", title: "reuse pages", scope: CommandScope::Global, keys: &["P"], group: "Judging", footer_rank: 0, enabled: enabled::auto,
        help: "Switches between reusing recorded pages after a save and fetching them again." },
    CommandSpec { command: UiCommand::Judges, id: "judges", title: "other judges", scope: CommandScope::Global, keys: &["J"], group: "Judging", footer_rank: 7, enabled: enabled::judges,
        help: "Lists the available judges for a second opinion, with the estimated cost of the focused cell. On the trace screen, `b` and `m` in the list continue the trace with the selected judge or with another model of it." },
    CommandSpec { command: UiCommand::Repeat, id: "repeat", title: "judge several times", scope: CommandScope::Global, keys: &["*"], group: "Judging", footer_rank: 0, enabled: enabled::repeat,
        help: "Asks for a number and judges the focused cell so many times (×5) to show how stable its verdict is. On an eval, repeats its shown cells to measure the judge's noise, as `dicta noise` does. The repeats decide nothing." },
    CommandSpec { command: UiCommand::Replay, id: "replay", title: "replay", scope: CommandScope::Global, keys: &["v"], group: "Judging", footer_rank: 5, enabled: enabled::replay,
        help: "Replays the focused cell's run with its original timing." },
    CommandSpec { command: UiCommand::MakeWorkspace, id: "workspace.make", title: "create a workspace", scope: CommandScope::Global, keys: &["W"], group: "Judging", footer_rank: 1, enabled: enabled::make_workspace,
        help: "Creates a workspace with a first rubric around the opened file." },
    CommandSpec { command: UiCommand::PreviousStep, id: "step.previous", title: "previous turn", scope: CommandScope::Global, keys: &[","], group: "Trace", footer_rank: 0, enabled: enabled::step,
        help: "Goes to the previous step of the judge trace; on the trace screen, to the previous turn." },
    CommandSpec { command: UiCommand::NextStep, id: "step.next", title: "next turn", scope: CommandScope::Global, keys: &["."], group: "Trace", footer_rank: 0, enabled: enabled::step,
        help: "Goes to the next step of the judge trace; after the last step, follows the judge." },
    CommandSpec { command: UiCommand::Citation, id: "citation", title: "next citation", scope: CommandScope::Global, keys: &["c"], group: "Trace", footer_rank: 0, enabled: enabled::verdict_visible,
        help: "Shows the next place in the transcript that the verdict cites or the check found, else the judged text." },
    CommandSpec { command: UiCommand::NextMessage, id: "message.next", title: "next message", scope: CommandScope::Transcript, keys: &["}"], group: "Trace", footer_rank: 2, enabled: enabled::transcript,
        help: "Goes to the next message of the transcript." },
    CommandSpec { command: UiCommand::PreviousMessage, id: "message.previous", title: "previous message", scope: CommandScope::Transcript, keys: &["{"], group: "Trace", footer_rank: 0, enabled: enabled::transcript,
        help: "Goes to the previous message of the transcript." },
    CommandSpec { command: UiCommand::Raw, id: "raw", title: "raw", scope: CommandScope::Global, keys: &["x", "X"], group: "Trace", footer_rank: 0, enabled: always,
        help: "Switches to the exact bytes that were sent or received (request, arguments, page) and back (`X` in the cells and the verdict)." },
    CommandSpec { command: UiCommand::Source, id: "source", title: "raw record", scope: CommandScope::Global, keys: &["O"], group: "Trace", footer_rank: 0, enabled: enabled::transcript,
        help: "Shows the transcript's record as it is in the file." },
    CommandSpec { command: UiCommand::TraceUnfold, id: "trace.unfold", title: "unfold", scope: CommandScope::Trace, keys: &["z"], group: "Trace", footer_rank: 2, enabled: always,
        help: "Unfolds one more level of the selected step's details: JSON, the blocks of a prompt, dicta's frame." },
    CommandSpec { command: UiCommand::TraceFold, id: "trace.fold", title: "fold", scope: CommandScope::Trace, keys: &["Z"], group: "Trace", footer_rank: 0, enabled: always,
        help: "Folds one level of the selected step's details." },
    CommandSpec { command: UiCommand::TraceCompare, id: "trace.compare", title: "side by side", scope: CommandScope::Trace, keys: &["d"], group: "Trace", footer_rank: 1, enabled: always,
        help: "Shows the next judge or repeat of the decision next to this trace, aligned by step; after the last one, ends the comparison." },
    CommandSpec { command: UiCommand::TraceBranch, id: "trace.branch", title: "branch from here", scope: CommandScope::Trace, keys: &["b"], group: "Trace", footer_rank: 3, enabled: enabled::branch,
        help: "Continues the recorded trace from the selected step, next to the original: on a tool call, makes the call again, unless `replay_tools` answers it; on the verdict, a last call that failed. Asks first as a run does. The branch decides nothing." },
    CommandSpec { command: UiCommand::TraceWhatIf, id: "trace.whatif", title: "what if", scope: CommandScope::Trace, keys: &["w"], group: "Trace", footer_rank: 5, enabled: enabled::branch,
        help: "Edits the selected tool call, its response, or the criteria of the first prompt; on the verdict, the last response. Continues the trace with your text as a branch; the original stays." },
    CommandSpec { command: UiCommand::TraceWhatIfArguments, id: "trace.whatif_arguments", title: "what if: arguments", scope: CommandScope::Trace, keys: &["W"], group: "Trace", footer_rank: 0, enabled: enabled::branch,
        help: "Edits the arguments of the last tool call up to the selected step, and makes the call in a branch; on the first prompt, edits the whole prompt. The original stays." },
    CommandSpec { command: UiCommand::TraceAsk, id: "trace.ask", title: "ask the judge", scope: CommandScope::Trace, keys: &["a"], group: "Trace", footer_rank: 5, enabled: enabled::ask,
        help: "Asks the judge a question about its verdict, with one model call. The answer is recorded next to the trace and changes no result." },
    CommandSpec { command: UiCommand::Breakpoints, id: "breakpoints", title: "breakpoints", scope: CommandScope::Global, keys: &["!"], group: "Pauses", footer_rank: 0, enabled: enabled::breakpoints,
        help: "Lists the stops at which judge traces pause. `enter` sets or removes the selected one, or the one that you type; `space` does so and stays; `tab` limits it to the focused cell." },
    CommandSpec { command: UiCommand::PauseStep, id: "pause.step", title: "step", scope: CommandScope::Paused, keys: &["s"], group: "Pauses", footer_rank: 1, enabled: always,
        help: "Continues the paused trace to its next stop." },
    CommandSpec { command: UiCommand::PauseContinue, id: "pause.continue", title: "continue", scope: CommandScope::Paused, keys: &["space"], group: "Pauses", footer_rank: 1, enabled: always,
        help: "Continues the paused trace to its next breakpoint." },
    CommandSpec { command: UiCommand::PauseEdit, id: "pause.edit", title: "edit", scope: CommandScope::Paused, keys: &["e"], group: "Pauses", footer_rank: 1, enabled: always,
        help: "Edits the request, the arguments, the tool response or the verdict, and continues with it. A text of several lines opens in `$EDITOR`." },
    CommandSpec { command: UiCommand::PauseSkip, id: "pause.skip", title: "skip the call", scope: CommandScope::Paused, keys: &["S"], group: "Pauses", footer_rank: 2, enabled: enabled::skip_call,
        help: "Skips the tool call at which the trace is paused. The judge gets an error as the response." },
    CommandSpec { command: UiCommand::PauseContinueAll, id: "pause.continue.all", title: "continue all", scope: CommandScope::Paused, keys: &["A"], group: "Pauses", footer_rank: 2, enabled: always,
        help: "Continues every paused trace. Their runs pause no more until the breakpoints change." },
    CommandSpec { command: UiCommand::CopyValue, id: "copy.value", title: "copy the pane's text", scope: CommandScope::Global, keys: &["y v"], group: "Copying", footer_rank: 0, enabled: enabled::text,
        help: "Copies the text of the focused pane, with visible marks for control and hidden characters." },
    CommandSpec { command: UiCommand::CopyRaw, id: "copy.raw", title: "copy the raw text", scope: CommandScope::Global, keys: &["y r"], group: "Copying", footer_rank: 0, enabled: enabled::text,
        help: "Copies the text of the focused pane unchanged. A terminal may obey its control characters when you paste it." },
    CommandSpec { command: UiCommand::CopyMessage, id: "copy.message", title: "copy the message", scope: CommandScope::Global, keys: &["y m"], group: "Copying", footer_rank: 0, enabled: enabled::transcript,
        help: "Copies the message at the top of the transcript pane, with visible marks." },
    CommandSpec { command: UiCommand::CopyName, id: "copy.name", title: "copy the cell's name", scope: CommandScope::Global, keys: &["y n"], group: "Copying", footer_rank: 0, enabled: enabled::cell,
        help: "Copies the name of the focused cell." },
    CommandSpec { command: UiCommand::CopyCommand, id: "copy.command", title: "copy the command", scope: CommandScope::Global, keys: &["y c"], group: "Copying", footer_rank: 0, enabled: enabled::cell,
        help: "Copies the command that does the same on the command line." },
    CommandSpec { command: UiCommand::PlayPause, id: "replay.play", title: "play or pause", scope: CommandScope::Replay, keys: &["space"], group: "Replay", footer_rank: 1, enabled: always,
        help: "Plays or pauses the recording." },
    CommandSpec { command: UiCommand::StepEvent, id: "replay.event", title: "next event", scope: CommandScope::Replay, keys: &[">"], group: "Replay", footer_rank: 1, enabled: always,
        help: "Goes forward by one event." },
    CommandSpec { command: UiCommand::StepTurn, id: "replay.turn", title: "end of turn", scope: CommandScope::Replay, keys: &["t"], group: "Replay", footer_rank: 1, enabled: always,
        help: "Goes to the end of the next turn." },
    CommandSpec { command: UiCommand::StepCell, id: "replay.cell", title: "end of cell", scope: CommandScope::Replay, keys: &["C"], group: "Replay", footer_rank: 1, enabled: always,
        help: "Goes to the end of the next cell and shows that cell." },
    CommandSpec { command: UiCommand::StepBack, id: "replay.back", title: "previous event", scope: CommandScope::Replay, keys: &["<"], group: "Replay", footer_rank: 0, enabled: always,
        help: "Goes back by one event." },
    CommandSpec { command: UiCommand::Slower, id: "replay.slower", title: "slower", scope: CommandScope::Replay, keys: &["-"], group: "Replay", footer_rank: 1, enabled: always,
        help: "Halves the speed, down to 0.25." },
    CommandSpec { command: UiCommand::Faster, id: "replay.faster", title: "faster", scope: CommandScope::Replay, keys: &["="], group: "Replay", footer_rank: 1, enabled: always,
        help: "Doubles the speed, up to 64." },
    CommandSpec { command: UiCommand::SeekBack, id: "replay.seek.back", title: "back 5%", scope: CommandScope::Replay, keys: &["ctrl-left"], group: "Replay", footer_rank: 0, enabled: always,
        help: "Goes back by 5% of the recording." },
    CommandSpec { command: UiCommand::SeekOn, id: "replay.seek.on", title: "forward 5%", scope: CommandScope::Replay, keys: &["ctrl-right"], group: "Replay", footer_rank: 0, enabled: always,
        help: "Goes forward by 5% of the recording." },
    CommandSpec { command: UiCommand::SeekTo, id: "replay.seek.to", title: "go to a time", scope: CommandScope::Replay, keys: &["@"], group: "Replay", footer_rank: 0, enabled: always,
        help: "Asks for a time and goes to it: `1:05`, `12.5` seconds or `40%`." },
    CommandSpec { command: UiCommand::NextFailure, id: "replay.failure", title: "next failure", scope: CommandScope::Replay, keys: &["F"], group: "Replay", footer_rank: 1, enabled: always,
        help: "Goes to the next cell that fails or ends in an error." },
    CommandSpec { command: UiCommand::Review, id: "review", title: "review", scope: CommandScope::Global, keys: &["V"], group: "Review", footer_rank: 0, enabled: enabled::review,
        help: "Opens the reading screen: read transcripts before any rubric, note the first failure of each, and group the notes." },
    CommandSpec { command: UiCommand::ReviewNoFailure, id: "review.pass", title: "no failure", scope: CommandScope::Review, keys: &["p"], group: "Review", footer_rank: 1, enabled: always,
        help: "Notes that nothing fails in the transcript, and goes to the next one." },
    CommandSpec { command: UiCommand::ReviewNote, id: "review.note", title: "note", scope: CommandScope::Review, keys: &["n"], group: "Review", footer_rank: 1, enabled: always,
        help: "Opens the line for a sentence about the first failure, at the focused message; enter saves it and goes to the next transcript." },
    CommandSpec { command: UiCommand::ReviewUnsure, id: "review.unsure", title: "unsure", scope: CommandScope::Review, keys: &["u"], group: "Review", footer_rank: 1, enabled: always,
        help: "Notes that you cannot decide, and goes to the next transcript." },
    CommandSpec { command: UiCommand::ReviewSkip, id: "review.skip", title: "skip", scope: CommandScope::Review, keys: &["s"], group: "Review", footer_rank: 1, enabled: always,
        help: "Skips the transcript without an answer." },
    CommandSpec { command: UiCommand::ReviewPrevious, id: "review.previous", title: "previous", scope: CommandScope::Review, keys: &[","], group: "Review", footer_rank: 2, enabled: always,
        help: "Returns to the previous transcript of the sample, to read or change its note." },
    CommandSpec { command: UiCommand::ReviewNext, id: "review.next", title: "next", scope: CommandScope::Review, keys: &["."], group: "Review", footer_rank: 2, enabled: always,
        help: "Goes to the next transcript of the sample without an answer." },
    CommandSpec { command: UiCommand::ReviewUndo, id: "review.undo", title: "undo", scope: CommandScope::Review, keys: &["U"], group: "Review", footer_rank: 2, enabled: always,
        help: "Undoes the last change of the review: a note, an answer, a group or an eval. Also works after a restart." },
    CommandSpec { command: UiCommand::ReviewModes, id: "review.modes", title: "group", scope: CommandScope::Review, keys: &["m"], group: "Review", footer_rank: 1, enabled: always,
        help: "Groups notes into failure modes." },
    CommandSpec { command: UiCommand::ReviewMore, id: "review.more", title: "draw more", scope: CommandScope::Review, keys: &["+"], group: "Review", footer_rank: 3, enabled: always,
        help: "Extends the sample by 20 transcripts that were not drawn before." },
    CommandSpec { command: UiCommand::ReviewCounts, id: "review.counts", title: "count", scope: CommandScope::Review, keys: &["t"], group: "Review", footer_rank: 3, enabled: always,
        help: "Shows the table of modes: how often each occurs, its share with a 95% interval, examples, and the modes that occur with it." },
    CommandSpec { command: UiCommand::ModesMark, id: "modes.mark", title: "mark", scope: CommandScope::Modes, keys: &["space"], group: "Review", footer_rank: 1, enabled: always,
        help: "Marks a note, or removes the mark. Keys that change groups use the marked notes, else the selected one." },
    CommandSpec { command: UiCommand::ModesAssign, id: "modes.assign", title: "add", scope: CommandScope::Modes, keys: &["enter"], group: "Review", footer_rank: 1, enabled: always,
        help: "On a note, adds the chosen notes to the selected mode; on a mode, lists its notes." },
    CommandSpec { command: UiCommand::ModesCreate, id: "modes.create", title: "new mode", scope: CommandScope::Modes, keys: &["c"], group: "Review", footer_rank: 1, enabled: always,
        help: "Creates a mode with the chosen notes, or with the suggested group of the selected note." },
    CommandSpec { command: UiCommand::ModesRename, id: "modes.rename", title: "name", scope: CommandScope::Modes, keys: &["r"], group: "Review", footer_rank: 2, enabled: always,
        help: "Names the selected mode. Its id stays." },
    CommandSpec { command: UiCommand::ModesDefine, id: "modes.define", title: "define", scope: CommandScope::Modes, keys: &["d"], group: "Review", footer_rank: 2, enabled: always,
        help: "Defines when the selected mode occurs." },
    CommandSpec { command: UiCommand::ModesMerge, id: "modes.merge", title: "merge", scope: CommandScope::Modes, keys: &["M"], group: "Review", footer_rank: 2, enabled: always,
        help: "Merges the selected mode into another one. Its id stays known." },
    CommandSpec { command: UiCommand::ModesSplit, id: "modes.split", title: "split", scope: CommandScope::Modes, keys: &["S"], group: "Review", footer_rank: 3, enabled: always,
        help: "Splits the chosen notes of the opened mode off as a new mode." },
    CommandSpec { command: UiCommand::ModesUngroup, id: "modes.ungroup", title: "remove from mode", scope: CommandScope::Modes, keys: &["x"], group: "Review", footer_rank: 3, enabled: always,
        help: "Removes the chosen notes from the opened mode." },
    CommandSpec { command: UiCommand::ModesUndo, id: "modes.undo", title: "undo", scope: CommandScope::Modes, keys: &["U"], group: "Review", footer_rank: 2, enabled: always,
        help: "Undoes the last change of the review: a note, an answer, a group or an eval. Also works after a restart." },
    CommandSpec { command: UiCommand::ModesNearer, id: "modes.nearer", title: "smaller groups", scope: CommandScope::Modes, keys: &["<"], group: "Review", footer_rank: 4, enabled: always,
        help: "Suggests smaller groups of more similar notes." },
    CommandSpec { command: UiCommand::ModesFurther, id: "modes.further", title: "larger groups", scope: CommandScope::Modes, keys: &[">"], group: "Review", footer_rank: 4, enabled: always,
        help: "Suggests larger groups of less similar notes." },
    CommandSpec { command: UiCommand::ModesAskJudge, id: "modes.judge", title: "ask a judge", scope: CommandScope::Modes, keys: &["J"], group: "Review", footer_rank: 2, enabled: always,
        help: "Asks a judge for names and groups of the notes without a mode, after its cost is shown; again, stops the question." },
    CommandSpec { command: UiCommand::ModesAccept, id: "modes.accept", title: "accept group", scope: CommandScope::Modes, keys: &["a"], group: "Review", footer_rank: 2, enabled: always,
        help: "Accepts the suggested group of the selected note: its notes get a mode with the suggested name and definition." },
    CommandSpec { command: UiCommand::ModesDiscard, id: "modes.discard", title: "discard group", scope: CommandScope::Modes, keys: &["D"], group: "Review", footer_rank: 3, enabled: always,
        help: "Discards the judge's group of the selected note; undo takes it back." },
    CommandSpec { command: UiCommand::ModesAnswers, id: "modes.answers", title: "yes or no", scope: CommandScope::Modes, keys: &["A"], group: "Review", footer_rank: 1, enabled: always,
        help: "Asks for each transcript that was read whether each mode occurs in it." },
    CommandSpec { command: UiCommand::ModesCounts, id: "modes.counts", title: "count", scope: CommandScope::Modes, keys: &["t"], group: "Review", footer_rank: 2, enabled: always,
        help: "Shows the table of modes: how often each occurs, its share with a 95% interval, examples, and the modes that occur with it." },
    CommandSpec { command: UiCommand::CountsOpen, id: "counts.open", title: "notes of the mode", scope: CommandScope::Counts, keys: &["enter"], group: "Review", footer_rank: 1, enabled: always,
        help: "Lists the notes of the selected mode." },
    CommandSpec { command: UiCommand::CountsEval, id: "counts.eval", title: "eval", scope: CommandScope::Counts, keys: &["E"], group: "Review", footer_rank: 1, enabled: always,
        help: "Lists evals that could check for the selected mode, with the number of transcripts that each fails." },
    CommandSpec { command: UiCommand::ModesEval, id: "modes.eval", title: "eval", scope: CommandScope::Modes, keys: &["E"], group: "Review", footer_rank: 1, enabled: always,
        help: "Lists evals that check for the selected mode, with the number of transcripts that fail, and writes one of them into a rubric." },
    CommandSpec { command: UiCommand::DraftWrite, id: "draft.write", title: "write", scope: CommandScope::Drafts, keys: &["enter"], group: "Review", footer_rank: 1, enabled: always,
        help: "Writes the selected eval into a rubric, with the yes and no answers as its labels." },
    CommandSpec { command: UiCommand::AnswerYes, id: "answer.yes", title: "it occurs", scope: CommandScope::Answers, keys: &["y"], group: "Review", footer_rank: 1, enabled: always,
        help: "Answers that the mode occurs in the transcript." },
    CommandSpec { command: UiCommand::AnswerNo, id: "answer.no", title: "it does not", scope: CommandScope::Answers, keys: &["n"], group: "Review", footer_rank: 1, enabled: always,
        help: "Answers that the mode does not occur in the transcript." },
    CommandSpec { command: UiCommand::AnswerNext, id: "answer.next", title: "next question", scope: CommandScope::Answers, keys: &[".", "s"], group: "Review", footer_rank: 2, enabled: always,
        help: "Goes to the next question without an answer." },
    CommandSpec { command: UiCommand::AnswerPrevious, id: "answer.previous", title: "previous question", scope: CommandScope::Answers, keys: &[","], group: "Review", footer_rank: 2, enabled: always,
        help: "Returns to the previous question." },
    CommandSpec { command: UiCommand::AnswerUndo, id: "answer.undo", title: "undo", scope: CommandScope::Answers, keys: &["U"], group: "Review", footer_rank: 2, enabled: always,
        help: "Undoes the last change of the review: a note, an answer, a group or an eval. Also works after a restart." },
    CommandSpec { command: UiCommand::DraftUndo, id: "draft.undo", title: "undo", scope: CommandScope::Drafts, keys: &["U"], group: "Review", footer_rank: 2, enabled: always,
        help: "Undoes the last change of the review: a note, an answer, a group or an eval. Also works after a restart." },
    CommandSpec { command: UiCommand::Progress, id: "progress", title: "progress", scope: CommandScope::Global, keys: &["H"], group: "Progress", footer_rank: 5, enabled: enabled::progress,
        help: "Shows every edit as a row with its flips and its agreement with your labels; `esc` goes back to the cells." },
    CommandSpec { command: UiCommand::ProgressOpen, id: "progress.open", title: "open", scope: CommandScope::Progress, keys: &["enter"], group: "Progress", footer_rank: 1, enabled: enabled::progress_open,
        help: "Opens the selected state, or the cell of the selected flip; at the scores, writes the threshold into the rubric." },
    CommandSpec { command: UiCommand::ProgressRuns, id: "progress.runs", title: "runs", scope: CommandScope::Progress, keys: &["space"], group: "Progress", footer_rank: 2, enabled: enabled::progress_entry,
        help: "Lists the runs of the selected state under its row, or hides them." },
    CommandSpec { command: UiCommand::ProgressCompare, id: "progress.compare", title: "compare", scope: CommandScope::Progress, keys: &["="], group: "Progress", footer_rank: 1, enabled: enabled::progress_entry,
        help: "Marks a state; then the flips are those between it and the selected state. Press again to remove the mark." },
    CommandSpec { command: UiCommand::ProgressBaseline, id: "progress.baseline", title: "baseline", scope: CommandScope::Progress, keys: &["*"], group: "Progress", footer_rank: 2, enabled: enabled::progress_entry,
        help: "Makes the selected state the baseline, which `@baseline` names. Press again to remove it." },
    CommandSpec { command: UiCommand::ProgressReplay, id: "progress.replay", title: "replay", scope: CommandScope::Progress, keys: &["v"], group: "Progress", footer_rank: 3, enabled: enabled::progress_entry,
        help: "Replays the selected run, or the last run of the selected state, with its original timing." },
    CommandSpec { command: UiCommand::ProgressRestore, id: "progress.restore", title: "restore its rubrics", scope: CommandScope::Progress, keys: &["t"], group: "Progress", footer_rank: 3, enabled: enabled::progress_restore,
        help: "Writes the rubric files of the selected state again, after one question." },
    CommandSpec { command: UiCommand::ProgressExport, id: "progress.export", title: "export", scope: CommandScope::Progress, keys: &["x"], group: "Progress", footer_rank: 3, enabled: enabled::progress_entry,
        help: "Asks for a file and writes the selected state to it: a page (.html) that needs neither network nor script, or a table (.csv)." },
    CommandSpec { command: UiCommand::ProgressUndo, id: "progress.undo", title: "undo the write", scope: CommandScope::Progress, keys: &["U"], group: "Progress", footer_rank: 2, enabled: enabled::progress_undo,
        help: "Undoes the last threshold or rubrics that this screen wrote." },
    CommandSpec { command: UiCommand::NextEval, id: "progress.eval.next", title: "next eval", scope: CommandScope::Progress, keys: &["."], group: "Progress", footer_rank: 1, enabled: enabled::progress_entry,
        help: "Limits all columns to the next eval; after the last one, shows all evals." },
    CommandSpec { command: UiCommand::PreviousEval, id: "progress.eval.previous", title: "previous eval", scope: CommandScope::Progress, keys: &[","], group: "Progress", footer_rank: 0, enabled: enabled::progress_entry,
        help: "Limits all columns to the previous eval." },
    CommandSpec { command: UiCommand::LowerThreshold, id: "progress.threshold.lower", title: "lower threshold", scope: CommandScope::Progress, keys: &["h"], group: "Progress", footer_rank: 2, enabled: enabled::progress_threshold,
        help: "Lowers the threshold by 0.05 and counts the flips, without a judge call." },
    CommandSpec { command: UiCommand::RaiseThreshold, id: "progress.threshold.raise", title: "raise threshold", scope: CommandScope::Progress, keys: &["l"], group: "Progress", footer_rank: 2, enabled: enabled::progress_threshold,
        help: "Raises the threshold by 0.05." },
    CommandSpec { command: UiCommand::LowerThresholdFinely, id: "progress.threshold.lower.fine", title: "lower by 0.01", scope: CommandScope::Progress, keys: &["left"], group: "Progress", footer_rank: 0, enabled: enabled::progress_threshold,
        help: "Lowers the threshold by 0.01." },
    CommandSpec { command: UiCommand::RaiseThresholdFinely, id: "progress.threshold.raise.fine", title: "raise by 0.01", scope: CommandScope::Progress, keys: &["right"], group: "Progress", footer_rank: 0, enabled: enabled::progress_threshold,
        help: "Raises the threshold by 0.01." },
];
