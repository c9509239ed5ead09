//! The cryptography that `jsonwebtoken` verifies with: `ring`, which is in the tree already.
//!
//! Verifies public-key signatures. Refuses symmetric ones, and signs nothing.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes `ring` the process's cryptography for tokens.
pub(super) fn install() {
    // Whoever came first was this function too: nothing else here names the crate.
    let _installed = PROVIDER.install_default();
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the crate's signature")]
fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the crate's signature")]
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let how = how(*algorithm).ok_or(ErrorKind::UnsupportedAlgorithm)?;
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(ByRing {
        algorithm: *algorithm,
        how,
        key: key.clone(),
    }))
}

#[derive(Clone, Copy)]
enum How {
    Rsa(&'static RsaParameters),
    Other(&'static dyn VerificationAlgorithm),
}

fn how(algorithm: Algorithm) -> Option<How> {
    Some(match algorithm {
        Algorithm::RS256 => How::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => How::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => How::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => How::Rsa(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => How::Rsa(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => How::Rsa(&signature::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => How::Other(&signature::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => How::Other(&signature::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => How::Other(&signature::ED25519),
        _ => return None,
    })
}

struct ByRing {
    algorithm: Algorithm,
    how: How,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for ByRing {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match (self.how, self.key.kind()) {
            (How::Rsa(how), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let (n, e) = (without_zeros(n), without_zeros(e));
                RsaPublicKeyComponents { n, e }.verify(how, message, signature)
            }
            (How::Other(how), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(how, key).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for ByRing {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// Some servers publish numbers with zeros in front, which ring refuses.
fn without_zeros(number: &[u8]) -> &[u8] {
    let from = number.iter().position(|byte| *byte != 0);
    &number[from.unwrap_or(number.len())..]
}
