//! The command table: the one list of what a user can do.
//!
//! Dispatch, footer, which-key, help, the README's key table and `dicta keys` are made from [`COMMANDS`]. **Adding a
//! command**: a variant, a row, a case in `update`. A row is data; what it does stands in `update/`.

mod enabled;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use super::state::App;
use enabled::always;
pub(crate) use enabled::count_flips;

/// Something a user can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::enum_variant_names,
    reason = "one of them copies a command: that is what it is called"
)]
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
    LabelRemove,
    LabelBack,
    NextUnlabelled,
    Blind,
    Run,
    RunAll,
    Edit,
    Auto,
    Pages,
    Judges,
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
}

/// Where a command works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CommandScope {
    /// Everywhere that nothing nearer takes the key.
    Global,
    /// With the cells focused.
    Cells,
    /// With the cells or the verdict focused.
    Verdicts,
    /// With the transcript focused.
    Transcript,
    /// While a recording plays.
    Replay,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct CommandSpec {
    /// What.
    pub(crate) command: UiCommand,
    /// Its stable name.
    pub(crate) id: &'static str,
    /// A few words.
    pub(crate) title: &'static str,
    /// A sentence.
    pub(crate) help: &'static str,
    /// Where it works.
    pub(crate) scope: CommandScope,
    /// Its keys; several chords of one key stand with spaces between.
    pub(crate) keys: &'static [&'static str],
    /// Its heading in help.
    pub(crate) group: &'static str,
    /// Its place in the footer: 1 comes first, 0 never stands there.
    pub(crate) footer_rank: u8,
    /// Why it does nothing now, if so: a sentence that says what to do first.
    pub(crate) enabled: fn(&App) -> Result<(), &'static str>,
}

impl CommandSpec {
    /// Whether it does something now, or why not: its scope first, then what it needs.
    pub(crate) fn check_usable(&self, app: &App) -> Result<(), &'static str> {
        enabled::check_scope(app, self.scope)?;
        (self.enabled)(app)
    }

    /// Its keys for people: `up, k`; a chord of several as it is typed, `y v`.
    pub(crate) fn keys_text(&self) -> String {
        self.keys.join(", ")
    }
}

/// The row of a command.
pub(crate) fn find_spec(command: UiCommand) -> Option<&'static CommandSpec> {
    COMMANDS.iter().find(|spec| spec.command == command)
}

/// The headings, in the order of the table.
pub(crate) fn list_groups() -> Vec<&'static str> {
    let mut groups: Vec<&'static str> = Vec::new();
    for spec in COMMANDS {
        if !groups.contains(&spec.group) {
            groups.push(spec.group);
        }
    }
    groups
}

/// The table as Markdown, for `dicta keys --markdown` and the README.
pub(crate) fn render_markdown() -> String {
    let mut out = String::from("| keys | do |\n|---|---|\n");
    for group in list_groups() {
        let _infallible = writeln!(out, "| **{group}** | |");
        for spec in COMMANDS.iter().filter(|spec| spec.group == group) {
            let keys: Vec<String> = spec.keys.iter().map(|key| format!("`{key}`")).collect();
            let _infallible = writeln!(out, "| {} | {} |", keys.join(" "), spec.help);
        }
    }
    out
}

/// The table for a terminal: keys and sentences.
pub(crate) fn render_plain() -> String {
    let mut out = String::new();
    for group in list_groups() {
        let _infallible = writeln!(out, "{group}");
        for spec in COMMANDS.iter().filter(|spec| spec.group == group) {
            let _infallible = writeln!(out, "  {:<18} {}", spec.keys_text(), spec.help);
        }
    }
    out
}

/// All of them.
#[rustfmt::skip]
pub(crate) const COMMANDS: &[CommandSpec] = &[
    CommandSpec { command: UiCommand::Quit, id: "quit", title: "quit", scope: CommandScope::Global, keys: &["q"], group: "Program", footer_rank: 8, enabled: always,
        help: "Closes what is open on top; with nothing open, ends dicta. A run under way asks first." },
    CommandSpec { command: UiCommand::Cancel, id: "cancel", title: "cancel", scope: CommandScope::Global, keys: &["ctrl-c"], group: "Program", footer_rank: 0, enabled: always,
        help: "Cancels what runs; with nothing running, ends dicta." },
    CommandSpec { command: UiCommand::Suspend, id: "suspend", title: "suspend", scope: CommandScope::Global, keys: &["ctrl-z"], group: "Program", footer_rank: 0, enabled: always,
        help: "Stops dicta as a shell job; `fg` brings it back." },
    CommandSpec { command: UiCommand::Redraw, id: "redraw", title: "redraw", scope: CommandScope::Global, keys: &["ctrl-l"], group: "Program", footer_rank: 0, enabled: always,
        help: "Draws the whole screen anew." },
    CommandSpec { command: UiCommand::Help, id: "help", title: "help", scope: CommandScope::Global, keys: &["?"], group: "Program", footer_rank: 9, enabled: always,
        help: "Every key that works here; type to search, enter runs it." },
    CommandSpec { command: UiCommand::Log, id: "log", title: "log", scope: CommandScope::Global, keys: &["L"], group: "Program", footer_rank: 0, enabled: always,
        help: "Every message and error so far." },
    CommandSpec { command: UiCommand::Statistics, id: "statistics", title: "run statistics", scope: CommandScope::Global, keys: &["S"], group: "Program", footer_rank: 0, enabled: always,
        help: "What the run's judges and tools did: calls, repairs, errors, times, tokens, cost." },
    CommandSpec { command: UiCommand::Themes, id: "themes", title: "themes", scope: CommandScope::Global, keys: &["T"], group: "Program", footer_rank: 0, enabled: always,
        help: "Chooses a theme; moving shows it at once." },
    CommandSpec { command: UiCommand::TourHide, id: "tour.hide", title: "hide the tour", scope: CommandScope::Global, keys: &["0"], group: "Program", footer_rank: 0, enabled: enabled::tour,
        help: "Hides or shows the tour in the footer." },
    CommandSpec { command: UiCommand::Back, id: "back", title: "back", scope: CommandScope::Global, keys: &["esc"], group: "Panes", footer_rank: 0, enabled: always,
        help: "One step back: the overlay, the zoom, the filter, the pane. Never quits." },
    CommandSpec { command: UiCommand::NextPane, id: "pane.next", title: "next pane", scope: CommandScope::Global, keys: &["tab"], group: "Panes", footer_rank: 4, enabled: always,
        help: "The next pane." },
    CommandSpec { command: UiCommand::PreviousPane, id: "pane.previous", title: "previous pane", scope: CommandScope::Global, keys: &["shift-tab"], group: "Panes", footer_rank: 0, enabled: always,
        help: "The pane before." },
    CommandSpec { command: UiCommand::PaneLeft, id: "pane.left", title: "pane to the left", scope: CommandScope::Global, keys: &["left", "h"], group: "Panes", footer_rank: 0, enabled: always,
        help: "The pane to the left." },
    CommandSpec { command: UiCommand::PaneRight, id: "pane.right", title: "pane to the right", scope: CommandScope::Global, keys: &["right", "l"], group: "Panes", footer_rank: 0, enabled: always,
        help: "The pane to the right." },
    CommandSpec { command: UiCommand::Pane1, id: "pane.1", title: "cells", scope: CommandScope::Global, keys: &["1"], group: "Panes", footer_rank: 0, enabled: always,
        help: "The cells." },
    CommandSpec { command: UiCommand::Pane2, id: "pane.2", title: "prompt", scope: CommandScope::Global, keys: &["2"], group: "Panes", footer_rank: 0, enabled: always,
        help: "The prompt of the shown turn." },
    CommandSpec { command: UiCommand::Pane3, id: "pane.3", title: "function call", scope: CommandScope::Global, keys: &["3"], group: "Panes", footer_rank: 0, enabled: always,
        help: "The tool call of the shown turn." },
    CommandSpec { command: UiCommand::Pane4, id: "pane.4", title: "fetched content", scope: CommandScope::Global, keys: &["4"], group: "Panes", footer_rank: 0, enabled: always,
        help: "What the tool answered." },
    CommandSpec { command: UiCommand::Pane5, id: "pane.5", title: "verdict", scope: CommandScope::Global, keys: &["5"], group: "Panes", footer_rank: 0, enabled: always,
        help: "What was decided, and why." },
    CommandSpec { command: UiCommand::Pane6, id: "pane.6", title: "transcript", scope: CommandScope::Global, keys: &["6"], group: "Panes", footer_rank: 0, enabled: always,
        help: "The judged transcript." },
    CommandSpec { command: UiCommand::Pane7, id: "pane.7", title: "changes", scope: CommandScope::Global, keys: &["7"], group: "Panes", footer_rank: 0, enabled: always,
        help: "What the last save or run moved." },
    CommandSpec { command: UiCommand::Zoom, id: "zoom", title: "zoom", scope: CommandScope::Global, keys: &["+"], group: "Panes", footer_rank: 6, enabled: always,
        help: "The focused pane over the whole screen, and back." },
    CommandSpec { command: UiCommand::Up, id: "up", title: "up", scope: CommandScope::Global, keys: &["up", "k"], group: "Moving", footer_rank: 0, enabled: always,
        help: "One row up." },
    CommandSpec { command: UiCommand::Down, id: "down", title: "down", scope: CommandScope::Global, keys: &["down", "j"], group: "Moving", footer_rank: 0, enabled: always,
        help: "One row down." },
    CommandSpec { command: UiCommand::PageUp, id: "page.up", title: "page up", scope: CommandScope::Global, keys: &["pageup", "ctrl-b"], group: "Moving", footer_rank: 0, enabled: always,
        help: "One page up." },
    CommandSpec { command: UiCommand::PageDown, id: "page.down", title: "page down", scope: CommandScope::Global, keys: &["pagedown", "ctrl-f"], group: "Moving", footer_rank: 0, enabled: always,
        help: "One page down." },
    CommandSpec { command: UiCommand::HalfUp, id: "half.up", title: "half a page up", scope: CommandScope::Global, keys: &["ctrl-u"], group: "Moving", footer_rank: 0, enabled: always,
        help: "Half a page up." },
    CommandSpec { command: UiCommand::HalfDown, id: "half.down", title: "half a page down", scope: CommandScope::Global, keys: &["ctrl-d"], group: "Moving", footer_rank: 0, enabled: always,
        help: "Half a page down." },
    CommandSpec { command: UiCommand::Top, id: "top", title: "first row", scope: CommandScope::Global, keys: &["home", "g"], group: "Moving", footer_rank: 0, enabled: always,
        help: "To the first row." },
    CommandSpec { command: UiCommand::Bottom, id: "bottom", title: "last row", scope: CommandScope::Global, keys: &["end", "G"], group: "Moving", footer_rank: 0, enabled: always,
        help: "To the last row; a growing text is followed again." },
    CommandSpec { command: UiCommand::Enter, id: "enter", title: "open", scope: CommandScope::Global, keys: &["enter"], group: "Moving", footer_rank: 0, enabled: enabled::enter,
        help: "Goes into what is selected: a group opens or closes, a cell shows its trace, a flip its cell." },
    CommandSpec { command: UiCommand::NextProblem, id: "problem.next", title: "next problem", scope: CommandScope::Global, keys: &["]"], group: "Moving", footer_rank: 2, enabled: enabled::problems,
        help: "The next failure, flip or error." },
    CommandSpec { command: UiCommand::PreviousProblem, id: "problem.previous", title: "previous problem", scope: CommandScope::Global, keys: &["["], group: "Moving", footer_rank: 0, enabled: enabled::problems,
        help: "The failure, flip or error before." },
    CommandSpec { command: UiCommand::Search, id: "search", title: "search", scope: CommandScope::Global, keys: &["/"], group: "Finding", footer_rank: 3, enabled: always,
        help: "In the cells a filter (`outcome:fail eval:tone words`), in a text a search." },
    CommandSpec { command: UiCommand::NextMatch, id: "match.next", title: "next match", scope: CommandScope::Global, keys: &["n"], group: "Finding", footer_rank: 1, enabled: enabled::matches,
        help: "The next match of the search." },
    CommandSpec { command: UiCommand::PreviousMatch, id: "match.previous", title: "previous match", scope: CommandScope::Global, keys: &["N"], group: "Finding", footer_rank: 0, enabled: enabled::matches,
        help: "The match before." },
    CommandSpec { command: UiCommand::Sort, id: "sort", title: "sort", scope: CommandScope::Cells, keys: &["o"], group: "Finding", footer_rank: 0, enabled: enabled::problems,
        help: "Failures first, disagreements with your labels first, unlabelled first, or in the order of the files." },
    CommandSpec { command: UiCommand::LabelPass, id: "label.pass", title: "label: pass", scope: CommandScope::Global, keys: &["p"], group: "Labelling", footer_rank: 0, enabled: enabled::label,
        help: "You say that the focused decision should pass; written to the labels file at once." },
    CommandSpec { command: UiCommand::LabelFail, id: "label.fail", title: "label: fail", scope: CommandScope::Global, keys: &["f"], group: "Labelling", footer_rank: 0, enabled: enabled::label,
        help: "You say that it should fail." },
    CommandSpec { command: UiCommand::LabelUnsure, id: "label.unsure", title: "label: unsure", scope: CommandScope::Global, keys: &["u"], group: "Labelling", footer_rank: 0, enabled: enabled::label,
        help: "You looked and cannot say: labelled, and in no count of agreement." },
    CommandSpec { command: UiCommand::LabelRemove, id: "label.remove", title: "remove the label", scope: CommandScope::Verdicts, keys: &["x"], group: "Labelling", footer_rank: 0, enabled: enabled::labelled,
        help: "Removes the label of the focused decision (in the cells and the verdict)." },
    CommandSpec { command: UiCommand::LabelBack, id: "label.back", title: "take a label back", scope: CommandScope::Global, keys: &["U"], group: "Labelling", footer_rank: 0, enabled: enabled::label_back,
        help: "Takes the last change of a label back, and the one before it." },
    CommandSpec { command: UiCommand::NextUnlabelled, id: "label.next", title: "next unlabelled", scope: CommandScope::Global, keys: &["s"], group: "Labelling", footer_rank: 0, enabled: enabled::problems,
        help: "The next decision that has no label." },
    CommandSpec { command: UiCommand::Blind, id: "blind", title: "blind", scope: CommandScope::Global, keys: &["B"], group: "Labelling", footer_rank: 0, enabled: enabled::blind,
        help: "Hides each verdict until you have labelled it, or shows all again." },
    CommandSpec { command: UiCommand::Run, id: "run.focused", title: "run", scope: CommandScope::Global, keys: &["r"], group: "Judging", footer_rank: 1, enabled: enabled::run,
        help: "Judges the focused cell again, past verdicts aside." },
    CommandSpec { command: UiCommand::RunAll, id: "run.all", title: "run all", scope: CommandScope::Global, keys: &["R"], group: "Judging", footer_rank: 1, enabled: enabled::run_all,
        help: "Judges every cell; what has not changed is taken from past runs. Asks first where it costs money." },
    CommandSpec { command: UiCommand::Edit, id: "edit", title: "edit", scope: CommandScope::Global, keys: &["e"], group: "Judging", footer_rank: 1, enabled: enabled::edit,
        help: "Opens the rubric in $VISUAL or $EDITOR at the focused eval." },
    CommandSpec { command: UiCommand::Auto, id: "auto", title: "auto", scope: CommandScope::Global, keys: &["A"], group: "Judging", footer_rank: 0, enabled: enabled::auto,
        help: "Whether a save judges again what it touched, or only marks it stale." },
    CommandSpec { command: UiCommand::Pages, id: "pages", title: "same pages", scope: CommandScope::Global, keys: &["P"], group: "Judging", footer_rank: 0, enabled: enabled::auto,
        help: "Whether judges of a save are given the pages they were given before, or fetch them again." },
    CommandSpec { command: UiCommand::Judges, id: "judges", title: "other judges", scope: CommandScope::Global, keys: &["J"], group: "Judging", footer_rank: 7, enabled: enabled::judges,
        help: "Which real judges are at hand, and what the focused cell would cost." },
    CommandSpec { command: UiCommand::Replay, id: "replay", title: "replay", scope: CommandScope::Global, keys: &["v"], group: "Judging", footer_rank: 5, enabled: enabled::replay,
        help: "Plays the focused cell's run again as it happened." },
    CommandSpec { command: UiCommand::MakeWorkspace, id: "workspace.make", title: "make a workspace", scope: CommandScope::Global, keys: &["W"], group: "Judging", footer_rank: 1, enabled: enabled::make_workspace,
        help: "Makes a workspace with a first rubric around the opened file." },
    CommandSpec { command: UiCommand::PreviousStep, id: "step.previous", title: "turn before", scope: CommandScope::Global, keys: &[","], group: "Trace", footer_rank: 0, enabled: enabled::step,
        help: "The step before in the turn strip." },
    CommandSpec { command: UiCommand::NextStep, id: "step.next", title: "next turn", scope: CommandScope::Global, keys: &["."], group: "Trace", footer_rank: 0, enabled: enabled::step,
        help: "The next step in the turn strip; past the last one it follows the judge." },
    CommandSpec { command: UiCommand::Citation, id: "citation", title: "the place meant", scope: CommandScope::Global, keys: &["c"], group: "Trace", footer_rank: 0, enabled: enabled::verdict_visible,
        help: "The transcript at the next place the verdict cites, or the check found what it says." },
    CommandSpec { command: UiCommand::NextMessage, id: "message.next", title: "next message", scope: CommandScope::Transcript, keys: &["}"], group: "Trace", footer_rank: 2, enabled: enabled::transcript,
        help: "The next message of the transcript." },
    CommandSpec { command: UiCommand::PreviousMessage, id: "message.previous", title: "message before", scope: CommandScope::Transcript, keys: &["{"], group: "Trace", footer_rank: 0, enabled: enabled::transcript,
        help: "The message before." },
    CommandSpec { command: UiCommand::Raw, id: "raw", title: "raw", scope: CommandScope::Global, keys: &["x", "X"], group: "Trace", footer_rank: 0, enabled: always,
        help: "As it was sent or received: the request, the arguments to the byte, the body of a page; and back (`X` in the cells and the verdict)." },
    CommandSpec { command: UiCommand::Source, id: "source", title: "raw record", scope: CommandScope::Global, keys: &["O"], group: "Trace", footer_rank: 0, enabled: enabled::transcript,
        help: "What the file itself has of the shown transcript, as written." },
    CommandSpec { command: UiCommand::CopyValue, id: "copy.value", title: "copy the pane's text", scope: CommandScope::Global, keys: &["y v"], group: "Copying", footer_rank: 0, enabled: enabled::text,
        help: "Copies the text of the focused pane." },
    CommandSpec { command: UiCommand::CopyMessage, id: "copy.message", title: "copy the message", scope: CommandScope::Global, keys: &["y m"], group: "Copying", footer_rank: 0, enabled: enabled::transcript,
        help: "Copies the message at the top of the transcript pane." },
    CommandSpec { command: UiCommand::CopyName, id: "copy.name", title: "copy the cell's name", scope: CommandScope::Global, keys: &["y n"], group: "Copying", footer_rank: 0, enabled: enabled::cell,
        help: "Copies the focused cell's name." },
    CommandSpec { command: UiCommand::CopyCommand, id: "copy.command", title: "copy the command", scope: CommandScope::Global, keys: &["y c"], group: "Copying", footer_rank: 0, enabled: enabled::cell,
        help: "Copies the command that does the same without the screen." },
    CommandSpec { command: UiCommand::PlayPause, id: "replay.play", title: "play or pause", scope: CommandScope::Replay, keys: &["space"], group: "Replay", footer_rank: 1, enabled: always,
        help: "Lets the recording run, or stand still." },
    CommandSpec { command: UiCommand::StepEvent, id: "replay.event", title: "one event on", scope: CommandScope::Replay, keys: &[">"], group: "Replay", footer_rank: 1, enabled: always,
        help: "One event further." },
    CommandSpec { command: UiCommand::StepTurn, id: "replay.turn", title: "one turn on", scope: CommandScope::Replay, keys: &["t"], group: "Replay", footer_rank: 1, enabled: always,
        help: "To the end of the next turn." },
    CommandSpec { command: UiCommand::StepCell, id: "replay.cell", title: "one cell on", scope: CommandScope::Replay, keys: &["C"], group: "Replay", footer_rank: 1, enabled: always,
        help: "To the end of the next cell." },
    CommandSpec { command: UiCommand::StepBack, id: "replay.back", title: "one event back", scope: CommandScope::Replay, keys: &["<"], group: "Replay", footer_rank: 0, enabled: always,
        help: "One event back." },
    CommandSpec { command: UiCommand::Slower, id: "replay.slower", title: "slower", scope: CommandScope::Replay, keys: &["-"], group: "Replay", footer_rank: 1, enabled: always,
        help: "Half as fast, down to a quarter." },
    CommandSpec { command: UiCommand::Faster, id: "replay.faster", title: "faster", scope: CommandScope::Replay, keys: &["="], group: "Replay", footer_rank: 1, enabled: always,
        help: "Twice as fast, up to 64 times." },
    CommandSpec { command: UiCommand::SeekBack, id: "replay.seek.back", title: "5% back", scope: CommandScope::Replay, keys: &["ctrl-left"], group: "Replay", footer_rank: 0, enabled: always,
        help: "A twentieth of the recording back." },
    CommandSpec { command: UiCommand::SeekOn, id: "replay.seek.on", title: "5% on", scope: CommandScope::Replay, keys: &["ctrl-right"], group: "Replay", footer_rank: 0, enabled: always,
        help: "A twentieth of the recording further." },
    CommandSpec { command: UiCommand::SeekTo, id: "replay.seek.to", title: "go to a moment", scope: CommandScope::Replay, keys: &["@"], group: "Replay", footer_rank: 0, enabled: always,
        help: "Asks for a moment: `1:05`, `12.5` seconds or `40%`." },
    CommandSpec { command: UiCommand::NextFailure, id: "replay.failure", title: "next failure", scope: CommandScope::Replay, keys: &["F"], group: "Replay", footer_rank: 1, enabled: always,
        help: "To the next cell that fails or ends in an error." },
];
