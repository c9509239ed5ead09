//! The formats that the first bytes of a file show.
//!
//! Responsible for their signatures. Does not know text formats: they are the table in `text_formats.rs`.

#[cfg(feature = "sqlite")]
use super::databases;
use super::{ReaderFactory, inspect};

/// A binary format, detected by its first bytes.
pub(in crate::transcript) struct BinaryFormat {
    /// The first bytes of every file in the format.
    pub(in crate::transcript) magic: &'static [u8],
    /// See [`super::TranscriptFormat::name`].
    pub(in crate::transcript) name: &'static str,
    /// See [`super::TranscriptFormat::create_reader`].
    pub(in crate::transcript) create_reader: Option<ReaderFactory>,
}

/// The binary formats.
pub(in crate::transcript) const BINARY_FORMATS: &[BinaryFormat] = &[
    // A ZIP archive. `inspect` reports an archive that is not an Inspect log.
    BinaryFormat {
        magic: b"PK\x03\x04",
        name: "an Inspect log (.eval)",
        create_reader: Some(inspect::open_eval),
    },
    // dicta recognises the formats below only to name them in the error.
    BinaryFormat {
        magic: b"\x1f\x8b",
        name: "a gzip file",
        create_reader: None,
    },
    BinaryFormat {
        magic: b"\x28\xb5\x2f\xfd",
        name: "a Zstandard file",
        create_reader: None,
    },
    BinaryFormat {
        magic: b"SQLite format 3\0",
        name: "an SQLite database",
        // `databases` names the tables that it does not know.
        #[cfg(feature = "sqlite")]
        create_reader: Some(|source, _| databases::open(source)),
        #[cfg(not(feature = "sqlite"))]
        create_reader: None,
    },
    // With the feature, `source` replaces such a file by its rows.
    #[cfg(not(feature = "parquet"))]
    BinaryFormat {
        magic: b"PAR1",
        name: "a Parquet file (this build omits the feature `parquet`)",
        create_reader: None,
    },
    BinaryFormat {
        magic: b"Obj\x01",
        name: "an Avro file",
        create_reader: None,
    },
];
