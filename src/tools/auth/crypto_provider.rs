//! The provider with which `jsonwebtoken` verifies signatures: `ring`, which dicta uses anyway.
//!
//! Verifies public-key signatures. Does not support symmetric ones and does not sign.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: refuse_signer,
    verifier_factory: new_verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs `ring` as the process's provider for tokens.
pub(super) fn install_crypto_provider() {
    // A repeated call fails. Only this function installs a provider, so the installed one is the same.
    let _installed = PROVIDER.install_default();
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the crate's signature")]
fn refuse_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the crate's signature")]
fn new_verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let how = find_ring_algorithm(*algorithm).ok_or(ErrorKind::UnsupportedAlgorithm)?;
    // The key's family is checked again here, so that this provider is safe without its caller.
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(RingVerifier {
        algorithm: *algorithm,
        ring_algorithm: how,
        key: key.clone(),
    }))
}

#[derive(Clone, Copy)]
enum RingAlgorithm {
    Rsa(&'static RsaParameters),
    Other(&'static dyn VerificationAlgorithm),
}

fn find_ring_algorithm(algorithm: Algorithm) -> Option<RingAlgorithm> {
    Some(match algorithm {
        // 2048 bits is the lower limit for RSA keys.
        Algorithm::RS256 => RingAlgorithm::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => RingAlgorithm::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => RingAlgorithm::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => RingAlgorithm::Rsa(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => RingAlgorithm::Rsa(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => RingAlgorithm::Rsa(&signature::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => RingAlgorithm::Other(&signature::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => RingAlgorithm::Other(&signature::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => RingAlgorithm::Other(&signature::ED25519),
        _ => return None,
    })
}

struct RingVerifier {
    algorithm: Algorithm,
    ring_algorithm: RingAlgorithm,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match (self.ring_algorithm, self.key.kind()) {
            (RingAlgorithm::Rsa(how), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let (n, e) = (strip_leading_zeros(n), strip_leading_zeros(e));
                RsaPublicKeyComponents { n, e }.verify(how, message, signature)
            }
            (RingAlgorithm::Other(how), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(how, key).verify(message, signature)
            }
            // A key of another kind than its algorithm cannot verify anything.
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// Removes leading zeros, which some servers publish and ring refuses.
fn strip_leading_zeros(number: &[u8]) -> &[u8] {
    // ring refuses numbers with leading zeros, which some key sets contain.
    let from = number.iter().position(|byte| *byte != 0);
    &number[from.unwrap_or(number.len())..]
}
