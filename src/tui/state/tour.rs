//! The tour: six steps in the footer of the demo. dicta completes each step when the user has done it.

use std::path::Path;

use super::cells::RowId;
use crate::model::Millis;
use crate::theme::Glyphs;

/// A step of the tour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TourStep {
    Run,
    LookAtFailure,
    ChangeALine,
    WatchTheFlip,
    Replay,
    UseYourOwn,
}

/// The progress of the tour.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tour {
    /// True for each completed [`TourStep`].
    pub(crate) done: [bool; 6],
    pub(crate) hidden: bool,
    /// The row that was focused when the run ended. To look at a failure, the user must move away from it or open it.
    pub(crate) row_at_run_end: Option<RowId>,
    /// The time since a flip is visible.
    pub(crate) flip_shown_at: Option<Millis>,
}

/// The time that a flip is visible until the tour continues.
pub(crate) const FLIP_DISPLAY_TIME: Millis = Millis(4000);

impl TourStep {
    /// The steps in order.
    pub(crate) const ALL: [Self; 6] = [
        Self::Run,
        Self::LookAtFailure,
        Self::ChangeALine,
        Self::WatchTheFlip,
        Self::Replay,
        Self::UseYourOwn,
    ];
}

impl Tour {
    /// Returns the first step that is not done, or the last one.
    pub(crate) fn current_step(&self) -> TourStep {
        let open = self.done.iter().position(|done| !done);
        // After the last step, the tour stays at it.
        TourStep::ALL[open.unwrap_or(5)]
    }

    /// Completes a step.
    pub(crate) fn complete_step(&mut self, step: TourStep) {
        self.done[step as usize] = true;
    }

    /// Formats the progress and the next action, such as `tour ✓✓···· 3/6`. Returns a full, a shorter and a very
    /// short version. `opens_rubric` is true if `e` opens the rubric of the third step.
    pub(crate) fn format_step(
        &self,
        glyphs: &Glyphs,
        rubric: &Path,
        opens_rubric: bool,
    ) -> Vec<(String, String)> {
        let marks: String = self
            .done
            .iter()
            .map(|done| if *done { glyphs.pass } else { glyphs.skipped })
            .collect();
        let step = self.current_step();
        let number = step as usize + 1;
        let (long, short) = (format!("tour {marks} {number}/6"), format!("{number}/6"));
        let (fail, pass, arrow) = (glyphs.fail, glyphs.pass, glyphs.arrow);
        let (in_full, brief, least) = match step {
            TourStep::Run => (
                "run: opening judges everything, free and without a network; R judges again"
                    .to_owned(),
                "run: opening judges everything, for free; R judges again".to_owned(),
                "R judges everything".to_owned(),
            ),
            TourStep::LookAtFailure => (
                format!(
                    "look at a {fail}: ] and [ go from failure to failure, to names-a-version; pane 5 has the reason"
                ),
                format!("look at a {fail}: ] and [ go to names-a-version; 5 has the reason"),
                "] or [: names-a-version".to_owned(),
            ),
            TourStep::ChangeALine if !opens_rubric => (
                "change one line: ] and [ go to names-a-version first, because e opens the rubric of the focused cell"
                    .to_owned(),
                "change one line: first ] or [ to names-a-version, then e".to_owned(),
                "] or [: names-a-version".to_owned(),
            ),
            // This step names a file, so it has one more version that fits the name only if there is room.
            TourStep::ChangeALine => {
                let change = r"'Beamline \d\.\d\b' into 'Beamline \d+\.\d+\b'";
                return vec![
                    (
                        long.clone(),
                        format!(
                            "change one line: on names-a-version, e opens the rubric; make {change} and save \
                             (or edit {} in another editor)",
                            rubric.display()
                        ),
                    ),
                    (
                        long.clone(),
                        format!("in rubrics/beamline.yaml (e opens it) make {change}, save"),
                    ),
                    (long, format!("e: make {change}, save")),
                    (short, "e: fix names-a-version".to_owned()),
                ];
            }
            TourStep::WatchTheFlip => (
                format!(
                    "watch the flip {fail}{arrow}{pass}: 7 shows what moved, next to your edit"
                ),
                format!("watch the flip {fail}{arrow}{pass}: 7 shows what moved"),
                "7 shows what moved".to_owned(),
            ),
            TourStep::Replay => (
                "replay: on a judged cell (newest, faithful) v replays its run, q comes back"
                    .to_owned(),
                "replay: on a judged cell v replays its run, q comes back".to_owned(),
                "v replays, q comes back".to_owned(),
            ),
            TourStep::UseYourOwn => (
                "use your own: q, then `dicta open FILE`, where W makes a workspace (0 hides this)"
                    .to_owned(),
                "use your own: q, `dicta open FILE`, W (0 hides this)".to_owned(),
                "dicta open FILE (0 hides)".to_owned(),
            ),
        };
        vec![(long.clone(), in_full), (long, brief), (short, least)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The third step names a text of the demo, and its replacement fixes the planted bug.
    #[test]
    fn demo_contains_line_that_tour_changes() {
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-runs/demo");
        let path = demo.join("rubrics/beamline.yaml");
        let text = std::fs::read_to_string(&path).expect("the demo is there");
        let mut tour = Tour::default();
        tour.complete_step(TourStep::Run);
        tour.complete_step(TourStep::LookAtFailure);
        let elsewhere = tour.format_step(&Glyphs::ASCII, &path, false);
        let names_the_way = |(_, line): &(String, String)| line.contains("names-a-version");
        assert!(elsewhere.iter().all(names_the_way), "{elsewhere:?}");
        let lines = tour.format_step(&Glyphs::ASCII, &path, true);
        let (mark, line) = &lines[0];
        assert_eq!(mark, "tour ++.... 3/6");
        let quoted: Vec<&str> = line.split('\'').skip(1).step_by(2).collect();
        assert_eq!(quoted, [r"Beamline \d\.\d\b", r"Beamline \d+\.\d+\b"]);
        assert_eq!(text.matches(&format!("'{}'", quoted[0])).count(), 1);
        let fixed = regex::Regex::new(quoted[1]).expect("a regex");
        let found: Vec<bool> = ["Beamline 2.11.0", "Beamline 2.9", "the newest one"]
            .iter()
            .map(|answer| fixed.is_match(answer))
            .collect();
        assert_eq!(found, [true, true, false]);
        assert!(line.contains("beamline.yaml"));
        // The version for a terminal of 80 columns also contains the whole change.
        assert!(lines.iter().any(|(mark, line)| {
            mark.len() + line.len() + 4 <= 80 && quoted.iter().all(|part| line.contains(part))
        }));
    }

    #[test]
    fn every_tour_step_has_text_for_narrow_screen() {
        for step in 0..6 {
            let mut tour = Tour::default();
            for done in &mut tour.done[..step] {
                *done = true;
            }
            let width =
                |(mark, text): &(String, String)| mark.chars().count() + text.chars().count() + 3;
            for opens_rubric in [true, false] {
                let path = Path::new("/a/rubrics/beamline.yaml");
                let lines = tour.format_step(&Glyphs::UNICODE, path, opens_rubric);
                assert!(lines.iter().any(|line| width(line) <= 80), "{lines:?}");
                assert!(width(&lines[lines.len() - 1]) <= 38, "{lines:?}");
                // The words are plain: a pane has a reason.
                assert!(lines.iter().all(|(_, text)| !text.contains(" says ")));
            }
        }
    }
}
