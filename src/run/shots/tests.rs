use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use serde_json::json;

use crate::clock::{Clock, FakeClock};
use crate::event::{EvalSpec, EventKind};
use crate::handlers::EvalTypeRegistry;
use crate::model::{SplitPart, SplitRule};
use crate::run::{RenderedPrompt, RunOptions, check_shots, outline_run, render_prompts};
use crate::workspace::{self, Env, Workspace};

static REGISTRY: LazyLock<EvalTypeRegistry> = LazyLock::new(EvalTypeRegistry::builtin);

/// The number of words that only one transcript has.
const OWN_WORDS: usize = 24;

struct World {
    dir: tempfile::TempDir,
    rule: SplitRule,
}

/// Returns a word that only one transcript has.
fn word(transcript: &str, nth: usize) -> String {
    format!("{transcript}w{nth}x")
}

fn own_words(transcript: &str) -> Vec<String> {
    (0..OWN_WORDS).map(|nth| word(transcript, nth)).collect()
}

fn record(id: &str, words: &[String], group: Option<&str>) -> String {
    let (asked, said) = words.split_at(words.len() / 2);
    json!({
        "id": id,
        "messages": [
            {"role": "user", "content": asked.join(" ")}, {"role": "assistant", "content": said.join(" ")}
        ],
        "metadata": group.map_or_else(|| json!({}), |group| json!({"group": group})),
    })
    .to_string()
}

impl World {
    /// Writes transcripts `t0`, `t1` …, each with a label; even ones pass.
    fn new(rule: SplitRule, count: usize, shots: &str, extra: &[String]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).expect("written");
        };
        let ids: Vec<String> = (0..count).map(|n| format!("t{n}")).collect();
        let mut records: Vec<String> = ids
            .iter()
            .map(|id| record(id, &own_words(id), None))
            .collect();
        records.extend_from_slice(extra);
        write("t.jsonl", &(records.join("\n") + "\n"));
        let mut labels = String::new();
        for (at, id) in ids.iter().enumerate() {
            let note = (at % 3 == 0).then(|| format!("because of {id}"));
            let label = json!({"transcript": id, "rubric": "r", "eval": "e", "passed": at % 2 == 0, "note": note});
            writeln!(labels, "{label}").expect("a string");
        }
        write("labels.jsonl", &labels);
        write(
            "r.yaml",
            &format!(
                "id: r\nevals:\n  - {{ id: e, type: llm_judge, params: {{ criteria: Good., shots: {shots} }} }}\n"
            ),
        );
        let SplitRule { train, test, seed } = rule;
        write(
            "dicta.yaml",
            &format!(
                "transcripts: t.jsonl\nrubrics: r.yaml\njudge: j\njudges: {{ j: {{ provider: openai, model: m }} }}\n\
                 labels: {{ path: labels.jsonl, split: {{ train: {train}, test: {test}, seed: {seed} }} }}\n"
            ),
        );
        Self { dir, rule }
    }

    fn parts(&self, count: usize, part: SplitPart) -> Vec<String> {
        let ids = (0..count).map(|n| format!("t{n}"));
        ids.filter(|id| self.rule.assign(id) == part).collect()
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn env(&self) -> Env {
        let data = self.path().join("data").display().to_string();
        Env([("XDG_DATA_HOME".to_owned(), data)].into())
    }

    fn load(&self) -> Result<Workspace, String> {
        workspace::load(self.path(), &self.env(), &*REGISTRY).map_err(|problems| {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            all.join("; ")
        })
    }

    /// Returns the eval as the header of a run would describe it.
    fn recorded_eval(&self) -> EvalSpec {
        let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
        let loaded = Arc::new(self.load().expect("it loads"));
        let mut found = None;
        outline_run(loaded, &REGISTRY, &self.env(), &clock, &mut |batch| {
            for fact in batch.facts {
                if let EventKind::RunStarted(header) = fact {
                    found = header.evals.into_iter().next();
                }
            }
            true
        })
        .expect("an outline");
        found.expect("an eval")
    }

    /// Adds a label.
    fn label(&self, transcript: &str, passed: bool) {
        let labels = self.path().join("labels.jsonl");
        let text = std::fs::read_to_string(&labels).expect("labels");
        let own = json!({"transcript": transcript, "rubric": "r", "eval": "e", "passed": passed});
        std::fs::write(&labels, format!("{text}{own}\n")).expect("written");
    }

    /// Renders the prompts of all cells.
    fn render(&self) -> Result<Vec<RenderedPrompt>, String> {
        let env = self.env();
        let loaded = self.load()?;
        let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
        let options = RunOptions::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime
            .block_on(render_prompts(
                &Arc::new(loaded),
                &REGISTRY,
                &env,
                &clock,
                &options,
                "",
            ))
            .map_err(|error| error.to_string())
    }
}

const RULE: SplitRule = SplitRule {
    train: 0.4,
    test: 0.3,
    seed: 1,
};

/// Returns an id that the rule assigns to a part.
fn id_in(rule: SplitRule, part: SplitPart, prefix: &str) -> String {
    (0..10_000)
        .map(|n| format!("{prefix}{n}"))
        .find(|id| rule.assign(id) == part)
        .expect("a part with a share")
}

#[test]
fn shots_are_shown_with_their_reason_and_tokens() {
    let world = World::new(RULE, 20, "{ pass: 2, fail: 1, pick: noted }", &[]);
    let prompts = world.render().expect("prompts");
    assert_eq!(prompts.len(), 20);
    let shots = &prompts[0].shots;
    let passes: Vec<bool> = shots.iter().map(|shot| shot.passed).collect();
    assert_eq!(passes, [true, false, true]);
    let train = world.parts(20, SplitPart::Train);
    for shot in shots {
        assert!(train.contains(&shot.transcript), "{shot:?}");
        assert_eq!(shot.reason, format!("because of {}", shot.transcript));
        assert!(shot.tokens > 100, "{shot:?}");
        let text = prompts[0].body.text();
        assert!(
            text.contains(&shot.reason) && text.contains(&word(&shot.transcript, OWN_WORDS - 1))
        );
    }
    assert!(prompts.iter().all(|prompt| prompt.shots == *shots));
}

#[test]
fn changed_note_of_a_shot_changes_every_cache_key_and_another_note_none() {
    let world = World::new(RULE, 20, "{ pass: 1, fail: 1, pick: noted }", &[]);
    let keys = || -> Vec<String> {
        let prompts = world.render().expect("prompts");
        prompts.into_iter().map(|one| one.cache_key.0).collect()
    };
    let before = keys();
    let shots = world.render().expect("prompts").remove(0).shots;
    let labels = world.path().join("labels.jsonl");
    let text = std::fs::read_to_string(&labels).expect("labels");
    let dev = world.parts(20, SplitPart::Dev);
    let other = format!("because of {}", dev[0]);
    let changed = text.replace(&other, "another reason");
    std::fs::write(&labels, changed).expect("written");
    assert_eq!(keys(), before);
    std::fs::write(&labels, text.replace(&shots[0].reason, "another reason")).expect("written");
    let after = keys();
    assert!(
        after
            .iter()
            .zip(&before)
            .all(|(after, before)| after != before)
    );
}

#[test]
fn changed_shots_are_another_question_and_keep_the_question_of_labels() {
    let world = World::new(RULE, 20, "{ pass: 1, fail: 1, pick: noted }", &[]);
    let before = world.recorded_eval();
    assert_eq!(before, world.recorded_eval());
    let shot = &before.shots[0].transcript;
    let labels = world.path().join("labels.jsonl");
    let text = std::fs::read_to_string(&labels).expect("labels");
    let old = format!("because of {shot}\"");
    std::fs::write(&labels, text.replace(&old, "another reason\"")).expect("written");
    let after = world.recorded_eval();
    assert_ne!(before.digest, after.digest);
    assert_eq!(before.question, after.question);
    // Without shots, the digest is the digest of the params.
    let plain = world.load().expect("it loads").rubrics[0].evals[0]
        .digest
        .clone();
    assert_ne!(plain, after.digest);
}

/// Returns a record with a question and an answer.
fn exchange(id: &str, question: &str, answer: &str) -> String {
    let messages = json!([
        {"role": "user", "content": question}, {"role": "assistant", "content": answer},
    ]);
    json!({"id": id, "messages": messages}).to_string()
}

#[test]
fn answer_copied_under_another_question_is_a_leak_in_dev_and_a_copy_in_train() {
    let answer = "The parcel left the depot in Ulm on Monday and reaches you on Thursday at noon";
    let brief = "It left Ulm on Monday";
    let long_question = own_words("asked").join(" ");
    for (shown, copied) in [
        (answer.to_owned(), answer.to_owned()),
        (answer.to_owned(), answer.replace("Monday", "Tuesday")),
        (
            answer.to_owned(),
            format!("Hello again! {answer}. {}", own_words("more").join(" ")),
        ),
        (brief.to_owned(), brief.to_owned()),
    ] {
        let shot = id_in(RULE, SplitPart::Train, "shot");
        let twin = id_in(RULE, SplitPart::Train, "twin");
        let planted = id_in(RULE, SplitPart::Dev, "planted");
        let shots = format!("{{ pick: [{shot}] }}");
        let own = exchange(&shot, &long_question, &shown);
        let world = World::new(
            RULE,
            6,
            &shots,
            &[own.clone(), exchange(&planted, "Where is it?", &copied)],
        );
        world.label(&shot, true);
        let why = world.render().expect_err("a leak");
        assert!(why.contains(&format!("`{shot}` cannot be a shot")), "{why}");
        assert!(why.contains(&format!("`{planted}` of dev")), "{why}");
        let checked = check_shots(&world.load().expect("it loads"));
        assert_eq!(checked.len(), 1, "{checked:?}");
        assert!(checked[0].to_string().contains("r.yaml:3:"), "{checked:?}");
        // In train, it is a copy: nothing leaks, and it measures nothing.
        let world = World::new(
            RULE,
            6,
            &shots,
            &[own, exchange(&twin, "Where is it?", &copied)],
        );
        world.label(&shot, true);
        let recorded = world.recorded_eval();
        assert_eq!(recorded.shot_copies, std::slice::from_ref(&twin));
        assert!(recorded.is_shot(&twin) && recorded.is_shot(&shot) && !recorded.is_shot("t0"));
        assert_eq!(check_shots(&world.load().expect("it loads")), []);
    }
}

#[test]
fn common_questions_greetings_and_stock_phrases_are_no_leaks() {
    let greeting = "Hello and welcome to the help desk, please tell us how we can help you today";
    let question = "Which parcel is it that has not come until today, and where was it seen last?";
    let shot = id_in(RULE, SplitPart::Train, "shot");
    let shots = format!("{{ pick: [{shot}] }}");
    let render = |answer: &str, others: &[String]| {
        let mut records = vec![exchange(&shot, question, answer)];
        records.extend_from_slice(others);
        let world = World::new(RULE, 6, &shots, &records);
        world.label(&shot, true);
        world.render().map(|_| ())
    };
    let dev = |at: usize| id_in(RULE, SplitPart::Dev, &format!("d{at}x"));
    let own = |at: usize| own_words(&dev(at)).join(" ");
    // The same question with another answer.
    assert_eq!(
        render(
            &own_words("said").join(" "),
            &[exchange(&dev(0), question, &own(0))]
        ),
        Ok(())
    );
    // A short answer.
    assert_eq!(
        render("Yes, it is.", &[exchange(&dev(0), &own(0), "Yes, it is.")]),
        Ok(())
    );
    // A phrase of many transcripts, before their last answer. Of few, it is a copy.
    let talk = |id: &str, said: &str, answer: &str| {
        let messages = json!([
            {"role": "user", "content": "Hello?"}, {"role": "assistant", "content": said},
            {"role": "user", "content": "And now?"}, {"role": "assistant", "content": answer},
        ]);
        json!({"id": id, "messages": messages}).to_string()
    };
    let render_talk = |count: usize| {
        let mut records = vec![talk(&shot, greeting, &own_words("said").join(" "))];
        records.extend((0..count).map(|at| talk(&dev(at), greeting, &own(at))));
        let world = World::new(RULE, 6, &shots, &records);
        world.label(&shot, true);
        world.render().map(|_| ())
    };
    assert_eq!(render_talk(5), Ok(()));
    assert!(render_talk(4).is_err());
}

#[test]
fn answer_planted_in_many_transcripts_is_a_leak_until_most_have_it() {
    let refusal = "I am sorry, but I cannot help with this request because our rules forbid it";
    let shot = id_in(RULE, SplitPart::Train, "shot");
    let shots = format!("{{ pick: [{shot}] }}");
    let dev = |at: usize| id_in(RULE, SplitPart::Dev, &format!("d{at}x"));
    let render = |others: usize, planted: usize| {
        let own = |at: usize| own_words(&dev(at)).join(" ");
        let mut records = vec![exchange(&shot, &own_words("asked").join(" "), refusal)];
        records.extend((0..planted).map(|at| exchange(&dev(at), &own(at), refusal)));
        let world = World::new(RULE, others, &shots, &records);
        world.label(&shot, true);
        world.render().map(|_| ())
    };
    for planted in [1, 4, 5, 12] {
        let why = render(20, planted).expect_err("a leak");
        assert!(why.contains(&format!("`{shot}` cannot be a shot")), "{why}");
        let more = planted.saturating_sub(3);
        assert_eq!(
            why.contains(&format!("; and {more} more")),
            more > 0,
            "{why}"
        );
    }
    // More than half of all transcripts have it, so it does not show a copy.
    assert_eq!(render(6, 12), Ok(()));
}

#[test]
fn too_few_labels_and_oversized_shots_are_errors() {
    let error = |shots: &str| {
        World::new(RULE, 12, shots, &[])
            .render()
            .expect_err("refused")
    };
    let few = error("{ pass: 12 }");
    assert!(
        few.contains("r/e: 12 passes needed, and the clear labels of train have"),
        "{few}"
    );
    let long = error("{ pass: 1, max_tokens: 20 }");
    assert!(long.contains("more than `max_tokens: 20`"), "{long}");
    let dev = World::new(RULE, 12, "{ pass: 1 }", &[]).parts(12, SplitPart::Dev);
    let named = error(&format!("{{ pick: [{}] }}", dev[0]));
    assert!(
        named.contains(&format!("`{}` is in dev and measures the judge", dev[0])),
        "{named}"
    );
    let train = World::new(RULE, 12, "{ pass: 1 }", &[]).parts(12, SplitPart::Train);
    let near = error(&format!("{{ pick: [{}] }}", train[0].to_uppercase()));
    assert!(
        near.contains(&format!("did you mean `{}`?", train[0])),
        "{near}"
    );
    let rule = error("{ pass: 1, pick: claer }");
    assert!(
        rule.contains("shots.pick must be clear, noted, random or a list of ids (got `claer`); did you mean `clear`?"),
        "{rule}"
    );
    let unknown = error("{ pick: [nowhere] }");
    assert!(
        unknown.contains("no transcript is called `nowhere`"),
        "{unknown}"
    );
    let from = error("{ pass: 1, from: dev }");
    assert!(from.contains("must be `train`"), "{from}");
    let none = error("{ seed: 2 }");
    assert!(none.contains("must be at least 1"), "{none}");
}

#[test]
fn shots_without_a_split_are_an_error_that_shows_the_split() {
    let world = World::new(RULE, 6, "{ pass: 1 }", &[]);
    let config = world.path().join("dicta.yaml");
    let text = std::fs::read_to_string(&config).expect("text");
    let without = text.split("labels:").next().expect("the start");
    std::fs::write(&config, format!("{without}labels: labels.jsonl\n")).expect("written");
    let why = world.render().expect_err("refused");
    assert!(
        why.contains("split: { train: 0.2, dev: 0.4, test: 0.4 }"),
        "{why}"
    );
}

#[test]
fn excerpt_takes_the_context_that_fits() {
    let id = id_in(RULE, SplitPart::Train, "long");
    let messages: Vec<_> = (0..40)
        .map(|n| json!({"role": if n % 2 == 0 { "user" } else { "assistant" }, "content": format!("only{n}y {}", "filler ".repeat(30))}))
        .collect();
    let long = json!({"id": id, "messages": messages}).to_string();
    let shots = format!("{{ pick: [{id}], max_tokens: 400 }}");
    let world = World::new(RULE, 6, &shots, &[long]);
    let labels = world.path().join("labels.jsonl");
    let text = std::fs::read_to_string(&labels).expect("labels");
    let own = json!({"transcript": id, "rubric": "r", "eval": "e", "passed": true});
    std::fs::write(&labels, format!("{text}{own}\n")).expect("written");
    let prompts = world.render().expect("prompts");
    let short = prompts
        .iter()
        .find(|one| one.name.transcript == "t0")
        .expect("a cell");
    let body = short.body.text();
    assert!(
        body.contains("only39y") && body.contains("only38y"),
        "{body}"
    );
    assert!(!body.contains("only0y"), "the budget cuts the start");
    assert!(short.shots[0].tokens <= 400);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_request_has_text_of_dev_or_test_except_its_own(
        train in 0.3..0.6_f64, test in 0.1..0.4_f64, seed in 0_u64..1000, pick_seed in 0_u64..100, rule in prop::sample::select(vec!["random", "clear"])
    ) {
        let rule_text = format!("{{ pass: 1, fail: 1, pick: {rule}, seed: {pick_seed} }}");
        let world = World::new(SplitRule { train, test, seed }, 16, &rule_text, &[]);
        let prompts = match world.render() {
            Ok(prompts) => prompts,
            Err(why) => {
                prop_assert!(why.contains(" needed, and the "), "{}", why);
                return Ok(());
            }
        };
        let mut measured = world.parts(16, SplitPart::Dev);
        measured.extend(world.parts(16, SplitPart::Test));
        for prompt in prompts {
            let body = prompt.body.text();
            prop_assert_eq!(prompt.shots.len(), 2);
            for other in measured.iter().filter(|other| **other != prompt.name.transcript) {
                for nth in 0..OWN_WORDS {
                    prop_assert!(!body.contains(&word(other, nth)), "{} shows {}", prompt.name, other);
                }
                let note = format!("because of {other}\\");
                prop_assert!(!body.contains(&note));
            }
        }
    }

    #[test]
    fn planted_near_duplicate_of_a_shot_is_always_caught(
        seed in 0_u64..1000, changed in 0..OWN_WORDS, kind in 0..5_u8, is_test in any::<bool>()
    ) {
        let rule = SplitRule { seed, ..RULE };
        let probe = World::new(rule, 16, "{ pass: 1 }", &[]);
        let train = probe.parts(16, SplitPart::Train);
        prop_assume!(!train.is_empty());
        let shot = &train[changed % train.len()];
        let mut words = own_words(shot);
        let mut group = None;
        match kind {
            0 => {}
            1 => words[changed] = "changed".to_owned(),
            // A longer text that contains all of the shot.
            2 => words.extend((0..40).map(|n| format!("more{n}"))),
            // The answer under another question. The answer is the second half.
            3 => {
                let other = own_words("other");
                words[..OWN_WORDS / 2].clone_from_slice(&other[..OWN_WORDS / 2]);
            }
            _ => {
                words = own_words("other");
                group = Some(shot.as_str());
            }
        }
        let part = if is_test { SplitPart::Test } else { SplitPart::Dev };
        let planted = id_in(rule, part, "planted");
        let shots = format!("{{ pick: [{shot}] }}");
        let world = World::new(rule, 16, &shots, &[record(&planted, &words, None)]);
        if let Some(group) = group {
            // The parts are stored before the transcript gets its group.
            world.render().expect("no leak yet");
            let text = std::fs::read_to_string(world.path().join("t.jsonl")).expect("text");
            let old = record(&planted, &words, None);
            let text = text.replace(&old, &record(&planted, &words, Some(group)));
            std::fs::write(world.path().join("t.jsonl"), text).expect("written");
        }
        let why = world.render().expect_err("a leak");
        prop_assert!(why.contains(&format!("`{shot}` cannot be a shot")), "{}", why);
        prop_assert!(why.contains(&format!("`{planted}` of {}", part.as_str())), "{}", why);
    }
}
