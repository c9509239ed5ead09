//! Bytes that are no text, so that they can be looked at: sixteen a row, as numbers and as far as they are ASCII.

use std::fmt::Write as _;

/// So much of it is shown, in bytes: a text of four times that.
const MAX_DUMPED_BYTES: usize = 64 << 10;
/// So much of it is looked at to tell a text from what is none, in bytes.
const MAX_SNIFFED_BYTES: usize = 4096;
/// Bytes of a row.
const BYTES_PER_ROW: usize = 16;

/// Whether bytes that are no UTF-8 are no text in another encoding either: those have no controls but white space.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    let is_control = |byte: &&u8| **byte < 0x20 && !b"\t\n\r\x0c\x1b".contains(byte);
    bytes
        .iter()
        .take(MAX_SNIFFED_BYTES)
        .any(|byte| is_control(&byte))
}

/// `00000000  89 50 4e 47 …  .PNG…`, and how much there is.
pub(super) fn hex_dump(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(MAX_DUMPED_BYTES)];
    let mut out = format!(
        "{} bytes that are no text, as hexadecimal numbers",
        bytes.len()
    );
    if shown.len() < bytes.len() {
        let _infallible = write!(out, "; the first {} of them", shown.len());
    }
    out.push('\n');
    for (row, bytes) in shown.chunks(BYTES_PER_ROW).enumerate() {
        let _infallible = write!(out, "\n{:08x} ", row * BYTES_PER_ROW);
        for at in 0..BYTES_PER_ROW {
            let _infallible = match bytes.get(at) {
                Some(byte) => write!(out, " {byte:02x}"),
                None => write!(out, "   "),
            };
        }
        out.push_str("  ");
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
    fn bytes_stand_in_rows_of_sixteen_and_no_control_gets_through() {
        let text = hex_dump(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x01");
        assert_eq!(
            text,
            "17 bytes that are no text, as hexadecimal numbers\n\
             \n00000000  89 50 4e 47 0d 0a 1a 0a 00 00 00 0d 49 48 44 52  .PNG........IHDR\
             \n00000010  01                                               ."
        );
        let long = hex_dump(&vec![0; MAX_DUMPED_BYTES + 1]);
        assert!(long.starts_with(
            "65537 bytes that are no text, as hexadecimal numbers; the first 65536 of them\n"
        ));
        assert_eq!(long.lines().count(), 2 + MAX_DUMPED_BYTES / BYTES_PER_ROW);
    }

    #[test]
    fn a_text_in_another_encoding_is_no_binary() {
        assert!(!is_binary(b"caf\xe9\r\n\tau lait"));
        assert!(is_binary(b"\x89PNG\r\n\x1a\n"));
        assert!(is_binary(b"\xff\xd8\xff\xe0\0\x10JFIF"));
    }
}
