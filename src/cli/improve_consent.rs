//! The price of `dicta improve`, and the user's consent to all of its calls.
//!
//! Responsible for the price of the runs and of the question together. Does not run or ask anything.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::consent::{announce_paid_calls, calls_to_json, describe_calls, print_dry_run};
use super::error::CommandError;
use super::improve::ImproveCx;
use super::trust::confirm_sends;
use super::variant_runs::{confirm_variant, preview_variant};
use crate::model::{JudgeConfig, pluralize};
use crate::run::{
    CachePolicy, MAX_PROPOSAL_PROMPT_BYTES, PaidCalls, PartLabel, PreparedVariant, preview_question,
};
use crate::workspace::trust::list_judge_sends;

impl ImproveCx<'_> {
    /// Prices all calls, and asks about them. Returns an exit code after a dry run.
    pub(super) fn ask_for_consent(
        &self,
        judge: &JudgeConfig,
        train: &[PartLabel],
        dev: &[PartLabel],
    ) -> Result<Option<u8>, CommandError> {
        let (args, cx) = (self.args, self.cx);
        let on_train = self.prepare(&self.base, train)?;
        let on_dev = self.prepare(&self.base, dev)?;
        // No verdict of a proposal is recorded, so each costs what the present text costs without the cache.
        let mut afresh = on_dev.clone();
        afresh.options.cache = CachePolicy::Off;
        let preview = |variant: &PreparedVariant| {
            preview_variant(variant, &self.runtime, cx)
                .map_err(|error| CommandError::from_error(&error))
        };
        let (train_calls, dev_calls, proposal_calls) =
            (preview(&on_train)?, preview(&on_dev)?, preview(&afresh)?);
        let question = preview_question(judge, MAX_PROPOSAL_PROMPT_BYTES);
        let proposals = (0..args.proposals).flat_map(|_| &proposal_calls.judges);
        let judged = train_calls
            .judges
            .iter()
            .chain(&dev_calls.judges)
            .chain(proposals);
        let judged = judged.map(|(name, one)| (name.as_str(), one));
        let asked = (judge.name.as_str(), &question);
        let calls = PaidCalls::of_judges(judged.chain([asked]));
        if args.calls.dry_run {
            let asked = PaidCalls::of_judges([asked]);
            let parts = [
                (
                    "train_labels",
                    format!(
                        "the present text on {}",
                        pluralize(train.len() as u64, "train label")
                    ),
                    "cell",
                    PaidCalls::of_run(&train_calls),
                ),
                (
                    "question",
                    "the question for proposals".to_owned(),
                    "question",
                    asked,
                ),
                (
                    "dev_labels",
                    format!(
                        "the present text on {}",
                        pluralize(dev.len() as u64, "dev label")
                    ),
                    "cell",
                    PaidCalls::of_run(&dev_calls),
                ),
                (
                    "each_proposal",
                    "each proposal on them".to_owned(),
                    "cell",
                    PaidCalls::of_run(&proposal_calls),
                ),
            ];
            let plan = || {
                let parts = parts.iter();
                let parts =
                    parts.map(|(part, .., calls)| ((*part).to_owned(), calls_to_json(calls)));
                json!({
                    "train_labels": train.len(),
                    "dev_labels": dev.len(),
                    "proposals": args.proposals,
                    "parts": parts.collect::<Map<String, Value>>(),
                })
            };
            let human = || {
                let mut out = String::new();
                for (_, what, noun, calls) in &parts {
                    let _infallible = writeln!(out, "{what}: {}", describe_calls(calls, noun));
                }
                let _infallible = write!(
                    out,
                    "together, with up to {}: {}",
                    pluralize(u64::from(args.proposals), "proposal"),
                    describe_calls(&calls, "call")
                );
                out
            };
            print_dry_run("improve", args.format, &calls, plan, human, cx)?;
            return Ok(Some(0));
        }
        if args.calls.consent.max_cost.is_some() && !judge.is_free() && judge.pricing().is_none() {
            return Err(CommandError::usage(format!(
                "judge `{}`: the price of {} is not known, and `--max-cost` limits the cost; add `prices: {{ input: …, output: … \
                 }}` to the judge",
                judge.name, judge.model
            )));
        }
        for variant in [&on_train, &on_dev] {
            confirm_variant(variant, cx)?;
        }
        // The model that is asked may be another judge, and a refusal after the paid runs would waste them.
        let sends = list_judge_sends([judge], &cx.env);
        confirm_sends(&self.workspace.root, sends, cx)?;
        let limit_usd = self.workspace.limits.confirm_usd;
        announce_paid_calls(&calls, "call", limit_usd, &args.calls.consent, cx)?;
        Ok(None)
    }
}
