//! The loop: drain what is pending, update, draw at most once in 16 ms and only if something changed; what was
//! typed is answered at once.
//!
//! Owns the model and the screen. Refuses to do anything that takes time: that is the runtime's.

#[cfg(test)]
mod example_stories;
mod exit_summary;
#[cfg(test)]
mod save_stories;
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

/// Frames are at least so far apart.
const FRAME_INTERVAL: Millis = Millis(16);
/// But what was typed is answered sooner: a key that had to wait for the next frame of a stream would be late.
const INPUT_FRAME_INTERVAL: Millis = Millis(4);
/// So many messages are taken at most before the screen is looked after.
const MAX_MESSAGES_PER_DRAIN: usize = 512;
/// And for no longer than this, or a key would wait for a run.
const MAX_DRAIN_TIME: Millis = Millis(8);

/// What comes from outside.
pub(super) struct ExternalEvents {
    pub(super) input: UnboundedReceiver<TerminalInput>,
    /// What other threads said when they panicked.
    pub(super) panics: UnboundedReceiver<Msg>,
    /// Cancelled when the terminal is gone.
    pub(super) terminal_gone: CancellationToken,
    pub(super) signals: SignalStream,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoopExit {
    /// The exit code.
    pub(super) code: u8,
    /// What went wrong, if something did: a sentence.
    pub(super) problem: Option<String>,
}

impl LoopExit {
    fn with_code(code: u8) -> Self {
        Self {
            code,
            problem: None,
        }
    }

    /// As a shell tells a program that a signal ended.
    fn from_signal(number: i32) -> Self {
        Self::with_code(u8::try_from(128 + number).unwrap_or(u8::MAX))
    }

    /// The terminal is gone: as if by the signal that says so.
    fn terminal_gone() -> Self {
        Self::from_signal(1)
    }
}

/// The workbench, running.
pub(crate) struct EventLoop<S> {
    pub(crate) app: App,
    pub(crate) screen: S,
    pub(crate) runtime: Runtime,
    pub(crate) inbox: RuntimeInbox,
    deps: Arc<RuntimeDeps>,
    /// Whether anything changed since the last frame.
    dirty: bool,
    /// Something was typed since the last frame.
    input_pending: bool,
    drawn_at: Option<Millis>,
    /// What concerns the terminal, and is done between two messages.
    terminal_effects: VecDeque<Effect>,
    exit: Option<LoopExit>,
}

impl<S: Screen> EventLoop<S> {
    /// A workbench on a screen. It asks at once for what it shows first; `first` is asked for besides.
    pub(super) fn new(model: App, screen: S, deps: Arc<RuntimeDeps>, first: Vec<Effect>) -> Self {
        let (runtime, inbox) = Runtime::new(Arc::clone(&deps));
        let mut app = Self {
            app: model,
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
        app.app.now = app.deps.clock.now();
        let effects = request_initial_data(&mut app.app);
        app.carry_out(effects);
        app.carry_out(first);
        app
    }

    /// Runs until the end.
    pub(super) async fn run(&mut self, outside: &mut ExternalEvents) -> LoopExit {
        loop {
            self.drain_queues(&mut outside.input);
            self.run_terminal_effects(outside).await;
            // Asked before a frame tells the model what time it is; done after a key's own frame, which is owed first.
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
            self.wait_for_event(outside).await;
        }
    }

    /// Ends what is under way, gives the terminal back, and tells what was done.
    pub(super) async fn shut_down(mut self) -> String {
        // First of all: a recording that takes a moment to be finished should not look like a program that hangs.
        self.screen.release_terminal().await;
        self.runtime.shut_down(self.inbox).await;
        exit_summary::render_exit_summary(&self.runtime.made())
    }

    /// One message.
    pub(crate) fn apply(&mut self, msg: Msg) {
        // What a click would hit is no change that is seen.
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
                    let code = self.app.exit_code.unwrap_or(0);
                    self.exit.get_or_insert(LoopExit::with_code(code));
                }
                Some(errand) => self.terminal_effects.push_back(errand),
            }
        }
    }

    /// The exit code, once it is to end.
    #[cfg(test)]
    pub(crate) fn exit_code(&self) -> Option<u8> {
        self.exit.as_ref().map(|end| end.code)
    }

    /// Takes what is pending. Answers first, for one may change what a key means; then what was typed; and what runs tell
    /// only while nobody waits for an answer to a key.
    fn drain_queues(&mut self, heard: &mut UnboundedReceiver<TerminalInput>) {
        let began = self.deps.clock.now();
        for _ in 0..MAX_MESSAGES_PER_DRAIN {
            let Ok(msg) = self.inbox.answers.try_recv() else {
                break;
            };
            self.apply(msg);
            if self.is_drain_time_spent(began) {
                break;
            }
        }
        for _ in 0..MAX_MESSAGES_PER_DRAIN {
            let Ok(heard) = heard.try_recv() else { break };
            self.handle_terminal_input(heard);
            // What is to be done with the terminal comes before what was typed after it.
            if !self.terminal_effects.is_empty() || self.exit.is_some() {
                return;
            }
        }
        for _ in 0..MAX_MESSAGES_PER_DRAIN {
            if self.input_pending || !heard.is_empty() || self.is_drain_time_spent(began) {
                break;
            }
            let Ok(msg) = self.inbox.runs.try_recv() else {
                break;
            };
            self.apply(msg);
        }
    }

    /// Whether the screen is to be looked after first.
    fn is_drain_time_spent(&self, began: Millis) -> bool {
        self.deps.clock.now().since(began) >= MAX_DRAIN_TIME
    }

    /// Takes answers and what runs told; whether there was any.
    #[cfg(test)]
    pub(crate) fn drain_inbox(&mut self) -> bool {
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

    fn handle_terminal_input(&mut self, heard: TerminalInput) {
        match heard {
            TerminalInput::Msg(msg) => {
                self.input_pending = true;
                self.apply(msg);
            }
            TerminalInput::Closed(why) => {
                self.exit.get_or_insert(LoopExit {
                    code: 74,
                    problem: Some(format!("the terminal cannot be read any more: {why}")),
                });
            }
        }
    }

    /// Tells the model that its moment has come, if it has.
    #[cfg(test)]
    pub(crate) fn apply_timer_if_due(&mut self) {
        if self.is_timer_due() {
            self.apply(Msg::TimePassed);
        }
    }

    /// Whether the model's moment has come. Asked as of the last update: what was due since then is what the model has not
    /// been told.
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
        let apart = if self.input_pending {
            INPUT_FRAME_INTERVAL
        } else {
            FRAME_INTERVAL
        };
        self.drawn_at.map_or(Millis(0), |drawn| drawn + apart)
    }

    /// Draws a frame. A terminal that cannot be written to is one that is gone.
    pub(crate) fn draw(&mut self) {
        if self.try_draw().is_err() {
            self.exit.get_or_insert(LoopExit::terminal_gone());
        }
    }

    fn try_draw(&mut self) -> io::Result<()> {
        let Size { width, height } = self.screen.size()?;
        if self.app.ui.size != (Size { width, height }) {
            self.apply(Msg::Resized { width, height });
            // Whatever the update makes of it: the buffer has this size, and no other may be drawn into it.
            self.app.ui.size = Size { width, height };
        }
        let mut hits = HitMap::default();
        let app = &self.app;
        if width > 0 && height > 0 {
            self.screen
                .draw(&mut |buffer| hits = draw_app(app, buffer))?;
        }
        self.dirty = false;
        self.input_pending = false;
        self.drawn_at = Some(self.deps.clock.now());
        self.apply(Msg::Drawn(hits));
        Ok(())
    }

    /// Blocks until something happens or a moment comes.
    async fn wait_for_event(&mut self, outside: &mut ExternalEvents) {
        if !self.terminal_effects.is_empty() {
            return;
        }
        let frame = self.dirty.then(|| self.next_frame_time());
        let due = self.app.next_wake().into_iter().chain(frame).min();
        let clock = &self.deps.clock;
        tokio::select! {
            biased;
            asked = outside.signals.next_request() => self.handle_signal(asked),
            () = outside.terminal_gone.cancelled() => {
                self.exit.get_or_insert(LoopExit::terminal_gone());
            }
            Some(msg) = outside.panics.recv() => self.apply(msg),
            Some(msg) = self.inbox.answers.recv() => self.apply(msg),
            Some(msg) = self.inbox.runs.recv() => self.apply(msg),
            Some(heard) = outside.input.recv() => self.handle_terminal_input(heard),
            () = sleep_until(due, &**clock) => {}
        }
    }

    fn handle_signal(&mut self, asked: SignalRequest) {
        match asked {
            SignalRequest::End(number) => {
                self.apply(Msg::Signalled(number));
                // A signal is no question.
                self.exit = Some(LoopExit::from_signal(number));
            }
            SignalRequest::Stop => self.terminal_effects.push_back(Effect::Suspend),
            // Somebody else had the terminal meanwhile, and left it as they like it.
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
