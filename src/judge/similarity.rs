//! The judge of `similar`: an embedding model, which writes no text.
//!
//! Responsible for the texts that such a judge gets, and for the verdict that the cosines yield. Everything else is common
//! to all judges.

use super::delimiter::Delimiter;
use super::prompt::JudgePrompt;
use crate::handlers::JudgedParams;
use crate::model::{
    CellResult, InstallationSecret, JudgeConfig, Outcome, SIMILAR_EVAL_TYPE, Verdict,
};
use crate::provider::ProviderError;
use crate::provider::embeddings::TextCosines;

/// The version of the texts and of the reading; part of the cache key. Increase it if a verdict could change.
pub(super) const VERSION: u32 = 1;

/// Returns the texts that the judge compares; `None` for a judge that reads a prompt. The judge must fit the eval.
pub(super) fn select_texts<'p>(
    config: &JudgeConfig,
    params: &'p JudgedParams,
) -> Result<Option<&'p [String]>, ProviderError> {
    let (name, provider) = (&config.name, config.provider.as_str());
    match (
        config.provider.is_embeddings(),
        params.compared_texts.is_empty(),
    ) {
        (true, false) => Ok(Some(&params.compared_texts)),
        (false, true) => Ok(None),
        (true, true) => Err(ProviderError::Request(format!(
            "judge {name}: {provider} compares texts and decides only `{SIMILAR_EVAL_TYPE}`; name another `judge:` for this \
             eval"
        ))),
        (false, false) => Err(ProviderError::Request(format!(
            "judge {name}: `{SIMILAR_EVAL_TYPE}` needs a judge with `provider: openai-embeddings` or `gemini-embeddings` \
             (got {provider}); add one to `judges:` and name it as `judge:` of this eval"
        ))),
    }
}

/// Returns the result of `rules`, which has no embeddings.
pub(super) fn result_without_embeddings() -> CellResult {
    CellResult::new(
        Outcome::NotApplicable,
        format!(
            "`rules` compares no embeddings: `{SIMILAR_EVAL_TYPE}` needs a judge with `provider: openai-embeddings` or \
             `gemini-embeddings` in dicta.yaml"
        ),
    )
}

/// Renders the texts. An embedding model follows no instructions, so nothing is around them.
pub(super) fn render_prompt(texts: &[String], secret: &InstallationSecret) -> JudgePrompt {
    let user = serde_json::to_string(texts).unwrap_or_default();
    JudgePrompt {
        system: String::new(),
        delimiter: Delimiter::derive(secret, &[&user]),
        user,
        judged_messages: None,
    }
}

/// Reads the verdict: the largest cosine is the score, and `min_score` or `max_score` decides. The error is a sentence.
pub(super) fn read_reply(reply: &str, text_count: usize) -> Result<Verdict, String> {
    let read: TextCosines = serde_json::from_str(reply)
        .map_err(|error| format!("the reply holds no cosines: {error}"))?;
    let (count, expected) = (read.cosines.len(), text_count.saturating_sub(1));
    // One embedding too few would compare the wrong texts.
    if count != expected {
        return Err(format!(
            "the reply has {} embeddings, and dicta sent {text_count} texts",
            count + 1
        ));
    }
    let is_cosine = |x: &f64| (-1.0..=1.0).contains(x);
    let best = read.cosines.iter().copied().filter(is_cosine);
    let best = best.enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
    let Some((index, cosine)) = best.filter(|_| read.cosines.iter().all(is_cosine)) else {
        return Err("the reply has a number that is not a cosine".to_owned());
    };
    let which = if expected > 1 {
        format!(" (reference {} of {expected})", index + 1)
    } else {
        String::new()
    };
    Ok(Verdict {
        // A score is from 0 to 1, so a negative cosine scores 0.
        score: Some(cosine.max(0.0)),
        reasoning: format!(
            "cosine {cosine:.4}{which}, embeddings of {} numbers",
            read.numbers
        ),
        ..Verdict::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProviderKind;

    #[test]
    fn score_is_the_largest_cosine() {
        let verdict = read_reply(r#"{"cosines":[0.25,0.875],"numbers":3}"#, 3).expect("a verdict");
        assert_eq!((verdict.score, verdict.passed), (Some(0.875), None));
        assert_eq!(
            verdict.reasoning,
            "cosine 0.8750 (reference 2 of 2), embeddings of 3 numbers"
        );
        let away = read_reply(r#"{"cosines":[-0.5],"numbers":3}"#, 2).expect("a verdict");
        assert_eq!(away.score, Some(0.0));
        assert_eq!(away.reasoning, "cosine -0.5000, embeddings of 3 numbers");
    }

    #[test]
    fn reply_of_another_shape_is_no_verdict() {
        for reply in [
            "",
            "{}",
            "0.9",
            r#"{"cosines":[],"numbers":3}"#,
            r#"{"cosines":[0.5,0.5],"numbers":3}"#,
            r#"{"cosines":[1.5],"numbers":3}"#,
            r#"{"cosines":[null],"numbers":3}"#,
        ] {
            assert!(read_reply(reply, 2).is_err(), "{reply}");
        }
    }

    #[test]
    fn judge_and_eval_must_fit() {
        let texts = JudgedParams {
            compared_texts: vec!["a".to_owned(), "b".to_owned()],
            ..JudgedParams::default()
        };
        let question = JudgedParams::default();
        let embeds = JudgeConfig::new("e", ProviderKind::OpenaiEmbeddings);
        let writes = JudgeConfig::new("w", ProviderKind::Openai);
        assert!(select_texts(&embeds, &texts).is_ok_and(|found| found.is_some()));
        assert!(select_texts(&writes, &question).is_ok_and(|found| found.is_none()));
        for (config, params) in [(&embeds, &question), (&writes, &texts)] {
            let error = select_texts(config, params).expect_err("they do not fit");
            assert!(error.to_string().contains("`similar`"), "{error}");
        }
    }
}
