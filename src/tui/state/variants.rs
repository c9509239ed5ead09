//! The variants screen: the variants of the workspace's files with their figures.
//!
//! Responsible for the state of the screen and for its texts. The runtime reads files and recorded verdicts.

use std::path::PathBuf;

use crate::compare::{VariantFigures, VariantTable};
use crate::model::{format_usd, make_visible, pluralize};
use crate::report::format_p_value;
use crate::run::{PaidCalls, PreparedVariant};
use crate::theme::Role;
use crate::tui::history_view::Shared;
use crate::tui::widget::flow::{ScrollState, TextBlock};
use crate::workspace::rubric_write::RubricFileChange;

/// The variants screen.
#[derive(Debug, Clone)]
pub(crate) struct VariantsScreen {
    /// The number of the listing that the screen waits for or shows.
    pub(crate) number: u64,
    /// The variants; `None` while they are read. The error is a sentence.
    pub(crate) listing: Option<Result<Shared<VariantListing>, String>>,
    /// The variants that are read so far; `None` before the first one.
    pub(crate) read: Option<VariantsRead>,
    /// The position of the selected variant.
    pub(crate) selected: usize,
    /// True if the diff of the selected variant is shown.
    pub(crate) shows_diff: bool,
    /// True if the screen asks whether to judge the selected variant.
    pub(crate) asks_to_judge: bool,
    /// True while the selected variant is judged.
    pub(crate) is_judging: bool,
    pub(crate) scroll: ScrollState,
}

/// The number of variants of a file that are read so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariantsRead {
    /// The file, relative to the workspace.
    pub(crate) file: PathBuf,
    pub(crate) read: usize,
    pub(crate) all: usize,
}

impl VariantsRead {
    fn describe(&self) -> String {
        let file = self.file.display().to_string();
        format!(
            "reading the recorded verdicts of {}: variant {} of {}",
            make_visible(&file, false),
            self.read + 1,
            self.all
        )
    }
}

/// The variants of all files, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct VariantListing {
    pub(crate) variants: Vec<ListedVariant>,
    /// The problems of files, one sentence each.
    pub(crate) problems: Vec<String>,
}

/// A variant with its figures.
#[derive(Clone)]
pub(crate) struct ListedVariant {
    /// The file, relative to the workspace.
    pub(crate) file: PathBuf,
    /// The eval: `rubric/eval`.
    pub(crate) eval: String,
    /// The number of dev labels.
    pub(crate) labels: u64,
    pub(crate) figures: VariantFigures,
    /// The warning about the best variant of the file, if this is the last variant of the file.
    pub(crate) warning: Option<String>,
    /// The diff of the rubric; empty if the variant changes nothing.
    pub(crate) diff: String,
    /// The change of the rubric; `None` if the variant changes nothing.
    pub(crate) change: Option<RubricFileChange>,
    /// The calls that judge what is missing.
    pub(crate) calls: PaidCalls,
    /// The run on the dev labels.
    pub(crate) prepared: PreparedVariant,
}

impl std::fmt::Debug for ListedVariant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The options of a run have no debug form.
        f.debug_struct("ListedVariant")
            .field("eval", &self.eval)
            .field("figures", &self.figures)
            .finish_non_exhaustive()
    }
}

impl VariantsScreen {
    /// Creates the screen, which waits for a listing.
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            listing: None,
            read: None,
            selected: 0,
            shows_diff: false,
            asks_to_judge: false,
            is_judging: false,
            scroll: ScrollState::top(),
        }
    }

    /// Returns the selected variant.
    pub(crate) fn selected(&self) -> Option<&ListedVariant> {
        let listing = self.listing.as_ref()?.as_ref().ok()?;
        listing.variants.get(self.selected)
    }

    /// Returns the number of variants.
    pub(crate) fn count(&self) -> usize {
        let listing = self
            .listing
            .as_ref()
            .and_then(|listing| listing.as_ref().ok());
        listing.map_or(0, |listing| listing.variants.len())
    }

    /// Returns the title.
    pub(crate) fn title(&self) -> String {
        match self.selected().filter(|_| self.shows_diff) {
            Some(one) => format!("variant {}", make_visible(&one.figures.name, false)),
            None => "variants on dev".to_owned(),
        }
    }

    /// Returns the keys for the border.
    pub(crate) fn keys_text(&self) -> &'static str {
        if self.asks_to_judge {
            "Y judges it  n, esc cancels"
        } else if self.shows_diff {
            "t takes it  enter back  esc closes"
        } else {
            "j, k  enter diff  r judges it  t takes it  esc closes"
        }
    }

    /// Returns the text of the screen.
    pub(crate) fn to_blocks(&self) -> Vec<TextBlock<'static>> {
        let muted = |text: String| TextBlock::new(text, Role::Muted);
        let listing = match &self.listing {
            None => {
                let text = match &self.read {
                    Some(read) => read.describe(),
                    None => "reading the files of variants".to_owned(),
                };
                return vec![muted(text)];
            }
            Some(Err(why)) => {
                return vec![TextBlock::new(
                    make_visible(why, false).into_owned(),
                    Role::Error,
                )];
            }
            Some(Ok(listing)) => listing,
        };
        if let Some(one) = self.selected().filter(|_| self.asks_to_judge) {
            return vec![
                TextBlock::new(one.calls.describe("cell"), Role::Warning),
                muted("These calls cost money, or may.".to_owned()),
            ];
        }
        if let Some(one) = self.selected().filter(|_| self.shows_diff) {
            return diff_blocks(&one.diff);
        }
        let mut blocks = Vec::new();
        if listing.variants.is_empty() {
            blocks.push(muted(
                "no file of variants: write `variants.yaml` with `eval` and `variants` into the folder of the workspace"
                    .to_owned(),
            ));
        }
        for (at, one) in listing.variants.iter().enumerate() {
            let is_first = at == 0 || listing.variants[at - 1].file != one.file;
            if is_first {
                let file = one.file.to_string_lossy();
                blocks.push(TextBlock::new(
                    format!(
                        "{}: {} on {}",
                        make_visible(&file, false),
                        make_visible(&one.eval, false),
                        pluralize(one.labels, "dev label")
                    ),
                    Role::Title,
                ));
            }
            let is_selected = at == self.selected;
            let (lead, role) = if is_selected {
                ("▸ ", Role::Selected)
            } else {
                ("  ", Role::Text)
            };
            blocks.push(TextBlock {
                lead: lead.into(),
                indent: 4,
                ..TextBlock::new(describe_agreement(&one.figures), role)
            });
            blocks.push(TextBlock {
                lead: "    ".into(),
                indent: 6,
                ..TextBlock::new(describe_calls(&one.figures), Role::Muted)
            });
            if is_selected && self.is_judging {
                blocks.push(muted("    is being judged".to_owned()));
            }
            if let Some(warning) = &one.warning {
                blocks.push(TextBlock::new(warning.clone(), Role::Warning));
            }
        }
        if listing
            .variants
            .iter()
            .any(|one| one.figures.paired.is_some())
        {
            blocks.push(muted(
                "p is McNemar's exact test against the first variant, adjusted by Holm for all; intervals are 95% (Wilson)"
                    .to_owned(),
            ));
        }
        blocks.extend(
            listing
                .problems
                .iter()
                .map(|why| TextBlock::new(make_visible(why, false).into_owned(), Role::Error)),
        );
        blocks
    }
}

/// Describes the agreement of a variant with the labels on one line.
fn describe_agreement(figures: &VariantFigures) -> String {
    let front = match figures.on_front {
        Some(true) => "* ",
        Some(false) => "  ",
        None => "? ",
    };
    format!(
        "{front}{}  TPR {}  TNR {}  agreement {}",
        make_visible(&figures.name, false),
        figures.tpr,
        figures.tnr,
        figures.agreement
    )
}

/// Describes the rest of the figures on one line: the comparison with the first variant, self-flips, cost and latency.
fn describe_calls(figures: &VariantFigures) -> String {
    let mut parts: Vec<String> = Vec::new();
    if let Some(paired) = figures.paired.filter(|paired| paired.counts.labels() > 0) {
        parts.push(format!(
            "+{} -{} labels, p {}",
            paired.counts.gained,
            paired.counts.lost,
            format_p_value(paired.p_holm)
        ));
    }
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    parts.push(figures.self_flip.map_or_else(
        || "no repeats, so no self-flips".to_owned(),
        |flips| {
            format!(
                "self-flips {}% [{}–{}]",
                percent(flips.rate),
                percent(flips.interval.lower),
                percent(flips.interval.upper)
            )
        },
    ));
    parts.push(figures.cost_per_1000.map_or_else(
        || "cost unknown".to_owned(),
        |usd| format!("{} per 1,000", format_usd(usd)),
    ));
    parts.push(figures.median.map_or_else(
        || "latency unknown".to_owned(),
        |median| format!("median {median}"),
    ));
    if figures.without_verdict > 0 {
        parts.push(format!("{} not judged", figures.without_verdict));
    }
    parts.join("  ")
}

fn diff_blocks(diff: &str) -> Vec<TextBlock<'static>> {
    if diff.is_empty() {
        return vec![TextBlock::new("it changes nothing", Role::Muted)];
    }
    let lines = diff.lines().map(|line| {
        let role = match line.as_bytes().first() {
            Some(b'+') => Role::Towards,
            Some(b'-') => Role::Away,
            _ => Role::Text,
        };
        TextBlock::new(make_visible(line, false).into_owned(), role)
    });
    lines.collect()
}

/// Adds the figures of one file of variants.
pub(crate) fn add_table(
    listing: &mut VariantListing,
    table: VariantTable,
    mut make: impl FnMut(usize, VariantFigures) -> ListedVariant,
) {
    let warning = table.winner.as_ref().map(ToString::to_string);
    let last = table.variants.len().saturating_sub(1);
    for (at, figures) in table.variants.into_iter().enumerate() {
        let mut one = make(at, figures);
        one.warning = warning.clone().filter(|_| at == last);
        listing.variants.push(one);
    }
}
