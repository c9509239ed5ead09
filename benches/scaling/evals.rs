//! Runs and reports with many evals, many members of a jury, or many notes.

use std::sync::Arc;

use dicta::event::{CellKey, EventKind, JudgeSpec, RunEvent};
use dicta::model::{
    CellIx, Digest, EvalWhole, JudgeConfig, Label, Labels, Panel, PanelRule, ProviderKind,
};
use dicta::report::ReportFormat;
use dicta::review::{ModeList, NoteOutcome, ReviewBook, ReviewNote};
use dicta::run::DecisionFilter;

use crate::folds::{
    cell, header, key, number_events, report_case, report_work, result, settle_all, transcript,
};
use crate::{Case, Work};

/// The cases of many evals.
pub(crate) fn cases() -> Vec<Case> {
    vec![
        report_case(
            "members of one jury",
            2000,
            jury_members,
            ReportFormat::Human,
        ),
        Case {
            name: "report markdown, labels of the parts of many evals".to_owned(),
            unit: 500,
            prepare: Box::new(prepare_labelled_parts),
        },
        Case {
            name: "filter, evals by id".to_owned(),
            unit: 1000,
            prepare: Box::new(|n| {
                let ids: Vec<String> = (0..n).map(|number| format!("eval-{number}")).collect();
                filter_work(ids.clone(), move || {
                    let text = format!("eval:\"{}\"", ids.join(","));
                    DecisionFilter::parse(&text).expect("a filter")
                })
            }),
        },
        Case {
            name: "filter, evals of named decisions".to_owned(),
            unit: 1000,
            prepare: Box::new(|n| {
                let ids: Vec<String> = (0..n).map(|number| format!("eval-{number}")).collect();
                let names: Vec<String> = ids.iter().map(|id| format!("t/r/{id}")).collect();
                filter_work(ids, move || DecisionFilter::from_names(names.clone()))
            }),
        },
        Case {
            name: "review, notes that are added at once".to_owned(),
            unit: 2000,
            prepare: Box::new(|n| {
                let note = |number: usize| {
                    ReviewNote::new(format!("note-{number}"), "transcript", NoteOutcome::Failure)
                };
                let notes: Vec<ReviewNote> = (0..n).map(note).collect();
                Box::new(move || {
                    let mut book = ReviewBook::from_records([], ModeList::default());
                    book.add(&notes);
                    book.notes.len()
                })
            }),
        },
    ]
}

/// Returns the work that asks for each eval whether a filter may select it.
fn filter_work(ids: Vec<String>, make: impl Fn() -> DecisionFilter + 'static) -> Work {
    Box::new(move || {
        let filter = make();
        let selected = ids.iter().filter(|id| filter.may_select("r", id, &[], &[]));
        selected.count()
    })
}

/// A run of one eval that a jury of `n` judges decides, one after the other.
fn jury_members(n: usize) -> Vec<RunEvent> {
    let members = u32::try_from(n).expect("few judges");
    let mut started = header(1);
    if let EventKind::RunStarted(header) = &mut started {
        header.judges = (0..members)
            .map(|number| {
                let config = JudgeConfig::new(format!("judge-{number}"), ProviderKind::Rules);
                JudgeSpec::new(config, Digest::hash_bytes(&number.to_le_bytes()))
            })
            .collect();
        header.evals[0].panel = Some(Panel {
            rule: PanelRule::Unanimity,
            judges: (0..members).collect(),
        });
    }
    let member = |judge| CellKey {
        judge: Some(judge),
        ..key(0, None)
    };
    let mut kinds = vec![
        started,
        EventKind::CellsPlanned {
            transcript: transcript(0),
            first: CellIx(0),
            keys: (0..members).map(member).collect(),
        },
    ];
    let finished = (0..n).map(|number| EventKind::CellFinished {
        cell: cell(number),
        result: Arc::new(result(number)),
    });
    kinds.extend(finished);
    number_events(kinds)
}

/// A run of `n` evals over one transcript. Every two are the parts of another eval, which has a label. The work reports
/// it.
fn prepare_labelled_parts(n: usize) -> Work {
    let mut started = header(1);
    let evals = u32::try_from(n).expect("few evals");
    if let EventKind::RunStarted(header) = &mut started {
        let first = header.evals[0].clone();
        header.evals = (0..evals)
            .map(|number| {
                let mut part = first.clone();
                part.id = format!("eval-{}.{}", number / 2, number % 2);
                part.part_of = Some(EvalWhole {
                    id: format!("eval-{}", number / 2),
                    question: Digest::hash_bytes(&(number / 2).to_le_bytes()),
                });
                part
            })
            .collect();
    }
    let judged = transcript(0);
    let wholes = (0..n / 2).map(|number| Label {
        rubric: Some("r".to_owned()),
        ..Label::new(&judged.id, &format!("eval-{number}"), Some(true))
    });
    let labels = Labels::new(wholes);
    let planned = EventKind::CellsPlanned {
        transcript: judged,
        first: cell(0),
        keys: (0..evals).map(|eval| key(eval, None)).collect(),
    };
    let events = number_events(vec![started, planned, settle_all(0..n)]);
    report_work(events, labels, ReportFormat::Markdown)
}
