//! What a panic says, and where: on the normal screen if it ends the program, in the log if a task of ours had it.

use std::io::{self, Write as _};
use std::panic::PanicHookInfo;
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::thread::ThreadId;

use tokio::sync::mpsc::UnboundedSender;

use super::modes;
use crate::model::make_visible;
use crate::tui::msg::Msg;

static HOOK_INSTALLED: Once = Once::new();
static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();
static PANIC_SENDER: Mutex<Option<UnboundedSender<Msg>>> = Mutex::new(None);

/// From now on: a panic of this thread gives the terminal back before it says anything; one of another thread, while the
/// screen is up, becomes a message, and whoever waits for that thread's answer is told by its task.
pub(super) fn install_hook(to: UnboundedSender<Msg>) {
    *PANIC_SENDER.lock().unwrap_or_else(PoisonError::into_inner) = Some(to);
    MAIN_THREAD.get_or_init(|| std::thread::current().id());
    HOOK_INSTALLED.call_once(|| std::panic::set_hook(Box::new(on_panic)));
}

fn on_panic(info: &PanicHookInfo<'_>) {
    let text = format_panic(info);
    let main = MAIN_THREAD.get() == Some(&std::thread::current().id());
    if !main && modes::is_taken() {
        let to = PANIC_SENDER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(to) = to.as_ref()
            && to.send(Msg::WorkerPanicked(text.clone())).is_ok()
        {
            return;
        }
    }
    if main {
        modes::restore_terminal();
    }
    let mut err = io::stderr().lock();
    let _gone = writeln!(err, "dicta: {text}");
    if std::env::var_os("RUST_BACKTRACE").is_some() {
        let _gone = writeln!(err, "{}", std::backtrace::Backtrace::force_capture());
    }
}

fn format_panic(info: &PanicHookInfo<'_>) -> String {
    let what = info.payload_as_str().unwrap_or("no message");
    let place = info.location().map_or_else(String::new, |at| {
        format!(" ({}:{}:{})", at.file(), at.line(), at.column())
    });
    make_visible(&format!("a bug in dicta: {what}{place}"), false).into_owned()
}
