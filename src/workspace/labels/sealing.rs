//! The seal of the test part: the only place that takes sealed labels out of a workspace.
//!
//! Responsible for the labels, for their lines in the texts of label files, and for the snippets of problems. Does not
//! decide which transcripts are sealed; `label_parts` does.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::{LabelPlace, LoadedLabels};
use crate::diag::LoadedFile;
use crate::model::{Digest, Label, LabelSeal, LabelSplit, Labels, WallTime};

/// The sealed labels of a workspace.
#[derive(Debug, Clone)]
pub struct SealedLabels {
    seal: Arc<LabelSeal>,
    /// The labels with their answers. Only `dicta agree --unseal` reads them.
    labels: Vec<Arc<Label>>,
    without_answers: Vec<Label>,
    places: Vec<LabelPlace>,
    /// The number of leading labels that come from transcript files.
    mapped_count: usize,
    /// The true texts of the files that contain sealed labels, as hashes.
    fingerprints: HashMap<Arc<Path>, u64>,
    /// The digests of the files whose loaded text is masked, before that.
    digests: HashMap<Arc<Path>, Digest>,
}

impl SealedLabels {
    /// Returns the seal, which hides labels in a [`Labels`].
    pub fn seal(&self) -> &Arc<LabelSeal> {
        &self.seal
    }

    /// Returns the number of sealed labels.
    pub fn count(&self) -> usize {
        self.labels.len()
    }

    /// Returns the sealed labels without their answers, each with its place.
    pub fn list(&self) -> impl Iterator<Item = (&Label, &LabelPlace)> {
        self.without_answers.iter().zip(&self.places)
    }

    /// Returns the sealed labels of label files without their answers, each with its place.
    pub(in crate::workspace) fn list_from_label_files(
        &self,
    ) -> impl Iterator<Item = (&Label, &LabelPlace)> {
        self.list().skip(self.mapped_count)
    }

    /// Returns the digest of a file whose loaded text is masked; `None` for another file.
    pub fn file_digest(&self, file: &Path) -> Option<&Digest> {
        self.digests.get(file)
    }

    /// Returns the hash of the true text of a file; `None` if nothing in it is sealed.
    pub fn fingerprint(&self, file: &Path) -> Option<u64> {
        self.fingerprints.get(file).copied()
    }

    /// Returns the sealed labels with their answers and no other labels, for `dicta agree --unseal`, which records the
    /// look.
    pub fn unseal(&self) -> Labels {
        let seal = self.seal.for_unsealing();
        Labels::new(self.labels.iter().cloned()).with_seal(Arc::new(seal))
    }

    /// Stores the number of unsealings so far and the time of the last one.
    pub(in crate::workspace) fn remember_unsealings(&mut self, count: u64, last: Option<WallTime>) {
        let seal = Arc::make_mut(&mut self.seal);
        (seal.unsealings, seal.last_unsealed) = (count, last);
    }
}

/// Takes the labels of sealed transcripts out of the loaded ones, also from the texts of files and problems.
/// `hash_text` makes the fingerprints.
pub(in crate::workspace) fn seal_labels(
    found: &mut LoadedLabels,
    split: LabelSplit,
    hash_text: impl Fn(&[u8]) -> u64,
) -> SealedLabels {
    let labels = std::mem::take(&mut found.labels);
    let places = std::mem::take(&mut found.places);
    let mapped = std::mem::take(&mut found.mapped_count);
    let none = LabelSeal::new(split.clone(), []);
    let mut sealed = Vec::new();
    let mut sealed_places = Vec::new();
    let mut sealed_mapped = 0;
    for (nth, (label, place)) in labels.into_iter().zip(places).enumerate() {
        let is_sealed = none.covers(&label.transcript);
        if is_sealed {
            sealed_mapped += usize::from(nth < mapped);
            sealed.push(label);
            sealed_places.push(place);
        } else {
            found.mapped_count += usize::from(nth < mapped);
            found.labels.push(label);
            found.places.push(place);
        }
    }
    hide_snippets(found, &sealed_places);
    let without_answers: Vec<Label> = sealed.iter().map(|label| label.without_answer()).collect();
    let mut fingerprints = HashMap::new();
    let mut digests = HashMap::new();
    for file in &mut found.files {
        let lines: HashMap<u32, &Label> = without_answers
            .iter()
            .zip(&sealed_places)
            .filter(|(_, place)| *place.file == *file.path)
            .map(|(label, place)| (place.span.line, label))
            .collect();
        if lines.is_empty() {
            continue;
        }
        let path: Arc<Path> = Arc::from(&*file.path);
        fingerprints.insert(Arc::clone(&path), hash_text(file.text.as_bytes()));
        digests.insert(Arc::clone(&path), Digest::hash_bytes(file.text.as_bytes()));
        let masked = mask_lines(file, &lines);
        let own = |place: &&mut LabelPlace| *place.file == *path;
        for place in found.places.iter_mut().filter(own) {
            masked.move_place(place, false);
        }
        for place in sealed_places.iter_mut().filter(own) {
            masked.move_place(place, true);
        }
        file.text = masked.text.into();
    }
    // Reports show no text of other files, such as tables. There, a byte offset would depend on the length of an answer.
    for place in found.places.iter_mut().chain(&mut sealed_places) {
        if !found.files.iter().any(|file| *place.file == *file.path) {
            place.span.bytes = 0..0;
        }
    }
    SealedLabels {
        seal: Arc::new(LabelSeal::new(split, sealed.iter().map(Arc::as_ref))),
        labels: sealed,
        without_answers,
        places: sealed_places,
        mapped_count: sealed_mapped,
        fingerprints,
        digests,
    }
}

/// Removes the text of problems whose line contains a sealed label.
fn hide_snippets(found: &mut LoadedLabels, sealed: &[LabelPlace]) {
    let lines: HashSet<(&Path, u32)> = sealed
        .iter()
        .map(|place| (&*place.file, place.span.line))
        .collect();
    for problem in &mut found.problems {
        let line = problem.span.as_ref().map(|span| span.line);
        if line.is_some_and(|line| lines.contains(&(&problem.file, line))) {
            problem.source = None;
        }
    }
}

/// A text whose sealed lines were replaced.
struct MaskedText {
    text: String,
    /// The start of each line, before and after.
    starts: Vec<(usize, usize)>,
    /// The length of each line after, without its end.
    lengths: Vec<usize>,
}

/// Replaces each sealed line by one that depends on no answer, not even in its length.
fn mask_lines(file: &LoadedFile, sealed: &HashMap<u32, &Label>) -> MaskedText {
    let mut masked = MaskedText {
        text: String::new(),
        starts: Vec::new(),
        lengths: Vec::new(),
    };
    let mut start = 0;
    for (line, number) in file.text.split_inclusive('\n').zip(1_u32..) {
        masked.starts.push((start, masked.text.len()));
        start += line.len();
        let before = masked.text.len();
        if let Some(label) = sealed.get(&number) {
            let line = json!({
                "transcript": label.transcript,
                "rubric": label.rubric,
                "eval": label.eval,
                "sealed": true,
            });
            masked.text.push_str(&line.to_string());
            masked.lengths.push(masked.text.len() - before);
            masked.text.push('\n');
        } else {
            masked.text.push_str(line);
            masked.lengths.push(line.trim_end().len());
        }
    }
    masked
}

impl MaskedText {
    /// Moves a place of the true text to the masked one.
    fn move_place(&self, place: &mut LabelPlace, is_sealed: bool) {
        let at = (place.span.line as usize).saturating_sub(1);
        let (Some((old, new)), Some(length)) = (self.starts.get(at), self.lengths.get(at)) else {
            return;
        };
        if is_sealed {
            place.span.bytes = *new..new + length;
            place.span.column = 1;
        } else {
            let moved = |byte: usize| byte.saturating_sub(*old) + new;
            place.span.bytes = moved(place.span.bytes.start)..moved(place.span.bytes.end);
        }
    }
}
