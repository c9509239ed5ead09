//! Diagnostics as text for people, with the offending line; and "did you mean".

/// The nearest of `known` to what was written, if one is near enough to suggest.
pub fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let limit = (written.chars().count() / 3).max(1);
    let lower = written.to_lowercase();
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&lower, &k.to_lowercase()), k))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}
