use std::path::PathBuf;

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};

use super::*;
use crate::model::{Digest, TranscriptRef};
use crate::theme::Theme;
use crate::tui::state::OpenedItem;
use crate::tui::state::document::{DocumentPiece, DocumentState, PieceKind, TranscriptDocument};
use crate::tui::widget::canvas::Canvas;
use crate::tui::widget::flow;

fn span(range: std::ops::Range<usize>, role: Role) -> StyledSpan {
    StyledSpan::new(range, role)
}

#[test]
fn overlaid_spans_are_sorted_and_disjoint() {
    let under = [span(0..5, Role::User), span(10..12, Role::Tool)];
    for (upper, expected) in [
        (
            vec![],
            vec![span(0..5, Role::User), span(10..12, Role::Tool)],
        ),
        (
            vec![span(1..2, Role::Match)],
            vec![
                span(0..1, Role::User),
                span(1..2, Role::Match),
                span(2..5, Role::User),
                span(10..12, Role::Tool),
            ],
        ),
        (
            vec![span(3..11, Role::Match)],
            vec![
                span(0..3, Role::User),
                span(3..11, Role::Match),
                span(11..12, Role::Tool),
            ],
        ),
        (
            vec![span(6..7, Role::Match), span(20..30, Role::Found)],
            vec![
                span(0..5, Role::User),
                span(6..7, Role::Match),
                span(10..12, Role::Tool),
                span(20..30, Role::Found),
            ],
        ),
    ] {
        assert_eq!(overlay_spans(&under, &upper), expected, "{upper:?}");
    }
}

#[test]
fn large_transcript_is_drawn_at_its_end() {
    let pieces: Vec<DocumentPiece> = (0..1_000_000_u32)
        .map(|message| DocumentPiece {
            message,
            part: 0,
            kind: PieceKind::User,
            heading_len: 6,
            range: 6..11,
        })
        .collect();
    let doc = TranscriptDocument {
        id: "long".to_owned(),
        text: "user  hello".to_owned(),
        first_pieces: (0..1_000_000).collect(),
        pieces,
        ..TranscriptDocument::default()
    };
    let theme = Theme::bundled("dark").expect("a bundled theme");
    let opened = OpenedItem::TranscriptFile(PathBuf::from("long.jsonl"));
    let mut app = App::new(opened, Size::new(120, 40), theme);
    app.live_session.transcript_pane.transcript = Some(TranscriptRef {
        part: 0,
        id: "long".to_owned(),
        path: PathBuf::from("long.jsonl"),
        offset: 0,
        len: 0,
        digest: Digest::hash_bytes(b""),
    });
    app.live_session.transcript_pane.document = DocumentState::Loaded(Arc::new(doc));
    app.live_session.transcript_pane.scroll.scroll_to_end();
    let mut buffer = Buffer::empty(Rect::new(0, 0, 30, 3));
    let theme = Arc::clone(&app.ui.theme);
    let source = pane_source(&app, Pane::Transcript);
    assert_eq!(source.len(), 1_000_000);
    let mut canvas = Canvas::<()>::new(&mut buffer, &theme);
    let area = Rect::new(0, 0, 30, 3);
    let drawn = flow::draw(
        &mut canvas,
        area,
        &*source,
        &app.live_session.transcript_pane.scroll,
    );
    assert!(!drawn.more_below);
    let row: String = (0..30).map(|x| buffer[(x, 2)].symbol()).collect();
    assert_eq!(row.trim_end(), " [999999] user  hello");
}
