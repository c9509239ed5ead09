//! The command table: the one list of what a user can do.
//!
//! Dispatch, footer, which-key, help, the README's key table and `dicta keys` are made from [`COMMANDS`]. **Adding a
//! command**: a variant, a row, a case in `update`. A row is data; what it does stands in `update/`.

mod enabled;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use super::model::Model;
use enabled::always;
pub(crate) use enabled::flips;

/// Something a user can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::enum_variant_names,
    reason = "one of them copies a command: that is what it is called"
)]
pub(crate) enum Command {
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
pub(crate) enum Scope {
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
    pub(crate) command: Command,
    /// Its stable name.
    pub(crate) id: &'static str,
    /// A few words.
    pub(crate) title: &'static str,
    /// A sentence.
    pub(crate) help: &'static str,
    /// Where it works.
    pub(crate) scope: Scope,
    /// Its keys; several chords of one key stand with spaces between.
    pub(crate) keys: &'static [&'static str],
    /// Its heading in help.
    pub(crate) group: &'static str,
    /// Its place in the footer: 1 comes first, 0 never stands there.
    pub(crate) hint: u8,
    /// Why it does nothing now, if so: a sentence that says what to do first.
    pub(crate) enabled: fn(&Model) -> Result<(), &'static str>,
}

impl CommandSpec {
    /// Whether it does something now, or why not: its scope first, then what it needs.
    pub(crate) fn usable(&self, model: &Model) -> Result<(), &'static str> {
        enabled::scope(model, self.scope)?;
        (self.enabled)(model)
    }

    /// Its keys for people: `up, k`; a chord of several as it is typed, `y v`.
    pub(crate) fn keys_text(&self) -> String {
        self.keys.join(", ")
    }
}

/// The row of a command.
pub(crate) fn spec(command: Command) -> Option<&'static CommandSpec> {
    COMMANDS.iter().find(|spec| spec.command == command)
}

/// The headings, in the order of the table.
pub(crate) fn groups() -> Vec<&'static str> {
    let mut groups: Vec<&'static str> = Vec::new();
    for spec in COMMANDS {
        if !groups.contains(&spec.group) {
            groups.push(spec.group);
        }
    }
    groups
}

/// The table as Markdown, for `dicta keys --markdown` and the README.
pub(crate) fn markdown() -> String {
    let mut out = String::from("| keys | do |\n|---|---|\n");
    for group in groups() {
        let _infallible = writeln!(out, "| **{group}** | |");
        for spec in COMMANDS.iter().filter(|spec| spec.group == group) {
            let keys: Vec<String> = spec.keys.iter().map(|key| format!("`{key}`")).collect();
            let _infallible = writeln!(out, "| {} | {} |", keys.join(" "), spec.help);
        }
    }
    out
}

/// The table for a terminal: keys and sentences.
pub(crate) fn plain() -> String {
    let mut out = String::new();
    for group in groups() {
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
    CommandSpec { command: Command::Quit, id: "quit", title: "quit", scope: Scope::Global, keys: &["q"], group: "Program", hint: 8, enabled: always,
        help: "Closes what is open on top; with nothing open, ends dicta. A run under way asks first." },
    CommandSpec { command: Command::Cancel, id: "cancel", title: "cancel", scope: Scope::Global, keys: &["ctrl-c"], group: "Program", hint: 0, enabled: always,
        help: "Cancels what runs; with nothing running, ends dicta." },
    CommandSpec { command: Command::Suspend, id: "suspend", title: "suspend", scope: Scope::Global, keys: &["ctrl-z"], group: "Program", hint: 0, enabled: always,
        help: "Stops dicta as a shell job; `fg` brings it back." },
    CommandSpec { command: Command::Redraw, id: "redraw", title: "redraw", scope: Scope::Global, keys: &["ctrl-l"], group: "Program", hint: 0, enabled: always,
        help: "Draws the whole screen anew." },
    CommandSpec { command: Command::Help, id: "help", title: "help", scope: Scope::Global, keys: &["?"], group: "Program", hint: 9, enabled: always,
        help: "Every key that works here; type to search, enter runs it." },
    CommandSpec { command: Command::Log, id: "log", title: "log", scope: Scope::Global, keys: &["L"], group: "Program", hint: 0, enabled: always,
        help: "Every message and error so far." },
    CommandSpec { command: Command::Statistics, id: "statistics", title: "run statistics", scope: Scope::Global, keys: &["S"], group: "Program", hint: 0, enabled: always,
        help: "What the run's judges and tools did: calls, repairs, errors, times, tokens, cost." },
    CommandSpec { command: Command::Themes, id: "themes", title: "themes", scope: Scope::Global, keys: &["T"], group: "Program", hint: 0, enabled: always,
        help: "Chooses a theme; moving shows it at once." },
    CommandSpec { command: Command::TourHide, id: "tour.hide", title: "hide the tour", scope: Scope::Global, keys: &["0"], group: "Program", hint: 0, enabled: enabled::tour,
        help: "Hides or shows the tour in the footer." },
    CommandSpec { command: Command::Back, id: "back", title: "back", scope: Scope::Global, keys: &["esc"], group: "Panes", hint: 0, enabled: always,
        help: "One step back: the overlay, the zoom, the filter, the pane. Never quits." },
    CommandSpec { command: Command::NextPane, id: "pane.next", title: "next pane", scope: Scope::Global, keys: &["tab"], group: "Panes", hint: 4, enabled: always,
        help: "The next pane." },
    CommandSpec { command: Command::PreviousPane, id: "pane.previous", title: "previous pane", scope: Scope::Global, keys: &["shift-tab"], group: "Panes", hint: 0, enabled: always,
        help: "The pane before." },
    CommandSpec { command: Command::PaneLeft, id: "pane.left", title: "pane to the left", scope: Scope::Global, keys: &["left", "h"], group: "Panes", hint: 0, enabled: always,
        help: "The pane to the left." },
    CommandSpec { command: Command::PaneRight, id: "pane.right", title: "pane to the right", scope: Scope::Global, keys: &["right", "l"], group: "Panes", hint: 0, enabled: always,
        help: "The pane to the right." },
    CommandSpec { command: Command::Pane1, id: "pane.1", title: "cells", scope: Scope::Global, keys: &["1"], group: "Panes", hint: 0, enabled: always,
        help: "The cells." },
    CommandSpec { command: Command::Pane2, id: "pane.2", title: "prompt", scope: Scope::Global, keys: &["2"], group: "Panes", hint: 0, enabled: always,
        help: "The prompt of the shown turn." },
    CommandSpec { command: Command::Pane3, id: "pane.3", title: "function call", scope: Scope::Global, keys: &["3"], group: "Panes", hint: 0, enabled: always,
        help: "The tool call of the shown turn." },
    CommandSpec { command: Command::Pane4, id: "pane.4", title: "fetched content", scope: Scope::Global, keys: &["4"], group: "Panes", hint: 0, enabled: always,
        help: "What the tool answered." },
    CommandSpec { command: Command::Pane5, id: "pane.5", title: "verdict", scope: Scope::Global, keys: &["5"], group: "Panes", hint: 0, enabled: always,
        help: "What was decided, and why." },
    CommandSpec { command: Command::Pane6, id: "pane.6", title: "transcript", scope: Scope::Global, keys: &["6"], group: "Panes", hint: 0, enabled: always,
        help: "The judged transcript." },
    CommandSpec { command: Command::Pane7, id: "pane.7", title: "changes", scope: Scope::Global, keys: &["7"], group: "Panes", hint: 0, enabled: always,
        help: "What the last save or run moved." },
    CommandSpec { command: Command::Zoom, id: "zoom", title: "zoom", scope: Scope::Global, keys: &["+"], group: "Panes", hint: 6, enabled: always,
        help: "The focused pane over the whole screen, and back." },
    CommandSpec { command: Command::Up, id: "up", title: "up", scope: Scope::Global, keys: &["up", "k"], group: "Moving", hint: 0, enabled: always,
        help: "One row up." },
    CommandSpec { command: Command::Down, id: "down", title: "down", scope: Scope::Global, keys: &["down", "j"], group: "Moving", hint: 0, enabled: always,
        help: "One row down." },
    CommandSpec { command: Command::PageUp, id: "page.up", title: "page up", scope: Scope::Global, keys: &["pageup", "ctrl-b"], group: "Moving", hint: 0, enabled: always,
        help: "One page up." },
    CommandSpec { command: Command::PageDown, id: "page.down", title: "page down", scope: Scope::Global, keys: &["pagedown", "ctrl-f"], group: "Moving", hint: 0, enabled: always,
        help: "One page down." },
    CommandSpec { command: Command::HalfUp, id: "half.up", title: "half a page up", scope: Scope::Global, keys: &["ctrl-u"], group: "Moving", hint: 0, enabled: always,
        help: "Half a page up." },
    CommandSpec { command: Command::HalfDown, id: "half.down", title: "half a page down", scope: Scope::Global, keys: &["ctrl-d"], group: "Moving", hint: 0, enabled: always,
        help: "Half a page down." },
    CommandSpec { command: Command::Top, id: "top", title: "first row", scope: Scope::Global, keys: &["home", "g"], group: "Moving", hint: 0, enabled: always,
        help: "To the first row." },
    CommandSpec { command: Command::Bottom, id: "bottom", title: "last row", scope: Scope::Global, keys: &["end", "G"], group: "Moving", hint: 0, enabled: always,
        help: "To the last row; a growing text is followed again." },
    CommandSpec { command: Command::Enter, id: "enter", title: "open", scope: Scope::Global, keys: &["enter"], group: "Moving", hint: 0, enabled: enabled::enter,
        help: "Goes into what is selected: a group opens or closes, a cell shows its trace, a flip its cell." },
    CommandSpec { command: Command::NextProblem, id: "problem.next", title: "next problem", scope: Scope::Global, keys: &["]"], group: "Moving", hint: 2, enabled: enabled::problems,
        help: "The next failure, flip or error." },
    CommandSpec { command: Command::PreviousProblem, id: "problem.previous", title: "previous problem", scope: Scope::Global, keys: &["["], group: "Moving", hint: 0, enabled: enabled::problems,
        help: "The failure, flip or error before." },
    CommandSpec { command: Command::Search, id: "search", title: "search", scope: Scope::Global, keys: &["/"], group: "Finding", hint: 3, enabled: always,
        help: "In the cells a filter (`outcome:fail eval:tone words`), in a text a search." },
    CommandSpec { command: Command::NextMatch, id: "match.next", title: "next match", scope: Scope::Global, keys: &["n"], group: "Finding", hint: 1, enabled: enabled::matches,
        help: "The next match of the search." },
    CommandSpec { command: Command::PreviousMatch, id: "match.previous", title: "previous match", scope: Scope::Global, keys: &["N"], group: "Finding", hint: 0, enabled: enabled::matches,
        help: "The match before." },
    CommandSpec { command: Command::Sort, id: "sort", title: "sort", scope: Scope::Cells, keys: &["o"], group: "Finding", hint: 0, enabled: enabled::problems,
        help: "Failures first, disagreements with your labels first, unlabelled first, or in the order of the files." },
    CommandSpec { command: Command::LabelPass, id: "label.pass", title: "label: pass", scope: Scope::Global, keys: &["p"], group: "Labelling", hint: 0, enabled: enabled::label,
        help: "You say that the focused decision should pass; written to the labels file at once." },
    CommandSpec { command: Command::LabelFail, id: "label.fail", title: "label: fail", scope: Scope::Global, keys: &["f"], group: "Labelling", hint: 0, enabled: enabled::label,
        help: "You say that it should fail." },
    CommandSpec { command: Command::LabelUnsure, id: "label.unsure", title: "label: unsure", scope: Scope::Global, keys: &["u"], group: "Labelling", hint: 0, enabled: enabled::label,
        help: "You looked and cannot say: labelled, and in no count of agreement." },
    CommandSpec { command: Command::LabelRemove, id: "label.remove", title: "remove the label", scope: Scope::Verdicts, keys: &["x"], group: "Labelling", hint: 0, enabled: enabled::labelled,
        help: "Removes the label of the focused decision (in the cells and the verdict)." },
    CommandSpec { command: Command::LabelBack, id: "label.back", title: "take a label back", scope: Scope::Global, keys: &["U"], group: "Labelling", hint: 0, enabled: enabled::label_back,
        help: "Takes the last change of a label back, and the one before it." },
    CommandSpec { command: Command::NextUnlabelled, id: "label.next", title: "next unlabelled", scope: Scope::Global, keys: &["s"], group: "Labelling", hint: 0, enabled: enabled::problems,
        help: "The next decision that has no label." },
    CommandSpec { command: Command::Blind, id: "blind", title: "blind", scope: Scope::Global, keys: &["B"], group: "Labelling", hint: 0, enabled: enabled::blind,
        help: "Hides each verdict until you have labelled it, or shows all again." },
    CommandSpec { command: Command::Run, id: "run.focused", title: "run", scope: Scope::Global, keys: &["r"], group: "Judging", hint: 1, enabled: enabled::run,
        help: "Judges the focused cell again, past verdicts aside." },
    CommandSpec { command: Command::RunAll, id: "run.all", title: "run all", scope: Scope::Global, keys: &["R"], group: "Judging", hint: 1, enabled: enabled::run_all,
        help: "Judges every cell; what has not changed is taken from past runs. Asks first where it costs money." },
    CommandSpec { command: Command::Edit, id: "edit", title: "edit", scope: Scope::Global, keys: &["e"], group: "Judging", hint: 1, enabled: enabled::edit,
        help: "Opens the rubric in $VISUAL or $EDITOR at the focused eval." },
    CommandSpec { command: Command::Auto, id: "auto", title: "auto", scope: Scope::Global, keys: &["A"], group: "Judging", hint: 0, enabled: enabled::auto,
        help: "Whether a save judges again what it touched, or only marks it stale." },
    CommandSpec { command: Command::Pages, id: "pages", title: "same pages", scope: Scope::Global, keys: &["P"], group: "Judging", hint: 0, enabled: enabled::auto,
        help: "Whether judges of a save are given the pages they were given before, or fetch them again." },
    CommandSpec { command: Command::Judges, id: "judges", title: "other judges", scope: Scope::Global, keys: &["J"], group: "Judging", hint: 7, enabled: enabled::judges,
        help: "Which real judges are at hand, and what the focused cell would cost." },
    CommandSpec { command: Command::Replay, id: "replay", title: "replay", scope: Scope::Global, keys: &["v"], group: "Judging", hint: 5, enabled: enabled::replay,
        help: "Plays the focused cell's run again as it happened." },
    CommandSpec { command: Command::MakeWorkspace, id: "workspace.make", title: "make a workspace", scope: Scope::Global, keys: &["W"], group: "Judging", hint: 1, enabled: enabled::make_workspace,
        help: "Makes a workspace with a first rubric around the opened file." },
    CommandSpec { command: Command::PreviousStep, id: "step.previous", title: "turn before", scope: Scope::Global, keys: &[","], group: "Trace", hint: 0, enabled: enabled::step,
        help: "The step before in the turn strip." },
    CommandSpec { command: Command::NextStep, id: "step.next", title: "next turn", scope: Scope::Global, keys: &["."], group: "Trace", hint: 0, enabled: enabled::step,
        help: "The next step in the turn strip; past the last one it follows the judge." },
    CommandSpec { command: Command::Citation, id: "citation", title: "the place meant", scope: Scope::Global, keys: &["c"], group: "Trace", hint: 0, enabled: enabled::seen,
        help: "The transcript at the next place the verdict cites, or the check found what it says." },
    CommandSpec { command: Command::NextMessage, id: "message.next", title: "next message", scope: Scope::Transcript, keys: &["}"], group: "Trace", hint: 2, enabled: enabled::transcript,
        help: "The next message of the transcript." },
    CommandSpec { command: Command::PreviousMessage, id: "message.previous", title: "message before", scope: Scope::Transcript, keys: &["{"], group: "Trace", hint: 0, enabled: enabled::transcript,
        help: "The message before." },
    CommandSpec { command: Command::Raw, id: "raw", title: "raw", scope: Scope::Global, keys: &["x", "X"], group: "Trace", hint: 0, enabled: always,
        help: "As it was sent or received: the request, the arguments to the byte, the body of a page; and back (`X` in the cells and the verdict)." },
    CommandSpec { command: Command::Source, id: "source", title: "raw record", scope: Scope::Global, keys: &["O"], group: "Trace", hint: 0, enabled: enabled::transcript,
        help: "What the file itself has of the shown transcript, as written." },
    CommandSpec { command: Command::CopyValue, id: "copy.value", title: "copy the pane's text", scope: Scope::Global, keys: &["y v"], group: "Copying", hint: 0, enabled: enabled::text,
        help: "Copies the text of the focused pane." },
    CommandSpec { command: Command::CopyMessage, id: "copy.message", title: "copy the message", scope: Scope::Global, keys: &["y m"], group: "Copying", hint: 0, enabled: enabled::transcript,
        help: "Copies the message at the top of the transcript pane." },
    CommandSpec { command: Command::CopyName, id: "copy.name", title: "copy the cell's name", scope: Scope::Global, keys: &["y n"], group: "Copying", hint: 0, enabled: enabled::cell,
        help: "Copies the focused cell's name." },
    CommandSpec { command: Command::CopyCommand, id: "copy.command", title: "copy the command", scope: Scope::Global, keys: &["y c"], group: "Copying", hint: 0, enabled: enabled::cell,
        help: "Copies the command that does the same without the screen." },
    CommandSpec { command: Command::PlayPause, id: "replay.play", title: "play or pause", scope: Scope::Replay, keys: &["space"], group: "Replay", hint: 1, enabled: always,
        help: "Lets the recording run, or stand still." },
    CommandSpec { command: Command::StepEvent, id: "replay.event", title: "one event on", scope: Scope::Replay, keys: &[">"], group: "Replay", hint: 1, enabled: always,
        help: "One event further." },
    CommandSpec { command: Command::StepTurn, id: "replay.turn", title: "one turn on", scope: Scope::Replay, keys: &["t"], group: "Replay", hint: 1, enabled: always,
        help: "To the end of the next turn." },
    CommandSpec { command: Command::StepCell, id: "replay.cell", title: "one cell on", scope: Scope::Replay, keys: &["C"], group: "Replay", hint: 1, enabled: always,
        help: "To the end of the next cell." },
    CommandSpec { command: Command::StepBack, id: "replay.back", title: "one event back", scope: Scope::Replay, keys: &["<"], group: "Replay", hint: 0, enabled: always,
        help: "One event back." },
    CommandSpec { command: Command::Slower, id: "replay.slower", title: "slower", scope: Scope::Replay, keys: &["-"], group: "Replay", hint: 1, enabled: always,
        help: "Half as fast, down to a quarter." },
    CommandSpec { command: Command::Faster, id: "replay.faster", title: "faster", scope: Scope::Replay, keys: &["="], group: "Replay", hint: 1, enabled: always,
        help: "Twice as fast, up to 64 times." },
    CommandSpec { command: Command::SeekBack, id: "replay.seek.back", title: "5% back", scope: Scope::Replay, keys: &["ctrl-left"], group: "Replay", hint: 0, enabled: always,
        help: "A twentieth of the recording back." },
    CommandSpec { command: Command::SeekOn, id: "replay.seek.on", title: "5% on", scope: Scope::Replay, keys: &["ctrl-right"], group: "Replay", hint: 0, enabled: always,
        help: "A twentieth of the recording further." },
    CommandSpec { command: Command::SeekTo, id: "replay.seek.to", title: "go to a moment", scope: Scope::Replay, keys: &["@"], group: "Replay", hint: 0, enabled: always,
        help: "Asks for a moment: `1:05`, `12.5` seconds or `40%`." },
    CommandSpec { command: Command::NextFailure, id: "replay.failure", title: "next failure", scope: Scope::Replay, keys: &["F"], group: "Replay", hint: 1, enabled: always,
        help: "To the next cell that fails or ends in an error." },
];
