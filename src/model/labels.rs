//! The lookup of labels: which label counts for a decision, and why another one does not.
//!
//! Every count, mark and flip direction uses this lookup, so that all of them exclude the same labels.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::{Digest, Label, LabelSplit, SplitPart, WallTime};

/// A decision whose label is looked up, with the texts that it rests on.
#[derive(Debug, Clone, Copy)]
pub struct LabelQuery<'q> {
    /// The id of the transcript.
    pub transcript: &'q str,
    /// The digest of the transcript; `None` if it is unknown.
    pub transcript_digest: Option<&'q Digest>,
    /// The id of the rubric.
    pub rubric: &'q str,
    /// The id of the eval.
    pub eval: &'q str,
    /// The digest of the question; `None` if it is unknown, as in recordings of older versions.
    pub question: Option<&'q Digest>,
    /// The ids of the rubric and the eval after a rename. A label under these ids answers the query, too.
    pub later_name: Option<(&'q str, &'q str)>,
    /// True if the judge saw the transcript as an example, so that its label measures nothing.
    pub is_shot: bool,
}

/// A label that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountedLabel<'l> {
    /// The answer to the question of the query; `None` is unsure.
    pub passed: Option<bool>,
    /// The label. It may also have answers to other versions of the question.
    pub label: &'l Label,
}

/// The text that changed after a label was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelDrift {
    /// The question: criteria, scoring guide, scale, or the params of a check.
    Question,
    /// The transcript.
    Transcript,
}

impl LabelDrift {
    /// Returns the changed text: `question` or `transcript`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Transcript => "transcript",
        }
    }
}

/// The result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LabelLookup<'l> {
    /// The label counts.
    Counted(CountedLabel<'l>),
    /// The label is about another version of the question or transcript. It counts nowhere until a person confirms it.
    ToConfirm(&'l Label, LabelDrift),
    /// The decision has a label that is sealed until `dicta agree --unseal`. Its answer is unknown here.
    Sealed {
        /// True if the question or the transcript changed since.
        to_confirm: bool,
    },
    /// The judge saw the label as an example, so it measures nothing.
    Shot(&'l Label),
    /// The decision has no label.
    Unlabelled,
}

impl<'l> LabelLookup<'l> {
    /// Returns the label that counts.
    pub const fn counted(self) -> Option<CountedLabel<'l>> {
        match self {
            Self::Counted(label) => Some(label),
            Self::ToConfirm(..) | Self::Sealed { .. } | Self::Shot(_) | Self::Unlabelled => None,
        }
    }

    /// Returns true if a label waits for a confirmation.
    pub const fn is_to_confirm(self) -> bool {
        matches!(self, Self::ToConfirm(..))
    }
}

/// Labels, indexed by eval and transcript.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    /// Two levels, because a lookup in one map with a key of two texts would need owned texts.
    by_eval: HashMap<String, LabelsByTranscript, RandomState>,
    seal: Option<Arc<LabelSeal>>,
    /// The person who labels now.
    author: Option<String>,
}

/// The labels of one eval by transcript: the first label, and those that follow in the order of the files. Most
/// transcripts have one label, and then the list is empty and costs no allocation.
type LabelsByTranscript = HashMap<FirstLabel, Vec<Arc<Label>>, RandomState>;

/// The first label of a transcript, which a map finds by the id of the transcript. So the map copies no ids.
#[derive(Debug, Clone)]
struct FirstLabel(Arc<Label>);

impl Borrow<str> for FirstLabel {
    fn borrow(&self) -> &str {
        &self.0.transcript
    }
}

impl PartialEq for FirstLabel {
    fn eq(&self, other: &Self) -> bool {
        self.0.transcript == other.0.transcript
    }
}

impl Eq for FirstLabel {}

impl Hash for FirstLabel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The hash must be that of the borrowed id.
        self.0.transcript.as_str().hash(state);
    }
}

/// Two sets are equal if they have the same labels, seal and author.
impl PartialEq for Labels {
    fn eq(&self, other: &Self) -> bool {
        let is_in_other = |(eval, own): (&String, &LabelsByTranscript)| {
            let others = other.by_eval.get(eval);
            others.is_some_and(|others| has_same_labels(own, others))
        };
        self.author == other.author
            && self.seal == other.seal
            && self.by_eval.len() == other.by_eval.len()
            && self.by_eval.iter().all(is_in_other)
    }
}

/// Compares the labels of an eval. The keys of the maps are equal if their transcripts are, so the labels are compared, too.
fn has_same_labels(own: &LabelsByTranscript, others: &LabelsByTranscript) -> bool {
    own.len() == others.len()
        && own.iter().all(|(first, later)| {
            let known = others.get_key_value(first);
            known.is_some_and(|(known, others)| known.0 == first.0 && later == others)
        })
}

impl Labels {
    /// Indexes labels. Of several labels of one decision the last one counts, because files of labels grow at their
    /// end.
    pub fn new<L: Into<Arc<Label>>>(labels: impl IntoIterator<Item = L>) -> Self {
        let mut by_eval: HashMap<String, LabelsByTranscript, RandomState> = HashMap::default();
        for label in labels {
            let label: Arc<Label> = label.into();
            if !by_eval.contains_key(&label.eval) {
                by_eval.insert(label.eval.clone(), HashMap::default());
            }
            let Some(of_eval) = by_eval.get_mut(&label.eval) else {
                continue;
            };
            match of_eval.get_mut(label.transcript.as_str()) {
                Some(later) => later.push(label),
                None => drop(of_eval.insert(FirstLabel(label), Vec::new())),
            }
        }
        Self {
            by_eval,
            seal: None,
            author: None,
        }
    }

    /// Names the person who labels now. Of several labels that wait for a confirmation, this person confirms their own.
    #[must_use]
    pub fn with_author(mut self, author: Option<String>) -> Self {
        self.author = author;
        self
    }

    /// Hides the labels of sealed transcripts. This is the only place that hides them: each lookup, list and figure uses
    /// this type.
    #[must_use]
    pub fn with_seal(mut self, seal: Arc<LabelSeal>) -> Self {
        for of_eval in self.by_eval.values_mut() {
            of_eval.retain(|first, _| !seal.covers(&first.0.transcript));
        }
        self.by_eval.retain(|_, of_eval| !of_eval.is_empty());
        self.seal = Some(seal);
        self
    }

    /// Returns the seal of the test part, if the workspace has a split.
    pub fn seal(&self) -> Option<&Arc<LabelSeal>> {
        self.seal.as_ref()
    }

    /// Returns true if the labels of a transcript are sealed.
    pub fn is_sealed(&self, transcript: &str) -> bool {
        self.seal
            .as_ref()
            .is_some_and(|seal| seal.covers(transcript))
    }

    /// Returns true if the set has neither visible nor sealed labels.
    pub fn is_empty(&self) -> bool {
        self.by_eval.is_empty() && self.seal.as_ref().is_none_or(|seal| seal.is_empty())
    }

    /// Returns all visible labels of a decision, in the order of the files, whatever their question.
    pub fn list<'l, 'q>(
        &'l self,
        query: &LabelQuery<'q>,
    ) -> impl Iterator<Item = &'l Label> + use<'l, 'q> {
        let rubric = query.rubric;
        let of_eval = self.by_eval.get(query.eval);
        let found = of_eval.and_then(|labels| labels.get_key_value(query.transcript));
        let found = found.into_iter();
        let found = found.flat_map(|(first, later)| std::iter::once(&first.0).chain(later));
        let found = found.map(Arc::as_ref);
        found.filter(move |label| label.rubric.as_ref().is_none_or(|id| *id == rubric))
    }

    /// Returns the last answer of each person to the question of a query, by name. A label without an author has the
    /// name `unknown`.
    pub fn list_answers(&self, query: &LabelQuery<'_>) -> Vec<(&str, Option<bool>)> {
        if let Some(label) = self.find_only_label(query) {
            let answer = find_answer(label, query).ok();
            let answer = answer.map(|counted| (name_rater(label), counted.passed));
            return answer.into_iter().collect();
        }
        let mut answers: BTreeMap<&str, Option<bool>> = BTreeMap::new();
        for counted in self.find_answers(query) {
            answers.insert(name_rater(counted.label), counted.passed);
        }
        answers.into_iter().collect()
    }

    /// Returns the label of a decision that has exactly one. Most decisions do, and then no other label can outvote it or
    /// show that it is about an earlier question.
    fn find_only_label(&self, query: &LabelQuery<'_>) -> Option<&Label> {
        let mut all = self.list(query);
        let first = all.next()?;
        all.next().is_none().then_some(first)
    }

    /// Returns the answers to the question of a query, in the order of the files. A label without a digest answers any
    /// question, unless another label of the decision shows that the question changed, and no person has confirmed since.
    pub fn find_answers(&self, query: &LabelQuery<'_>) -> Vec<CountedLabel<'_>> {
        Self::find_answers_among(self.list(query), query)
    }

    fn find_answers_among<'l>(
        labels: impl Iterator<Item = &'l Label>,
        query: &LabelQuery<'_>,
    ) -> Vec<CountedLabel<'l>> {
        let mut is_changed = false;
        let mut is_confirmed = false;
        let mut found = Vec::new();
        for label in labels {
            let knows_question = label.question_digest.is_some();
            match find_answer(label, query) {
                Ok(counted) => {
                    is_confirmed |= knows_question;
                    found.push(counted);
                }
                Err(drift) => is_changed |= knows_question && drift == LabelDrift::Question,
            }
        }
        if is_changed && !is_confirmed {
            found.retain(|counted| counted.label.question_digest.is_some());
        }
        found
    }

    /// Looks up the label of a decision. A label that answers the question of the query comes before one that
    /// waits for a confirmation. Of those that wait, a label of the person who labels now comes first. Then a label that
    /// names the rubric comes before one that does not. Of the answers of several people, the majority counts. A tie is
    /// undecided, as an answer of "unsure" is: the order of files must not decide what a figure counts.
    pub fn look_up(&self, query: &LabelQuery<'_>) -> LabelLookup<'_> {
        if query.is_shot
            && let Some(label) = self.list(query).last()
        {
            return LabelLookup::Shot(label);
        }
        match (self.look_up_name(query), query.later_name) {
            (LabelLookup::Unlabelled, Some((rubric, eval))) => self.look_up_name(&LabelQuery {
                rubric,
                eval,
                ..*query
            }),
            (found, _) => found,
        }
    }

    /// As [`Self::look_up`], if the person who wrote `own` gave this label just now. As in the file, it replaces the earlier
    /// label of the same person, and a last label without an author.
    pub fn look_up_with<'l>(&'l self, query: &LabelQuery<'_>, own: &'l Label) -> LabelLookup<'l> {
        if let Err(drift) = find_answer(own, query) {
            return LabelLookup::ToConfirm(own, drift);
        }
        let mut others: Vec<&Label> = self.list(query).collect();
        others.pop_if(|last| last.by.is_none());
        others.retain(|label| label.by != own.by);
        let all = others.into_iter().chain(std::iter::once(own));
        match choose_counted(Self::find_answers_among(all, query)) {
            Some(counted) => LabelLookup::Counted(counted),
            None => LabelLookup::Unlabelled,
        }
    }

    /// Returns the person who labels now, if a name is known.
    pub fn author(&self) -> Option<&str> {
        self.author.as_deref()
    }

    /// Looks up the label under the query's own name.
    fn look_up_name(&self, query: &LabelQuery<'_>) -> LabelLookup<'_> {
        if let Some(seal) = &self.seal
            && seal.covers(query.transcript)
        {
            return seal.look_up(query);
        }
        if let Some(label) = self.find_only_label(query) {
            return match find_answer(label, query) {
                Ok(counted) => LabelLookup::Counted(counted),
                Err(drift) => LabelLookup::ToConfirm(label, drift),
            };
        }
        if let Some(counted) = choose_counted(self.find_answers(query)) {
            return LabelLookup::Counted(counted);
        }
        let stale = self
            .list(query)
            .filter_map(|label| Some((label, find_answer(label, query).err()?)));
        let is_own = |label: &Label| self.author.is_some() && label.by == self.author;
        match stale.max_by_key(|(label, _)| (is_own(label), label.rubric.is_some())) {
            Some((label, drift)) => LabelLookup::ToConfirm(label, drift),
            None => LabelLookup::Unlabelled,
        }
    }

    /// Returns the label of a decision that counts.
    pub fn find(&self, query: &LabelQuery<'_>) -> Option<CountedLabel<'_>> {
        self.look_up(query).counted()
    }
}

/// The known part of sealed labels: their decisions and authors, and no answer.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelSeal {
    split: LabelSplit,
    /// The side whose labels are hidden: the part `test`, or everything else.
    hides_test: bool,
    without_answers: Labels,
    /// The number of unsealings so far.
    pub unsealings: u64,
    /// The time of the last unsealing.
    pub last_unsealed: Option<WallTime>,
}

impl LabelSeal {
    /// Creates a seal. The answers of `sealed` are dropped.
    pub fn new<'l>(split: LabelSplit, sealed: impl IntoIterator<Item = &'l Label>) -> Self {
        Self {
            split,
            hides_test: true,
            without_answers: Labels::new(sealed.into_iter().map(Label::without_answer)),
            unsealings: 0,
            last_unsealed: None,
        }
    }

    /// Returns the opposite seal, which leaves the test labels only.
    #[must_use]
    pub fn for_unsealing(&self) -> Self {
        Self {
            hides_test: false,
            ..Self::new(self.split.clone(), [])
        }
    }

    /// Returns the part of a transcript.
    pub fn part(&self, transcript: &str) -> SplitPart {
        self.split.part(transcript)
    }

    /// Returns true if the labels of a transcript are sealed.
    pub fn covers(&self, transcript: &str) -> bool {
        (self.split.part(transcript) == SplitPart::Test) == self.hides_test
    }

    /// Returns true if no sealed label exists.
    fn is_empty(&self) -> bool {
        self.without_answers.is_empty()
    }

    /// Looks up whether a decision has a sealed label.
    fn look_up(&self, query: &LabelQuery<'_>) -> LabelLookup<'static> {
        match self.without_answers.look_up(query) {
            LabelLookup::Counted(_) => LabelLookup::Sealed { to_confirm: false },
            LabelLookup::ToConfirm(..) => LabelLookup::Sealed { to_confirm: true },
            LabelLookup::Sealed { .. } | LabelLookup::Shot(_) | LabelLookup::Unlabelled => {
                LabelLookup::Unlabelled
            }
        }
    }
}

/// The name of the person who labelled, if the label has no author.
pub const UNKNOWN_RATER: &str = "unknown";

/// Returns the name of the person who labelled; [`UNKNOWN_RATER`] without an author.
pub fn name_rater(label: &Label) -> &str {
    label.by.as_deref().unwrap_or(UNKNOWN_RATER)
}

/// Returns the answer that counts: of those that name the rubric, or of all if none does, that of the majority.
fn choose_counted(answers: Vec<CountedLabel<'_>>) -> Option<CountedLabel<'_>> {
    let names_rubric = answers.iter().any(|counted| counted.label.rubric.is_some());
    let equal = answers
        .into_iter()
        .filter(|counted| counted.label.rubric.is_some() == names_rubric);
    find_majority(equal)
}

/// Returns the last answer that the majority of people gave. If no verdict has the majority, returns the last label as
/// undecided.
fn find_majority<'l>(answers: impl Iterator<Item = CountedLabel<'l>>) -> Option<CountedLabel<'l>> {
    // The last answer of each person counts, in the order of the files. Labels without a person are one person's.
    let mut people: Vec<CountedLabel<'l>> = Vec::new();
    for answer in answers {
        people.retain(|other| other.label.by != answer.label.by);
        people.push(answer);
    }
    let count = |passed: bool| {
        let same = people.iter().filter(|answer| answer.passed == Some(passed));
        same.count()
    };
    let wanted = match count(true).cmp(&count(false)) {
        Ordering::Greater => Some(true),
        Ordering::Less => Some(false),
        Ordering::Equal => {
            let last = people.pop()?;
            return Some(CountedLabel {
                passed: None,
                ..last
            });
        }
    };
    people
        .into_iter()
        .rev()
        .find(|answer| answer.passed == wanted)
}

/// Returns the answer of a label to the question of a query, or the text that changed since.
pub fn find_answer<'l>(
    label: &'l Label,
    query: &LabelQuery<'_>,
) -> Result<CountedLabel<'l>, LabelDrift> {
    let current = (&label.question_digest, &label.transcript_digest);
    let earlier = label.earlier.iter().rev();
    let earlier = earlier.map(|answer| {
        let digests = (&answer.question_digest, &answer.transcript_digest);
        (digests, answer.passed)
    });
    let mut drift = None;
    for ((question, transcript), passed) in std::iter::once((current, label.passed)).chain(earlier)
    {
        let found = if !is_same(question.as_ref(), query.question) {
            LabelDrift::Question
        } else if !is_same(transcript.as_ref(), query.transcript_digest) {
            LabelDrift::Transcript
        } else {
            return Ok(CountedLabel { passed, label });
        };
        // The newest answer explains best why the label does not count.
        drift.get_or_insert(found);
    }
    Err(drift.unwrap_or(LabelDrift::Question))
}

/// Returns true unless both digests are known and differ. Labels and recordings of older versions lack digests.
fn is_same(label: Option<&Digest>, current: Option<&Digest>) -> bool {
    match (label, current) {
        (Some(label), Some(current)) => current.is_unread() || label == current,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EarlierAnswer, SplitRule};

    fn digest(text: &str) -> Digest {
        Digest::hash_bytes(text.as_bytes())
    }

    fn query<'q>(question: Option<&'q Digest>, transcript: Option<&'q Digest>) -> LabelQuery<'q> {
        LabelQuery {
            transcript: "t",
            transcript_digest: transcript,
            rubric: "r",
            eval: "e",
            question,
            later_name: None,
            is_shot: false,
        }
    }

    fn label(question: &str, passed: bool) -> Label {
        Label {
            question_digest: Some(digest(question)),
            transcript_digest: Some(digest("text")),
            ..Label::new("t", "e", Some(passed))
        }
    }

    #[test]
    fn label_of_another_question_or_transcript_is_to_confirm() {
        let labels = Labels::new([label("old", true)]);
        let (old, new, text, other) = (digest("old"), digest("new"), digest("text"), digest("2"));
        let found = |question, transcript| labels.look_up(&query(question, transcript));
        assert_eq!(
            labels
                .find(&query(Some(&old), Some(&text)))
                .map(|l| l.passed),
            Some(Some(true))
        );
        assert!(matches!(
            found(Some(&new), Some(&text)),
            LabelLookup::ToConfirm(_, LabelDrift::Question)
        ));
        assert!(matches!(
            found(Some(&old), Some(&other)),
            LabelLookup::ToConfirm(_, LabelDrift::Transcript)
        ));
        // An unknown digest cannot differ.
        let unread = Digest::unread();
        assert!(found(None, Some(&unread)).counted().is_some());
        assert_eq!(
            found(None, None).counted().map(|l| l.passed),
            Some(Some(true))
        );
    }

    #[test]
    fn majority_of_people_counts_and_a_tie_is_undecided_in_any_order() {
        let answer = |by: Option<&str>, passed: Option<bool>| Label {
            by: by.map(str::to_owned),
            ..Label::new("t", "e", passed)
        };
        let (ann, bo, cy) = (Some("ann"), Some("bo"), Some("cy"));
        let counted = |answers: Vec<Label>| {
            let labels = Labels::new(answers);
            let found = labels.find(&query(None, None)).expect("a label");
            (found.passed, found.label.by.clone())
        };
        let (pass, fail) = (Some(true), Some(false));
        let of = |by: &str| Some(by.to_owned());
        // Two against one, whatever comes last.
        assert_eq!(
            counted(vec![answer(ann, pass), answer(bo, pass), answer(cy, fail)]),
            (pass, of("bo"))
        );
        // A person's last answer replaces the earlier ones, so this is a tie.
        assert_eq!(
            counted(vec![answer(ann, pass), answer(ann, pass), answer(bo, fail)]),
            (None, of("bo"))
        );
        assert_eq!(
            counted(vec![answer(bo, fail), answer(ann, pass)]),
            (None, of("ann"))
        );
        // A third person decides.
        assert_eq!(
            counted(vec![answer(bo, fail), answer(cy, fail), answer(ann, pass)]),
            (fail, of("cy"))
        );
        // Unsure is not a verdict.
        assert_eq!(
            counted(vec![answer(ann, fail), answer(bo, None), answer(cy, None)]),
            (fail, of("ann"))
        );
        assert_eq!(
            counted(vec![answer(None, pass), answer(None, fail)]),
            (fail, None)
        );
    }

    #[test]
    fn label_without_digests_counts_for_every_question() {
        let labels = Labels::new([Label::new("t", "e", Some(false))]);
        let new = digest("new");
        assert_eq!(
            labels
                .find(&query(Some(&new), Some(&new)))
                .map(|l| l.passed),
            Some(Some(false))
        );
    }

    #[test]
    fn earlier_answer_counts_for_its_own_question_only() {
        let mut changed = label("new", false);
        changed.answer_again(&label("old", true));
        assert_eq!(changed.earlier.len(), 1);
        let labels = Labels::new([changed]);
        let (old, new, third) = (digest("old"), digest("new"), digest("third"));
        let passed = |question| labels.find(&query(Some(question), None)).map(|l| l.passed);
        assert_eq!(passed(&old), Some(Some(true)));
        assert_eq!(passed(&new), Some(Some(false)));
        assert_eq!(passed(&third), None);
    }

    #[test]
    fn counted_label_of_another_person_replaces_one_to_confirm() {
        let ann = Label {
            by: Some("ann".to_owned()),
            ..label("new", true)
        };
        let bo = Label {
            by: Some("bo".to_owned()),
            ..label("old", false)
        };
        let labels = Labels::new([ann, bo]);
        let new = digest("new");
        let found = labels.find(&query(Some(&new), None)).expect("ann's label");
        assert_eq!(found.label.by.as_deref(), Some("ann"));
    }

    #[test]
    fn label_that_is_not_written_yet_counts_with_those_of_other_people() {
        let new = digest("new");
        let by = |name: &str, passed| Label {
            by: Some(name.to_owned()),
            ..label("new", passed)
        };
        let labels = Labels::new([by("ann", true), by("bo", true)]);
        let passed = |own: &Label| {
            let found = labels.look_up_with(&query(Some(&new), None), own).counted();
            found.expect("a counted label").passed
        };
        assert_eq!(passed(&by("cy", false)), Some(true), "two of three");
        assert_eq!(passed(&by("bo", false)), None, "ann and bo differ");
        assert_eq!(passed(&by("ann", true)), Some(true));
    }

    #[test]
    fn person_confirms_their_own_label() {
        let by = |name: &str, passed| Label {
            by: Some(name.to_owned()),
            ..label("old", passed)
        };
        let new = digest("new");
        for (author, passed) in [(Some("ann"), false), (Some("bo"), true), (None, true)] {
            let labels = Labels::new([by("ann", false), by("bo", true)]);
            let labels = labels.with_author(author.map(str::to_owned));
            let found = labels.look_up(&query(Some(&new), None));
            let LabelLookup::ToConfirm(label, _) = found else {
                panic!("{found:?}");
            };
            assert_eq!(label.passed, Some(passed), "{author:?}");
        }
    }

    #[test]
    fn label_without_a_digest_does_not_answer_a_question_that_is_known_to_have_changed() {
        let mine = label("old", true);
        let undated = Label {
            by: Some("bo".to_owned()),
            question_digest: None,
            ..label("old", false)
        };
        let (old, new) = (digest("old"), digest("new"));
        let labels = Labels::new([mine.clone(), undated.clone()]);
        assert_eq!(labels.list_answers(&query(Some(&old), None)).len(), 2);
        assert_eq!(labels.list_answers(&query(Some(&new), None)), []);
        assert!(labels.look_up(&query(Some(&new), None)).is_to_confirm());
        let confirmed = Label {
            by: Some("cy".to_owned()),
            ..label("new", true)
        };
        let labels = Labels::new([mine, undated.clone(), confirmed]);
        assert_eq!(labels.list_answers(&query(Some(&new), None)).len(), 2);
        let alone = Labels::new([undated]);
        assert_eq!(alone.list_answers(&query(Some(&new), None)).len(), 1);
    }

    #[test]
    fn same_question_keeps_no_earlier_answer() {
        let mut again = label("old", false);
        again.answer_again(&label("old", true));
        assert_eq!(again.earlier, Vec::<EarlierAnswer>::new());
    }

    #[test]
    fn sealed_label_has_no_answer_and_hides_a_visible_one() {
        let question = Digest::hash_bytes(b"q");
        let sealed = Label {
            question_digest: Some(question.clone()),
            note: Some("wrong date".to_owned()),
            score: Some(0.2),
            ..Label::new("t", "e", Some(false))
        };
        assert_eq!(
            sealed.without_answer(),
            Label {
                question_digest: Some(question.clone()),
                ..Label::new("t", "e", None)
            }
        );
        let rule = SplitRule {
            train: 0.0,
            test: 0.5,
            seed: 1,
        };
        let parts = HashMap::from([("t".to_owned(), SplitPart::Test)]);
        let seal = LabelSeal::new(LabelSplit::new(rule, parts), [&sealed]);
        // A label that was set on the screen since is in the list, and is sealed, too.
        let labels = Labels::new([sealed]).with_seal(seal.into());
        let other = Digest::hash_bytes(b"other");
        for (asked, to_confirm) in [(&question, false), (&other, true)] {
            let query = LabelQuery {
                later_name: None,
                is_shot: false,
                transcript: "t",
                transcript_digest: None,
                rubric: "r",
                eval: "e",
                question: Some(asked),
            };
            assert_eq!(labels.look_up(&query), LabelLookup::Sealed { to_confirm });
            assert_eq!(labels.list(&query).count(), 0);
            assert_eq!(labels.find(&query), None);
        }
        assert!(!labels.is_empty() && labels.is_sealed("t"));
    }
}
