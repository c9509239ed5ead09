//! The event loop: it handles pending messages, then draws if something changed, at most once in 16 ms. A frame after
//! a key comes sooner.
//!
//! Owns the app and the screen. Does no slow work: the runtime does.

mod exit_summary;
mod terminal_effects;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use ratatui::layout::Size;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::effect::Effect;
use super::msg::Msg;
use super::runtime::{Runtime, RuntimeDeps, RuntimeInbox};
use super::state::App;
use super::term::{Screen, SignalRequest, SignalStream, TerminalInput};
use super::update::{request_initial_data, update};
use super::view::draw_app;
use super::widget::canvas::HitMap;
use crate::model::Millis;

/// The minimum time between two frames.
const FRAME_INTERVAL: Millis = Millis(16);
/// The minimum time before a frame that shows the effect of a key. With [`FRAME_INTERVAL`] a key pressed during a
/// stream would appear late.
const INPUT_FRAME_INTERVAL: Millis = Millis(4);
/// The maximum number of messages of one queue that are handled before the next frame.
const MAX_MESSAGES_PER_DRAIN: usize = 512;
/// The maximum time that messages are handled before the next frame. Otherwise the events of a fast run would delay
/// keys.
const MAX_DRAIN_TIME: Millis = Millis(8);

/// The event sources outside the runtime.
pub(super) struct ExternalEvents {
    pub(super) input: UnboundedReceiver<TerminalInput>,
    /// The messages of panicked threads.
    pub(super) panics: UnboundedReceiver<Msg>,
    /// Cancelled when the terminal closes.
    pub(super) terminal_gone: CancellationToken,
    pub(super) signals: SignalStream,
}

/// The end of the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoopExit {
    /// The exit code.
    pub(super) code: u8,
    /// The problem that ended the loop, if any: a sentence.
    pub(super) problem: Option<String>,
}

impl LoopExit {
    fn with_code(code: u8) -> Self {
        Self {
            code,
            problem: None,
        }
    }

    /// Returns the code that a shell reports for a program that a signal ended.
    fn from_signal(number: i32) -> Self {
        // A shell reports 128 plus the number of the signal.
        Self::with_code(u8::try_from(128 + number).unwrap_or(u8::MAX))
    }

    /// Returns the end for a closed terminal, as SIGHUP (signal 1) would cause it.
    fn terminal_gone() -> Self {
        Self::from_signal(1)
    }
}

/// The running workbench: app, screen and runtime.
pub(crate) struct EventLoop<S> {
    pub(crate) app: App,
    pub(crate) screen: S,
    pub(crate) runtime: Runtime,
    pub(crate) inbox: RuntimeInbox,
    deps: Arc<RuntimeDeps>,
    /// True if the app changed since the last frame.
    dirty: bool,
    /// True if the user typed since the last frame.
    input_pending: bool,
    drawn_at: Option<Millis>,
    /// Effects on the terminal. The loop runs them between two messages, because an editor takes the whole screen.
    terminal_effects: VecDeque<Effect>,
    exit: Option<LoopExit>,
}

impl<S: Screen> EventLoop<S> {
    /// Creates a loop and orders what the app shows first, then the effects in `first`.
    pub(super) fn new(
        app_state: App,
        screen: S,
        deps: Arc<RuntimeDeps>,
        first: Vec<Effect>,
    ) -> Self {
        let (runtime, inbox) = Runtime::new(Arc::clone(&deps));
        let mut app = Self {
            app: app_state,
            screen,
            runtime,
            inbox,
            deps,
            dirty: true,
            input_pending: false,
            drawn_at: None,
            terminal_effects: VecDeque::new(),
            exit: None,
        };
        // The first update needs the time, because it starts timers.
        app.app.now = app.deps.clock.now();
        let effects = request_initial_data(&mut app.app);
        app.carry_out(effects);
        app.carry_out(first);
        app
    }

    /// Runs until the user quits, a signal arrives or the terminal closes.
    pub(super) async fn run(&mut self, external: &mut ExternalEvents) -> LoopExit {
        loop {
            self.drain_queues(&mut external.input);
            self.run_terminal_effects(external).await;
            // Checked before a frame updates `app.now`, so that a timer that is due now is not skipped. Handled after
            // the frame of a key, because a timer may take long.
            let woken = self.is_timer_due();
            if self.input_pending {
                self.draw_if_due();
            }
            if woken {
                self.apply(Msg::TimePassed);
            }
            self.draw_if_due();
            if let Some(end) = self.exit.take() {
                return end;
            }
            self.wait_for_event(external).await;
        }
    }

    /// Cancels the running work, restores the terminal, and returns the exit summary.
    pub(super) async fn shut_down(mut self) -> String {
        // The terminal is restored first: finishing a recording may take a second, and the program would seem to
        // hang.
        self.screen.release_terminal().await;
        self.runtime.shut_down(self.inbox).await;
        // Without a current folder, no folder contains it, and the line names the workspace.
        let here = std::env::current_dir().unwrap_or_default();
        let made = self.runtime.made();
        let review = self.app.review.session.as_deref();
        exit_summary::render_review_summary(review)
            .filter(|_| made.is_empty())
            .unwrap_or_else(|| {
                let unjudged = self.app.live_session.cells.describe_unjudged();
                exit_summary::render_exit_summary(&made, &here, unjudged)
            })
    }

    /// Applies one message and carries out the effects.
    pub(crate) fn apply(&mut self, msg: Msg) {
        // New hit areas change nothing on the screen. Without this exception each frame would order the next one.
        self.dirty |= !matches!(msg, Msg::Drawn(_));
        self.app.now = self.deps.clock.now();
        let effects = update(&mut self.app, msg);
        self.carry_out(effects);
    }

    pub(crate) fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match self.runtime.carry_out(effect) {
                None => {}
                Some(Effect::Quit) => {
                    // `quit` sets the exit code before it orders the end.
                    let code = self.app.exit_code.unwrap_or(0);
                    // A signal or a closed terminal may have set an exit before; the first one counts.
                    self.exit.get_or_insert(LoopExit::with_code(code));
                }
                Some(terminal_effect) => self.terminal_effects.push_back(terminal_effect),
            }
        }
    }

    /// Returns the exit code if the loop is about to end.
    #[cfg(test)]
    pub(crate) fn exit_code(&self) -> Option<u8> {
        self.exit.as_ref().map(|end| end.code)
    }

    /// Handles pending messages in this order: results, because one may change the meaning of a key; input; run
    /// events. Run events wait as long as a key waits for its frame.
    fn drain_queues(&mut self, input: &mut UnboundedReceiver<TerminalInput>) {
        let began = self.deps.clock.now();
        for _ in 0..MAX_MESSAGES_PER_DRAIN {
            let Ok(msg) = self.inbox.answers.try_recv() else {
                break;
            };
            self.apply(msg);
            // A long queue of results must not delay the next frame.
            if self.is_drain_time_spent(began) {
                break;
            }
        }
        for _ in 0..MAX_MESSAGES_PER_DRAIN {
            let Ok(input) = input.try_recv() else { break };
            // Keys have no time limit: each is cheap, and a key must not wait for the next round.
            self.handle_terminal_input(input);
            // An effect on the terminal, such as an editor, must start before later keys are handled: they belong to
            // the editor.
            if !self.terminal_effects.is_empty() || self.exit.is_some() {
                return;
            }
        }
        for _ in 0..MAX_MESSAGES_PER_DRAIN {
            // A new key, or a key that waits for its frame, comes before run events.
            if self.input_pending || !input.is_empty() || self.is_drain_time_spent(began) {
                break;
            }
            let Ok(msg) = self.inbox.runs.try_recv() else {
                break;
            };
            self.apply(msg);
        }
    }

    /// Returns true if the screen must be updated before more messages are handled.
    fn is_drain_time_spent(&self, began: Millis) -> bool {
        self.deps.clock.now().since(began) >= MAX_DRAIN_TIME
    }

    /// Handles pending results and run events; returns false if there were none.
    pub(crate) fn drain_inbox(&mut self) -> bool {
        // The limit keeps the caller from running forever if results cause more results.
        for taken in 0..MAX_MESSAGES_PER_DRAIN {
            let next = self
                .inbox
                .answers
                .try_recv()
                .or_else(|_| self.inbox.runs.try_recv());
            let Ok(msg) = next else { return taken > 0 };
            self.apply(msg);
        }
        true
    }

    pub(super) fn handle_terminal_input(&mut self, input: TerminalInput) {
        match input {
            TerminalInput::Msg(msg) => {
                self.input_pending = true;
                // Two changes of the size between two frames can end in the first size. The terminal has cut its
                // content then, and a frame of changed cells would leave gaps.
                if matches!(msg, Msg::Resized { .. }) {
                    self.redraw();
                }
                self.apply(msg);
            }
            TerminalInput::Closed(why) => {
                self.exit.get_or_insert(LoopExit {
                    // EX_IOERR of sysexits.h.
                    code: 74,
                    problem: Some(format!("the terminal cannot be read any more: {why}")),
                });
            }
        }
    }

    /// Applies [`Msg::TimePassed`] if a timer of the app is due.
    pub(crate) fn apply_timer_if_due(&mut self) {
        if self.is_timer_due() {
            self.apply(Msg::TimePassed);
        }
    }

    /// Returns true if a timer of the app is due. Compares with `next_wake` as of the last update, because later
    /// times were not applied yet.
    fn is_timer_due(&self) -> bool {
        let due = self.app.next_wake();
        due.is_some_and(|at| at <= self.deps.clock.now())
    }

    fn draw_if_due(&mut self) {
        if self.dirty && self.next_frame_time() <= self.deps.clock.now() {
            self.draw();
        }
    }

    fn next_frame_time(&self) -> Millis {
        // A key waits a shorter time, because a person notices its delay.
        let interval = if self.input_pending {
            INPUT_FRAME_INTERVAL
        } else {
            FRAME_INTERVAL
        };
        self.drawn_at.map_or(Millis(0), |drawn| drawn + interval)
    }

    /// Draws a frame. If the terminal can't be written to, it is treated as closed.
    pub(crate) fn draw(&mut self) {
        if self.try_draw().is_err() {
            self.exit.get_or_insert(LoopExit::terminal_gone());
        }
    }

    fn try_draw(&mut self) -> io::Result<()> {
        let Size { width, height } = self.screen.size()?;
        // crossterm's resize event may be late or lost, so the size is read before each frame.
        if self.app.ui.size != (Size { width, height }) {
            self.apply(Msg::Resized { width, height });
            // The buffer has this size, whatever the update made of it. A view for another size would draw outside
            // the buffer.
            self.app.ui.size = Size { width, height };
        }
        let mut hits = HitMap::default();
        let app = &self.app;
        // A terminal may report a size of 0; ratatui can't draw on it.
        if width > 0 && height > 0 {
            self.screen
                .draw(&mut |buffer| hits = draw_app(app, buffer))?;
        }
        // The flags are cleared before `Drawn` is applied, which does not set them again.
        self.dirty = false;
        self.input_pending = false;
        self.drawn_at = Some(self.deps.clock.now());
        self.apply(Msg::Drawn(hits));
        Ok(())
    }

    /// Waits until an event arrives or a timer is due.
    async fn wait_for_event(&mut self, external: &mut ExternalEvents) {
        // These effects are ready now, so there is nothing to wait for.
        if !self.terminal_effects.is_empty() {
            return;
        }
        // Without a change there is no frame to wait for, so an idle program sleeps.
        let frame = self.dirty.then(|| self.next_frame_time());
        let due = self.app.next_wake().into_iter().chain(frame).min();
        let clock = &self.deps.clock;
        tokio::select! {
            // A signal must not wait behind a stream of messages.
            biased;
            request = external.signals.next_request() => self.handle_signal(request),
            () = external.terminal_gone.cancelled() => {
                self.exit.get_or_insert(LoopExit::terminal_gone());
            }
            Some(msg) = external.panics.recv() => self.apply(msg),
            Some(msg) = self.inbox.answers.recv() => self.apply(msg),
            Some(msg) = self.inbox.runs.recv() => self.apply(msg),
            Some(input) = external.input.recv() => self.handle_terminal_input(input),
            () = sleep_until(due, &**clock) => {}
        }
    }

    fn handle_signal(&mut self, request: SignalRequest) {
        match request {
            SignalRequest::End(number) => {
                // The app cancels its runs and logs the signal before the loop ends.
                self.apply(Msg::Signalled(number));
                // Unlike `q`, a signal ends the program without a question.
                self.exit = Some(LoopExit::from_signal(number));
            }
            SignalRequest::Stop => self.terminal_effects.push_back(Effect::Suspend),
            // Another program used the terminal in the meantime and may have changed its modes.
            SignalRequest::Continue => {
                if self.screen.reclaim_terminal().is_err() {
                    self.exit.get_or_insert(LoopExit::terminal_gone());
                }
                self.dirty = true;
            }
        }
    }
}

async fn sleep_until(due: Option<Millis>, clock: &dyn crate::clock::Clock) {
    match due {
        Some(at) => clock.sleep(at.since(clock.now())).await,
        None => std::future::pending().await,
    }
}
