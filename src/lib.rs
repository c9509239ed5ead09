//! dicta is a terminal workbench for people who write rubrics for LLM judges.
//!
//! > Edit a rubric, watch the judge think, see which verdicts flip, and know whether the edit was progress.
//!
//! # Architecture
//!
//! ```text
//!  rubric.yaml ──► rubric::load ──────┐
//!  transcripts ──► transcript ────────┤
//!  dicta.yaml ───► workspace ─────────┴► run::plan ─► run::execute ── facts ─► sequencer = recorder ─► RunEvent
//!                                           │              │                        (seq, write)          │
//!                               handlers ◄──┘   judge ◄────┘ provider, tools                  ┌───────────┤
//!                                                                       record::Player ─►     ▼           ▼
//!                                                                       (paced, same)     report::…   RunState
//!                                                                                                         │
//!                          keys, mouse, files ─► tui: Msg ─► update(&mut App) ─► view(&App) ◄─────────────┘
//! ```
//!
//! There is one pipeline, so dicta records an event before it shows the event. A replay uses the same pipeline; only
//! the source of the events differs.
//!
//! # Layers
//!
//! Each module belongs to a layer and imports only from lower layers. `tests/tidy.rs` checks this rule.
//!
//! 1. [`model`] domain types · [`diag`] diagnostics and the only YAML reader · [`clock`] time · [`schema`] JSON Schema ·
//!    [`query`] JMESPath · [`storage`] whole files
//! 2. [`event`] the only event type, its fold, its emitter · [`net`] the only HTTP client builder · [`process`] started
//!    programs
//! 3. [`transcript`] one reader per format · [`rubric`] rubric files · [`provider`] model dialects · [`tools`] judge tools
//! 4. [`handlers`] eval types
//! 5. [`judge`] the judge trace · [`record`] recordings on disk · [`workspace`] dicta.yaml, discovery, labels
//! 6. [`run`] plan, schedule, cache · [`compare`] flips, statistics · [`report`] outputs · [`review`] notes and failure
//!    modes, before any rubric
//! 7. [`theme`] colors and glyphs · [`tui`] the workbench
//! 8. [`cli`] the commands
//!
//! # Glossary
//!
//! Code, help, messages and docs use these terms, one term per concept. The last column lists words that dicta does not
//! use for the concept. `code` marks names in files and on the command line. Messages of a transcript count from 0;
//! records and repeats count from 1.
//!
//! ## What is judged
//!
//! | term | meaning in dicta | owner | not |
//! |---|---|---|---|
//! | workspace | a folder with a `dicta.yaml`, which lists the transcripts, rubrics, judges, tools and labels that belong together | [`workspace`] | project |
//! | demo | the workspace that is embedded in the program | [`workspace`] | – |
//! | agent | the system whose answers are judged | – | bot |
//! | transcript | one recorded conversation of an agent: messages, tool calls, tool results, metadata (elsewhere: a trace or a sample) | [`model`] | trace |
//! | message | one entry of a transcript | [`model`] | turn, step |
//! | tool result | what a tool of the agent returned, as the transcript records it | [`model`] | answer |
//! | record | the part of a file that holds one transcript: a line, a row, or an array element | [`transcript`] | entry |
//! | format | the layout of a file that dicta reads; the *native format* has one JSON object per line | [`transcript`] | form |
//! | reader | the code that turns one format into transcripts | [`transcript`] | importer |
//! | field mapping | a description of where an unknown file keeps its fields (`map:`), written by the user or guessed | [`transcript`] | – |
//! | pair | two transcripts of one question, with the same `metadata.pair`; a person chooses the better one | [`model`] | – |
//! | source verdict | a verdict that another tool wrote into the transcript file | [`model`] | – |
//! | note | a person's sentence about the first failure of a transcript | [`review`] | comment |
//! | failure mode, mode | a kind of failure with a name and a definition, to which notes belong | [`review`] | category |
//! | label | a person's pass or fail on one transcript and eval (elsewhere: annotation, ground truth) | [`model`], [`workspace`] | mark |
//! | label to confirm | a label whose question or transcript changed since; it counts nowhere until a person confirms it | [`model`] | stale label |
//! | sealed label | a label of the test part of a split; nothing depends on its answer until `dicta agree --unseal` | [`workspace`] | hidden label |
//! | part | the side of a split to which a transcript belongs: `train`, `dev` or `test` | [`model`] | – |
//! | unsealing | one recorded look at the sealed labels | [`workspace`] | – |
//! | label queue | an ordered list of decisions to label next: drawn by chance, or chosen by a rule | [`compare`] | – |
//! | shot | a labelled transcript of the part `train` that the prompt shows as an example (elsewhere: few-shot example) | [`run`] | demonstration |
//! | variant | a named change of a judged eval that `dicta variants` measures on the dev labels | [`workspace`] | – |
//! | proposal | a change of an eval that a model suggests; `dicta improve` measures it as a variant | [`run`] | suggestion |
//! | clause | a part of criteria that can be judged by itself | [`judge`] | atom |
//! | reference | an eval that code decides, whose verdicts serve as labels of a judged eval | [`rubric`] | – |
//! | question | what a label answers: the criteria, scoring guide and scale of a judged eval, or the type of a check and its `not` | [`rubric`] | – |
//!
//! ## What judges it
//!
//! | term | meaning in dicta | owner | not |
//! |---|---|---|---|
//! | rubric | a YAML file with a named list of evals (elsewhere: a test suite) | [`rubric`] | suite |
//! | eval | one check of a rubric: an id, an eval type, and params (elsewhere: an assertion, a scorer, a metric) | [`rubric`] | test |
//! | eval type | the value of an eval's `type:` key, such as `regex` or `llm_judge`; it names a handler | [`handlers`] | kind |
//! | handler | the code of one eval type | [`handlers`] | – |
//! | params | the settings of one eval, as its eval type defines them | [`handlers`] | options |
//! | criteria | the text that states what the judged message or transcript must do | [`handlers`] | – |
//! | scoring guide | the text with the rules for a judge's score (`params.scoring_guide`; PromptKit's `rubric` works, too) | [`handlers`] | rubric |
//! | trigger | the rule for when an eval runs: on every assistant message, once per transcript, or on a random part | [`rubric`] | – |
//! | selector | the filter that chooses the transcripts of a rubric or an eval (`applies_to`); others get no cell | [`rubric`] | – |
//! | precondition | a check that must hold before an eval runs (`when`); otherwise the outcome is `skipped` | [`rubric`] | – |
//! | example | a text with the verdict that an eval must give it; dicta judges it to test the eval itself | [`rubric`] | exam |
//! | judge | a named configuration that returns verdicts for evals, usually with a language model (LLM-as-a-judge) | [`workspace`], [`judge`] | grader |
//! | `rules` | the built-in judge; it reads simple criteria and needs no language model | [`judge::rules`] | – |
//! | preset judge | an eval type with criteria or a scoring guide that dicta provides, such as `faithfulness` | [`handlers`] | – |
//! | source judge | a judge that returns source verdicts and calls nothing | [`run`] | – |
//! | panel | several judges that decide one eval together; each of them is a *member* | [`model`] | court, bench |
//! | jury | a panel in which every member judges and a vote rule decides | [`model`] | – |
//! | cascade | a panel whose members judge in order until one verdict is certain enough | [`model`] | – |
//! | judge pool | the judges of a run, ready to be called | [`run`] | bench |
//! | second opinion | a verdict of another judge on the same question; it does not change the decision | [`tui`] | – |
//!
//! ## What is decided
//!
//! | term | meaning in dicta | owner | not |
//! |---|---|---|---|
//! | cell | one question: a transcript, rubric, eval, message, judge and repeat. dicta judges, caches and records cells. An eval without a judge has one cell per message or transcript | [`model`] | square |
//! | repeat | the number of a cell among those that ask one judge the same question (elsewhere: epoch, trial) | [`model`] | – |
//! | outcome | the end of a cell or decision: `pass`, `fail`, `not_applicable`, `skipped`, `check_error`, `judge_error`, `unparsed`, `turn_limit`, `truncated`, `timeout`, `budget`, `cancelled` | [`model`] | status |
//! | finding | what a check returns for one cell: an outcome, a score, an explanation and the locations that it is based on | [`handlers`] | – |
//! | verdict | the answer to one cell: pass or fail, the score, the reasoning and the citations. An error is never a verdict | [`model`] | grade |
//! | score | a number from 0 to 1 in a verdict | [`model`] | – |
//! | scale | another range in which a judge may score, such as 1–5; dicta converts it to 0–1 | [`model`] | – |
//! | calibrated score | a score that dicta computes from the probabilities that a judge's endpoint returns | [`model`] | – |
//! | citation | a quote in a verdict and its source: a message, a fetched page, or the scoring guide | [`model`] | – |
//! | flag | a mark on a verdict that a person should check, such as a citation that occurs nowhere; it does not change the outcome | [`judge`], [`report`] | – |
//! | contradiction | a conflict between a verdict's reasoning and its pass or fail; dicta flags it | [`judge`] | – |
//! | decision | the combined outcome of one transcript, rubric, eval and message: the outcome of its only cell, or a vote over its cells | [`model`] | ruling |
//! | vote rule | the rule that combines cells into a decision, such as the majority (elsewhere: a reducer) | [`model`] | – |
//! | ballot | the contribution of one cell to a vote | [`model`] | – |
//! | decision setting | a setting that changes decisions without a judge call: bounds, weight, threshold, required, majority | [`model`] | – |
//! | bounds | `min_score`, `max_score` and the cut-offs of a scale: the scores at which a verdict passes | [`model`] | – |
//! | weight | the factor of an eval in the rubric score | [`rubric`] | – |
//! | rubric score | the weighted mean of a rubric's scores on one transcript | [`report`] | – |
//! | threshold | the lowest rubric score at which the rubric passes | [`rubric`] | – |
//! | rescore | to compute decisions again from recorded scores under the current decision settings | [`record`] | `decide anew` |
//! | flip | a decision that passes in one of two compared runs and fails in the other | [`compare`] | regression |
//! | regression | a flip away from the label or, without a label, from pass to fail | [`compare`] | – |
//! | agreement | the comparison of verdicts with labels: true pass, false pass, true fail, false fail (elsewhere: a confusion matrix) | [`report`] | – |
//! | TPR, TNR | the share of labelled passes that the judge passes; the share of labelled fails that it fails | [`compare::statistics`] | recall alone |
//! | corrected pass rate | the share of passes that people would give, computed from all verdicts and the drawn labels | [`compare::statistics`] | – |
//! | noise | differences between verdicts of one judge on one question, without an edit | [`compare`], [`record`] | flakiness |
//! | draw | one random choice of what to label, with the probability of each chosen item | [`compare::statistics`] | – |
//! | stratum | a group from which a draw chooses with one probability | [`compare::statistics`] | – |
//! | sampling cell | the items with the same arrival, the same strata in all draws, and the same verdict | [`compare::statistics`] | – |
//! | interval | the range that contains the true value of a figure in 95% of samples | [`compare::statistics`] | error bar |
//!
//! ## How a judge works
//!
//! | term | meaning in dicta | owner | not |
//! |---|---|---|---|
//! | judge trace | the record of how a judge decided one cell: turns, tool calls, a verdict | [`judge`] | trace alone |
//! | turn | one call of the language model in a judge trace | [`judge`], [`event`] | round |
//! | step | a part of a turn in a judge trace, with a stable id such as `2.call.1`: prompt, reasoning, reply, tool call, tool response or verdict | [`event`] | – |
//! | claim | a quote or a number on which a verdict rests | [`tui`] | – |
//! | attempt | one HTTP request of a turn; a turn has several attempts if dicta retries | [`provider`] | try |
//! | prompt | the text that dicta renders for a judge; its *frame* is the fixed part around the user's texts | [`judge`] | – |
//! | delimiter | the marker around untrusted text in a prompt, unknown to the author of that text | [`judge`] | – |
//! | untrusted text | text that dicta did not write: transcripts, pages, model output, file names | [`model`] | – |
//! | verdict format | the form in which a judge submits its verdict: a function call, structured output, or JSON text | [`judge`] | – |
//! | structured output | a server feature that makes a model reply with JSON of a given schema | [`provider`] | – |
//! | provider | a service that serves language models | [`provider`] | – |
//! | dialect | the wire protocol of a provider: request bodies and streamed replies | [`provider`] | – |
//! | native item | a part of a provider's reply that dicta keeps byte for byte and sends back | [`model`] | – |
//! | delta | a piece of streamed text, reasoning or arguments | [`event`] | – |
//! | usage | the token counts of a reply | [`model`] | – |
//! | price | USD per million tokens | [`model`] | – |
//! | cost | the price of the tokens that were used, in USD | [`model`] | – |
//! | budget | the limit on a run's cost, calls or tokens | [`judge`] | – |
//! | rate limiter | the code that keeps requests below a server's limits | [`run`] | pace |
//! | retry | another attempt after a temporary failure | [`provider`] | – |
//! | gate | the point before a model or tool call where a person can pause or edit a judge trace (a breakpoint stops there) | [`judge`] | – |
//! | breakpoint | a stop of judge traces at which a person decides how they continue; each trace pauses on its own | [`judge`] | – |
//! | branch | a judge trace that continues a recorded one from a step, with or without a change; it decides nothing | [`judge`], [`run`] | fork |
//! | edited by hand | the mark of a result whose judge trace a person changed; it enters no history, cache or statistics | [`event`], [`report`] | – |
//! | follow-up question | a question to a judge after its verdict; it is recorded next to the run and changes no result | [`record`], [`run`] | – |
//!
//! ## Judge tools
//!
//! | term | meaning in dicta | owner | not |
//! |---|---|---|---|
//! | tool | a function that a judge may call, if the text does not speak of the agent's tools | [`tools`] | – |
//! | tool kind | the value of `kind:` in tools.yaml, the MCP toolbox's key; it names the code that runs the tool | [`tools`] | – |
//! | tool source | a server or database that tools of tools.yaml use (`sources:`) | [`tools`] | – |
//! | toolbox | the content of a tools.yaml file | [`tools`] | – |
//! | argument | a value in a tool call | [`tools`] | – |
//! | parameter | the declaration of an argument in a tool | [`tools`] | – |
//! | argument repair | the correction of a judge's invalid JSON arguments; dicta records every change | [`tools`] | `mend` |
//! | raw arguments | the arguments as the judge wrote them | [`tools`] | – |
//! | canonical arguments | the arguments after repair, as JSON | [`tools`] | – |
//! | validated arguments | the arguments after the parameter rules, as values | [`tools`] | – |
//! | rejection | a tool call that dicta refuses before it runs, with a text for the judge | [`model`] | – |
//! | tool response | the text that a tool call returns to the judge | [`model`] | answer |
//! | recorded tool response | a stored tool response, identified by digest, that can replace a live call (elsewhere: cassette, fixture); `evidence` in code | [`judge`] | frozen evidence |
//! | address guard | the SSRF protection: it checks every URL and address that a model or a page names | [`net`] | – |
//! | hop | one request of a fetch; each redirect adds a hop | [`model`] | – |
//! | seen rule | the rule that a judge may fetch only URLs that occur in what it has read | [`tools`] | – |
//! | process group | a program that dicta starts, with all of its child processes | [`process`] | `leash` |
//!
//! ## Runs and recordings
//!
//! | term | meaning in dicta | owner | not |
//! |---|---|---|---|
//! | run | one execution over a set of cells, recorded as an append-only event log | [`run`], [`record`] | session |
//! | event | one line of the log, with a number and a time | [`event`] | – |
//! | fact | the content of an event, named in the past tense | [`event`] | – |
//! | fold | the computation of a state from events, one event at a time | [`event`] | – |
//! | plan | the ordered list of a run's cells, or the rule that produces it | [`run`] | – |
//! | feed | the source of a run's transcripts | [`run`] | – |
//! | snapshot | the input files of one run, stored when the run begins | [`run`] | – |
//! | blob | a text over 4 KB, stored once under its digest | [`record`] | – |
//! | bundle | one file with a recorded run and the runs whose verdicts it reuses; it opens without the workspace | [`record`] | – |
//! | result file | a file with the result lines of a run (`-o results.jsonl`), which `dicta compare` takes | [`report`] | – |
//! | digest | a BLAKE3 hash that identifies content | [`model`] | – |
//! | cache key | the digest of everything that could change the verdict of one cell | [`judge`] | – |
//! | verdict cache | the recorded verdicts that a run may use instead of a judge call | [`run`] | recall |
//! | stale verdict | a recorded verdict whose question has changed since | [`tui`] | – |
//! | replay | the display of a recorded run with its timing; it calls nothing | [`record`], [`tui`] | – |
//! | resume | to judge the cells that an interrupted run left | [`run`] | – |
//! | revision | everything that determines verdicts, identified by digest | [`record`] | version |
//! | trust | the user's consent to load a workspace that others own or can write, and to send secrets to addresses | [`workspace::trust`] | – |
//! | history | the revisions of a workspace in order, with their runs | [`record`] | – |
//! | state | every decision of a revision with its newest valid verdict | [`record`] | board |
//! | baseline | the state that a person compares others with; `@baseline` names it | [`record`] | – |
//! | newest verdicts | the latest recorded verdict of every cell, over all runs | [`record`] | board |
//! | robustness run | a run that attacks a judge with manipulated transcripts (`dicta robustness`; elsewhere: red teaming) | [`run`] | – |
//! | attack | one manipulation in a robustness run | [`run`] | – |
//!
//! ## The program
//!
//! | term | meaning in dicta | owner | not |
//! |---|---|---|---|
//! | workbench | the interactive screen | [`tui`] | – |
//! | session (of the screen) | the cells, runs and traces of one view: one session for the live workspace, one for each replay | [`tui`] | – |
//! | app | the state of the screen, as data | [`tui`] | model, desk |
//! | `Msg` | an input of `update`: a key, a file change, an event of a run, a result | [`tui`] | – |
//! | effect | an order that `update` returns and the runtime carries out | [`tui`] | – |
//! | pane | a part of the screen with a title and a border | [`tui`] | – |
//! | overlay | a box above the panes | [`tui`] | – |
//! | command | an action of the user; the command table lists all of them | [`tui`] | – |
//! | language model | a model that a provider serves. The module [`model`] contains only the domain types | [`provider`] | – |
//! | diagnostic | a problem in a user's file, with its location and how to fix it | [`diag`] | complaint |
//! | lint | a diagnostic about a file that loads but probably does not do what its author wants | [`workspace`] | – |
//! | layer | a group of modules that may import only lower groups | this page | floor |
//! | debounce | to wait until a file stops changing | [`workspace::watch`] | – |

pub mod cli;
pub mod clock;
pub mod compare;
pub mod diag;
pub mod event;
pub mod handlers;
pub mod judge;
pub mod model;
pub mod net;
pub mod process;
pub mod provider;
pub mod query;
pub mod record;
pub mod report;
pub mod review;
pub mod rubric;
pub mod run;
pub mod schema;
pub mod storage;
pub mod theme;
pub mod tools;
pub mod transcript;
pub mod tui;
#[doc(hidden)]
pub mod untrusted;
pub mod workspace;
