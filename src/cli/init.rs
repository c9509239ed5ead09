//! `dicta init`: a starter workspace.

use std::path::Path;

use super::Cx;
use super::trouble::Trouble;
use crate::workspace;

/// Makes it and says what to do next.
pub(super) fn init(dir: &Path, cx: &Cx) -> Result<u8, Trouble> {
    let made = workspace::init(dir).map_err(Trouble::usage)?;
    let mut out = String::new();
    for path in &made {
        out.push_str(&format!("made {}\n", path.display()));
    }
    let at = if dir == Path::new(".") { String::new() } else { format!("cd {} && ", dir.display()) };
    out.push_str(&format!("next: {at}dicta run\n"));
    cx.streams.print(&out);
    Ok(0)
}
