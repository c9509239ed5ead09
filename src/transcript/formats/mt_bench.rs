//! MT-Bench's answers (`model_answer/MODEL.jsonl` of FastChat), with its questions and judgments.
//!
//! Responsible for one answer per record, and for the files that MT-Bench keeps near it: `question.jsonl` in the folder
//! or the one above, and `model_judgment/*_single.jsonl`, `*_pair.jsonl`, or a folder per judge with a file per model. A
//! judgment is a verdict of its judge, such as `gpt-4`, named `turn 1`; its score from 1 to 10 is the value. A comparison
//! of two answers is a verdict, too: `comparisons.rs`. Without the questions, the answers are read alone. Also reads the
//! answers of Arena-Hard and reference answers, which have the same shape, and the older answers of FastChat, which have
//! one `text`. Judgments themselves are not transcripts.

mod comparisons;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::native::text_or_json;
use super::super::reader::{
    PerRecordReader, RecordCx, RecordParser, TranscriptReader, TranscriptSink,
};
use super::super::source::SourceFile;
use super::transcript_builder::{TranscriptBuilder, text_part, verdict_of};
use crate::model::{MessageRole, SourceVerdict};

/// The number of bytes that the reader reads of a file of questions or judgments.
const MAX_SIDE_FILE: u64 = 64 * 1024 * 1024;

/// Returns true if the first record is an answer.
pub(super) fn is_answers(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let choice = &record["choices"][0];
    let has_turns = choice["turns"].is_array() || choice["turns"].is_string();
    !record["question_id"].is_null() && (has_turns || is_single_answer(record))
}

/// Returns true for an answer of FastChat before MT-Bench, and of tools that adopted its files: one text.
fn is_single_answer(record: &Value) -> bool {
    let texts = ["text", "answer_id", "model_id"];
    record["choices"].is_null() && texts.iter().all(|key| record[*key].is_string())
}

/// Returns true if the first record is a judgment.
pub(super) fn is_judgments(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| {
        let has_judgment = ["judgment", "g1_judgment", "games"]
            .iter()
            .any(|key| s.has(key));
        (s.has("question_id") || s.has("uid")) && s.has("judge") && has_judgment
    })
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    if is_judgments(preview) {
        let why = "these are judgments of MT-Bench or Arena-Hard; open the answers in `model_answer`, which then have them as verdicts";
        return Err(source.unknown_error(why));
    }
    let parser = AnswerParser {
        questions: read_questions(source.path()),
        judgments: read_judgments(source.path()),
    };
    Ok(Box::new(PerRecordReader::new(
        preview.record_walker(),
        parser,
    )))
}

/// The parser of answers.
#[derive(Debug)]
struct AnswerParser {
    /// The turns of the user by question.
    questions: HashMap<String, Vec<String>>,
    /// The judgments by question and model, with their turns.
    judgments: HashMap<(String, String), Vec<SourceVerdict>>,
}

impl AnswerParser {
    /// Returns the judgments of an answer. FastChat names the model of a judgment by the file of the answers.
    fn find_judgments(&self, question: &str, file: &str, model: &str) -> &[SourceVerdict] {
        let mut models = [file, model].into_iter();
        let found = models.find_map(|model| {
            let key = (question.to_owned(), model.to_owned());
            self.judgments.get(&key)
        });
        found.map(Vec::as_slice).unwrap_or_default()
    }
}

impl RecordParser for AnswerParser {
    fn parse_record(
        &self,
        record: &str,
        cx: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let fields = RawFields::parse(record)?;
        let question = fields.id_text("question_id").unwrap_or_default();
        let model = ["model_id", "model"];
        let model = model
            .iter()
            .find_map(|key| fields.id_text(key))
            // FastChat names the model by the file. Reference answers may not repeat it.
            .unwrap_or_else(|| cx.source.stem().to_owned().into());
        let choices = fields.list("choices").unwrap_or_default();
        let choices = choices
            .into_iter()
            .map(|raw| RawFields::from_raw(raw)?.get("turns"));
        let mut choices: Vec<Option<&RawValue>> = choices.collect();
        if choices.is_empty() {
            choices.extend(fields.get("text").map(Some));
        }
        if choices.is_empty() {
            return Err("it has no `choices`".to_owned());
        }
        // LLaVA's answers repeat the question.
        let prompt = fields.text("prompt").map(|text| vec![text.0.into_owned()]);
        let turns = self.questions.get(&*question).or(prompt.as_ref());
        for (at, answers) in choices.into_iter().enumerate() {
            let mut built = TranscriptBuilder::new("mt-bench", fields.id_text("answer_id"));
            if built.id.is_empty() {
                built.id = format!("{}:{}", &*model, &*question);
            }
            if at > 0 {
                built.id = format!("{}#{}", built.id, at + 1);
            }
            let answers = answers.map(|raw| list_items(raw).unwrap_or_else(|| vec![raw]));
            for (turn, raw) in answers.unwrap_or_default().into_iter().enumerate() {
                if let Some(text) = turns.and_then(|turns| turns.get(turn)) {
                    built.push_text(MessageRole::User, text);
                }
                // Arena-Hard wraps the text in an object.
                let nested = RawFields::from_raw(raw);
                let nested = nested
                    .as_ref()
                    .and_then(|all| all.get_first(&["content", "answer"]));
                let text = text_or_json(nested.unwrap_or(raw));
                built.push(MessageRole::Assistant, vec![text_part(&text)]);
            }
            if turns.is_none() {
                built.meta.set("question", "missing");
                out.count_missing(
                    "the question is missing (no `question.jsonl` near this file has it)",
                );
            }
            built.meta.set("model", &*model);
            built.meta.set_raw("question_id", fields.get("question_id"));
            built.meta.set_raw("category", fields.get("category"));
            built.meta.set_raw("timestamp", fields.get("tstamp"));
            for verdict in self.find_judgments(&question, cx.source.stem(), &model) {
                built.push_verdict(verdict.clone());
            }
            built.finish(out);
        }
        Ok(())
    }
}

/// Calls `each` with the objects of a file of JSON lines. A file that cannot be read has none.
fn for_each_line(path: &Path, mut each: impl FnMut(&RawFields<'_>)) {
    // Opening a pipe would block.
    if !path.is_file() {
        return;
    }
    let Ok(file) = std::fs::File::open(path) else {
        return;
    };
    for line in BufReader::new(file.take(MAX_SIDE_FILE)).lines() {
        let Ok(line) = line else { return };
        if let Ok(fields) = RawFields::parse(&line) {
            each(&fields);
        }
    }
}

fn read_questions(answers: &Path) -> HashMap<String, Vec<String>> {
    let mut questions = HashMap::new();
    let folders = answers.ancestors().skip(1).take(2);
    let names = ["question.jsonl", "questions.jsonl"];
    let path = folders
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file());
    if let Some(path) = path {
        for_each_line(&path, |fields| {
            let Some(id) = fields.id_text("question_id") else {
                return;
            };
            let turns = fields.list("turns").unwrap_or_default();
            let turns = turns.iter().map(|raw| match RawFields::from_raw(raw) {
                // Arena-Hard's questions are objects.
                Some(turn) => turn.text("content").unwrap_or_default().0.into_owned(),
                None => text_or_json(raw).0.into_owned(),
            });
            let mut turns: Vec<String> = turns.collect();
            if turns.is_empty() {
                turns.extend(fields.text("text").map(|text| text.0.into_owned()));
            }
            if !turns.is_empty() {
                questions.insert(id.0.into_owned(), turns);
            }
        });
    }
    questions
}

/// Returns the paths of the files with judgments, in order.
fn judgment_paths(answers: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for folder in answers.ancestors().skip(1).take(2) {
        let Ok(entries) = std::fs::read_dir(folder.join("model_judgment")) else {
            continue;
        };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            if name.ends_with(b"_single.jsonl") || name.ends_with(b"_pair.jsonl") {
                paths.push(path);
            } else if path.is_dir() {
                // A folder per judge has a file per model, with the name of the answers.
                paths.extend(answers.file_name().map(|file| path.join(file)));
            }
        }
    }
    // The order of a folder is arbitrary, and verdicts with one name get numbers in this order.
    paths.sort();
    paths
}

fn read_judgments(answers: &Path) -> HashMap<(String, String), Vec<SourceVerdict>> {
    let mut judgments: HashMap<(String, String), Vec<SourceVerdict>> = HashMap::new();
    for path in judgment_paths(answers) {
        for_each_line(&path, |fields| {
            let ids = ["question_id", "uid"];
            let Some(question) = ids.iter().find_map(|key| fields.id_text(key)) else {
                return;
            };
            // The judge is a list: the model and the name of its prompt.
            let judge = fields.get("judge");
            let named = judge.and_then(list_items).unwrap_or_default();
            let judge = named
                .first()
                .copied()
                .or(judge)
                .map(text_or_json)
                .unwrap_or_default();
            let judge = judge.0.into_owned();
            let verdicts = if fields.has("games") {
                comparisons::read_games(fields, judge)
            } else if fields.has("model_1") {
                comparisons::read_pair(fields, judge)
            } else {
                read_single(fields, &judge).into_iter().collect()
            };
            for (model, verdict) in verdicts {
                let key = (question.to_string(), model);
                judgments.entry(key).or_default().push(verdict);
            }
        });
    }
    judgments
}

/// Returns the verdict of a judgment on one answer, with the model of the answer.
fn read_single(fields: &RawFields<'_>, judge: &str) -> Option<(String, SourceVerdict)> {
    let model = fields.id_text("model")?;
    let turn = fields.integer("turn").unwrap_or(1);
    let reasoning = fields.text("judgment");
    let mut verdict = verdict_of(
        judge,
        &format!("turn {turn}"),
        fields.get("score"),
        reasoning,
    );
    // The scale is 1 to 10, so a 1 is the worst score and not a full one.
    verdict.score = None;
    // FastChat writes -1 if it found no score in the judgment.
    if fields.number("score").is_some_and(|score| score < 0.0) {
        verdict.value = None;
        verdict.error = Some("the judgment has no score".to_owned());
    }
    Some((model.to_string(), verdict))
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{message_lines, read};
    use crate::transcript::TranscriptFile;

    #[test]
    fn answer_with_one_text_is_read_with_its_question() {
        let bench = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(bench.path().join("answer")).expect("made");
        let question = r#"{"question_id":1,"text":"Why?","category":"generic"}"#;
        std::fs::write(bench.path().join("question.jsonl"), question).expect("written");
        let answer = r#"{"question_id":1,"text":"So.","answer_id":"a1","model_id":"vicuna-13b","metadata":{}}"#;
        let answers = bench.path().join("answer/answer_vicuna-13b.jsonl");
        std::fs::write(&answers, answer).expect("written");
        let mut file = TranscriptFile::open(&answers).expect("answers");
        let block = file.next_block().expect("a block").expect("a record");
        let (_, bytes) = block.records().next().expect("a record");
        let transcript = serde_json::from_slice(bytes).expect("JSON");
        assert_eq!(message_lines(&transcript), ["user Why?", "assistant So."]);
    }

    #[test]
    fn answer_without_a_model_has_the_name_of_its_file() {
        let file = r#"{"question_id":81,"prompt":"Why?","choices":[{"index":0,"turns":["So."]}]}"#;
        let (all, tally) = read(format!("{file}\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(one), ["user Why?", "assistant So."]);
        assert_eq!(one["id"], "saved:81");
        assert_eq!(one["metadata"]["model"], "saved");
        assert!(tally.missing.is_empty(), "{tally:?}");
    }

    #[test]
    fn judge_may_have_a_folder_with_a_file_per_model() {
        let bench = tempfile::tempdir().expect("a folder");
        for folder in ["answers", "model_judgment/gpt-4o_single"] {
            std::fs::create_dir_all(bench.path().join(folder)).expect("made");
        }
        let question = r#"{"question_id":"3","category":"tax","turns":["Why?"]}"#;
        std::fs::write(bench.path().join("questions.jsonl"), question).expect("written");
        let answers = bench.path().join("answers/model-2.1.jsonl");
        let answer = r#"{"question_id":"3","answer_id":"a1","model_id":"model-2.1","choices":[{"index":0,"turns":["So."]}]}"#;
        std::fs::write(&answers, format!("{answer}\n")).expect("written");
        let judgments = bench.path().join("model_judgment/gpt-4o_single");
        for (model, score) in [("model-2.1", 9), ("model-3", 2)] {
            let judgment = format!(
                r#"{{"question_id":"3","model":"{model}","judge":["gpt-4o","single-v1"],"judgment":"Fine.","score":{score},"turn":1}}"#
            );
            let file = judgments.join(format!("{model}.jsonl"));
            std::fs::write(file, format!("{judgment}\n")).expect("written");
        }
        let mut file = TranscriptFile::open(&answers).expect("answers");
        let block = file.next_block().expect("a block").expect("a record");
        let (record, bytes) = block.records().next().expect("a record");
        let transcript = record.parse(bytes, "").expect("a transcript");
        assert_eq!(transcript.verdicts.len(), 1);
        assert_eq!(transcript.verdicts[0].judge, "gpt-4o");
        let transcript = serde_json::from_slice(bytes).expect("JSON");
        assert_eq!(message_lines(&transcript), ["user Why?", "assistant So."]);
    }

    #[test]
    fn comparisons_in_both_orders_are_verdicts_of_the_answers() {
        let bench = tempfile::tempdir().expect("a folder");
        for folder in ["model_answer", "model_judgment/judge-1"] {
            std::fs::create_dir_all(bench.path().join(folder)).expect("made");
        }
        let answers = bench.path().join("model_answer/m.jsonl");
        let answer = r#"{"question_id":"7","answer_id":"a1","model_id":"m","choices":[{"index":0,"turns":["So."]}]}"#;
        std::fs::write(&answers, format!("{answer}\n")).expect("written");
        let pair = r#"{"question_id":"7","model_1":"n","model_2":"m","g1_winner":"model_2","g2_winner":"model_2","judge":["gpt-4","pair-v2"],"g1_judgment":"B. [[B]]","g2_judgment":"A. [[A]]","turn":1}"#;
        let games = r#"{"question_id":"7","model":"m","judge":"judge-1","games":[{"judgment":"[[B>A]]","score":"B>A"},{"judgment":"[[B>A]]","score":"B>A"}]}"#;
        let judgments = bench.path().join("model_judgment");
        let files = [("gpt-4_pair.jsonl", pair), ("judge-1/m.jsonl", games)];
        for (name, judgment) in files {
            std::fs::write(judgments.join(name), format!("{judgment}\n")).expect("written");
            let refused = TranscriptFile::open(&judgments.join(name)).expect_err("no transcripts");
            assert!(
                refused.to_string().contains("open the answers"),
                "{refused}"
            );
        }
        let mut file = TranscriptFile::open(&answers).expect("answers");
        let block = file.next_block().expect("a block").expect("a record");
        let (_, bytes) = block.records().next().expect("a record");
        let transcript: serde_json::Value = serde_json::from_slice(bytes).expect("JSON");
        assert_eq!(
            transcript["verdicts"],
            serde_json::json!([
                {"judge": "gpt-4", "eval": "turn 1 against n", "passed": true, "reasoning": "B. [[B]]\n\nA. [[A]]",
                    "value": {"g1_winner": "model_2", "g2_winner": "model_2"}},
                {"judge": "judge-1", "eval": "against the baseline", "reasoning": "[[B>A]]\n\n[[B>A]]", "value": ["B>A", "B>A"]},
            ])
        );
    }

    #[test]
    fn judgments_name_the_file_of_the_answers() {
        let bench = tempfile::tempdir().expect("a folder");
        for folder in ["model_answer", "model_judgment"] {
            std::fs::create_dir(bench.path().join(folder)).expect("made");
        }
        let answers = bench.path().join("model_answer/my-model.jsonl");
        let answer = r#"{"question_id":"11","answer_id":"a1","model_id":"org/my-model","choices":[{"index":0,"turns":["Yes."]}]}"#;
        std::fs::write(&answers, format!("{answer}\n")).expect("written");
        let judgment = r#"{"question_id":"11","model":"my-model","judge":["gpt-4","single-v1"],"judgment":"[[7]]","score":7,"turn":1}"#;
        let judgments = bench.path().join("model_judgment/gpt-4_single.jsonl");
        std::fs::write(judgments, format!("{judgment}\n")).expect("written");
        let mut file = TranscriptFile::open(&answers).expect("answers");
        let block = file.next_block().expect("a block").expect("a record");
        let (record, bytes) = block.records().next().expect("a record");
        let transcript = record.parse(bytes, "").expect("a transcript");
        assert_eq!(transcript.verdicts.len(), 1);
        assert_eq!(transcript.verdicts[0].judge, "gpt-4");
    }
}
