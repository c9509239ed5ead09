//! The tour: six steps in the footer of the demo that tick themselves off.

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

/// How far the tour is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tour {
    /// By [`TourStep`].
    pub(crate) done: [bool; 6],
    pub(crate) hidden: bool,
    /// The row that was focused when the run ended: looking at a failure means going to one.
    pub(crate) from: Option<RowId>,
    /// Since when a flip is on the screen.
    pub(crate) flipped: Option<Millis>,
}

/// How long a flip is looked at before the tour goes on.
pub(crate) const LOOKED: Millis = Millis(4000);

impl TourStep {
    /// In order.
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
    /// The first step that is not done; after all, the last.
    pub(crate) fn step(&self) -> TourStep {
        let open = self.done.iter().position(|done| !done);
        TourStep::ALL[open.unwrap_or(5)]
    }

    /// Ticks a step off.
    pub(crate) fn tick(&mut self, step: TourStep) {
        self.done[step as usize] = true;
    }

    /// `tour ✓✓···· 3/6`, and what to do now: the key, or the file and the line in it.
    pub(crate) fn line(&self, glyphs: &Glyphs, rubric: &Path) -> (String, String) {
        let marks: String = self
            .done
            .iter()
            .map(|done| if *done { glyphs.pass } else { glyphs.skipped })
            .collect();
        let step = self.step();
        let (fail, pass, arrow) = (glyphs.fail, glyphs.pass, glyphs.arrow);
        let text = match step {
            TourStep::Run => "run: R judges everything, free and without a network".to_owned(),
            TourStep::LookAtFailure => {
                format!("look at a {fail}: ] jumps to the next failure, 5 shows why")
            }
            TourStep::ChangeALine => format!(
                "change one line: names-a-version says 'Beamline \\d\\.\\d\\b'; make it \
                 'Beamline \\d+\\.\\d+\\b' and save (e, or {})",
                rubric.display()
            ),
            TourStep::WatchTheFlip => {
                format!("watch the flip {fail}{arrow}{pass}: 7 shows what moved, beside your edit")
            }
            TourStep::Replay => {
                "replay: v plays the focused cell's run again, q comes back".to_owned()
            }
            TourStep::UseYourOwn => {
                "use your own: `dicta init my-agent`, or `dicta open FILE` (0 hides this)"
                    .to_owned()
            }
        };
        (format!("tour {marks} {}/6", step as usize + 1), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The third step is only good if following it to the letter mends the planted bug.
    #[test]
    fn the_line_to_change_stands_in_the_demo() {
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-runs/demo");
        let path = demo.join("rubrics/beamline.yaml");
        let text = std::fs::read_to_string(&path).expect("the demo is there");
        let mut tour = Tour::default();
        tour.tick(TourStep::Run);
        tour.tick(TourStep::LookAtFailure);
        let (mark, line) = tour.line(&Glyphs::ASCII, &path);
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
    }
}
