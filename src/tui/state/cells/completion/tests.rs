//! Tests of the completion: the word under the cursor, and the offers with the text after a choice.

use super::super::tests::outlined;
use super::*;

/// Returns the offers at the end of a filter.
fn offers(cells: &CellsState, text: &str) -> Vec<String> {
    let completion = cells.complete_filter(text, text.len());
    completion
        .offers
        .into_iter()
        .map(|offer| offer.text)
        .collect()
}

/// Returns the filter after the first offer is chosen at the cursor, which `|` marks.
fn first_choice(cells: &CellsState, marked: &str) -> String {
    let cursor = marked.find('|').expect("a cursor");
    let text = marked.replace('|', "");
    let mut completion = cells.complete_filter(&text, cursor);
    let (mut text, cursor) = completion.choose_next(true).expect("an offer");
    text.insert(cursor, '|');
    text
}

#[test]
fn every_key_is_offered_with_its_values() {
    let mut cells = outlined(&["a", "b"], &["tone?", "brief"]);
    cells.evals[0].groups = vec!["slow".to_owned()];
    cells
        .tags
        .insert("a".to_owned(), vec!["refund".to_owned(), "vip".to_owned()]);
    assert_eq!(offers(&cells, "").len(), KEYS.len());
    for (key, _) in KEYS {
        let values = offers(&cells, &format!("{key}:"));
        assert!(!values.is_empty(), "{key}");
        for value in values {
            let text = format!("{key}:{value}");
            cells
                .set_filter(&text)
                .expect("every offer is a valid filter");
            assert_eq!(cells.explain_unmatched_filter(), None, "{text}");
        }
    }
    assert_eq!(offers(&cells, "eval:"), ["brief", "tone"]);
    assert_eq!(offers(&cells, "rubric:"), ["r"]);
    assert_eq!(offers(&cells, "judge:"), ["one"]);
    let unjudged = outlined(&["a"], &["brief"]);
    assert_eq!(unjudged.judges.len(), 1);
    assert_eq!(offers(&unjudged, "judge:"), Vec::<String>::new());
    assert_eq!(offers(&cells, "group:"), ["slow"]);
    assert_eq!(offers(&cells, "tag:"), ["refund", "vip"]);
    assert_eq!(offers(&cells, "transcript:"), ["a", "b"]);
    assert_eq!(offers(&cells, "cell:b"), ["b/r/tone", "b/r/brief"]);
    assert_eq!(offers(&cells, "label:").len(), LabelFilter::ALL.len());
    assert_eq!(offers(&cells, "is:").len(), STATUS_TERMS.len());
    assert_eq!(offers(&cells, "outcome:").len(), Outcome::ALL.len() + 2);
    assert!(offers(&cells, "nokey:").is_empty());
}

#[test]
fn beginnings_come_before_other_matches_and_a_complete_word_has_no_list() {
    let cells = outlined(&["a"], &["is-brief", "brief", "tone"]);
    assert_eq!(offers(&cells, "eval:BR"), ["brief", "is-brief"]);
    assert_eq!(offers(&cells, "eval:tone"), Vec::<String>::new());
    assert_eq!(offers(&cells, "to"), ["eval:tone"]);
    assert_eq!(offers(&cells, "l"), ["label:", "is:live"]);
    assert_eq!(offers(&cells, "eval:none-such"), Vec::<String>::new());
    assert_eq!(offers(&cells, "\"eval:"), Vec::<String>::new());
}

#[test]
fn choice_replaces_the_word_under_the_cursor() {
    let cells = outlined(&["a b", "c,\"d"], &["tone", "brief"]);
    for (before, after) in [
        ("|", "outcome:|"),
        ("ev|", "eval:|"),
        ("!ev|", "!eval:|"),
        ("x ev|al:tone", "x eval:|tone"),
        ("eval:t|o is:flip", "eval:tone| is:flip"),
        ("eval:brief,t|", "eval:brief,tone|"),
        ("eval:\"brief,t|", "eval:\"brief,tone\"|"),
        ("transcript:a|", "transcript:\"a b\"|"),
        ("transcript:\"a b|", "transcript:\"a b\"|"),
        ("transcript:c|", "transcript:c??d|"),
        ("cell:c|", "cell:c%2C%22d/r/tone|"),
    ] {
        if before == "transcript:\"a b|" {
            // The only offer is already typed.
            let text = before.replace('|', "");
            assert!(cells.complete_filter(&text, text.len()).offers.is_empty());
            continue;
        }
        assert_eq!(first_choice(&cells, before), after, "{before}");
    }
}

#[test]
fn choices_walk_through_the_list_in_both_directions() {
    let cells = outlined(&["a"], &["tone", "brief"]);
    let mut completion = cells.complete_filter("eval:", 5);
    let mut step = |forward| completion.choose_next(forward).expect("an offer").0;
    let texts = [step(true), step(true), step(true), step(false), step(false)];
    let (brief, tone) = ("eval:brief", "eval:tone");
    assert_eq!(texts, [brief, tone, brief, tone, brief]);
}

#[test]
fn ids_that_nothing_has_are_explained() {
    let mut cells = outlined(&["refund-1", "refund-2"], &["tone", "brief"]);
    cells
        .tags
        .insert("refund-1".to_owned(), vec!["vip".to_owned()]);
    for (text, expected) in [
        (
            "eval:tome",
            Some("no eval is called `tome`; did you mean `tone`?"),
        ),
        (
            "tag:vib",
            Some("no tag is called `vib`; did you mean `vip`?"),
        ),
        (
            "transcript:refund-3",
            Some("no transcript is called `refund-3`; did you mean `refund-1`?"),
        ),
        ("rubric:zzzzz", Some("no rubric is called `zzzzz`")),
        ("eval:t*", None),
        ("tag:vip", None),
        ("word", None),
    ] {
        cells.set_filter(text).expect("a filter");
        assert_eq!(cells.explain_unmatched_filter().as_deref(), expected);
    }
}

#[test]
fn tag_selects_the_transcripts_with_it() {
    let mut cells = outlined(&["a", "b"], &["tone"]);
    cells.tags.insert("b".to_owned(), vec!["vip".to_owned()]);
    let mut matching = |text: &str| {
        cells.set_filter(text).expect("a filter");
        cells.matching
    };
    assert_eq!(matching("tag:vip"), 1);
    assert_eq!(matching("!tag:v*"), 1);
    assert_eq!(matching("tag:other"), 0);
    // A new outline replaces the tags.
    cells.begin_outline();
    assert!(cells.tags.known().is_empty());
}

proptest::proptest! {
    #[test]
    fn any_text_has_offers_whose_choice_keeps_the_rest(
        text in "[a-e: ,\"!é]{0,12}",
        cursor in 0usize..14,
    ) {
        let cells = outlined(&["a b", "é,c"], &["bad", "cab"]);
        let mut completion = cells.complete_filter(&text, cursor.min(text.len()));
        for _ in 0..completion.offers.len() {
            let (chosen, cursor) = completion.choose_next(true).expect("an offer");
            assert!(chosen.is_char_boundary(cursor));
            assert!(chosen.starts_with(&text[..completion.replaced.start]));
            assert!(chosen.ends_with(&text[completion.replaced.end..]));
        }
    }
}
