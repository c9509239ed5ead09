//! `dicta check` on the notes and modes of a review, with or without a workspace.

use super::check_report::CheckReport;
use super::error::CommandError;
use crate::model::pluralize;
use crate::review::{ReviewFilesCheck, ReviewPlace, check_review_files};

/// Checks the notes and modes of a review and reports their problems.
pub(super) fn check_notes(
    place: &ReviewPlace,
    report: &mut CheckReport<'_>,
) -> Result<ReviewFilesCheck, CommandError> {
    let review = check_review_files(place)
        .map_err(|error| CommandError::usage(error.to_string()))?
        .unwrap_or_default();
    report.diagnose(&review.problems);
    report.diagnose(&review.stale);
    for (name, number) in [
        ("notes", review.notes),
        ("stale_notes", review.stale.len()),
        ("modes", review.modes),
    ] {
        report.count(name, number);
    }
    Ok(review)
}

/// Formats the numbers of notes and modes as a line; empty without any.
pub(super) fn format_notes(review: &ReviewFilesCheck) -> String {
    if review.notes + review.modes == 0 {
        return String::new();
    }
    format!(
        "{}, {} with a changed transcript, {}\n",
        pluralize(review.notes as u64, "note"),
        review.stale.len(),
        pluralize(review.modes as u64, "mode")
    )
}
