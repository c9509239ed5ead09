//! Zip files made byte by byte, so that they can be odd.

use std::io::{Read as _, Write as _};

use flate2::{Compression, Crc, write::DeflateEncoder};

/// The compression method of a member.
#[derive(Debug, Clone, Copy)]
pub(super) enum Method {
    Stored,
    Deflate,
    /// So many frames, one after another.
    Zstd(usize),
}

#[derive(Debug, Default)]
pub(super) struct Zip {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    members: u64,
    /// The common fields of the last member, and its offset.
    last: Option<(Vec<u8>, u32)>,
}

impl Zip {
    pub(super) fn add(self, name: &str, text: impl AsRef<[u8]>, method: Method) -> Self {
        let text = text.as_ref();
        let (number, packed) = match method {
            Method::Stored => (0, text.to_vec()),
            Method::Deflate => {
                let mut packer = DeflateEncoder::new(Vec::new(), Compression::fast());
                packer.write_all(text).expect("packed");
                (8, packer.finish().expect("packed"))
            }
            Method::Zstd(frames) => {
                let each = text.len().div_ceil(frames).max(1);
                (93, text.chunks(each).flat_map(frame).collect())
            }
        };
        let mut crc = Crc::new();
        crc.update(text);
        self.add_packed(name, number, crc.sum(), text.len(), &packed)
    }

    /// A member whose facts may be lies.
    pub(super) fn add_packed(
        mut self,
        name: &str,
        method: u16,
        crc: u32,
        size: usize,
        packed: &[u8],
    ) -> Self {
        let offset = u32::try_from(self.bytes.len()).expect("small");
        let mut common = Vec::new();
        for number in [if method == 93 { 63u16 } else { 20 }, 0x800, method, 0, 0] {
            common.extend(number.to_le_bytes());
        }
        for number in [
            crc,
            u32::try_from(packed.len()).expect("small"),
            u32::try_from(size).expect("small"),
        ] {
            common.extend(number.to_le_bytes());
        }
        common.extend(u16::try_from(name.len()).expect("short").to_le_bytes());
        common.extend(0u16.to_le_bytes());
        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(&common);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(packed);
        self.directory.extend(b"PK\x01\x02");
        self.directory.extend(63u16.to_le_bytes());
        self.directory.extend(&common);
        self.directory.extend([0; 10]);
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.members += 1;
        self.last = Some((common, offset));
        self
    }

    /// A further entry of the directory for the data of the last member.
    pub(super) fn add_alias(mut self, name: &str) -> Self {
        let (common, offset) = self.last.as_ref().expect("a member");
        self.directory.extend(b"PK\x01\x02");
        self.directory.extend(63u16.to_le_bytes());
        self.directory.extend(&common[..common.len() - 4]);
        self.directory
            .extend(u16::try_from(name.len()).expect("short").to_le_bytes());
        self.directory.extend(0u16.to_le_bytes());
        self.directory.extend([0; 10]);
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.members += 1;
        self
    }

    /// The file with its directory.
    pub(super) fn finish(self) -> Vec<u8> {
        let members = u16::try_from(self.members).expect("few");
        let size = u32::try_from(self.directory.len()).expect("small");
        let start = u32::try_from(self.bytes.len()).expect("small");
        self.ended([members, members], [size, start], &[])
    }

    /// The same with the directory's numbers in the larger form, as files beyond 4 GiB or 65,535 members have them.
    pub(super) fn finish_64(self) -> Vec<u8> {
        let mut end = b"PK\x06\x06".to_vec();
        end.extend(44u64.to_le_bytes());
        end.extend([45, 0, 45, 0]);
        end.extend([0; 8]);
        let start = self.bytes.len() as u64;
        let size = self.directory.len() as u64;
        for number in [self.members, self.members, size, start] {
            end.extend(number.to_le_bytes());
        }
        end.extend(b"PK\x06\x07");
        end.extend(0u32.to_le_bytes());
        end.extend((start + size).to_le_bytes());
        end.extend(1u32.to_le_bytes());
        self.ended([u16::MAX; 2], [u32::MAX; 2], &end)
    }

    fn ended(self, members: [u16; 2], place: [u32; 2], before: &[u8]) -> Vec<u8> {
        let mut file = self.bytes;
        file.extend(self.directory);
        file.extend(before);
        file.extend(b"PK\x05\x06");
        file.extend([0; 4]);
        file.extend(members.map(u16::to_le_bytes).concat());
        file.extend(place.map(u32::to_le_bytes).concat());
        file.extend([0; 2]);
        file
    }
}

/// One Zstandard frame, as the crate packs it.
pub(super) fn frame(text: &[u8]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let how =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Zstd);
    writer.start_file("x", how).expect("begun");
    writer.write_all(text).expect("packed");
    let made = writer.finish().expect("finished");
    let mut packed = Vec::new();
    let mut made = zip::ZipArchive::new(made).expect("a zip file");
    made.by_index_raw(0)
        .expect("a member")
        .read_to_end(&mut packed)
        .expect("read");
    packed
}
