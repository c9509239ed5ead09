//! Highlights a unified diff. The role of a line depends on its first byte and on the remaining lines of its hunk.

use super::{MAX_LINE_BYTES, StyledSpan, split_lines, strip_line_break};
use crate::theme::Role;

/// The numbers of remaining lines of a hunk, in the old and the new text.
#[derive(Clone, Copy, Default)]
struct HunkLines {
    old: u64,
    new: u64,
}

pub(super) fn highlight_diff(text: &str) -> Vec<StyledSpan> {
    let mut spans = Vec::new();
    let mut left = HunkLines::default();
    for (start, line) in split_lines(text) {
        let line = strip_line_break(line);
        let role = line_role(line, &mut left);
        // A long line stays plain, but it still counts as a line of its hunk.
        if let Some(role) = role
            && (1..=MAX_LINE_BYTES).contains(&line.len())
        {
            spans.push(StyledSpan::new(start..start + line.len(), role));
        }
    }
    spans
}

/// Returns the role of a line. A removed line `-- x` reads `--- x`, like the header of a file; only the hunk's count
/// distinguishes them.
fn line_role(line: &str, left: &mut HunkLines) -> Option<Role> {
    // Outside of a hunk, a line can be a header.
    if left.old == 0 && left.new == 0 {
        if let Some(hunk) = parse_hunk_counts(line) {
            *left = hunk;
            return Some(Role::Hunk);
        }
        let headers = ["--- ", "+++ ", "diff ", "index ", "Index: "];
        if headers.iter().any(|header| line.starts_with(header)) {
            return Some(Role::CodeHeading);
        }
    }
    match line.as_bytes().first() {
        Some(b'+') => {
            left.new = left.new.saturating_sub(1);
            Some(Role::Added)
        }
        Some(b'-') => {
            left.old = left.old.saturating_sub(1);
            Some(Role::Removed)
        }
        // This is the remark that a file has no line end. It counts in neither text.
        Some(b'\\') => Some(Role::Muted),
        Some(b'@') if line.starts_with("@@") => {
            // A hunk header before the announced end: the previous count was wrong, so start again.
            *left = parse_hunk_counts(line).unwrap_or_default();
            Some(Role::Hunk)
        }
        _ => {
            // A context line counts in both texts.
            *left = HunkLines {
                old: left.old.saturating_sub(1),
                new: left.new.saturating_sub(1),
            };
            None
        }
    }
}

/// Parses a hunk header: 7 and 8 for `@@ -1,7 +1,8 @@`.
fn parse_hunk_counts(line: &str) -> Option<HunkLines> {
    let mut parts = line.strip_prefix("@@ -")?.split(' ');
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        // A header without a count, such as `@@ -1 +1 @@`, means one line.
        None => Some(1),
    };
    let old = count(parts.next()?)?;
    let new = count(parts.next()?.strip_prefix('+')?)?;
    Some(HunkLines { old, new })
}
