//! Pages as they are and as they attack.

use super::*;

fn text(html: &str) -> String {
    let base = Url::parse("https://beam.apache.org/get-started/downloads/").unwrap();
    render(html, Some(&base), 100_000, &AtomicBool::new(false))
        .expect("nobody stops it")
        .text
}

#[test]
fn a_page_becomes_readable_text_with_verbatim_sentences() {
    let page = r##"<!doctype html><html><head><title>Beam &amp; Downloads</title><style>p{x:"</p>"}</style><script>if (a<b) alert("<p>no</p>")</script></head>
        <body><nav><a href="/">Home</a> <a href="#top">Top</a></nav>
        <h1>Apache <b>Beam</b></h1><p>The newest&nbsp;release is <a href="../2.69.0/">2.69.0</a>,
           see <code>pip</code>.<noscript><p>Enable JS</p></noscript><svg><title>S</title><text>drawn</text></svg><p>Second<br>line
        <ul><li>one<ul><li>inner</ul><li><p>two</p></ul><ol start=3><li>three</ol>
        <table><tr><th>Version<th>Date<tr><td>2.69.0<td><p>2025-10-28</p><tr><td><td>x</table>
        <pre>  a
    b</pre><blockquote><p>quoted</p></blockquote><img src=x alt="a chart"><section>s1</section><section>s2</section></body></html>"##;
    let expected = "Beam & Downloads

Home Top

# Apache Beam

The newest release is 2.69.0, see pip.

Second
line

- one
  - inner
- two

3. three

Version | Date
2.69.0 | 2025-10-28
 | x

  a
    b

> quoted

[image: a chart]
s1
s2

Links:
- Home: https://beam.apache.org/
- 2.69.0: https://beam.apache.org/get-started/2.69.0/";
    assert_eq!(text(page), expected);
}

#[test]
fn odd_pages_lose_nothing_that_can_be_read() {
    assert_eq!(text("plain text, no tags"), "plain text, no tags");
    assert_eq!(text("<p>a<p>b"), "a\n\nb");
    assert_eq!(text("</div></ul>x<li>y"), "x\n- y");
    assert_eq!(text("a<script/>b</script>c"), "ac");
    assert_eq!(
        text("1 &lt; 2 &#x1F600; &unknown; a&b"),
        "1 < 2 😀 &unknown; a&b"
    );
    // HTML reads `&not` without its semicolon; so does every browser.
    assert_eq!(text("&notanentity;"), "¬anentity;");
    assert_eq!(text("<script>var x = 1"), "");
    assert_eq!(
        text("<title>App</title><div id=root></div><script>run()</script>"),
        ""
    );
}

#[test]
fn links_count_from_the_base_the_page_names_first() {
    let page = "<base href=/docs/><base href=https://evil.example/><a href=x>X</a>";
    assert_eq!(
        text(page),
        "X\n\nLinks:\n- X: https://beam.apache.org/docs/x"
    );
}

#[test]
fn hostile_nesting_costs_no_more_than_its_length() {
    for tag in [
        "div",
        "b",
        "table><tr><td",
        "ul><li",
        "blockquote",
        "a href=x",
        "svg",
        "noscript",
    ] {
        let html = format!("<{tag}>").repeat(50_000) + "x";
        assert!(text(&html).len() < 100_300, "{tag}");
    }
}

#[test]
fn it_stops_when_told_to() {
    assert_eq!(render("<p>x", None, 100, &AtomicBool::new(true)), None);
}
