//! Guesses at files as people have them. What is printed is read again, and finds the conversation.

use std::sync::Arc;

use super::super::FieldMapping;
use super::*;

fn guessed(text: &str) -> (String, bool) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.data");
    std::fs::write(&path, text).expect("written");
    match guess_mapping(&path, "t.data").expect("a guess") {
        MappingGuess::Entry { yaml, complete } => {
            if complete {
                let (_, map) = yaml.split_once("map:\n").expect("a map");
                let map = Arc::new(
                    FieldMapping::parse_inline(map).unwrap_or_else(|why| panic!("{yaml}{why:?}")),
                );
                let mut file = TranscriptFile::open_mapped(&path, Some(&map)).expect("it opens");
                let block = file.next_block().expect("read").expect("a block");
                let (record, bytes) = block.records().next().expect("one");
                let read = record.parse(bytes, "x").expect("a transcript");
                assert!(!read.messages.is_empty(), "{yaml}");
            }
            (yaml, complete)
        }
        MappingGuess::AlreadyReadable(format) => (format.to_owned(), true),
    }
}

#[test]
fn guess_uses_names_and_values() {
    let cases: [(&str, &[&str]); 6] = [
        (
            "conversation_id,Customer question,Agent answer,latency_ms,human_ok\nc1,hi,hello,12,yes\nc2,ho,hu,7,no\n",
            &[
                "id: conversation_id ",
                "input: '\"Customer question\"' ",
                "output: '\"Agent answer\"' ",
                "latency_ms: to_number(latency_ms) ",
                "passed: human_ok ",
            ],
        ),
        (
            "prompt;completion\nhi;ho\nha;he\n",
            &["`;` between", "input: prompt ", "output: completion "],
        ),
        (
            r#"{"uuid": "a", "dialogue": [{"from": "human", "value": "x"}]}"#,
            &[
                "id: uuid ",
                "messages: 'dialogue[].{role: from, content: value}' ",
            ],
        ),
        (
            r#"[{"data": {"chat": [{"role": "user", "content": "x"}]}, "model": "m"}]"#,
            &["messages: data.chat ", "model: model "],
        ),
        (
            r#"{"log": [{"speaker": "bot", "text": "x"}], "inputs": "y"}"#,
            &[
                "messages: 'log[].{role: speaker, content: text}' ",
                "by what it holds",
            ],
        ),
        (
            r#"{"questionId": 1, "userInput": "x", "modelOutput": "y", "category": "z"}"#,
            &[
                "id: questionId ",
                "input: userInput ",
                "output: modelOutput ",
                "tags: category ",
            ],
        ),
    ];
    for (text, lines) in cases {
        let (yaml, complete) = guessed(text);
        assert!(complete, "{yaml}");
        for line in lines {
            assert!(yaml.contains(line), "{line}\n{yaml}");
        }
    }
}

#[test]
fn unknown_conversation_is_left_to_the_user() {
    let (yaml, complete) = guessed("alpha,beta\n1,2\n3,4\n");
    assert!(!complete);
    assert!(
        yaml.contains("output: '' ") && yaml.contains("FILL IN") && yaml.contains("alpha, beta"),
        "{yaml}"
    );
    let (format, _) = guessed("{\"messages\": []}\n");
    assert_eq!(format, "native");
    // A table without a row.
    let (yaml, complete) = guessed("id,alpha\n");
    assert!(
        !complete && yaml.contains("the fields are id, alpha"),
        "{yaml}"
    );
}

#[test]
fn values_decide_if_no_name_is_known() {
    let rows = "1,gut,Wo ist meine Bestellung?,Sie wurde am Montag verschickt.\n2,gut,Kann ich den Kessel umtauschen?,Nein, das geht nicht mehr.\n";
    let rows = rows.replace("Nein, das", "Nein das");
    let (yaml, complete) = guessed(&format!("fall,stand,frage,antwort\n{rows}"));
    assert!(complete, "{yaml}");
    for line in [
        "input: frage ",
        "output: antwort ",
        "stand: stand",
        "CHECK: by its values",
    ] {
        assert!(yaml.contains(line), "{line}\n{yaml}");
    }
    assert!(!yaml.contains("frage: frage"), "{yaml}");
    let (yaml, complete) = guessed(&format!("fall,stand,question,antwort\n{rows}"));
    assert!(complete && yaml.contains("output: antwort "), "{yaml}");
    assert_eq!(yaml.matches(" input: ").count(), 1, "{yaml}");
    let (yaml, complete) = guessed(
        "案例,顾客,客服\n一,我的订单在哪里？,星期一已经发货了。\n二,可以退货吗？,不可以退货。\n",
    );
    assert!(complete && yaml.contains("output: '\"客服\"' "), "{yaml}");
    // One message per record, whatever the name of the role.
    let events = "{\"session\": \"s1\", \"turn\": 2, \"who\": \"assistant\", \"text\": \"On Monday.\"}\n{\"session\": \"s1\", \"turn\": 1, \"who\": \"user\", \"text\": \"When?\"}\n";
    let (yaml, complete) = guessed(events);
    assert!(complete, "{yaml}");
    for line in [
        "group: {by: session, order: turn} ",
        "messages: 'records[].{role: who, content: text}' ",
    ] {
        assert!(yaml.contains(line), "{line}\n{yaml}");
    }
}

#[test]
fn number_among_questions_is_a_question() {
    let (yaml, _) = guessed("question,answer\nIs it free?,No.\n2025,Please ask again.\n");
    assert!(yaml.contains("input: question "), "{yaml}");
    let (yaml, _) = guessed("question,answer\n12,It is free.\n13,Ask again.\n");
    assert!(!yaml.contains("input: question "), "{yaml}");
}

#[test]
fn verdict_of_a_person_is_a_label_whatever_its_full_name() {
    let rows = "query,reply,human_pass,human_note\nWhen?,On Monday.,true,\nWhere?,Here.,false,\n";
    let (yaml, _) = guessed(rows);
    assert!(yaml.contains("passed: human_pass "), "{yaml}");
    assert!(yaml.contains("human_note: human_note"), "{yaml}");
}

#[test]
fn group_keeps_the_other_fields_of_its_messages() {
    let rows = "session_id,turn_number,role,content,version,milestone,score\n\
        s1,1,user,When?,v2,start,3\ns1,2,assistant,On Monday.,v2,end,3\ns2,1,user,Where?,v1,start,4\n";
    let (yaml, complete) = guessed(rows);
    assert!(complete, "{yaml}");
    for line in [
        "group: {by: session_id, order: turn_number} ",
        "version: 'records[0].version'",
        "milestone_by_message: 'records[].milestone'",
        "score: 'to_number(records[0].score)' ",
    ] {
        assert!(yaml.contains(line), "{line}\n{yaml}");
    }
}

#[test]
fn large_object_is_guessed_from_its_beginning() {
    // Larger than the preview, and its list has none of the usual names.
    let rows = r#"{"question":"q","reply":"a"},"#.repeat(60_000);
    let (yaml, complete) = guessed(&format!(
        "{{\"chats_of_may\":[{}]}}",
        &rows[..rows.len() - 1]
    ));
    assert!(complete, "{yaml}");
    for line in [
        "records: chats_of_may ",
        "input: question ",
        "output: reply ",
    ] {
        assert!(yaml.contains(line), "{line}\n{yaml}");
    }
}

#[test]
fn hostile_names_stay_on_their_lines() {
    let text = "{\"out\\nput: evil\": \"x\", \"\u{202e}answer\": \"y\", \"a'b\": \"#\", \"answer\": \"z\"}";
    let (yaml, complete) = guessed(text);
    assert!(complete && yaml.contains("output: answer "), "{yaml}");
    assert!(
        !yaml.contains('\u{202e}') && !yaml.contains("\nput"),
        "{yaml}"
    );
}

#[test]
fn answer_of_a_row_is_expected_and_the_answer_of_the_sample_is_the_agents() {
    for (text, output) in [
        (
            "item.question,item.answer,sample.output_text,sample.model\nWhat is it?,A river,It is a long river,gpt\n",
            r#"output: '"sample.output_text"' "#,
        ),
        (
            r#"{"item":{"question":"What is it?","answer":"A river"},"sample":{"output_text":"It is a river","model":"gpt"}}"#,
            "output: sample.output_text ",
        ),
        (
            r#"{"item":{"question":"What is it?","output":"A river"}}"#,
            "output: item.output ",
        ),
        (
            "question,correct_answer,model_answer\nWhat is it?,A river,It is a river\n",
            "output: model_answer ",
        ),
        (
            "question,gt_answer,answer_key,answer_gold,llm_answer\nWhat is it?,A river,river,River,It is a river\n",
            "output: llm_answer ",
        ),
    ] {
        let (yaml, complete) = guessed(text);
        assert!(complete && yaml.contains(output), "{output}\n{yaml}");
    }
    for text in [
        r#"{"item":{"question":"What is it?","answer":"A river"}}"#,
        r#"{"question":"What is it?","target_response":"A river"}"#,
    ] {
        let (yaml, complete) = guessed(text);
        assert!(!complete && yaml.contains("FILL IN"), "{yaml}");
    }
}

#[test]
fn guess_looks_at_values_and_expected_answers() {
    let cases: [(&str, &[&str], &[&str]); 1] = [(
        r#"{"stats":{"completion":12},"response_latency_mean":"fast","wait_for_response":true,"user_id":"u","prompt":"q","answer":"a"}"#,
        &["input: prompt ", "output: answer "],
        &["input: user_id", "output: stats"],
    )];
    for (text, lines, absent) in cases {
        let (yaml, complete) = guessed(text);
        assert!(complete, "{yaml}");
        for line in lines {
            assert!(yaml.contains(line), "{line}\n{yaml}");
        }
        for line in absent {
            assert!(!yaml.contains(line), "{line}\n{yaml}");
        }
    }
}

#[test]
fn file_of_a_format_without_a_readable_record_gets_a_guess() {
    let text =
        r#"{"question":"q","choices":["a","b"],"answer":"A","model_output":"The answer is A."}"#;
    let (yaml, complete) = guessed(text);
    // The answer of a data set is the expected one if the model's is next to it.
    assert!(
        complete && yaml.contains("output: model_output ") && yaml.contains("answer: answer"),
        "{yaml}"
    );
}

#[test]
fn guess_finds_what_a_record_is() {
    let cases: [(&str, &[&str]); 8] = [
        // People name the better model in the judgments of MT-Bench and the Arena.
        (
            r#"{"question_id": 81, "model_a": "m", "model_b": "n", "winner": "model_b", "judge": "author_2", "conversation_a": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}], "conversation_b": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "No"}]}"#,
            &[
                "answers: {model_a: conversation_a, model_b: conversation_b} ",
                "better: winner ",
            ],
        ),
        (
            r#"{"model": "m", "data": {"rows": [{"question": "a?", "reply": "b"}, {"question": "c?", "reply": "d"}]}}"#,
            &[
                "records: data.rows ",
                "the list of records in the object; not read: model\n",
                "input: question ",
                "output: reply ",
            ],
        ),
        (
            "session_id,turn,speaker,text\ns1,1,user,hi\ns1,2,bot,hello\ns2,1,user,ho\n",
            &[
                "group: {by: session_id, order: turn} ",
                "messages: 'records[].{role: speaker, content: text}' ",
            ],
        ),
        (
            "question,response_a,response_b,winner\nq,yes of course,no never,response_a\nr,one,two,tie\n",
            &[
                "input: question ",
                "answers: {response_a: response_a, response_b: response_b} ",
                "better: winner ",
            ],
        ),
        (
            r#"{"log": "User: hi\nAgent: hello\nUser: bye"}"#,
            &[
                "messages: log ",
                "split: {user: 'User:', assistant: 'Agent:'} ",
            ],
        ),
        (
            r#"{"question_id": 7, "answer": "It is blue."}"#,
            &[
                "output: answer ",
                "# join: {path: CHANGE, on: question_id, as: question} ",
            ],
        ),
        (
            r#"{"sessions": [{"log": [{"who": 1}]}], "runs": [{"prompt": "a?", "reply": "b"}]}"#,
            &["records: runs "],
        ),
        (
            r#"{"instruction": "Add", "input": "1 and 2", "answer_1": "three", "answer_2": "four", "preference": 2}"#,
            &[
                "answers: {answer_1: answer_1, answer_2: answer_2} ",
                "better: preference ",
            ],
        ),
    ];
    for (text, wanted) in cases {
        let (yaml, complete) = guessed(text);
        assert!(complete, "{yaml}");
        for wanted in wanted {
            assert!(yaml.contains(wanted), "{wanted} in\n{yaml}");
        }
    }
}

#[test]
fn table_of_another_encoding_is_guessed_by_its_bytes() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.csv");
    std::fs::write(&path, b"question,answer\nwhy?,I don\x92t know\n").expect("written");
    let MappingGuess::Entry { yaml, complete } = guess_mapping(&path, "t.csv").expect("a guess")
    else {
        panic!("a table needs a mapping");
    };
    assert!(
        complete && yaml.contains("encoding: windows-1252")
            || yaml.contains("encoding: 'windows-1252'"),
        "{yaml}"
    );
}
