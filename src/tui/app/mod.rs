//! The loop: drain what is pending, update, draw at most once in 16 ms and only if something changed; what was
//! typed is answered at once.
//!
//! Owns the model and the screen. Refuses to do anything that takes time: that is the runtime's.

mod errands;
#[cfg(test)]
mod example_stories;
mod farewell;
#[cfg(test)]
mod save_stories;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use ratatui::layout::Size;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::effect::Effect;
use super::model::Model;
use super::msg::Msg;
use super::runtime::{Deps, Inbox, Runtime};
use super::term::{Asked, Heard, Screen, Signals};
use super::update::{opening, update};
use super::view::view;
use super::widget::canvas::Hits;
use crate::model::Millis;

/// Frames are at least so far apart.
const FRAME: Millis = Millis(16);
/// But what was typed is answered sooner: a key that had to wait for the next frame of a stream would be late.
const ANSWER: Millis = Millis(4);
/// So many messages are taken at most before the screen is looked after.
const AT_ONCE: usize = 512;
/// And for no longer than this, or a key would wait for a run.
const SLICE: Millis = Millis(8);

/// What comes from outside.
pub(super) struct Outside {
    pub(super) heard: UnboundedReceiver<Heard>,
    /// What other threads said when they panicked.
    pub(super) panics: UnboundedReceiver<Msg>,
    /// Cancelled when the terminal is gone.
    pub(super) gone: CancellationToken,
    pub(super) signals: Signals,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    /// The exit code.
    pub(super) code: u8,
    /// What went wrong, if something did: a sentence.
    pub(super) problem: Option<String>,
}

impl End {
    fn well(code: u8) -> Self {
        Self {
            code,
            problem: None,
        }
    }

    /// As a shell tells a program that a signal ended.
    fn signal(number: i32) -> Self {
        Self::well(u8::try_from(128 + number).unwrap_or(u8::MAX))
    }

    /// The terminal is gone: as if by the signal that says so.
    fn gone() -> Self {
        Self::signal(1)
    }
}

/// The workbench, running.
pub(crate) struct App<S> {
    pub(crate) model: Model,
    pub(crate) screen: S,
    pub(crate) runtime: Runtime,
    pub(crate) inbox: Inbox,
    deps: Arc<Deps>,
    /// Whether anything changed since the last frame.
    dirty: bool,
    /// Something was typed since the last frame.
    typed: bool,
    drawn: Option<Millis>,
    /// What concerns the terminal, and is done between two messages.
    errands: VecDeque<Effect>,
    end: Option<End>,
}

impl<S: Screen> App<S> {
    /// A workbench on a screen. It asks at once for what it shows first; `first` is asked for besides.
    pub(super) fn new(model: Model, screen: S, deps: Arc<Deps>, first: Vec<Effect>) -> Self {
        let (runtime, inbox) = Runtime::new(Arc::clone(&deps));
        let mut app = Self {
            model,
            screen,
            runtime,
            inbox,
            deps,
            dirty: true,
            typed: false,
            drawn: None,
            errands: VecDeque::new(),
            end: None,
        };
        app.model.now = app.deps.clock.now();
        let effects = opening(&mut app.model);
        app.carry_out(effects);
        app.carry_out(first);
        app
    }

    /// Runs until the end.
    pub(super) async fn run(&mut self, outside: &mut Outside) -> End {
        loop {
            self.drain(&mut outside.heard);
            self.run_errands(outside).await;
            // Asked before a frame tells the model what time it is; done after a key's own frame, which is owed first.
            let woken = self.is_due();
            if self.typed {
                self.draw_if_due();
            }
            if woken {
                self.apply(Msg::TimePassed);
            }
            self.draw_if_due();
            if let Some(end) = self.end.take() {
                return end;
            }
            self.wait(outside).await;
        }
    }

    /// Ends what is under way, gives the terminal back, and tells what was done.
    pub(super) async fn close(mut self) -> String {
        // First of all: a recording that takes a moment to be finished should not look like a program that hangs.
        self.screen.lend().await;
        self.runtime.end(self.inbox).await;
        farewell::line(&self.runtime.made())
    }

    /// One message.
    pub(crate) fn apply(&mut self, msg: Msg) {
        // What a click would hit is no change that is seen.
        self.dirty |= !matches!(msg, Msg::Drawn(_));
        self.model.now = self.deps.clock.now();
        let effects = update(&mut self.model, msg);
        self.carry_out(effects);
    }

    pub(crate) fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match self.runtime.carry_out(effect) {
                None => {}
                Some(Effect::Quit) => {
                    let code = self.model.quitting.unwrap_or(0);
                    self.end.get_or_insert(End::well(code));
                }
                Some(errand) => self.errands.push_back(errand),
            }
        }
    }

    /// The exit code, once it is to end.
    #[cfg(test)]
    pub(crate) fn ended(&self) -> Option<u8> {
        self.end.as_ref().map(|end| end.code)
    }

    /// Takes what is pending. Answers first, for one may change what a key means; then what was typed; and what runs tell
    /// only while nobody waits for an answer to a key.
    fn drain(&mut self, heard: &mut UnboundedReceiver<Heard>) {
        let began = self.deps.clock.now();
        for _ in 0..AT_ONCE {
            let Ok(msg) = self.inbox.answers.try_recv() else {
                break;
            };
            self.apply(msg);
            if self.spent(began) {
                break;
            }
        }
        for _ in 0..AT_ONCE {
            let Ok(heard) = heard.try_recv() else { break };
            self.hear(heard);
            // What is to be done with the terminal comes before what was typed after it.
            if !self.errands.is_empty() || self.end.is_some() {
                return;
            }
        }
        for _ in 0..AT_ONCE {
            if self.typed || !heard.is_empty() || self.spent(began) {
                break;
            }
            let Ok(msg) = self.inbox.runs.try_recv() else {
                break;
            };
            self.apply(msg);
        }
    }

    /// Whether the screen is to be looked after first.
    fn spent(&self, began: Millis) -> bool {
        self.deps.clock.now().since(began) >= SLICE
    }

    /// Takes answers and what runs told; whether there was any.
    #[cfg(test)]
    pub(crate) fn take_in(&mut self) -> bool {
        for taken in 0..AT_ONCE {
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

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Msg(msg) => {
                self.typed = true;
                self.apply(msg);
            }
            Heard::Deaf(why) => {
                self.end.get_or_insert(End {
                    code: 74,
                    problem: Some(format!("the terminal cannot be read any more: {why}")),
                });
            }
        }
    }

    /// Tells the model that its moment has come, if it has.
    #[cfg(test)]
    pub(crate) fn wake(&mut self) {
        if self.is_due() {
            self.apply(Msg::TimePassed);
        }
    }

    /// Whether the model's moment has come. Asked as of the last update: what was due since then is what the model has not
    /// been told.
    fn is_due(&self) -> bool {
        let due = self.model.next_wake();
        due.is_some_and(|at| at <= self.deps.clock.now())
    }

    fn draw_if_due(&mut self) {
        if self.dirty && self.frame_due() <= self.deps.clock.now() {
            self.draw();
        }
    }

    fn frame_due(&self) -> Millis {
        let apart = if self.typed { ANSWER } else { FRAME };
        self.drawn.map_or(Millis(0), |drawn| drawn + apart)
    }

    /// Draws a frame. A terminal that cannot be written to is one that is gone.
    pub(crate) fn draw(&mut self) {
        if self.try_draw().is_err() {
            self.end.get_or_insert(End::gone());
        }
    }

    fn try_draw(&mut self) -> io::Result<()> {
        let Size { width, height } = self.screen.size()?;
        if self.model.ui.size != (Size { width, height }) {
            self.apply(Msg::Resized { width, height });
            // Whatever the update makes of it: the buffer has this size, and no other may be drawn into it.
            self.model.ui.size = Size { width, height };
        }
        let mut hits = Hits::default();
        let model = &self.model;
        if width > 0 && height > 0 {
            self.screen.draw(&mut |buffer| hits = view(model, buffer))?;
        }
        self.dirty = false;
        self.typed = false;
        self.drawn = Some(self.deps.clock.now());
        self.apply(Msg::Drawn(hits));
        Ok(())
    }

    /// Blocks until something happens or a moment comes.
    async fn wait(&mut self, outside: &mut Outside) {
        if !self.errands.is_empty() {
            return;
        }
        let frame = self.dirty.then(|| self.frame_due());
        let due = self.model.next_wake().into_iter().chain(frame).min();
        let clock = &self.deps.clock;
        tokio::select! {
            biased;
            asked = outside.signals.next() => self.asked(asked),
            () = outside.gone.cancelled() => {
                self.end.get_or_insert(End::gone());
            }
            Some(msg) = outside.panics.recv() => self.apply(msg),
            Some(msg) = self.inbox.answers.recv() => self.apply(msg),
            Some(msg) = self.inbox.runs.recv() => self.apply(msg),
            Some(heard) = outside.heard.recv() => self.hear(heard),
            () = until(due, &**clock) => {}
        }
    }

    fn asked(&mut self, asked: Asked) {
        match asked {
            Asked::End(number) => {
                self.apply(Msg::Signalled(number));
                // A signal is no question.
                self.end = Some(End::signal(number));
            }
            Asked::Stop => self.errands.push_back(Effect::Suspend),
            // Somebody else had the terminal meanwhile, and left it as they like it.
            Asked::GoOn => {
                if self.screen.take_again().is_err() {
                    self.end.get_or_insert(End::gone());
                }
                self.dirty = true;
            }
        }
    }
}

async fn until(due: Option<Millis>, clock: &dyn crate::clock::Clock) {
    match due {
        Some(at) => clock.sleep(at.since(clock.now())).await,
        None => std::future::pending().await,
    }
}
