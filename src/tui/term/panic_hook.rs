//! The panic hook: prints a panic that ends the program on the normal screen, and sends a panic of a task to the log.

use std::io::{self, Write as _};
use std::panic::PanicHookInfo;
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::thread::ThreadId;

use tokio::sync::mpsc::UnboundedSender;

use super::modes;
use crate::model::make_visible;
use crate::tui::msg::Msg;
use crate::workspace::variables;

static HOOK_INSTALLED: Once = Once::new();
static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();
static PANIC_SENDER: Mutex<Option<UnboundedSender<Msg>>> = Mutex::new(None);

/// Installs the hook. A panic of this thread restores the terminal before it prints. A panic of another thread
/// becomes a message while the workbench is open, and its task reports the failure to the waiting caller.
pub(super) fn install_hook(sender: UnboundedSender<Msg>) {
    // A poisoned lock is usable: the sender is replaced as a whole.
    *PANIC_SENDER.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
    MAIN_THREAD.get_or_init(|| std::thread::current().id());
    HOOK_INSTALLED.call_once(|| std::panic::set_hook(Box::new(on_panic)));
}

fn on_panic(info: &PanicHookInfo<'_>) {
    let text = format_panic(info);
    let main = MAIN_THREAD.get() == Some(&std::thread::current().id());
    // Printing on the alternate screen would destroy it and then disappear with it, so the log gets the message.
    if !main && modes::is_taken() {
        // The lock is held only for the send, which never blocks.
        let to = PANIC_SENDER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(to) = to.as_ref()
            && to.send(Msg::WorkerPanicked(text.clone())).is_ok()
        {
            return;
        }
    }
    // After this panic the program ends, so its message must be on the normal screen.
    if main {
        modes::restore_terminal();
    }
    let mut err = io::stderr().lock();
    let _gone = writeln!(err, "dicta: {text}");
    if std::env::var_os(variables::RUST_BACKTRACE).is_some() {
        let _gone = writeln!(err, "{}", std::backtrace::Backtrace::force_capture());
    }
}

fn format_panic(info: &PanicHookInfo<'_>) -> String {
    let what = info.payload_as_str().unwrap_or("no message");
    let place = info.location().map_or_else(String::new, |at| {
        format!(" ({}:{}:{})", at.file(), at.line(), at.column())
    });
    // A panic message may contain text of a model or a file.
    make_visible(&format!("a bug in dicta: {what}{place}"), false).into_owned()
}
