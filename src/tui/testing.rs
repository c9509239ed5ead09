//! Drives the whole workbench in memory with keys: the real event loop and runtime, a fake clock, and a screen that
//! is a buffer. Example: `TestWorkbench::demo(120, 40).keys("R").settle().screen()`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Size;
use tempfile::TempDir;
use unicode_width::UnicodeWidthStr as _;

use super::effect::Effect;
use super::event_loop::EventLoop;
use super::key_chord::KeyChord;
use super::msg::Msg;
use super::runtime::RuntimeDeps;
use super::state::{App, OpenedItem};
use super::term::{Screen, draw_on};
use crate::clock::{Clock, FakeClock, SystemClock};
use crate::handlers::EvalTypeRegistry;
use crate::model::Millis;
use crate::theme::Theme;
use crate::workspace::{self, Env, demo};

/// The time after which a run counts as stuck.
const PATIENCE: Millis = Millis(60_000);
/// The time without messages after which the clock advances to the next timer.
const QUIET: Millis = Millis(2);
/// A timer that is further away may be a deadline. It must not fire early only because the machine is busy.
const FAR: Millis = Millis(900);
/// The time without messages after which even a far timer fires.
const LONG_QUIET: Millis = Millis(400);

/// A screen in memory.
pub(crate) struct FakeScreen {
    terminal: Terminal<TestBackend>,
    /// The texts that were copied to the clipboard.
    pub(crate) copied: Vec<String>,
    /// The number of full redraws.
    pub(crate) forgot: usize,
}

fn never<T>(result: Result<T, std::convert::Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

impl FakeScreen {
    fn new(width: u16, height: u16) -> Self {
        Self {
            terminal: never(Terminal::new(TestBackend::new(width, height))),
            copied: Vec::new(),
            forgot: 0,
        }
    }
}

impl Screen for FakeScreen {
    fn size(&mut self) -> io::Result<Size> {
        never(self.terminal.autoresize());
        Ok(self.terminal.get_frame().area().as_size())
    }

    fn draw(&mut self, paint: &mut dyn FnMut(&mut Buffer)) -> io::Result<()> {
        never(draw_on(&mut self.terminal, paint));
        Ok(())
    }

    fn redraw_all(&mut self) -> io::Result<()> {
        self.forgot += 1;
        let size = never(self.terminal.size());
        never(self.terminal.resize(size.into()));
        Ok(())
    }

    async fn release_terminal(&mut self) {}

    fn reclaim_terminal(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn stop_job(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn copy_to_clipboard(&mut self, text: &str) -> io::Result<()> {
        self.copied.push(text.to_owned());
        Ok(())
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("created");
    for entry in std::fs::read_dir(from).expect("listed") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// A workbench that a test drives.
pub(crate) struct TestWorkbench {
    pub(crate) event_loop: EventLoop<FakeScreen>,
    pub(crate) clock: FakeClock,
    /// Effects on the terminal that a test can't run, such as editors.
    pub(crate) terminal_effects: Vec<Effect>,
    /// The folder of the opened workspace.
    pub(crate) root: PathBuf,
    // Dropped last, because tasks and files are in use until the app is dropped.
    tokio: tokio::runtime::Runtime,
    data: TempDir,
}

impl TestWorkbench {
    /// Opens the demo in a new folder. The `rules` judge does not pause.
    pub(crate) fn demo(width: u16, height: u16) -> Self {
        Self::paced(width, height, None)
    }

    /// Opens the demo with the `rules` judge as slow as on a real screen, so that a test can watch its traces.
    pub(crate) fn watched(width: u16, height: u16) -> Self {
        Self::paced(width, height, Some(Millis(15)))
    }

    fn paced(width: u16, height: u16, pace: Option<Millis>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = demo::unpack(folder.path()).expect("the demo is unpacked");
        Self::open(width, height, pace, folder, &root)
    }

    /// Opens a workspace. Keeps the folder `data` until the end.
    pub(crate) fn open(
        width: u16,
        height: u16,
        pace: Option<Millis>,
        data: TempDir,
        root: &Path,
    ) -> Self {
        let dir = data.path().display().to_string();
        let env = Env([("DICTA_DATA_DIR".to_owned(), dir)].into());
        let workspace =
            workspace::load(root, &env, &EvalTypeRegistry::builtin()).expect("it loads");
        let root = workspace.root.clone();
        Self::on(
            OpenedItem::Workspace(Arc::new(workspace)),
            Size { width, height },
            pace,
            (env, data, root),
            Vec::new(),
        )
    }

    /// Opens a workspace as on a real screen: one without a recorded run is judged after the first frame. The other
    /// functions judge nothing, so that a test counts only the runs that it orders.
    pub(crate) fn judging_on_open(width: u16, height: u16, data: TempDir, root: &Path) -> Self {
        let dir = data.path().display().to_string();
        let env = Env([("DICTA_DATA_DIR".to_owned(), dir)].into());
        let workspace =
            workspace::load(root, &env, &EvalTypeRegistry::builtin()).expect("it loads");
        let root = workspace.root.clone();
        let opened = OpenedItem::Workspace(Arc::new(workspace));
        let size = Size { width, height };
        Self::start(opened, size, None, (env, data, root), Vec::new(), true)
    }

    /// Opens any item.
    pub(crate) fn on(
        opened: OpenedItem,
        size: Size,
        pace: Option<Millis>,
        parts: (Env, TempDir, PathBuf),
        first: Vec<Effect>,
    ) -> Self {
        Self::start(opened, size, pace, parts, first, false)
    }

    fn start(
        opened: OpenedItem,
        size: Size,
        pace: Option<Millis>,
        (env, data, root): (Env, TempDir, PathBuf),
        first: Vec<Effect>,
        judges_on_open: bool,
    ) -> Self {
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let clock = FakeClock::new();
        let deps = Arc::new(RuntimeDeps {
            env,
            clock: Arc::new(clock.clone()),
            registry: Arc::new(EvalTypeRegistry::builtin()),
            rules_text_delay: pace,
            export: Arc::new(|_, number, output| {
                let text = format!("state {number}");
                std::fs::write(output, &text).map_err(|error| error.to_string())?;
                Ok(format!("{} has {text}", output.display()))
            }),
        });
        let theme = Theme::bundled("dark").expect("it is bundled");
        let mut app = App::new(opened, size, theme);
        app.judges_on_open = judges_on_open;
        let entered = tokio.enter();
        let screen = FakeScreen::new(size.width, size.height);
        let event_loop = EventLoop::new(app, screen, deps, first);
        drop(entered);
        Self {
            event_loop,
            clock,
            terminal_effects: Vec::new(),
            root,
            tokio,
            data,
        }
    }

    /// Presses the keys, which spaces separate, and draws after each.
    pub(crate) fn keys(&mut self, keys: &str) -> &mut Self {
        for key in keys.split_whitespace() {
            let chord: KeyChord = key.parse().expect("a key");
            self.send_msg(Msg::Key(chord));
        }
        self
    }

    /// Types a text character by character.
    pub(crate) fn type_in(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            self.send_msg(Msg::Key(KeyChord {
                code: crossterm::event::KeyCode::Char(c),
                modifiers: crossterm::event::KeyModifiers::NONE,
            }));
        }
        self
    }

    /// Applies a message, carries out the effects, and draws.
    pub(crate) fn send_msg(&mut self, msg: Msg) -> &mut Self {
        let _inside = self.tokio.enter();
        self.event_loop.apply(msg);
        self.terminal_effects
            .extend(self.event_loop.run_in_process_effects());
        self.event_loop.draw();
        self
    }

    /// Carries out an effect.
    pub(crate) fn effect(&mut self, effect: Effect) -> &mut Self {
        let _inside = self.tokio.enter();
        self.event_loop.carry_out(vec![effect]);
        self.terminal_effects
            .extend(self.event_loop.run_in_process_effects());
        self
    }

    /// Hands over a message of the terminal itself.
    pub(crate) fn terminal_input(&mut self, msg: Msg) -> &mut Self {
        let _inside = self.tokio.enter();
        self.event_loop
            .handle_terminal_input(super::term::TerminalInput::Msg(msg));
        self
    }

    /// Resizes the terminal.
    pub(crate) fn resize(&mut self, width: u16, height: u16) -> &mut Self {
        let _inside = self.tokio.enter();
        self.event_loop
            .screen
            .terminal
            .backend_mut()
            .resize(width, height);
        self.event_loop.draw();
        self
    }

    /// Writes a file of the workspace and continues until the app applied it or found errors. The judging that it
    /// causes has begun then.
    pub(crate) fn save(&mut self, path: impl AsRef<Path>, text: &str) -> &mut Self {
        std::fs::write(self.root.join(path), text).expect("it is written");
        let seen = |app: &App| {
            let saves = &app.saves;
            (saves.number, saves.problems.len(), app.notices.shown_count)
        };
        let before = seen(&self.event_loop.app);
        self.go_on(|app| seen(app) != before, true)
    }

    /// Advances the clock.
    pub(crate) fn pass(&mut self, time: Millis) -> &mut Self {
        let _inside = self.tokio.enter();
        self.clock.advance(time);
        self.event_loop.apply_timer_if_due();
        self.event_loop.draw();
        self
    }

    /// Continues until the app has noticed an outside change, such as a removed file.
    pub(crate) fn settle_for(&mut self, noticed: impl Fn(&App) -> bool) -> &mut Self {
        self.go_on(noticed, true)
    }

    /// Continues until no message is queued, no task runs, and only notices wait to disappear. The clock advances
    /// whenever nothing else is left to wait for.
    pub(crate) fn settle(&mut self) -> &mut Self {
        self.settle_until(|_| false)
    }

    /// Draws the first frame and continues until nothing is left to do.
    pub(crate) fn settle_after_first_frame(&mut self) -> &mut Self {
        self.draw().settle()
    }

    /// Draws a frame.
    pub(crate) fn draw(&mut self) -> &mut Self {
        let _inside = self.tokio.enter();
        self.event_loop.draw();
        self
    }

    /// Like [`TestWorkbench::settle`], but stops as soon as `enough` returns true.
    pub(crate) fn settle_until(&mut self, enough: impl Fn(&App) -> bool) -> &mut Self {
        self.go_on(enough, false)
    }

    /// Continues until `enough` returns true or nothing is left to do. If `must`, waits for an outside change
    /// although nothing runs.
    fn go_on(&mut self, enough: impl Fn(&App) -> bool, must: bool) -> &mut Self {
        let Self {
            event_loop: app,
            clock,
            tokio,
            terminal_effects,
            ..
        } = self;
        tokio.block_on(async {
            let patience = SystemClock::new();
            let mut heard = Millis(0);
            while !enough(&app.app) {
                assert!(patience.now() < PATIENCE, "it does not settle");
                terminal_effects.extend(app.run_in_process_effects());
                app.apply_timer_if_due();
                // Checked before the queues are drained, because a task sends its result before it ends.
                let idle = app.runtime.task_tally().is_idle();
                if app.drain_inbox() {
                    heard = patience.now();
                    continue;
                }
                let work = app.app.next_work();
                if idle && work.is_none() && !must {
                    break;
                }
                if idle && let Some(at) = work {
                    clock.advance(at.since(clock.now()));
                    continue;
                }
                let busy = app.runtime.task_tally();
                tokio::select! {
                    biased;
                    Some(msg) = app.inbox.answers.recv() => {
                        app.apply(msg);
                        heard = patience.now();
                    }
                    Some(msg) = app.inbox.runs.recv() => {
                        app.apply(msg);
                        heard = patience.now();
                    }
                    () = busy.wait_for_task_end() => {}
                    () = patience.sleep(QUIET) => {
                        let quiet = patience.now().since(heard);
                        if let Some(at) = clock.next_wake() {
                            let wait = at.since(clock.now());
                            if wait < FAR || quiet >= LONG_QUIET {
                                clock.advance(wait);
                                heard = patience.now();
                            }
                        }
                    }
                }
            }
            app.draw();
        });
        self
    }

    /// Returns the rows of the screen without trailing spaces.
    pub(crate) fn screen(&self) -> String {
        text(self.buffer())
    }

    /// Returns the last row of the screen.
    pub(crate) fn last_row(&self) -> String {
        self.screen().lines().last().unwrap_or_default().to_owned()
    }

    /// Returns the cells of the screen with their styles.
    pub(crate) fn buffer(&self) -> &Buffer {
        self.event_loop.screen.terminal.backend().buffer()
    }

    /// Returns the environment, for a second workbench with the same data directory.
    pub(crate) fn env(&self) -> Env {
        self.event_loop.runtime.env()
    }

    /// Opens the workspace again with the same data directory, as after a restart, and continues until nothing is left to
    /// do. This workbench must live as long, because it has the folders.
    pub(crate) fn reopen(&self) -> Self {
        let env = self.env();
        let workspace = workspace::load(&self.root, &env, &EvalTypeRegistry::builtin());
        let place = OpenedItem::Workspace(Arc::new(workspace.expect("it loads")));
        let area = self.buffer().area;
        let folder = tempfile::tempdir().expect("a folder");
        let parts = (env, folder, self.root.clone());
        let mut next = Self::on(place, area.as_size(), None, parts, Vec::new());
        next.settle();
        next
    }

    /// Kills the process at once and opens the workspace again. The recordings end with the last written event.
    pub(crate) fn kill(self) -> Self {
        let env = self.env();
        let size = self.buffer().area.as_size();
        let workspace = workspace::load(&self.root, &env, &EvalTypeRegistry::builtin());
        let workspace = Arc::new(workspace.expect("it loads"));
        // Dropping the app ends its runs, which a killed process can't do. So the recordings are copied before.
        let runs = workspace.runs.clone();
        let copy = tempfile::tempdir().expect("a folder");
        copy_folder(&runs, copy.path());
        let Self {
            event_loop,
            tokio,
            data,
            root,
            ..
        } = self;
        drop((event_loop, tokio));
        std::fs::remove_dir_all(&runs).expect("removed");
        copy_folder(copy.path(), &runs);
        let place = OpenedItem::Workspace(workspace);
        let mut next = Self::on(place, size, None, (env, data, root), Vec::new());
        next.settle();
        next
    }

    /// Returns the time of the fake clock.
    pub(crate) fn clock_now(&self) -> Millis {
        self.clock.now()
    }

    /// Returns the exit code, if the program ended.
    pub(crate) fn end(&self) -> Option<u8> {
        self.event_loop.exit_code()
    }

    /// Closes the workbench and returns the exit summary.
    pub(crate) fn close(self) -> String {
        let Self {
            event_loop: app,
            clock,
            tokio,
            data: _data,
            ..
        } = self;
        tokio.block_on(async {
            let real = SystemClock::new();
            let mut closing = Box::pin(app.shut_down());
            loop {
                tokio::select! {
                    biased;
                    line = &mut closing => return line,
                    () = real.sleep(QUIET) => {
                        if let Some(at) = clock.next_wake() {
                            clock.advance(at.since(clock.now()));
                        }
                    }
                }
            }
        })
    }
}

/// Converts a buffer to text.
pub(crate) fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in buffer.area.rows() {
        let mut row = String::new();
        let mut skip = 0;
        for at in y.columns() {
            let symbol = buffer[(at.x, at.y)].symbol();
            if skip == 0 {
                row.push_str(symbol);
            }
            skip = symbol.width().max(skip).saturating_sub(1);
        }
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}
