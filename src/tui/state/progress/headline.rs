//! The sentence at the top of the progress screen: whether the newest state agrees with more labels than the reference.
//!
//! Responsible for its words and its rows. A screen that is too narrow for the sentence shows it in several rows, or a
//! shorter one, so that the interval is never cut.

use unicode_width::UnicodeWidthStr as _;

use super::{HistoryLoading, ProgressScreen, format_agreement};
use crate::model::pluralize;
use crate::report::{describe_progress, describe_progress_briefly, wrap_line};

/// The badge before the sentence.
pub(crate) const HEADLINE_BADGE: &str = " progress ";
/// The narrowest row, in columns, with the badge.
const MIN_BADGE_WIDTH: u16 = 60;
/// The smallest height of the screen, in rows, with three rows for the sentence.
const MIN_HIGH_HEIGHT: u16 = 18;

/// The columns of a row of the sentence: of the badge at the left, and of the chosen eval at the right.
pub(crate) fn headline_ends(width: u16, eval: &str) -> (u16, u16) {
    let badge = u16::try_from(HEADLINE_BADGE.len()).unwrap_or(0) + 1;
    let badge = if width < MIN_BADGE_WIDTH { 0 } else { badge };
    let eval = u16::try_from(eval.width()).unwrap_or(u16::MAX);
    // A long name leaves room for the sentence.
    (badge, eval.min(width / 3 + 1))
}

impl ProgressScreen {
    /// Returns the title of the chosen eval, at the right of the sentence.
    pub(crate) fn eval_title(&self) -> String {
        match &self.eval {
            Some(eval) => format!("eval {} ", eval.eval),
            None => "all evals ".to_owned(),
        }
    }

    /// Returns the rows of the sentence for a screen of this size, or those of a shorter sentence if they are too many.
    pub(crate) fn headline_rows(&self, width: u16, height: u16) -> Vec<String> {
        let most = if height < MIN_HIGH_HEIGHT { 2 } else { 3 };
        let (badge, eval) = headline_ends(width, &self.eval_title());
        // One column stays free before the eval.
        let room = usize::from(width.saturating_sub(eval + 1));
        let wrap = |text: &str| -> Vec<String> {
            let text = wrap_line(text, usize::from(badge.max(1)), 1, room);
            text.lines()
                .map(|row| row.trim_start().to_owned())
                .collect()
        };
        let rows = wrap(&self.headline());
        let rows = match self.brief_headline() {
            Some(brief) if rows.len() > most => wrap(&brief),
            _ => rows,
        };
        // The last row ends with an ellipsis if the rest does not fit.
        let (shown, rest) = rows.split_at(rows.len().min(most));
        let mut shown = shown.to_vec();
        if let Some(last) = shown.last_mut().filter(|_| !rest.is_empty()) {
            *last = format!("{last} {}", rest.join(" "));
        }
        shown
    }

    /// Returns a shorter sentence with the same figures; `None` if the sentence has no figures.
    fn brief_headline(&self) -> Option<String> {
        let newest = self.view.newest()?.number;
        self.counts(newest)?;
        let reference = self.reference_entry()?;
        let since = format!("state {reference}");
        describe_progress_briefly(self.progress_since(reference)?, &since)
    }

    fn name_reference(&self, reference: usize) -> String {
        let name = if self.view.baseline == Some(reference) {
            "the baseline, state"
        } else {
            "state"
        };
        format!("{name} {reference}")
    }

    /// Returns the sentence at the top: whether the newest state agrees with more labels than the reference.
    pub(crate) fn headline(&self) -> String {
        let Some(newest) = self.view.newest() else {
            return match &self.loading {
                HistoryLoading::Failed(why) => format!("the history cannot be read: {why}"),
                HistoryLoading::Read => {
                    "no run yet: each edit that is judged becomes a row".to_owned()
                }
                _ => "reading the history".to_owned(),
            };
        };
        if !self.is_counted(newest.number) {
            return "counting the agreement with your labels".to_owned();
        }
        let Some(now) = self.counts(newest.number) else {
            return "the newest state has no such eval".to_owned();
        };
        let waiting = now.agreement.to_confirm;
        if now.agreement.total() == 0 && waiting > 0 {
            let labels = pluralize(waiting, "label");
            let (are, them) = if waiting == 1 {
                ("is", "it")
            } else {
                ("are", "them")
            };
            return format!(
                "{labels} {are} of the question before the edit: a in the cells confirms {them}, Q lists {them}"
            );
        }
        if now.agreement.total() == 0 {
            return "no labelled verdict yet: p, f and u in the cells label, and this screen counts the agreement".to_owned();
        }
        let Some(reference) = self.reference_entry() else {
            return format!(
                "{} agree in the first labelled state",
                format_agreement(&now.agreement)
            );
        };
        let before = self.counts(reference).map(|counts| counts.agreement);
        let since = self.name_reference(reference);
        if let Some(progress) = self
            .progress_since(reference)
            .and_then(|figures| describe_progress(figures, &since))
        {
            return progress;
        }
        // Both counts are about other labels, so no arrow joins them.
        format!(
            "{} agree now; {since} agrees with {} of other labels",
            format_agreement(&now.agreement),
            format_agreement(&before.unwrap_or_default())
        )
    }
}
