//! `dicta improve EVAL --judge NAME`: asks a model for better criteria or shots. It measures each proposal on the dev
//! labels, and shows the better ones as diffs. `--take N` writes one. Exit code 0: asked and measured; 3: the call failed, or its
//! reply was not usable.
//!
//! Responsible for the order of steps and for the budget over all calls. The prompt has transcripts, labels and notes of
//! train only. Nothing is written into a rubric without `--take`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::error::CommandError;
use super::improve_report::{ImproveReport, ShownProposal, find_refusal};
use super::improve_take::take_proposal;
use super::state_args::ImproveArgs;
use super::trust::confirm_after;
use super::variant_report::VariantReport;
use super::variant_runs::{list_ids, preview_variant, run_variant};
use super::workspace::load_workspace;
use super::{BoundedRuntime, CommandCx, build_runtime};
use crate::compare::{
    collect_decisions, compare_variants_after, read_variant_verdicts, unified_diff,
};
use crate::diag::find_nearest;
use crate::event::RunState;
use crate::handlers::EvalTypeRegistry;
use crate::judge::{ModelAnswer, ModelQuestion};
use crate::model::{Digest, JudgeConfig, SplitPart, format_usd, pluralize};
use crate::rubric::Rubric;
use crate::run::{
    AskJudgeError, ConnectionError, JudgeInquiry, PartLabel, PreparedVariant, Proposal,
    ProposalCase, ProposalPrompt, collect_case_messages, count_earlier_variants, is_built_in,
    list_part_labels, parse_proposals, prepare_variant, preview_question, render_proposal_prompt,
    variant_key, visit_transcripts,
};
use crate::workspace::proposal_log::{LoggedProposal, ProposalCall, add_call, proposals_file_path};
use crate::workspace::variant_file::{Variant, VariantFile};
use crate::workspace::{SECRET_FILE, Workspace, data_dir, load_or_create_installation_secret};

/// The exit code if the call failed or its reply was not usable.
const NO_PROPOSAL: u8 = 3;
/// The keys of the prompt's present texts.
const QUESTION_KEYS: [&str; 3] = ["criteria", "scoring_guide", "shots"];

/// The inputs and the state that all steps share.
pub(super) struct ImproveCx<'a> {
    pub(super) args: &'a ImproveArgs,
    pub(super) cx: &'a CommandCx,
    pub(super) workspace: &'a Arc<Workspace>,
    registry: EvalTypeRegistry,
    pub(super) runtime: BoundedRuntime,
    file: VariantFile,
    pub(super) base: Variant,
    /// The rest of the limit in USD; `None` without a limit.
    left_usd: Option<f64>,
}

/// Asks for proposals, or writes one.
pub(super) fn improve(args: &ImproveArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let opened = load_workspace(args.place.workspace.as_deref(), cx)?;
    opened.announce_briefly(cx);
    let workspace = &opened.workspace;
    let registry = EvalTypeRegistry::builtin();
    let file = VariantFile::of_eval(&args.eval, Vec::new(), workspace, &registry)?;
    if let Some(number) = args.take {
        return take_proposal(number, &file, workspace, &registry, cx);
    }
    let judge = find_judge(args.judge.as_deref().unwrap_or_default(), workspace)?;
    let base = Variant {
        name: "now".to_owned(),
        values: Vec::new(),
    };
    let mut improve = ImproveCx {
        args,
        cx,
        workspace,
        registry,
        runtime: build_runtime()?,
        file,
        base,
        left_usd: args.calls.consent.max_cost,
    };
    let train = improve.list_labels(SplitPart::Train)?;
    let dev = improve.list_labels(SplitPart::Dev)?;
    if let Some(code) = improve.ask_for_consent(judge, &train, &dev)? {
        return Ok(code);
    }
    improve.run(judge, &train, &dev)
}

fn find_judge<'w>(name: &str, workspace: &'w Workspace) -> Result<&'w JudgeConfig, CommandError> {
    let names = || workspace.judges.keys().map(String::as_str);
    let Some(judge) = workspace.judges.get(name) else {
        let hint = find_nearest(name, names()).map_or_else(
            || {
                format!(
                    "the judges here are {}",
                    names().collect::<Vec<_>>().join(", ")
                )
            },
            |near| format!("did you mean `{near}`?"),
        );
        return Err(CommandError::usage(format!(
            "no judge is called `{name}`; {hint}"
        )));
    };
    if is_built_in(judge) {
        return Err(CommandError::usage(
            AskJudgeError::BuiltIn(judge.name.clone()).to_string(),
        ));
    }
    Ok(judge)
}

impl ImproveCx<'_> {
    fn list_labels(&self, part: SplitPart) -> Result<Vec<PartLabel>, CommandError> {
        let Self { cx, workspace, .. } = self;
        let (registry, env) = (&self.registry, &cx.env);
        Ok(list_part_labels(
            &self.file, part, workspace, registry, env, &cx.clock,
        )?)
    }

    pub(super) fn prepare(
        &self,
        variant: &Variant,
        labels: &[PartLabel],
    ) -> Result<PreparedVariant, CommandError> {
        let mut prepared =
            prepare_variant(&self.file, variant, labels, self.workspace, &self.registry)?;
        prepared.options.max_cost_usd = self.left_usd;
        Ok(prepared)
    }

    /// Judges train, asks, measures, and prints.
    fn run(
        &mut self,
        judge: &JudgeConfig,
        train: &[PartLabel],
        dev: &[PartLabel],
    ) -> Result<u8, CommandError> {
        let cx = self.cx;
        let prepared = self.prepare(&self.base, train)?;
        let calls = &self.args.calls;
        let finished = run_variant(
            prepared,
            train,
            &mut self.left_usd,
            calls,
            &self.runtime,
            cx,
        )?;
        let cases = self.collect_cases(&finished.state, train)?;
        let mut report = ImproveReport {
            eval: self.file.eval_name(),
            disagreements: cases.len() as u64,
            train_labels: train.len() as u64,
            measured: None,
            proposals: Vec::new(),
        };
        if cases.is_empty() {
            cx.streams.print_note(
                "note: the judge agrees with every label of train that has a verdict, so there is nothing to learn from; \
                 label more transcripts of train",
            );
            cx.streams
                .print_format(self.args.format, &report.format(self.args.format));
            return Ok(0);
        }
        let question = self.present_texts();
        let folder = data_dir(&cx.env).map_err(|error| CommandError::usage(error.to_string()))?;
        let secret = load_or_create_installation_secret(&folder.join(SECRET_FILE))
            .map_err(|error| CommandError::from_error(&error))?;
        let wanted = self.args.proposals;
        let prompt = render_proposal_prompt(&question, &cases, wanted, &secret);
        self.check_limit(judge, &prompt)?;
        cx.streams.print_note(&format!(
            "asking {} for proposals, with {} of {}",
            judge.name,
            prompt.cases,
            pluralize(cases.len() as u64, "case")
        ));
        let reply = self.ask(judge, &prompt)?;
        let cost_usd = self.subtract_question(judge, &prompt, &reply);
        let mut call = ProposalCall {
            at: cx.clock.wall_time(),
            eval: self.file.eval_name(),
            judge: judge.name.clone(),
            model: judge.model.clone(),
            rubric_digest: Digest::hash_bytes(self.file.rubric.source.as_bytes()),
            system: prompt.system,
            user: prompt.user,
            reply: reply.as_ref().ok().map(|reply| reply.text.clone()),
            error: None,
            cost_usd,
            proposals: Vec::new(),
        };
        let parsed = reply.map_err(|error| error.to_string()).and_then(|reply| {
            parse_proposals(&reply.text, &question, wanted).map_err(|error| error.to_string())
        });
        let found = match parsed {
            Ok(found) => found,
            Err(why) => {
                call.error = Some(why.clone());
                self.record(&call)?;
                let cost = cost_usd.map_or_else(|| "an unknown cost".to_owned(), format_usd);
                let file = proposals_file_path(&self.workspace.labels_file_path());
                cx.streams.print_note(&format!(
                    "note: the call gave no proposal and cost {cost}: {}; {} has the prompt and the reply",
                    crate::model::make_visible(&why, false),
                    file.display()
                ));
                return Ok(NO_PROPOSAL);
            }
        };
        self.measure(&found, dev, &mut report)?;
        for (proposal, shown) in found.iter().zip(&report.proposals) {
            call.proposals.push(LoggedProposal {
                number: proposal.number,
                why: proposal.why.clone(),
                values: proposal
                    .change
                    .as_ref()
                    .map(|variant| variant.values.clone())
                    .unwrap_or_default(),
                refused: shown.refused.clone(),
            });
        }
        self.record(&call)?;
        cx.streams
            .print_format(self.args.format, &report.format(self.args.format));
        Ok(0)
    }

    fn record(&self, call: &ProposalCall) -> Result<(), CommandError> {
        let labels = self.workspace.labels_file_path();
        add_call(&labels, call).map_err(|error| {
            let file = proposals_file_path(&labels);
            CommandError::write_failed(&file.display().to_string(), &error)
        })
    }

    /// Returns the disagreements with the labels of train, each with its transcript.
    fn collect_cases(
        &self,
        state: &RunState,
        train: &[PartLabel],
    ) -> Result<Vec<ProposalCase>, CommandError> {
        let verdicts = read_variant_verdicts("now", state, &list_ids(train)).verdicts;
        let mut reasons: HashMap<String, String> = HashMap::new();
        for (name, explained) in collect_decisions(state) {
            let is_verdict = explained.decision.outcome.is_verdict();
            let is_fail = explained.decision.outcome.passed() == Some(false);
            // Of several criteria, those that fail explain the verdict.
            if is_fail || (is_verdict && !reasons.contains_key(&name.transcript)) {
                reasons.insert(name.transcript, explained.explanation);
            }
        }
        let mut cases: Vec<ProposalCase> = train
            .iter()
            .zip(verdicts)
            .filter(|(label, verdict)| verdict.is_some_and(|verdict| verdict != label.passed))
            .map(|(label, _)| ProposalCase {
                id: label.transcript.clone(),
                label: label.passed,
                reason: reasons.remove(&label.transcript).unwrap_or_default(),
                notes: label.notes.clone(),
                messages: Vec::new(),
            })
            .collect();
        let places: HashMap<String, usize> = cases
            .iter()
            .enumerate()
            .map(|(at, case)| (case.id.clone(), at))
            .collect();
        let Workspace {
            transcripts,
            field_maps,
            ..
        } = &**self.workspace;
        visit_transcripts(transcripts, field_maps, &mut |reference, transcript| {
            if let Some(at) = places.get(&reference.id) {
                cases[*at].messages = collect_case_messages(transcript);
            }
        })
        .map_err(|error| CommandError::usage(error.to_string()))?;
        Ok(cases)
    }

    /// Returns the present texts of the eval, as the file writes them.
    fn present_texts(&self) -> Value {
        let rubric = &self.file.rubric;
        let mut evals = rubric
            .evals
            .iter()
            .filter(|eval| self.file.has_part(&eval.id));
        let Some(first) = evals.next() else {
            return Value::Null;
        };
        let mut texts = Map::new();
        for key in QUESTION_KEYS {
            if let Some(value) = first.params.get(key).filter(|value| !value.is_null()) {
                texts.insert(key.to_owned(), value.clone());
            }
        }
        // An eval with one criterion per eval is written as one list.
        let more = evals.filter_map(|eval| eval.params["criteria"].as_array());
        for items in more {
            if let Some(Value::Array(all)) = texts.get_mut("criteria") {
                all.extend(items.iter().cloned());
            }
        }
        Value::Object(texts)
    }

    /// Returns an error if the rest of the limit does not cover the question.
    fn check_limit(
        &self,
        judge: &JudgeConfig,
        prompt: &ProposalPrompt,
    ) -> Result<(), CommandError> {
        let (Some(left), Some(cost)) = (self.left_usd, estimate_question(judge, prompt)) else {
            return Ok(());
        };
        if cost <= left {
            return Ok(());
        }
        Err(CommandError::usage(format!(
            "the question for proposals may cost {}, and {} of --max-cost is left; nothing was asked",
            format_usd(cost),
            format_usd(left)
        )))
    }

    fn ask(
        &self,
        judge: &JudgeConfig,
        prompt: &ProposalPrompt,
    ) -> Result<Result<ModelAnswer, AskJudgeError>, CommandError> {
        let cancel = CancellationToken::new();
        let question = ModelQuestion {
            system: prompt.system.clone(),
            user: prompt.user.clone(),
        };
        let cx = self.cx;
        let inquiry = JudgeInquiry {
            workspace: self.workspace,
            env: &cx.env,
            clock: &cx.clock,
            judge,
            question: &question,
        };
        // The command has no place for the progress of one call.
        let asked = || self.runtime.block_on(inquiry.ask(&|_| {}, &cancel));
        match asked() {
            Err(AskJudgeError::Prepare(ConnectionError::Run(error))) => {
                confirm_after(&error, cx)?;
                Ok(asked())
            }
            other => Ok(other),
        }
    }

    /// Subtracts the cost of the question. A failed call that may have cost something counts with its estimate.
    fn subtract_question(
        &mut self,
        judge: &JudgeConfig,
        prompt: &ProposalPrompt,
        reply: &Result<ModelAnswer, AskJudgeError>,
    ) -> Option<f64> {
        let usage = match reply {
            Ok(reply) => Some(&reply.usage),
            Err(AskJudgeError::Empty { usage, .. }) => Some(usage),
            Err(_) => None,
        };
        let known = usage.and_then(|usage| judge.pricing()?.usage_cost(usage));
        let cost = match reply {
            _ if judge.is_free() => Some(0.0),
            Err(error) if !error.was_sent() => Some(0.0),
            _ => known.or_else(|| estimate_question(judge, prompt)),
        };
        if let (Some(left), Some(cost)) = (&mut self.left_usd, cost) {
            *left = (*left - cost).max(0.0);
        }
        cost
    }

    /// Measures the usable proposals on dev, and decides which of them are offered.
    fn measure(
        &mut self,
        found: &[Proposal],
        dev: &[PartLabel],
        report: &mut ImproveReport,
    ) -> Result<(), CommandError> {
        let ids = list_ids(dev);
        // Step: check every proposal before the first call.
        let mut usable = Vec::new();
        for proposal in found {
            let checked = proposal
                .change
                .clone()
                .and_then(|variant| self.check_proposal(&variant, dev));
            let (diff, refused) = match checked {
                Ok((diff, prepared)) => {
                    usable.push((report.proposals.len(), prepared));
                    (diff, None)
                }
                Err(why) => (String::new(), Some(why)),
            };
            report.proposals.push(ShownProposal {
                number: proposal.number,
                why: proposal.why.clone(),
                diff,
                refused,
            });
        }
        if usable.is_empty() {
            return Ok(());
        }
        let base = self.prepare(&self.base, dev)?;
        let calls = &self.args.calls;
        let cx = self.cx;
        let finished = run_variant(base, dev, &mut self.left_usd, calls, &self.runtime, cx)?;
        let mut verdicts = vec![read_variant_verdicts("now", &finished.state, &ids)];
        let mut keys = BTreeSet::new();
        let header = finished.state.header.as_deref();
        keys.extend(header.map(|header| variant_key(header, &self.file)));
        let mut places = Vec::new();
        for (at, mut prepared) in usable {
            if self.left_usd.is_some_and(|left| left <= 0.0) {
                let why = "the limit of --max-cost was reached before it was measured";
                report.proposals[at].refused = Some(why.to_owned());
                continue;
            }
            prepared.options.max_cost_usd = self.left_usd;
            let name = prepared.name.clone();
            let finished =
                run_variant(prepared, dev, &mut self.left_usd, calls, &self.runtime, cx)?;
            verdicts.push(read_variant_verdicts(&name, &finished.state, &ids));
            let header = finished.state.header.as_deref();
            keys.extend(header.map(|header| variant_key(header, &self.file)));
            places.push(at);
        }
        let passed: Vec<bool> = dev.iter().map(|label| label.passed).collect();
        let earlier = count_earlier_variants(self.workspace, &cx.env, &self.file, &keys);
        let table = compare_variants_after(&passed, &verdicts, earlier);
        if let Some((base, own)) = table.variants.split_first() {
            for (at, own) in places.iter().zip(own) {
                report.proposals[*at].refused = find_refusal(base, own);
            }
        }
        report.measured = Some(VariantReport {
            eval: self.file.eval_name(),
            table,
            label_passes: passed.iter().filter(|passed| **passed).count() as u64,
            label_fails: passed.iter().filter(|passed| !**passed).count() as u64,
            clauses: None,
        });
        Ok(())
    }

    /// Returns the diff of a proposal and its run. The error says why it is not usable, for example because a shot leaks.
    fn check_proposal(
        &self,
        variant: &Variant,
        dev: &[PartLabel],
    ) -> Result<(String, PreparedVariant), String> {
        let rubric = &self.file.rubric;
        let applied = self.file.apply(variant, self.workspace, &self.registry);
        let (text, changed) = applied.map_err(|error| error.to_string())?;
        let list_digests = |rubrics: &[Arc<Rubric>]| -> Vec<Digest> {
            let own = rubrics.iter().filter(|one| one.path == rubric.path);
            own.flat_map(|one| &one.evals)
                .map(|eval| eval.digest.clone())
                .collect()
        };
        // The text may differ in quotation marks only.
        if list_digests(&changed.rubrics) == list_digests(&self.workspace.rubrics) {
            return Err("it changes nothing".to_owned());
        }
        let prepared = self
            .prepare(variant, dev)
            .map_err(|error| error.message().to_owned())?;
        preview_variant(&prepared, &self.runtime, self.cx).map_err(|error| error.to_string())?;
        let diff = unified_diff(&rubric.path, &rubric.source, &text);
        Ok((diff, prepared))
    }
}

/// Estimates the highest cost of the question; `None` if the price is unknown.
fn estimate_question(judge: &JudgeConfig, prompt: &ProposalPrompt) -> Option<f64> {
    let bytes = (prompt.system.len() + prompt.user.len()) as u64;
    let range = preview_question(judge, bytes).cost_range;
    range.map(|range| range.most)
}
