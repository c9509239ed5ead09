//! Pieces of a page for the tokenizer, and the count of the attributes of the tag that it reads.
//!
//! html5ever compares each attribute of a tag with all earlier ones, so a tag costs the square of their number. It
//! reports a tag only at its end. So dicta counts the attributes itself, and reads no page that has too many.

/// The largest number of attributes of one tag. Tags of real pages have under a hundred.
pub(super) const MAX_ATTRIBUTES: usize = 2000;

/// The largest size of a piece, in bytes. The conversion checks between two pieces whether it has to stop.
pub(super) const MAX_PIECE_BYTES: usize = 16 << 10;

/// Splits the first piece from a page that is not empty. A piece contains `<` only as its first character.
pub(super) fn split_first_piece(html: &str) -> (&str, &str) {
    let mut end = html.floor_char_boundary(MAX_PIECE_BYTES);
    // Bytes, because the first character may have several of them.
    let next = html.as_bytes()[1..end]
        .iter()
        .position(|byte| *byte == b'<');
    if let Some(at) = next {
        end = at + 1;
    }
    html.split_at(end)
}

/// Returns the length of the beginning of a tag or a comment at the start of a piece: `<a`, `</a`, `<!`, `<?`. Zero for
/// other text.
pub(super) fn opening_len(piece: &str) -> usize {
    match piece.as_bytes() {
        [b'<', b'/', letter, ..] if letter.is_ascii_alphabetic() => 3,
        [b'<', first, ..] if first.is_ascii_alphabetic() || matches!(first, b'!' | b'?') => 2,
        _ => 0,
    }
}

/// The unfinished part of the page from which the tokenizer has returned nothing yet.
#[derive(Debug, Default)]
pub(super) enum OpenMarkup {
    /// None: the tokenizer returned all text so far.
    #[default]
    None,
    /// A tag.
    Tag(AttributeCounter),
    /// A comment or a declaration. It ends with a token of its own.
    Other,
}

impl OpenMarkup {
    /// Returns false if the open tag has too many attributes, after this piece.
    pub(super) fn accepts(&mut self, piece: &str) -> bool {
        match self {
            Self::Tag(counter) => counter.count(piece) <= MAX_ATTRIBUTES,
            Self::None | Self::Other => true,
        }
    }

    /// Notes that the tokenizer returned something, or returned nothing for the `rest` of a piece after its `opening`.
    pub(super) fn note(&mut self, returned: bool, opening: &str, rest: &str) {
        if returned {
            *self = Self::None;
        } else if matches!(self, Self::None) && !opening.is_empty() && !rest.is_empty() {
            // In a script or a title, the same text is plain, and the tokenizer returns it at once.
            *self = if opening.ends_with(|last: char| last.is_ascii_alphabetic()) {
                let mut counter = AttributeCounter::default();
                counter.count(rest);
                Self::Tag(counter)
            } else {
                Self::Other
            };
        }
    }
}

/// The position in a tag, as in section 13.2.5 of the HTML standard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum TagState {
    #[default]
    TagName,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Quoted(u8),
    Unquoted,
    End,
}

/// The number of attributes of a tag, from the end of `<a`.
#[derive(Debug, Default)]
pub(super) struct AttributeCounter {
    state: TagState,
    attributes: usize,
}

impl AttributeCounter {
    /// Reads further text of the tag, and returns the number of attributes so far.
    fn count(&mut self, text: &str) -> usize {
        for byte in text.bytes() {
            self.state = self.next_state(byte);
        }
        self.attributes
    }

    fn next_state(&mut self, byte: u8) -> TagState {
        let is_space = matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ');
        match (self.state, byte) {
            (TagState::Quoted(mark), _) if byte == mark => TagState::BeforeName,
            (TagState::Quoted(mark), _) => TagState::Quoted(mark),
            (TagState::End, _) | (_, b'>') => TagState::End,
            (TagState::BeforeValue, _) if is_space => TagState::BeforeValue,
            (TagState::BeforeValue, b'"' | b'\'') => TagState::Quoted(byte),
            (TagState::BeforeValue, _) => TagState::Unquoted,
            (TagState::Unquoted, _) if !is_space => TagState::Unquoted,
            (TagState::Name | TagState::AfterName, b'=') => TagState::BeforeValue,
            (TagState::Name | TagState::AfterName, _) if is_space => TagState::AfterName,
            (_, b'/') => TagState::BeforeName,
            _ if is_space => TagState::BeforeName,
            (TagState::TagName | TagState::Name, _) => self.state,
            _ => {
                self.attributes += 1;
                TagState::Name
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_counted_as_the_tokenizer_reads_them() {
        for (rest, count) in [
            ("", 0),
            (" ", 0),
            ("bc/", 0),
            (" x", 1),
            (" x y=1\tz='a b c' /w", 4),
            (" x=\"a > b = c\" y", 2),
            (" x = 'y' z", 2),
            (" x=a/b/c y", 2),
            (" x='1'y=2", 2),
            (" =a =b", 1),
            (" \"a b\"", 2),
            (" x> y z", 1),
            (" x=> y z", 1),
        ] {
            assert_eq!(AttributeCounter::default().count(rest), count, "<a{rest}");
        }
    }

    #[test]
    fn pieces_begin_at_brackets_and_have_limited_sizes() {
        let page = format!("é<b<<a>{}<i", "é".repeat(MAX_PIECE_BYTES));
        let (mut pieces, mut rest) = (Vec::new(), page.as_str());
        while !rest.is_empty() {
            let (piece, tail) = split_first_piece(rest);
            assert!(piece.len() <= MAX_PIECE_BYTES, "{}", piece.len());
            pieces.push(piece);
            rest = tail;
        }
        assert_eq!(pieces.concat(), page);
        assert_eq!(pieces[..3], ["é", "<b", "<"]);
        assert_eq!(pieces.last(), Some(&"<i"));
        let lengths =
            ["<b", "</b>", "<!--", "<?x", "<", "< a", "</", "</>", "text"].map(opening_len);
        assert_eq!(lengths, [2, 3, 2, 2, 0, 0, 0, 0, 0]);
    }
}
