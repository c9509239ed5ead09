//! The text of a fetched body: content type, encoding, layout and length.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use encoding_rs::Encoding;
use regex::bytes::Regex;
use std::sync::LazyLock;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinError};
use url::Url;

use super::html::RenderError;
use super::{html, json};
use crate::clock::Clock;
use crate::model::Millis;

/// The limit of a page's laid-out text, in bytes. dicta never shows more. [`find_hidden_ranges`] uses the same limit:
/// another one would lay out tables differently.
const MAX_LAYOUT_BYTES: usize = 2 << 20;

/// The way to read a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    Html,
    Json,
    /// Any other text, including XML.
    Text,
    /// A body without a content type: text if it looks like text.
    Unknown,
    /// A body that is not text.
    Binary,
}

impl BodyKind {
    /// Classifies a content-type header. text/*, JSON and XML types are text.
    pub(super) fn from_content_type(content_type: Option<&str>) -> Self {
        let Some(full) = content_type else {
            return BodyKind::Unknown;
        };
        match media_type(full).as_str() {
            "" => BodyKind::Unknown,
            "text/html" | "application/xhtml+xml" => BodyKind::Html,
            "application/json" | "text/json" => BodyKind::Json,
            t if t.ends_with("+json") => BodyKind::Json,
            "application/xml" | "application/x-ndjson" | "application/jsonl" => BodyKind::Text,
            // SVG and RSS are XML and readable as text.
            t if t.ends_with("+xml") || t.starts_with("text/") => BodyKind::Text,
            _ => BodyKind::Binary,
        }
    }
}

/// Returns a content type in lower case without its parameters.
pub(super) fn media_type(content_type: &str) -> String {
    content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

/// A body as text.
pub(super) struct PageText {
    pub(super) text: String,
    /// The number of characters that a browser does not show.
    pub(super) hidden_chars: u64,
}

impl From<String> for PageText {
    fn from(text: String) -> Self {
        Self {
            text,
            hidden_chars: 0,
        }
    }
}

/// Extracts the whole text of a body. Returns `None` if the body is binary after all.
///
/// `patience` limits the rendering of HTML, and begins with its thread. It does not limit the wait for a thread. A page
/// that arrived in time would otherwise become its source, because other work of dicta took the threads.
pub(super) async fn extract_page_text(
    bytes: Vec<u8>,
    content_type: Option<&str>,
    url: &str,
    max: usize,
    clock: &dyn Clock,
    patience: Millis,
) -> Option<PageText> {
    let kind = BodyKind::from_content_type(content_type);
    let text = decode_body(&bytes, content_type, kind);
    // Three signs of a binary body: its type, a NUL, or bytes that are not UTF-8 under an unknown type.
    if kind == BodyKind::Binary
        // No text format contains NUL, but binary formats do, whatever the server declares.
        || text.contains('\0')
        || (kind == BodyKind::Unknown && std::str::from_utf8(&bytes).is_err())
    {
        return None;
    }
    if kind == BodyKind::Json {
        return Some(json::pretty_print_json(&text, max).unwrap_or(text).into());
    }
    // Some servers send HTML under another text type.
    let is_html = kind == BodyKind::Html
        || text[..text.floor_char_boundary(200)]
            .to_ascii_lowercase()
            .contains("<html");
    if !is_html {
        return Some(text.into());
    }
    // Rendering runs on a blocking thread, so that no page can delay others.
    let base = Url::parse(url).ok();
    let html = Arc::new(text);
    let source = Arc::clone(&html);
    let render = move |stopped: &AtomicBool| {
        let mut go_on = || !stopped.load(Ordering::Relaxed);
        html::render_html_as_markdown(&html, base.as_ref(), MAX_LAYOUT_BYTES, &mut go_on)
    };
    let rendered = run_on_thread(clock, patience, render).await;
    let why = match rendered {
        Some(Ok(Ok(html::RenderedPage {
            text,
            hidden_chars: hidden,
            ..
        }))) if !text.is_empty() => {
            return Some(PageText {
                text,
                hidden_chars: hidden,
            });
        }
        Some(Ok(Ok(_))) => "the page holds no text beside its scripts",
        Some(Ok(Err(RenderError::TooManyAttributes))) => {
            "an element of the page has too many attributes to read its HTML"
        }
        Some(Ok(Err(RenderError::Stopped))) | None => "the page's HTML could not be read in time",
        Some(Err(_)) => "the page's HTML could not be read",
    };
    // The source is better than nothing, and the first line explains it to the judge.
    Some(format!("[{why}; this is its source]\n\n{source}").into())
}

/// Stops the work of a thread when dropped, so that the work of an abandoned call ends as well.
struct StopOnDrop {
    flag: Arc<AtomicBool>,
    job: AbortHandle,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.flag.store(true, Ordering::Relaxed);
        // A job that still waits for a thread never starts. This has no effect on one that runs or has ended.
        self.job.abort();
    }
}

/// Runs `work` on a thread for blocking work, and returns its result. Returns `None` if `limit` passes first, which
/// begins with the work. The flag that `work` gets is then `true`, and also after the drop of this future.
async fn run_on_thread<T: Send + 'static>(
    clock: &dyn Clock,
    limit: Millis,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Option<Result<T, JoinError>> {
    let flag = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&flag);
    let (start, started) = oneshot::channel();
    let mut job = tokio::task::spawn_blocking(move || {
        let _gone = start.send(());
        work(&stopped)
    });
    let _stop = StopOnDrop {
        flag,
        job: job.abort_handle(),
    };
    let time_over = async {
        // Work that waits for a free thread uses none of its time.
        let _started = started.await;
        clock.sleep(limit).await;
    };
    tokio::select! {
        // Work that is already done wins.
        biased;
        done = &mut job => Some(done),
        () = time_over => None,
    }
}

/// Extracts the text of a body as [`extract_page_text`] does, on this thread and without a time limit.
pub(crate) fn render_page_text(
    bytes: &[u8],
    content_type: Option<&str>,
    max: usize,
) -> Option<String> {
    let kind = BodyKind::from_content_type(content_type);
    let text = decode_body(bytes, content_type, kind);
    match kind {
        BodyKind::Binary => None,
        BodyKind::Json => Some(json::pretty_print_json(&text, max).unwrap_or(text)),
        BodyKind::Html => {
            let base = Url::parse("https://page.example/").ok();
            let page =
                html::render_html_as_markdown(&text, base.as_ref(), max, &mut || true).ok()?;
            Some(page.text)
        }
        BodyKind::Text | BodyKind::Unknown => Some(text),
    }
}

/// Returns the ranges of a page's shown text that a browser does not show. `url` is the page's address.
///
/// Renders the body again, and returns ranges as far as the result agrees with `shown`. A cut body, or a page that
/// another version of dicta rendered differently, has no ranges. Returns `None` if `go_on` returned false meanwhile: a
/// page can be made so that its rendering takes minutes.
pub(crate) fn find_hidden_ranges(
    bytes: &[u8],
    content_type: Option<&str>,
    url: Option<&str>,
    shown: &str,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Vec<Range<usize>>> {
    let text = decode_body(
        bytes,
        content_type,
        BodyKind::from_content_type(content_type),
    );
    let base = url.and_then(|url| Url::parse(url).ok());
    let read = match html::render_html_as_markdown(&text, base.as_ref(), MAX_LAYOUT_BYTES, go_on) {
        Ok(read) => read,
        // The judge got the source of such a page, which hides nothing.
        Err(RenderError::TooManyAttributes) => return Some(Vec::new()),
        Err(RenderError::Stopped) => return None,
    };
    // Both texts come from the same page, but the shown one may be cut or changed by `max`.
    let pairs = read.text.bytes().zip(shown.bytes());
    let same = pairs.take_while(|(one, other)| one == other).count();
    let same = shown.floor_char_boundary(same);
    let clipped = |at: Range<usize>| at.start..at.end.min(same);
    let marks = read.hidden_ranges.into_iter().map(clipped);
    Some(marks.filter(|at| at.start < at.end).collect())
}

/// Decodes bytes: by the byte order mark, then the header's charset, then the page's own, then UTF-8. Never fails: it
/// replaces invalid bytes.
fn decode_body(bytes: &[u8], content_type: Option<&str>, kind: BodyKind) -> String {
    static HEADER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?i)charset\s*=\s*["']?([A-Za-z0-9_:.\-]+)"#).expect("a fixed pattern")
    });
    static XML: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"^<\?xml[^>]*encoding\s*=\s*["']([A-Za-z0-9_:.\-]+)"#)
            .expect("a fixed pattern")
    });
    let label = |pattern: &Regex, text: &[u8]| {
        let found = pattern.captures(text)?;
        Encoding::for_label(found.get(1)?.as_bytes())
    };
    // The HTML standard looks for the encoding in the first 1024 bytes.
    let head = &bytes[..bytes.len().min(1024)];
    // The byte order mark has priority over the header, and the header over the document.
    let encoding = Encoding::for_bom(bytes)
        .map(|(encoding, _)| encoding)
        .or_else(|| label(&HEADER, content_type?.as_bytes()))
        .or_else(|| match kind {
            // A page whose beginning is readable as ASCII is not UTF-16, whatever it declares (HTML 13.2.3.2).
            BodyKind::Html | BodyKind::Unknown | BodyKind::Text => label(&XML, head)
                .or_else(|| head.contains(&b'<').then(|| label(&HEADER, head)).flatten())
                .map(|e| {
                    if e.output_encoding() == e {
                        e
                    } else {
                        encoding_rs::UTF_8
                    }
                }),
            BodyKind::Json | BodyKind::Binary => None,
        })
        .unwrap_or(encoding_rs::UTF_8);
    encoding.decode(bytes).0.into_owned()
}

/// Cuts a text to at most `max` bytes at a character boundary, and appends evalbench's marker if it cut.
pub(super) fn truncate_body(
    mut text: String,
    max: usize,
    body_cut_at: Option<usize>,
) -> (String, bool) {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        let _infallible = write!(text, "\n\n[truncated at {max} bytes]");
        return (text, true);
    }
    match body_cut_at {
        Some(at) => {
            let _infallible = write!(text, "\n\n[truncated at {at} bytes]");
            (text, true)
        }
        None => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::clock::FakeClock;

    async fn shown(bytes: &[u8], content_type: Option<&str>) -> Option<String> {
        let clock = FakeClock::new();
        extract_page_text(
            bytes.to_vec(),
            content_type,
            "https://a.example/",
            50_000,
            &clock,
            Millis(1000),
        )
        .await
        .map(|shown| shown.text)
    }

    #[tokio::test]
    async fn only_text_json_and_xml_are_extracted() {
        for (kind, body, expected) in [
            (Some("text/plain"), "a  b", Some("a  b")),
            (Some("TEXT/CSV; header=present"), "a,b", Some("a,b")),
            (
                Some("application/json"),
                r#"{"n":12345678901234567890123}"#,
                Some("{\n  \"n\": 12345678901234567890123\n}"),
            ),
            (Some("application/problem+json"), "{broken", Some("{broken")),
            (Some("application/atom+xml"), "<feed/>", Some("<feed/>")),
            (Some("text/html"), "<p>hi</p>", Some("hi")),
            (Some("text/plain"), "<HTML><p>hi</p>", Some("hi")),
            (None, "plain", Some("plain")),
            (Some("application/pdf"), "%PDF-1.7", None),
            (Some("image/png"), "x", None),
            (Some("text/plain"), "a\0b", None),
        ] {
            assert_eq!(
                shown(body.as_bytes(), kind).await.as_deref(),
                expected,
                "{kind:?} {body}"
            );
        }
        assert_eq!(shown(b"\xff\xfe\xfd\x00", None).await, None);
    }

    #[tokio::test]
    async fn charset_is_found_in_header_and_document() {
        for (kind, body, expected) in [
            ("text/plain; charset=ISO-8859-1", &b"caf\xe9"[..], "café"),
            ("text/plain", b"\xef\xbb\xbfcaf\xc3\xa9", "café"),
            ("text/plain; charset=utf-8", b"\xff\xfeh\0i\0", "hi"),
            ("text/html", b"<meta charset=\"shift_jis\"><p>\x93\xfa\x96{", "日本"),
            ("text/html; charset='utf-8'", b"<meta charset=latin1><p>\xc3\xa9", "é"),
            ("text/html", b"<meta http-equiv=content-type content='text/html; charset=windows-1251'><p>\xc4\xe0", "Да"),
            ("text/html", b"<meta charset=utf-16><p>\xc3\xa9", "é"),
            ("text/xml", b"<?xml version='1.0' encoding='ISO-8859-2'?><a>\xb3</a>", "<?xml version='1.0' encoding='ISO-8859-2'?><a>ł</a>"),
            ("text/plain; charset=nonsense", b"\xc3\xa9", "é"),
            ("text/plain", b"\xe9", "\u{fffd}"),
        ] {
            assert_eq!(shown(body, Some(kind)).await.as_deref(), Some(expected), "{kind}");
        }
    }

    #[tokio::test]
    async fn page_without_text_returns_its_source_with_a_notice() {
        let app = "<html><title>App</title><script>boot()</script></html>";
        let shown = shown(app.as_bytes(), Some("text/html")).await.unwrap();
        assert_eq!(
            shown,
            format!("[the page holds no text beside its scripts; this is its source]\n\n{app}")
        );
    }

    #[tokio::test]
    async fn page_that_renders_too_long_returns_its_source() {
        let page = format!("<html>{}", "<p>x".repeat(300_000));
        let clock = FakeClock::new();
        let kind = Some("text/html");
        let reading = extract_page_text(
            page.clone().into_bytes(),
            kind,
            "https://a.example/",
            50_000,
            &clock,
            Millis(1000),
        );
        let over = async {
            // The limit begins with the rendering.
            while clock.next_wake().is_none() {
                tokio::task::yield_now().await;
            }
            clock.advance(Millis(1000));
            std::future::pending::<Option<PageText>>().await
        };
        let shown = tokio::select! {
            shown = reading => shown,
            never = over => never,
        };
        let expected =
            "[the page's HTML could not be read in time; this is its source]\n\n<html><p>x<p>x";
        assert!(shown.unwrap().text.starts_with(expected));
    }

    /// Runs a test on a runtime with one thread for blocking work. The thread is in use until the sender is dropped.
    fn with_busy_thread<F: Future<Output = ()>>(test: impl FnOnce(mpsc::Sender<()>) -> F) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .expect("a runtime");
        let (release, blocked) = mpsc::channel();
        runtime.spawn_blocking(move || blocked.recv());
        runtime.block_on(test(release));
    }

    #[test]
    fn wait_for_a_thread_takes_none_of_the_time_for_rendering() {
        with_busy_thread(|release| async move {
            let clock = FakeClock::new();
            let (url, kind) = ("https://a.example/", Some("text/html"));
            let page = b"<p>hi</p>".to_vec();
            let reading = extract_page_text(page, kind, url, 50_000, &clock, Millis(1000));
            let later = async {
                clock.advance(Millis(2000));
                drop(release);
            };
            let (shown, ()) = tokio::join!(reading, later);
            assert_eq!(shown.map(|page| page.text).as_deref(), Some("hi"));
        });
    }

    #[test]
    fn abandoned_work_that_waits_for_a_thread_never_starts() {
        with_busy_thread(|release| async move {
            let clock = FakeClock::new();
            let (began, has_begun) = mpsc::channel();
            let work = move |_: &AtomicBool| began.send(());
            let waiting = run_on_thread(&clock, Millis(1000), work);
            tokio::select! {
                biased;
                _ = waiting => panic!("the thread is in use"),
                () = std::future::ready(()) => {}
            }
            drop(release);
            // The thread takes its work in order.
            let next = tokio::task::spawn_blocking(|| ()).await;
            next.expect("it runs");
            assert!(has_begun.try_recv().is_err());
        });
    }

    #[tokio::test]
    async fn page_with_too_many_attributes_returns_its_source() {
        let mut page = "<html><p>seen<a ".to_owned();
        for n in 0..60_000 {
            let _infallible = write!(page, "a{n} ");
        }
        page.push_str(">x");
        let kind = Some("text/html");
        let shown = shown(page.as_bytes(), kind).await.unwrap();
        let expected = "[an element of the page has too many attributes to read its HTML; this is its source]\n\n<html><p>seen<a a0 ";
        assert!(shown.starts_with(expected), "{}", &shown[..200]);
        let marks = find_hidden_ranges(page.as_bytes(), kind, None, &shown, &mut || true);
        assert_eq!(marks, Some(Vec::new()));
    }

    #[tokio::test]
    async fn hidden_ranges_are_found_in_the_returned_text() {
        let page = "<title>T</title><p>seen<p style='display:none'>ghost <b>gh\u{200b}ost</b><p>a <a href=/x>far</a> link \
                    <p>seen <span hidden>and gone</span> on <a href=https://b.example>link</a>";
        let kind = Some("text/html");
        let text = shown(page.as_bytes(), kind).await.unwrap();
        let found = |text: &str| -> Vec<String> {
            let url = Some("https://a.example/");
            let marks = find_hidden_ranges(page.as_bytes(), kind, url, text, &mut || true);
            marks
                .unwrap()
                .into_iter()
                .map(|at| text[at].to_owned())
                .collect()
        };
        assert_eq!(found(&text), ["ghost gh\u{200b}ost", "and gone"]);
        let (cut, _) = truncate_body(text, 20, None);
        assert_eq!(found(&cut), ["ghost gh\u{200b}"]);
        assert!(found("something else").is_empty());
        let binary = find_hidden_ranges(&[0xff, 0, 1], None, None, "", &mut || true);
        assert_eq!(binary, Some(Vec::new()));
    }

    #[test]
    fn truncation_ends_at_a_character_with_a_notice() {
        let (text, was_cut) = truncate_body("ä".repeat(10), 5, None);
        assert_eq!(
            (text.as_str(), was_cut),
            ("ää\n\n[truncated at 5 bytes]", true)
        );
        assert_eq!(truncate_body("abc".into(), 3, None), ("abc".into(), false));
        assert_eq!(
            truncate_body("abc".into(), 3, Some(2_097_152)),
            ("abc\n\n[truncated at 2097152 bytes]".into(), true)
        );
    }

    #[test]
    fn rendering_of_a_recorded_page_stops_on_request() {
        let mut page = "<html><a ".to_owned();
        for n in 0..1_000_000 {
            let _infallible = write!(page, "a{n} ");
        }
        page.push_str("hidden>x");
        let mut checks = 0;
        let mut go_on = || {
            checks += 1;
            checks < 3
        };
        let found = find_hidden_ranges(page.as_bytes(), Some("text/html"), None, "x", &mut go_on);
        assert_eq!(found, None);
        assert_eq!(checks, 3, "the rendering asks while it reads the tag");
    }
}
