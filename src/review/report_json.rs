//! The report of a review as JSON. All keys are always present.

use serde_json::{Value, json};

use super::report::{ReviewReport, explain_undefined};

/// Returns the report as a value.
pub fn render_json(report: &ReviewReport) -> Value {
    let table = &report.table;
    let modes = report.modes.iter().map(|(mode, counts)| {
        let share = &counts.share;
        let together = counts.together_with.iter();
        let together = together.map(|(id, count)| json!({"mode": id, "count": count}));
        let ends = counts.first_and_last;
        let transcripts = counts.first_and_last_transcripts.as_ref();
        json!({
            "id": mode.id,
            "name": mode.name,
            "definition": mode.definition,
            "since": mode.since,
            "formerly": mode.formerly,
            "read": counts.read,
            "count": counts.count,
            "share": {
                "value": share.point.ok(),
                "undefined": share.point.err().map(explain_undefined),
                "lower": share.interval.lower,
                "upper": share.interval.upper,
            },
            "missing": counts.missing,
            "by_hand": {"read": counts.by_hand.0, "count": counts.by_hand.1},
            "examples": counts.examples,
            "together_with": together.collect::<Vec<Value>>(),
            "first": ends.map(|(first, _)| first),
            "last": ends.map(|(_, last)| last),
            "first_transcript": transcripts.map(|(first, _)| first),
            "last_transcript": transcripts.map(|(_, last)| last),
        })
    });
    let notes = report.notes.iter().map(|one| {
        json!({
            "id": one.note.id,
            "transcript": one.note.transcript,
            "path": one.path,
            "message": one.note.message,
            "outcome": one.note.outcome,
            "note": one.note.note,
            "modes": one.modes,
            "by": one.note.by,
            "at": one.note.at,
            "sample": one.note.sample,
            "stale": one.is_stale,
        })
    });
    let messages = report.messages.iter().map(|message| {
        json!({
            "transcript": message.transcript,
            "message": message.message,
            "role": message.role,
            "text": message.text,
        })
    });
    let disagreements = report.disagreements.iter().map(
        |one| json!({"mode": one.mode, "transcript": one.transcript, "yes": one.yes, "no": one.no}),
    );
    let sets = table.open_sets.iter();
    let sets = sets.map(|(name, read, all)| json!({"set": name, "read": read, "all": all}));
    json!({
        "name": report.name,
        "transcripts": table.transcripts,
        "covered": table.covered,
        "drawn": table.drawn,
        "read": {"drawn": table.read.0, "by_hand": table.read.1},
        "outcomes": {
            "no_failure": table.outcomes[0],
            "failure": table.outcomes[1],
            "unsure": table.outcomes[2],
            "skipped": table.outcomes[3],
        },
        "draws": report.plans,
        "open_sets": sets.collect::<Vec<Value>>(),
        "stale": table.stale,
        "ungrouped": table.ungrouped,
        "open_questions": table.open_questions,
        "saturation": {
            "step": 20,
            "new_modes": table.saturation.new_modes,
            "in_last": table.saturation.in_last,
            "window": table.saturation.window,
        },
        "modes": modes.collect::<Vec<Value>>(),
        "notes": notes.collect::<Vec<Value>>(),
        "messages": messages.collect::<Vec<Value>>(),
        "disagreements": disagreements.collect::<Vec<Value>>(),
    })
}
