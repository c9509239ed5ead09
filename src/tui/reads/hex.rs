//! Prints binary data as a hex dump: 16 bytes per row, as numbers and as ASCII.

use std::fmt::Write as _;

/// The number of bytes in a dump; the text is about four times as long.
const MAX_DUMPED_BYTES: usize = 64 << 10;
/// The number of bytes that are checked to distinguish text from binary data.
const MAX_SNIFFED_BYTES: usize = 4096;
/// The number of bytes in a row.
const BYTES_PER_ROW: usize = 16;

/// Returns true if bytes that are not valid UTF-8 are not text in another encoding either: text contains no control
/// characters except white space.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    // Form feed and escape occur in text files: page breaks and terminal colors.
    let is_control = |byte: &&u8| **byte < 0x20 && !b"\t\n\r\x0c\x1b".contains(byte);
    bytes
        .iter()
        // The beginning is enough; the check must be fast for a large blob.
        .take(MAX_SNIFFED_BYTES)
        .any(|byte| is_control(&byte))
}

/// Returns the dump, `00000000  89 50 4e 47 …  .PNG…`, with a heading that states the total size.
pub(super) fn hex_dump(bytes: &[u8]) -> String {
    let dumped = &bytes[..bytes.len().min(MAX_DUMPED_BYTES)];
    let mut out = format!("{} bytes of binary data, in hexadecimal", bytes.len());
    if dumped.len() < bytes.len() {
        let _infallible = write!(out, "; the first {} of them", dumped.len());
    }
    out.push('\n');
    for (row, bytes) in dumped.chunks(BYTES_PER_ROW).enumerate() {
        let _infallible = write!(out, "\n{:08x} ", row * BYTES_PER_ROW);
        // The last row may be short; spaces keep its ASCII column aligned.
        for at in 0..BYTES_PER_ROW {
            let _infallible = match bytes.get(at) {
                Some(byte) => write!(out, " {byte:02x}"),
                None => write!(out, "   "),
            };
        }
        out.push_str("  ");
        // Any other byte could be a control character of the terminal.
        let sign = |byte: &u8| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '.',
        };
        out.extend(bytes.iter().map(sign));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_dump_has_sixteen_bytes_per_row_without_controls() {
        let text = hex_dump(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x01");
        assert_eq!(
            text,
            "17 bytes of binary data, in hexadecimal\n\
             \n00000000  89 50 4e 47 0d 0a 1a 0a 00 00 00 0d 49 48 44 52  .PNG........IHDR\
             \n00000010  01                                               ."
        );
        let long = hex_dump(&vec![0; MAX_DUMPED_BYTES + 1]);
        assert!(
            long.starts_with(
                "65537 bytes of binary data, in hexadecimal; the first 65536 of them\n"
            )
        );
        assert_eq!(long.lines().count(), 2 + MAX_DUMPED_BYTES / BYTES_PER_ROW);
    }

    #[test]
    fn text_in_other_encoding_is_not_binary() {
        assert!(!is_binary(b"caf\xe9\r\n\tau lait"));
        assert!(is_binary(b"\x89PNG\r\n\x1a\n"));
        assert!(is_binary(b"\xff\xd8\xff\xe0\0\x10JFIF"));
    }
}
