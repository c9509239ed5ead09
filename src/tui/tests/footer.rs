//! The footer after a save: the summary, and the keys that it leaves.

use super::{go_to, judged, rubric};
use crate::model::Millis;

#[test]
fn summary_of_a_save_leaves_room_for_the_keys_of_a_label_queue() {
    let mut app = judged(80, 24);
    let (_, edited) = rubric(&app);
    app.save("rubrics/beamline.yaml", &edited).settle();
    go_to(&mut app, "beam-release/beamline/newest");
    app.keys("1 Q").settle().keys("enter").settle();
    assert!(app.event_loop.app.labelling.queue.is_some());
    app.pass(Millis(60_000));
    let row = app.last_row();
    assert!(row.contains(" s next unlabelled "), "{row}");
}

#[test]
fn narrow_footer_keeps_its_keys_while_the_changes_pane_has_the_summary() {
    let mut app = judged(80, 24);
    let (_, edited) = rubric(&app);
    app.save("rubrics/beamline.yaml", &edited).settle();
    app.pass(Millis(60_000));
    let row = app.last_row();
    assert!(row.contains(" e edit ") && !row.contains("flips"), "{row}");
    // With another pane in its place, the footer has the summary.
    app.keys("5").settle();
    app.pass(Millis(60_000));
    let row = app.last_row();
    assert!(row.contains("3 flips"), "{row}");
}
