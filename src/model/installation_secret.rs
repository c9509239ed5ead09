//! The secret of this installation, and the digests that only this installation can compute.

use std::fmt;

use super::Digest;

/// The secret of this installation: 32 random bytes. dicta derives delimiters and keyed digests from it.
#[derive(Clone, PartialEq, Eq)]
pub struct InstallationSecret([u8; 32]);

impl fmt::Debug for InstallationSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Debug output ends up in logs and panics, and must not reveal the secret.
        f.write_str("InstallationSecret(…)")
    }
}

impl InstallationSecret {
    /// Creates a secret from given bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns a digest of a sequence of parts that only the owner of this secret can compute.
    ///
    /// A plain digest of a short password can be guessed; a recorded keyed digest can't. Each part is preceded by its
    /// length. `purpose` separates the uses of the secret: a digest of one purpose says nothing about another.
    pub fn keyed_digest<'a>(
        &self,
        purpose: &str,
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) -> Digest {
        let key = blake3::derive_key(purpose, &self.0);
        let mut hasher = blake3::Hasher::new_keyed(&key);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Digest(hasher.finalize().to_hex().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyed_digest_depends_on_the_secret_the_purpose_and_each_part() {
        let secret = InstallationSecret::new([7; 32]);
        let digest = |parts: &[&str]| secret.keyed_digest("a", parts.iter().map(|p| p.as_bytes()));
        let one = digest(&["x", "y"]);
        assert_eq!(one, digest(&["x", "y"]));
        assert_ne!(one, digest(&["xy", ""]));
        assert_ne!(one, secret.keyed_digest("b", [b"x".as_slice(), b"y"]));
        let other = InstallationSecret::new([8; 32]);
        assert_ne!(one, other.keyed_digest("a", [b"x".as_slice(), b"y"]));
        assert_ne!(one, Digest::hash_parts([b"x".as_slice(), b"y"]));
        assert_eq!(format!("{secret:?}"), "InstallationSecret(…)");
    }
}
