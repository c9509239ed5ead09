//! The data that all prefixes of one transcript share.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value};

use super::{MessageText, SubjectCall};
use crate::handlers::grounding::GroundingSources;
use crate::model::{MessageRole, ToolResult, Transcript, TranscriptPart};

/// The key of a check's cache. Each check that caches something has its own.
#[derive(Debug)]
pub(in crate::handlers) struct CheckCacheKey(u64);

impl CheckCacheKey {
    /// Returns a new key, different from all others.
    pub(in crate::handlers) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // `Relaxed` is enough: only uniqueness matters.
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns a key that all checks share. Only the type of the cached value distinguishes such caches.
    pub(in crate::handlers) const fn shared() -> Self {
        Self(0)
    }
}

/// A transcript with the data that checks have requested so far.
#[derive(Debug)]
pub(super) struct TranscriptIndex<'t> {
    pub(super) transcript: &'t Transcript<'t>,
    assistant_texts: OnceCell<Vec<MessageText<'t>>>,
    calls: OnceCell<Vec<SubjectCall<'t>>>,
    results: OnceCell<Vec<Option<LocatedToolResult<'t>>>>,
    result_texts: OnceCell<Vec<Option<MessageText<'t>>>>,
    /// By call; each is parsed on first use.
    arguments: OnceCell<Vec<OnceCell<CallArguments>>>,
    metadata: OnceCell<Option<Value>>,
    /// By whether texts of users and of the system count.
    sources_by_role: [OnceCell<GroundingSources<'t>>; 4],
    check_caches: RefCell<HashMap<CheckCacheId, Rc<dyn Any>>>,
}

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocatedToolResult<'t> {
    /// The position of its message.
    pub message: usize,
    /// The result.
    pub result: &'t ToolResult<'t>,
}

/// The identity of a cache of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct CheckCacheId {
    /// The type is part of the key, so that two checks with a shared key cannot confuse their values.
    type_id: TypeId,
    key: u64,
}

/// The arguments as an object, or the reason why they are not one.
type CallArguments = Result<Map<String, Value>, String>;

impl<'t> TranscriptIndex<'t> {
    pub(super) fn new(transcript: &'t Transcript<'t>) -> Self {
        Self {
            transcript,
            assistant_texts: OnceCell::new(),
            calls: OnceCell::new(),
            results: OnceCell::new(),
            result_texts: OnceCell::new(),
            arguments: OnceCell::new(),
            metadata: OnceCell::new(),
            sources_by_role: Default::default(),
            check_caches: RefCell::default(),
        }
    }

    pub(super) fn assistant_texts(&self) -> &[MessageText<'t>] {
        // All assistant messages; each subject takes those before its end.
        self.assistant_texts.get_or_init(|| {
            let messages = self.transcript.messages.iter().enumerate();
            messages
                .filter(|(_, message)| message.role == MessageRole::Assistant)
                .map(|(at, message)| MessageText::new(at, message.text()))
                .collect()
        })
    }

    pub(super) fn calls(&self) -> &[SubjectCall<'t>] {
        self.calls.get_or_init(|| {
            let messages = self.transcript.messages.iter().enumerate();
            messages
                .filter(|(_, message)| message.role == MessageRole::Assistant)
                .flat_map(|(at, message)| {
                    let parts = message.parts.iter().enumerate();
                    parts.map(move |(nth, part)| (at, nth, part))
                })
                .filter_map(|(message, nth, part)| match part {
                    TranscriptPart::ToolCall(call) => Some(SubjectCall {
                        message,
                        part: nth,
                        call,
                    }),
                    _ => None,
                })
                .collect()
        })
    }

    pub(super) fn arguments(&self, call: usize) -> Result<&Map<String, Value>, &str> {
        let calls = self.calls();
        // A cell for each call, so that only the arguments that a check reads are parsed.
        let all = self
            .arguments
            .get_or_init(|| calls.iter().map(|_| OnceCell::new()).collect());
        let read = || parse_arguments(&calls[call].call.arguments);
        all[call].get_or_init(read).as_ref().map_err(String::as_str)
    }

    pub(super) fn metadata(&self) -> Option<&Value> {
        let all = self.metadata.get_or_init(|| {
            let metadata = self.transcript.metadata.as_ref()?;
            // JSON that dicta cannot represent counts as no metadata.
            serde_json::from_str(metadata.get()).ok()
        });
        all.as_ref()
    }

    pub(super) fn result_texts(&self) -> &[Option<MessageText<'t>>] {
        self.result_texts.get_or_init(|| {
            let to_text = |located: LocatedToolResult<'t>| {
                MessageText::new(located.message, Cow::Borrowed(&*located.result.content))
            };
            let results = self.results().iter();
            results.map(|result| result.map(to_text)).collect()
        })
    }

    pub(super) fn grounding_sources(&self, user: bool, system: bool) -> &GroundingSources<'t> {
        // Four combinations of two roles.
        let which = usize::from(user) + 2 * usize::from(system);
        self.sources_by_role[which].get_or_init(|| {
            let messages = self.transcript.messages.iter().enumerate();
            let texts = messages.flat_map(|(at, message)| {
                let counts = match message.role {
                    // A plain text in a tool message is a source, too.
                    MessageRole::Tool => true,
                    MessageRole::User => user,
                    MessageRole::System => system,
                    _ => false,
                };
                let text = move |part: &'t TranscriptPart<'t>| match part {
                    TranscriptPart::ToolResult(result) => Some((at, &*result.content)),
                    TranscriptPart::Text(text) if counts => Some((at, &**text)),
                    _ => None,
                };
                message.parts.iter().filter_map(text)
            });
            // Empty texts do not count as sources: an answer cannot rest on them.
            GroundingSources::from_messages(texts.filter(|(_, text)| !text.trim().is_empty()))
        })
    }

    pub(super) fn check_cache<T: Default + 'static>(&self, key: &CheckCacheKey) -> Rc<T> {
        let mut memos = self.check_caches.borrow_mut();
        let id = CheckCacheId {
            type_id: TypeId::of::<T>(),
            key: key.0,
        };
        let made = memos.entry(id).or_insert_with(|| Rc::new(T::default()));
        Rc::clone(made)
            .downcast()
            .expect("what is kept under a type is of that type")
    }

    pub(super) fn results(&self) -> &[Option<LocatedToolResult<'t>>] {
        self.results.get_or_init(|| self.join_results())
    }

    /// Joins calls with results. A result answers the newest message that has an unanswered call of its id, and there
    /// the first such call.
    ///
    /// So ids that occur again in every turn (`call_0`) and calls without ids (all have the empty id) join in order.
    /// Later messages never change an earlier join, so a prefix has the same joins.
    fn join_results(&self) -> Vec<Option<LocatedToolResult<'t>>> {
        let calls = self.calls();
        let mut results = vec![None; calls.len()];
        // By id: the calls without a result, newest message last; within a message the first call last, so that `pop`
        // returns it.
        let mut waiting: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut next = 0;
        for (at, message) in self.transcript.messages.iter().enumerate() {
            let from = next;
            while next < calls.len() && calls[next].message == at {
                next += 1;
            }
            // Reversed, so that `pop` returns the first call of the message.
            for ix in (from..next).rev() {
                waiting.entry(&calls[ix].call.id).or_default().push(ix);
            }
            for part in &message.parts {
                if let TranscriptPart::ToolResult(result) = part
                    && let Some(ix) = waiting.get_mut(&*result.call_id).and_then(Vec::pop)
                {
                    results[ix] = Some(LocatedToolResult {
                        message: at,
                        result,
                    });
                }
            }
        }
        results
    }
}

fn parse_arguments(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        // Some sources write no arguments as an empty text, not as `{}`.
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("its arguments are not a JSON object".to_owned()),
        Err(why) => Err(format!("its arguments are not JSON: {why}")),
    }
}
