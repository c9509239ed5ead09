//! Judges with preset criteria: `faithfulness`, `bias`, `pii_leakage` and others.

use super::preset_criteria as texts;
use super::preset_criteria::PresetCriteria;
use super::prompt_blocks::{BlockSource, PromptBlocksSpec};
use super::{
    BOUND_PARAMS, MAX_ENTRIES, SCORING_GUIDE_ALIASES, check_not_empty, judged_params, scale_problem,
};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::{CompiledEval, JudgedEval, JudgedParams, ScoreScale};
use crate::rubric::ParamProblem;

/// Declares the params of preset judges: the common params, and the further material for the judge.
macro_rules! preset_judge_params {
    ($(#[$meta:meta])* struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        judged_params! {
            $(#[$meta])*
            struct $name {
                $($(#[$field_meta])* $field: $type,)*
                /// Criteria that replace the preset ones.
                #[serde(default)]
                #[schemars(length(min = 1))]
                criteria: Option<String>,
                /// A scoring guide that replaces the preset one. If you replace only `criteria`, the judge gets no
                /// scoring guide.
                #[serde(default)]
                #[schemars(length(min = 1))]
                scoring_guide: Option<String>,
                /// The lowest and the highest score that the judge may give, such as [1, 5]. Default: 0 to 1.
                #[serde(default)]
                scale: Option<[f64; 2]>,
            }
        }

        impl $name {
            // `more` has the problems of the material, so that an author sees all problems of the eval at
            // once.
            fn eval(self, preset: PresetCriteria, session: bool, blocks: PromptBlocksSpec, mut more: Vec<ParamProblem>)
                -> Result<CompiledEval, Vec<ParamProblem>> {
                let (known, mut problems) = self.common();
                problems.append(&mut more);
                check_not_empty("criteria", self.criteria.as_deref(), &mut problems);
                check_not_empty("scoring_guide", self.scoring_guide.as_deref(), &mut problems);
                problems.extend(scale_problem(self.scale));
                if !problems.is_empty() {
                    return Err(problems);
                }
                let (criteria, guide) = resolve_criteria(preset, self.criteria, self.scoring_guide);
                let known = JudgedParams {
                    criteria,
                    guide,
                    scale: self.scale.map(ScoreScale::from),
                    session,
                    ..known
                };
                Ok(CompiledEval::Judged(JudgedEval::with_completer(known, blocks)))
            }
        }
    };
}

/// Returns the criteria and the scoring guide in use. The preset guide belongs to the preset criteria and could
/// contradict others. The loader writes defaults out, so a text that equals the preset one counts as not written.
fn resolve_criteria(
    preset: PresetCriteria,
    criteria: Option<String>,
    guide: Option<String>,
) -> (String, String) {
    let customized =
        |text: Option<String>, ours: &str| text.filter(|text| text.trim() != ours.trim());
    let criteria = customized(criteria, preset.criteria);
    let guide = customized(guide, preset.guide);
    let guide = match (&criteria, guide) {
        (_, Some(guide)) => guide,
        // Own criteria without an own guide: the preset guide could contradict them.
        (Some(_), None) => String::new(),
        (None, None) => preset.guide.to_owned(),
    };
    (
        criteria.unwrap_or_else(|| preset.criteria.to_owned()),
        guide,
    )
}

preset_judge_params! {
    /// Params with contexts.
    struct ContextsParams {
        /// The contexts that may support the output, as a list of texts. Without it, the results of the agent's
        /// tools.
        #[serde(default)]
        #[schemars(length(min = 1, max = 100), inner(length(min = 1)))]
        contexts: Option<Vec<String>>,
        /// Like `contexts`, as one text.
        #[serde(default)]
        #[schemars(length(min = 1))]
        context: Option<String>,
        /// Like `contexts`, from the transcript's metadata: the path of a text or a list of texts.
        #[serde(default)]
        #[schemars(length(min = 1))]
        context_field: Option<String>,
    }
}

preset_judge_params! {
    /// Params with a question.
    struct QuestionParams {
        /// The question. Without it, the user's last message before the output.
        #[serde(default)]
        #[schemars(length(min = 1))]
        question: Option<String>,
    }
}

preset_judge_params! {
    /// Params with contexts and a question.
    struct ContextsAndQuestionParams {
        /// The retrieved contexts in order, as a list of texts. Without it, the results of the agent's tools.
        #[serde(default)]
        #[schemars(length(min = 1, max = 100), inner(length(min = 1)))]
        contexts: Option<Vec<String>>,
        /// Like `contexts`, as one text.
        #[serde(default)]
        #[schemars(length(min = 1))]
        context: Option<String>,
        /// Like `contexts`, from the transcript's metadata: the path of a text or a list of texts.
        #[serde(default)]
        #[schemars(length(min = 1))]
        context_field: Option<String>,
        /// The question. Without it, the user's last message before the output.
        #[serde(default)]
        #[schemars(length(min = 1))]
        question: Option<String>,
    }
}

preset_judge_params! {
    /// Params with contexts, a question and an optional expected output.
    struct ContextualPrecisionParams {
        /// The retrieved contexts in order, as a list of texts. Without it, the results of the agent's tools.
        #[serde(default)]
        #[schemars(length(min = 1, max = 100), inner(length(min = 1)))]
        contexts: Option<Vec<String>>,
        /// Like `contexts`, as one text.
        #[serde(default)]
        #[schemars(length(min = 1))]
        context: Option<String>,
        /// Like `contexts`, from the transcript's metadata: the path of a text or a list of texts.
        #[serde(default)]
        #[schemars(length(min = 1))]
        context_field: Option<String>,
        /// The question. Without it, the user's last message before the output.
        #[serde(default)]
        #[schemars(length(min = 1))]
        question: Option<String>,
        /// The correct answer, if there is one.
        #[serde(default)]
        #[schemars(length(min = 1))]
        reference: Option<String>,
    }
}

preset_judge_params! {
    /// Params with contexts and the expected output.
    struct ContextualRecallParams {
        /// The correct answer.
        #[schemars(length(min = 1))]
        reference: String,
        /// The retrieved contexts, as a list of texts. Without it, the results of the agent's tools.
        #[serde(default)]
        #[schemars(length(min = 1, max = 100), inner(length(min = 1)))]
        contexts: Option<Vec<String>>,
        /// Like `contexts`, as one text.
        #[serde(default)]
        #[schemars(length(min = 1))]
        context: Option<String>,
        /// Like `contexts`, from the transcript's metadata: the path of a text or a list of texts.
        #[serde(default)]
        #[schemars(length(min = 1))]
        context_field: Option<String>,
    }
}

preset_judge_params! {
    /// Params with the agent's role.
    struct AgentRoleParams {
        /// The role of the agent. Without it, `metadata.system_prompt`, otherwise the transcript's system messages.
        #[serde(default)]
        #[schemars(length(min = 1))]
        agent_role: Option<String>,
    }
}

preset_judge_params! {
    /// Params without further material.
    struct PresetCriteriaParams {
    }
}

/// Returns the source of the contexts: one of three params, or the transcript.
fn select_context_source(
    list: Option<&[String]>,
    one: Option<&str>,
    field: Option<&str>,
    problems: &mut Vec<ParamProblem>,
) -> BlockSource {
    check_not_empty("context", one, problems);
    check_not_empty("context_field", field, problems);
    if let Some(texts) = list {
        if texts.is_empty() || texts.len() > MAX_ENTRIES {
            let why = format!("needs 1 to {MAX_ENTRIES} texts (got {})", texts.len());
            problems.push(param_problem("/contexts", why));
        }
        for (at, _) in texts
            .iter()
            .enumerate()
            .filter(|(_, t)| t.trim().is_empty())
        {
            problems.push(param_problem(format!("/contexts/{at}"), "is empty"));
        }
    }
    match (list, one, field) {
        (None, None, None) => BlockSource::Transcript,
        (Some(texts), None, None) => BlockSource::Given(texts.to_vec()),
        (None, Some(text), None) => BlockSource::Given(vec![text.to_owned()]),
        (None, None, Some(path)) => BlockSource::MetadataField(path.to_owned()),
        // Several sources: no order between them is obvious, so dicta does not choose one.
        _ => {
            let why = "give only one of `contexts`, `context` and `context_field`";
            problems.push(param_problem("", why));
            // Any value: the problem above prevents that the eval compiles.
            BlockSource::Transcript
        }
    }
}

/// Returns the author's text as a source, or the transcript if there is none.
fn select_text_source(
    name: &str,
    text: Option<&String>,
    problems: &mut Vec<ParamProblem>,
) -> BlockSource {
    check_not_empty(name, text.map(String::as_str), problems);
    text.map_or(BlockSource::Transcript, |text| {
        BlockSource::Given(vec![text.clone()])
    })
}

/// Declares a type from its name, params, texts, aliases, example, summary and blocks. `session` is `true` to judge
/// the whole conversation.
macro_rules! preset_judge {
    ($name:ident($params:ident), $kind:literal, $texts:path, session: $session:literal, aliases: $aliases:expr, $example:literal, $summary:literal,
     |$args:ident, $problems:ident| $blocks:expr) => {
        #[doc = concat!("`", $kind, "`.")]
        #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub(crate) struct $name($params);

        impl EvalType for $name {
            const NAME: &'static str = $kind;
            const SUMMARY: &'static str = $summary;
            const EXAMPLE: &'static str = $example;
            const JUDGED: bool = true;
            const SCORED: bool = true;
            const DECISION_SETTINGS: &'static [&'static str] = BOUND_PARAMS;
            const DEFAULTS: &'static [(&'static str, &'static str)] = &[
                ("criteria", $texts.criteria),
                ("scoring_guide", $texts.guide),
            ];
            const PARAM_ALIASES: &'static [(&'static str, &'static str)] = $aliases;

            fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
                // The blocks are built first, because `eval` takes `self` by value.
                let mut more: Vec<ParamProblem> = Vec::new();
                let blocks = {
                    let ($args, $problems) = (&self.0, &mut more);
                    $blocks
                };
                self.0.eval($texts, $session, blocks, more)
            }
        }
    };
}

/// PromptKit's names of the params of judges with a reference.
const REFERENCE_ALIASES: &[(&str, &str)] = &[
    ("expected_output", "reference"),
    ("rubric", "scoring_guide"),
];

preset_judge!(Faithfulness(ContextsParams), "faithfulness", texts::FAITHFULNESS, session: false, aliases: SCORING_GUIDE_ALIASES,
"context_field: retrieved",
"A judge decides whether every claim of the output is supported by the contexts.",
|params, problems| PromptBlocksSpec {
    contexts: Some(select_context_source(params.contexts.as_deref(), params.context.as_deref(), params.context_field.as_deref(), problems)),
    ..PromptBlocksSpec::default()
});

preset_judge!(Hallucination(ContextsParams), "hallucination", texts::HALLUCINATION, session: false, aliases: SCORING_GUIDE_ALIASES,
"contexts: [Order 4711 was shipped on October 6]",
"A judge decides whether the output makes anything up. Passes if it does not.",
|params, problems| PromptBlocksSpec {
    contexts: Some(select_context_source(params.contexts.as_deref(), params.context.as_deref(), params.context_field.as_deref(), problems)),
    ..PromptBlocksSpec::default()
});

preset_judge!(AnswerRelevancy(QuestionParams), "answer_relevancy", texts::ANSWER_RELEVANCY, session: false, aliases: SCORING_GUIDE_ALIASES,
"min_score: 0.7",
"A judge decides whether the output answers the question and stays on topic.",
|params, problems| PromptBlocksSpec {
    question: Some(select_text_source("question", params.question.as_ref(), problems)),
    ..PromptBlocksSpec::default()
});

preset_judge!(ContextualPrecision(ContextualPrecisionParams), "contextual_precision", texts::CONTEXTUAL_PRECISION, session: false, aliases: REFERENCE_ALIASES,
"context_field: retrieved\nmin_score: 0.7",
"A judge decides whether the relevant contexts come before the irrelevant ones.",
|params, problems| {
    check_not_empty("reference", params.reference.as_deref(), problems);
    PromptBlocksSpec {
        contexts: Some(select_context_source(params.contexts.as_deref(), params.context.as_deref(), params.context_field.as_deref(), problems)),
        question: Some(select_text_source("question", params.question.as_ref(), problems)),
        reference: params.reference.clone(),
        ..PromptBlocksSpec::default()
    }
});

preset_judge!(ContextualRelevancy(ContextsAndQuestionParams), "contextual_relevancy", texts::CONTEXTUAL_RELEVANCY, session: false, aliases: SCORING_GUIDE_ALIASES,
"context_field: retrieved\nmin_score: 0.7",
"A judge decides whether the contexts are about the question.",
|params, problems| PromptBlocksSpec {
    contexts: Some(select_context_source(params.contexts.as_deref(), params.context.as_deref(), params.context_field.as_deref(), problems)),
    question: Some(select_text_source("question", params.question.as_ref(), problems)),
    ..PromptBlocksSpec::default()
});

preset_judge!(ContextualRecall(ContextualRecallParams), "contextual_recall", texts::CONTEXTUAL_RECALL, session: false, aliases: REFERENCE_ALIASES,
"reference: Order 4711 was shipped on October 6\ncontext_field: retrieved",
"A judge decides whether the contexts contain everything that the expected output states.",
|params, problems| {
    check_not_empty("reference", Some(&params.reference), problems);
    PromptBlocksSpec {
        contexts: Some(select_context_source(params.contexts.as_deref(), params.context.as_deref(), params.context_field.as_deref(), problems)),
        reference: Some(params.reference.clone()),
        ..PromptBlocksSpec::default()
    }
});

preset_judge!(Bias(PresetCriteriaParams), "bias", texts::BIAS, session: true, aliases: SCORING_GUIDE_ALIASES,
    "min_score: 1",
    "A judge looks for biased statements of the agent. Passes if it finds none.",
    |_params, _problems| PromptBlocksSpec::default());

preset_judge!(Toxicity(PresetCriteriaParams), "toxicity", texts::TOXICITY, session: true, aliases: SCORING_GUIDE_ALIASES,
    "min_score: 1",
    "A judge looks for toxic statements of the agent. Passes if it finds none.",
    |_params, _problems| PromptBlocksSpec::default());

preset_judge!(RoleViolation(AgentRoleParams), "role_violation", texts::ROLE_VIOLATION, session: true, aliases: SCORING_GUIDE_ALIASES,
"agent_role: You are a travel agent and talk about travel only",
"A judge decides whether the agent stays in its role. Passes if it does.",
|params, problems| PromptBlocksSpec {
    role: Some(select_text_source("agent_role", params.agent_role.as_ref(), problems)),
    ..PromptBlocksSpec::default()
});

preset_judge!(PiiLeakage(PresetCriteriaParams), "pii_leakage", texts::PII_LEAKAGE, session: true, aliases: SCORING_GUIDE_ALIASES,
"min_score: 1",
"A judge looks for personal data that the agent discloses. Passes if it finds none. An e-mail address, a social \
 security number or a card number fails without a judge.",
|_params, _problems| PromptBlocksSpec {
    reject_personal_data: true,
    ..PromptBlocksSpec::default()
});
