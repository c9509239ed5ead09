//! Real and hostile pages.

use super::*;

fn text(html: &str) -> String {
    let base = Url::parse("https://beam.apache.org/get-started/downloads/").unwrap();
    render_html_as_markdown(html, Some(&base), 100_000, &mut || true)
        .expect("nobody stops it")
        .text
}

#[test]
fn page_becomes_markdown_with_unchanged_sentences() {
    let page = r##"<!doctype html><html><head><title>Beam &amp; Downloads</title><style>p{x:"</p>"}</style><script>if (a<b) alert("<p>no</p>")</script></head>
        <body><nav><a href="/">Home</a> <a href="#top">Top</a></nav>
        <h1>Apache <b>Beam</b></h1><p>The newest&nbsp;release is <a href="../2.69.0/">2.69.0</a>,
           see <code>pip</code>.<noscript><p>Enable JS</p></noscript><svg><title>S</title><text>drawn</text></svg><p>Second<br>line
        <ul><li>one<ul><li>inner</ul><li><p>two</p></ul><ol start=3><li>three</ol>
        <table><tr><th>Version<th>Date<tr><td>2.69.0<td><p>2025-10-28</p><tr><td><td>x</table>
        <pre>  a
    b</pre><blockquote><p>quoted</p></blockquote><img src=x alt="a chart"><section>s1</section><section>s2</section></body></html>"##;
    let expected = "Beam & Downloads

Home Top [Home](https://beam.apache.org/)

# Apache Beam

The newest release is 2.69.0, see pip. [2.69.0](https://beam.apache.org/get-started/2.69.0/)

Second
line

- one
  - inner
- two

3. three

| Version | Date |
| --- | --- |
| 2.69.0 | 2025-10-28 |
| | x |

  a
    b

> quoted

[image: a chart]
s1
s2";
    assert_eq!(text(page), expected);
}

#[test]
fn malformed_pages_keep_all_visible_text() {
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
fn relative_links_use_the_first_base_element() {
    let page = "<base href=/docs/><base href=https://evil.example/><a href=x>X</a>";
    assert_eq!(text(page), "[X](https://beam.apache.org/docs/x)");
}

#[test]
fn links_follow_their_block_with_full_url() {
    for (html, expected) in [
        (
            "<ul><li><a href=/a>One</a><li>see <a href=b>Two</a> and <a href=//c.example/?q=1&amp;r=2#f>Three</a>.</ul>",
            "- [One](https://beam.apache.org/a)\n- see Two and Three. \
             [Two](https://beam.apache.org/get-started/downloads/b) [Three](https://c.example/?q=1&r=2#f)",
        ),
        // A card: the link is that of its first line.
        (
            "<a href=/a><h3>Title</h3><p>more</p></a><p>after",
            "### [Title](https://beam.apache.org/a)\n\nmore\n\nafter",
        ),
        // Nowhere to go: the same page, a script, a mail, nothing to click on.
        (
            "<p><a href=#x>x</a> <a href=javascript:y()>y</a> <a href=mailto:z@z.example>z</a> <a href=/e></a>e",
            "x y z e",
        ),
        // Twice in a paragraph, once behind it.
        (
            "<p><a href=/a>A</a> or <a href=/a>a</a><p>again <a href=/a>A</a>",
            "A or a [A](https://beam.apache.org/a)\n\nagain A [A](https://beam.apache.org/a)",
        ),
        // Code stays as it is.
        (
            "<pre>fn f() -&gt; <a href=/T>T</a>\n{}</pre>z",
            "fn f() -> T\n{}\n[T](https://beam.apache.org/T)\n\nz",
        ),
        (
            "<p>a <a href=/a>never closed",
            "a never closed [never closed](https://beam.apache.org/a)",
        ),
        (
            "a<br><a href=/b>b</a><br>c",
            "a\n[b](https://beam.apache.org/b)\nc",
        ),
        (
            "<a href=/i><img src=x alt=pic></a>",
            "[[image: pic]](https://beam.apache.org/i)",
        ),
    ] {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn data_tables_become_markdown_tables() {
    for (html, expected) in [
        (
            "<p>t<table><caption>Releases</caption><thead><tr><td>V<td>Date</thead><tbody><tr><td><a href=/1>1</a></td> <td><p>a</p><p>b|c</p></td></tr></tbody></table>z",
            "t\n\nReleases\n\n| V | Date |\n| --- | --- |\n| [1](https://beam.apache.org/1) | a b\\|c |\n\nz",
        ),
        // No header, no line under it.
        (
            "<table><tr><td>a<td>b<tr><td>c<td></table>",
            "| a | b |\n| c | |",
        ),
        (
            "<table><tr><th>Name<td>x<tr><th>Age<td>5</table>",
            "| Name | x |\n| Age | 5 |",
        ),
        // Cells that span keep the columns in their places.
        (
            "<table><tr><th>k<th colspan=2>v<tr><td rowspan=2>a<td>1<td>2<tr><td>3<td>4<tr><td>b<td>5<td>6</table>",
            "| k | v | |\n| --- | --- | --- |\n| a | 1 | 2 |\n| | 3 | 4 |\n| b | 5 | 6 |",
        ),
        // A table that only lays out the page stays as blocks.
        (
            "<table><tr><td><h1>Head</h1><p>one<p>two<tr><td>foot</table>",
            "# Head\n\none\n\ntwo\nfoot",
        ),
        (
            "<table><tr><td>side<td><table><tr><th>a<th>b<tr><td>1<td>2</table></table>",
            "side\n\n| a | b |\n| --- | --- |\n| 1 | 2 |",
        ),
        ("<table><tr><td>a<td>b", "| a | b |"),
        // As a browser has it: cells outside of a table are none.
        ("<td>x</td></tr>y</table>z", "xyz"),
    ] {
        assert_eq!(text(html), expected, "{html}");
    }
    let wide = "<table><tr><th colspan=1000 rowspan=99999>x<th>y".repeat(100);
    assert!(text(&wide).len() < 100_000);
}

#[test]
fn hidden_text_is_marked_in_links_and_tables() {
    let page = "<p>a <a href=/x hidden>gone</a> b<table><tr><th>k<th>v<tr><td>1<td style='display:none'>no |  such</table><p>c \
                <span hidden>last</span><p>d<p><a href=/y><b hidden>whole</b></a>";
    let base = Url::parse("https://beam.apache.org/").unwrap();
    let read = render_html_as_markdown(page, Some(&base), 1000, &mut || true).unwrap();
    let marked: Vec<&str> = read
        .hidden_ranges
        .iter()
        .map(|at| &read.text[at.clone()])
        .collect();
    assert_eq!(
        marked,
        ["gone", "no \\| such", "last", "whole"],
        "{}",
        read.text
    );
}

#[test]
fn deep_nesting_renders_in_linear_time() {
    for tag in [
        "div",
        "b",
        "table><tr><td",
        "ul><li",
        "blockquote",
        "a href=x",
        "p><a href=x>y<b",
        "a href=x>y</a",
        "table><tr><th>y<th>y<th",
        "td colspan=60 rowspan=60",
        "svg",
        "noscript",
    ] {
        let html = format!("<{tag}>").repeat(50_000) + "x";
        assert!(text(&html).len() < 300_000, "{tag}");
    }
}

#[test]
fn renderer_stops_when_flag_is_set() {
    assert_eq!(
        render_html_as_markdown("<p>x", None, 100, &mut || false),
        Err(RenderError::Stopped)
    );
}

#[test]
fn tag_with_too_many_attributes_ends_the_page() {
    let render = |page: &str| render_html_as_markdown(page, None, 1000, &mut || true);
    let attributes = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!(" a{n}")).collect();
        names.concat()
    };
    let many = attributes(100_000);
    for before in [
        "<a",
        "<p>x<a",
        "<<a",
        "</a",
        "</><a",
        "<a<b<c",
        "<a href='<b x>'",
        "<script>if (a<b) x</script",
        "<title>a</title",
        "<!-- <a b=\" --><a",
        "<!doctype html><a",
        "a\r\n&amp;<a",
        "<textarea><a x</textarea><a",
    ] {
        let page = format!("{before}{many}>x");
        assert_eq!(
            render(&page),
            Err(RenderError::TooManyAttributes),
            "{before}"
        );
    }
    // The same words elsewhere are no attributes.
    for (before, after) in [
        ("<p>", ""),
        ("<!-- <a", "-->y"),
        ("<script>a<b", "</script>y"),
        ("<textarea><a", "</textarea>y"),
        ("<a title=\"<b", "\">y"),
        ("<a title='", "'>y"),
        ("<p>1 < 2", "y"),
    ] {
        let page = format!("{before}{many}{after}<p>z");
        let text = render(&page).expect("a page").text;
        assert!(!text.is_empty(), "{before}");
    }
    let page = format!("<a{}>y</a>", attributes(2000));
    assert_eq!(render(&page).map(|page| page.text), Ok("y".to_owned()));
}
