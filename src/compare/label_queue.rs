//! The queues of what to label next: draws by chance, and choices by a rule.
//!
//! Responsible for the choice. `dicta label` and the workbench use the same code. Does not read or write files, and
//! does not label.

use std::collections::HashSet;

use super::statistics::{LabelDraw, draw_by_strata, draw_random, split_evenly};
use crate::model::{
    DrawStratum, LabelLookup, Outcome, RecordedDraw, ScoreBounds, UNCERTAIN_MARGIN, WallTime,
};

/// A queue of decisions to label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LabelQueue {
    /// Every decision has the same probability.
    Random,
    /// Every stratum gets the same number of draws.
    Stratified,
    /// Decisions whose verdict differs from their label, and decisions whose judges disagree.
    Disagreements,
    /// Decisions that a person could not decide, then those without a verdict, then those with a score near a bound.
    Unsure,
    /// Decisions whose repeats differ.
    Noise,
    /// Decisions with a label whose question or transcript changed.
    ToConfirm,
}

impl LabelQueue {
    /// Returns the name, such as `random`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Stratified => "stratified",
            Self::Disagreements => "disagreements",
            Self::Unsure => "unsure",
            Self::Noise => "noise",
            Self::ToConfirm => "to confirm",
        }
    }

    /// Returns the reason why a queue that a rule chooses has no decision.
    pub fn describe_empty(self) -> String {
        let why = match self {
            Self::Random | Self::Stratified => {
                return "every decision of this eval was drawn and has a label".to_owned();
            }
            Self::Disagreements => {
                "no verdict differs from its label, and no judges or repeats differ".to_owned()
            }
            Self::Unsure => format!(
                "none is labelled as unsure or lacks a verdict, and no score is within {UNCERTAIN_MARGIN} of its bound"
            ),
            Self::Noise => {
                "no repeats differ; `dicta noise SCOPE --repeat 5` repeats judge calls".to_owned()
            }
            Self::ToConfirm => "no label waits for a confirmation".to_owned(),
        };
        format!("no decision of this eval belongs to the queue: {why}")
    }

    /// Returns true if the queue is a draw by chance, so that its labels measure a population.
    pub const fn measures(self) -> bool {
        matches!(self, Self::Random | Self::Stratified)
    }
}

/// The property that the strata of a draw differ by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StratumProperty {
    /// The judge's verdict.
    Verdict,
    /// Disagreement between the cells of a decision.
    Disagreement,
    /// A tag of the transcript.
    Tag(String),
}

impl StratumProperty {
    /// Parses `verdict`, `disagreement` or `tag:NAME`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("tag:")) {
            ("verdict", _) => Ok(Self::Verdict),
            ("disagreement", _) => Ok(Self::Disagreement),
            (_, Some(tag)) if !tag.is_empty() => Ok(Self::Tag(tag.to_owned())),
            _ => Err("must be `verdict`, `disagreement` or `tag:NAME`".to_owned()),
        }
    }

    /// Returns the name in the file of draws.
    pub fn name(&self) -> String {
        match self {
            Self::Verdict => "verdict".to_owned(),
            Self::Disagreement => "disagreement".to_owned(),
            Self::Tag(tag) => format!("tag:{tag}"),
        }
    }

    /// Returns the names of the strata, by their numbers.
    fn strata(&self) -> Vec<String> {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        match self {
            Self::Verdict => texts(&["verdict pass", "verdict fail", "no verdict"]),
            Self::Disagreement => texts(&["judges disagree", "judges agree"]),
            Self::Tag(tag) => vec![format!("tag {tag}"), format!("without tag {tag}")],
        }
    }

    fn stratum_of(&self, item: &QueueItem) -> u32 {
        match self {
            Self::Verdict => match item.outcome.and_then(Outcome::passed) {
                Some(true) => 0,
                Some(false) => 1,
                None => 2,
            },
            Self::Disagreement => u32::from(!(item.judges_differ || item.repeats_differ)),
            Self::Tag(_) => u32::from(!item.has_tag),
        }
    }
}

/// The differences between the verdicts of a decision's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VerdictDifferences {
    /// True if the members of a panel differ.
    pub between_judges: bool,
    /// True if repeats of one judge differ.
    pub between_repeats: bool,
}

impl VerdictDifferences {
    /// Compares the verdicts of cells, each with its judge.
    pub fn of(verdicts: &[(Option<u32>, bool)]) -> Self {
        let mut found = Self::default();
        for (at, (judge, passed)) in verdicts.iter().enumerate() {
            for (other, _) in verdicts[..at].iter().filter(|(_, other)| other != passed) {
                found.between_repeats |= other == judge;
                found.between_judges |= other != judge;
            }
        }
        found
    }
}

/// The label of a decision, as far as queues need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum QueueLabel {
    /// The decision has no label.
    #[default]
    Unlabelled,
    /// The label counts: pass, fail, or `None` for unsure.
    Counted(Option<bool>),
    /// The label waits for a confirmation.
    ToConfirm,
    /// The label answers the question and is sealed, so its answer is unknown here.
    Sealed,
}

impl QueueLabel {
    /// Returns the label of a lookup. A queue depends on the existence of a sealed label and never on its answer.
    pub fn from_lookup(found: LabelLookup<'_>) -> Self {
        match found {
            LabelLookup::Counted(label) => Self::Counted(label.passed),
            // A shot has a label already, so no queue offers it.
            LabelLookup::Shot(label) => Self::Counted(label.passed),
            LabelLookup::ToConfirm(..) | LabelLookup::Sealed { to_confirm: true } => {
                Self::ToConfirm
            }
            LabelLookup::Sealed { to_confirm: false } => Self::Sealed,
            LabelLookup::Unlabelled => Self::Unlabelled,
        }
    }
}

/// A decision that can be labelled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueItem {
    /// The id of the transcript.
    pub transcript: String,
    /// The outcome; `None` before the first verdict.
    pub outcome: Option<Outcome>,
    /// The score.
    pub score: Option<f64>,
    /// True if the members of a panel give different verdicts.
    pub judges_differ: bool,
    /// True if repeats of one judge give different verdicts.
    pub repeats_differ: bool,
    /// True if repeats of `dicta noise` show that a judge contradicts itself here. The decision may have one verdict.
    pub is_noisy: bool,
    /// The label.
    pub label: QueueLabel,
    /// True if the transcript has the tag of [`StratumProperty::Tag`].
    pub has_tag: bool,
    /// True if the transcript belongs to the sealed part.
    pub is_hidden: bool,
}

/// The decisions of one eval that can be labelled, in the order of the plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueEval {
    /// The id of the rubric.
    pub rubric: String,
    /// The id of the eval.
    pub eval: String,
    /// The bounds of its scores.
    pub bounds: ScoreBounds,
    /// The decisions on whole transcripts. A label is about a whole transcript.
    pub items: Vec<QueueItem>,
}

/// A draw to make.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawRequest {
    /// The property of the strata; `None` draws at random.
    pub by: Option<StratumProperty>,
    /// The number of decisions.
    pub quota: DrawQuota,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The time of the draw.
    pub at: WallTime,
    /// True to draw only from the part that is not sealed: sealed labels narrow no visible interval.
    pub excludes_hidden: bool,
}

/// The number of decisions of a draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrawQuota {
    /// In all; every stratum gets the same share.
    Total(usize),
    /// By the number of the stratum.
    ByStratum(Vec<usize>),
}

impl QueueEval {
    /// Returns, for each decision, whether a draw may choose it: no earlier draw led to a label of it.
    pub fn eligible(&self, draws: &[RecordedDraw]) -> Vec<bool> {
        let chosen: HashSet<&str> = self
            .own_draws(draws)
            .flat_map(|draw| draw.drawn.iter().map(String::as_str))
            .collect();
        let is_done = |item: &QueueItem| {
            chosen.contains(item.transcript.as_str())
                && matches!(item.label, QueueLabel::Counted(_) | QueueLabel::Sealed)
        };
        self.items.iter().map(|item| !is_done(item)).collect()
    }

    /// Returns [`Self::eligible`] without the transcripts of the sealed part.
    pub fn eligible_and_visible(&self, draws: &[RecordedDraw]) -> Vec<bool> {
        let places = self.eligible(draws).into_iter().zip(&self.items);
        places
            .map(|(eligible, item)| eligible && !item.is_hidden)
            .collect()
    }

    /// Returns the transcripts that no earlier draw of the eval knew; empty for the first draw.
    fn list_arrived(&self, draws: &[RecordedDraw]) -> Vec<String> {
        let known = RecordedDraw::number_arrivals(self.own_draws(draws));
        if known.is_empty() {
            return Vec::new();
        }
        let ids = self.items.iter().map(|item| &item.transcript);
        let arrived = ids.filter(|id| !known.contains_key(id.as_str()));
        arrived.cloned().collect()
    }

    /// Returns the draws of this eval, oldest first.
    pub fn own_draws<'d>(
        &self,
        draws: &'d [RecordedDraw],
    ) -> impl Iterator<Item = &'d RecordedDraw> + use<'d, '_> {
        draws
            .iter()
            .filter(|draw| draw.rubric == self.rubric && draw.eval == self.eval)
    }

    /// Draws by chance. Returns the record of the draw; `None` if nothing is left to draw.
    pub fn draw(&self, request: &DrawRequest, draws: &[RecordedDraw]) -> Option<RecordedDraw> {
        let eligible = if request.excludes_hidden {
            self.eligible_and_visible(draws)
        } else {
            self.eligible(draws)
        };
        let (strata, names) = match &request.by {
            None => (vec![0; self.items.len()], vec!["all".to_owned()]),
            Some(by) => {
                let strata = self.items.iter().map(|item| by.stratum_of(item));
                (strata.collect(), by.strata())
            }
        };
        let draw = match (&request.by, &request.quota) {
            (None, DrawQuota::Total(size)) => draw_random(&eligible, *size, request.seed),
            (_, DrawQuota::Total(size)) => {
                let sizes = count_strata(&strata, &eligible, names.len());
                let quotas = split_evenly(*size, &sizes);
                draw_by_strata(&strata, &eligible, &quotas, request.seed)
            }
            (_, DrawQuota::ByStratum(quotas)) => {
                draw_by_strata(&strata, &eligible, quotas, request.seed)
            }
        };
        let mut recorded = self.record(&draw, request, (&strata, &names), &eligible)?;
        recorded.arrived = self.list_arrived(draws);
        Some(recorded)
    }

    fn record(
        &self,
        draw: &LabelDraw,
        request: &DrawRequest,
        (strata, names): (&[u32], &[String]),
        eligible: &[bool],
    ) -> Option<RecordedDraw> {
        let ids = || self.items.iter().map(|item| &item.transcript);
        let drawn: Vec<String> = draw
            .items
            .iter()
            .map(|one| self.items[one.item].transcript.clone())
            .collect();
        if drawn.is_empty() {
            return None;
        }
        let members = |number: u32| {
            let places = strata.iter().zip(eligible).zip(ids());
            let members =
                places.filter(|((stratum, eligible), _)| **stratum == number && **eligible);
            members.map(|(_, id)| id.clone()).collect()
        };
        Some(RecordedDraw {
            rubric: self.rubric.clone(),
            eval: self.eval.clone(),
            plan: draw.plan.as_str().to_owned(),
            by: request.by.as_ref().map(StratumProperty::name),
            seed: draw.seed,
            at: request.at.clone(),
            population: RecordedDraw::digest_population(ids().map(String::as_str)),
            strata: (0..)
                .zip(names)
                .map(|(number, name)| DrawStratum {
                    name: name.clone(),
                    members: members(number),
                })
                .filter(|stratum| !stratum.members.is_empty())
                .collect(),
            drawn,
            arrived: Vec::new(),
        })
    }

    /// Returns the positions of the decisions that a rule chooses, the most useful first. Their labels measure nothing.
    /// Labels that wait for a confirmation are only in their own queue.
    pub fn choose(&self, queue: LabelQueue, size: usize) -> Vec<usize> {
        let ranked = self.items.iter().enumerate();
        let mut ranked: Vec<(f64, usize)> = ranked
            .filter_map(|(at, item)| Some((self.rank(queue, item)?, at)))
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        ranked.into_iter().take(size).map(|(_, at)| at).collect()
    }

    /// Returns the place of a decision in a queue, lower first; `None` if the queue does not have it.
    fn rank(&self, queue: LabelQueue, item: &QueueItem) -> Option<f64> {
        let is_unlabelled = item.label == QueueLabel::Unlabelled;
        match queue {
            LabelQueue::Random | LabelQueue::Stratified => None,
            LabelQueue::Disagreements => {
                let verdict = item.outcome.and_then(Outcome::passed);
                let is_wrong = match (item.label, verdict) {
                    (QueueLabel::Counted(Some(label)), Some(verdict)) => label != verdict,
                    _ => false,
                };
                let differs = item.judges_differ || item.repeats_differ;
                // A disagreement with a person comes first.
                match (is_wrong, differs && is_unlabelled) {
                    (true, _) => Some(0.0),
                    (false, true) => Some(1.0),
                    (false, false) => None,
                }
            }
            LabelQueue::Noise => {
                let is_noisy = item.repeats_differ || item.is_noisy;
                (is_noisy && is_unlabelled).then_some(0.0)
            }
            LabelQueue::Unsure => match item.label {
                QueueLabel::Counted(None) => Some(-1.0),
                QueueLabel::Unlabelled => rank_by_doubt(item, self.bounds),
                QueueLabel::Counted(Some(_)) | QueueLabel::ToConfirm | QueueLabel::Sealed => None,
            },
            LabelQueue::ToConfirm => (item.label == QueueLabel::ToConfirm).then_some(0.0),
        }
    }
}

/// Returns the distance of an uncertain score from the nearest bound; `None` for a score that is certain. Decisions
/// without a verdict come first.
fn rank_by_doubt(item: &QueueItem, bounds: ScoreBounds) -> Option<f64> {
    if item.outcome.is_some_and(Outcome::is_error) {
        return Some(-0.5);
    }
    let score = item.score?;
    bounds
        .is_uncertain(score, UNCERTAIN_MARGIN)
        .then(|| bounds.distance_to_boundary(score))
}

fn count_strata(strata: &[u32], eligible: &[bool], count: usize) -> Vec<usize> {
    let mut sizes = vec![0; count];
    let places = strata.iter().zip(eligible);
    for (stratum, _) in places.filter(|(_, eligible)| **eligible) {
        if let Some(size) = sizes.get_mut(*stratum as usize) {
            *size += 1;
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, outcome: Outcome, score: f64, label: QueueLabel) -> QueueItem {
        QueueItem {
            transcript: id.to_owned(),
            outcome: Some(outcome),
            score: Some(score),
            label,
            ..QueueItem::default()
        }
    }

    fn eval() -> QueueEval {
        let unlabelled = QueueLabel::Unlabelled;
        QueueEval {
            rubric: "r".to_owned(),
            eval: "e".to_owned(),
            bounds: ScoreBounds {
                min: Some(0.7),
                ..ScoreBounds::default()
            },
            items: vec![
                item("sure", Outcome::Pass, 0.99, unlabelled),
                item("near", Outcome::Pass, 0.71, unlabelled),
                item("wrong", Outcome::Fail, 0.2, QueueLabel::Counted(Some(true))),
                item("unsure", Outcome::Fail, 0.1, QueueLabel::Counted(None)),
                item("old", Outcome::Fail, 0.6, QueueLabel::ToConfirm),
                QueueItem {
                    repeats_differ: true,
                    ..item("noisy", Outcome::Pass, 0.9, unlabelled)
                },
                QueueItem {
                    is_noisy: true,
                    ..item("repeated", Outcome::Pass, 0.95, unlabelled)
                },
                QueueItem {
                    judges_differ: true,
                    ..item("torn", Outcome::Pass, 0.8, unlabelled)
                },
            ],
        }
    }

    fn names(queue: LabelQueue) -> Vec<String> {
        let eval = eval();
        let chosen = eval.choose(queue, 10);
        let names = chosen.iter().map(|at| eval.items[*at].transcript.clone());
        names.collect()
    }

    fn request(by: Option<StratumProperty>, size: usize) -> DrawRequest {
        DrawRequest {
            by,
            quota: DrawQuota::Total(size),
            seed: 7,
            at: WallTime("2026-01-01T00:00:00Z".to_owned()),
            excludes_hidden: false,
        }
    }

    #[test]
    fn each_queue_has_its_own_decisions_and_no_other_has_those_to_confirm() {
        assert_eq!(names(LabelQueue::Disagreements), ["wrong", "noisy", "torn"]);
        assert_eq!(
            names(LabelQueue::Unsure),
            ["unsure", "near", "torn"],
            "the least certain first, and none that is certain"
        );
        assert_eq!(names(LabelQueue::Noise), ["noisy", "repeated"]);
        assert_eq!(names(LabelQueue::ToConfirm), ["old"]);
        assert_eq!(names(LabelQueue::Random), [""; 0]);
    }

    #[test]
    fn unsure_decisions_are_near_a_bound_or_the_middle_or_have_no_verdict() {
        let at = |score: f64| {
            item(
                &score.to_string(),
                Outcome::Pass,
                score,
                QueueLabel::Unlabelled,
            )
        };
        let scores = [0.0, 0.34, 0.36, 0.5, 0.55, 0.65, 0.9, 1.0];
        let chosen = |bounds| {
            let mut items: Vec<QueueItem> = scores.into_iter().map(at).collect();
            items.push(QueueItem {
                outcome: Some(Outcome::Timeout),
                ..QueueItem::default()
            });
            items.push(QueueItem {
                outcome: Some(Outcome::Pass),
                ..QueueItem::default()
            });
            let eval = QueueEval {
                bounds,
                items,
                ..QueueEval::default()
            };
            eval.choose(LabelQueue::Unsure, 10)
        };
        // The timeout is first. Then without a bound, the middle counts; 0.65 is just outside of the margin.
        assert_eq!(chosen(ScoreBounds::default()), [8, 3, 4, 2]);
        let both = ScoreBounds {
            min: Some(0.3),
            max: Some(0.95),
        };
        assert_eq!(chosen(both), [8, 1, 6, 7, 2]);
    }

    #[test]
    fn draw_by_verdict_takes_the_same_number_of_each_stratum_and_records_all_members() {
        let eval = eval();
        let draw = eval
            .draw(&request(Some(StratumProperty::Verdict), 4), &[])
            .expect("a draw");
        assert_eq!(
            (draw.plan.as_str(), draw.by.as_deref()),
            ("stratified", Some("verdict"))
        );
        let sizes: Vec<usize> = draw.strata.iter().map(|one| one.members.len()).collect();
        assert_eq!((draw.drawn.len(), sizes), (4, vec![5, 3]));
        for id in &draw.drawn {
            let found = draw.probability(id).expect("drawn");
            let expected = if found.stratum == "verdict pass" {
                0.4
            } else {
                2.0 / 3.0
            };
            assert!((found.p - expected).abs() < 1e-9, "{found:?}");
        }
    }

    #[test]
    fn drawn_decision_with_a_label_is_not_drawn_again() {
        let eval = eval();
        let first = eval.draw(&request(None, 8), &[]).expect("a draw");
        let again = eval.draw(&request(None, 8), &[first]).expect("a draw");
        // A label to confirm does not count, so its decision can be drawn again.
        let mut ids = again.drawn;
        ids.sort();
        assert_eq!(ids, ["near", "noisy", "old", "repeated", "sure", "torn"]);
    }

    #[test]
    fn nothing_left_to_draw_gives_no_draw() {
        let labelled = QueueLabel::Counted(Some(true));
        let eval = QueueEval {
            items: vec![item("a", Outcome::Pass, 0.9, labelled)],
            ..eval()
        };
        let first = eval.draw(&request(None, 1), &[]).expect("a draw");
        assert_eq!(eval.draw(&request(None, 1), &[first]), None);
    }

    #[test]
    fn strata_of_a_tag_are_those_with_it_and_the_others() {
        let mut eval = eval();
        eval.items[0].has_tag = true;
        let by = StratumProperty::parse("tag:vip").expect("a property");
        let draw = eval.draw(&request(Some(by), 2), &[]).expect("a draw");
        assert!(draw.drawn.contains(&"sure".to_owned()), "{draw:?}");
        assert_eq!(draw.strata[0].name, "tag vip");
        assert!(StratumProperty::parse("tag:").is_err());
    }
}
