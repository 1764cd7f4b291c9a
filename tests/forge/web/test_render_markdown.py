"""Can Markdown from anybody be shown to everybody?"""

import time

import pytest

from forge.web.markdown import MAX_CHARACTERS, MAX_SIGNS, render


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "<a href='java\nscript:alert(1)'>x</a>",
        "<a href='vbscript:x'>x</a>",
        "<iframe src='http://x/'></iframe>",
        "<form action='/logout/'><button>x</button></form>",
        "<style>body{display:none}</style>",
        "<div style='position:fixed' class='message' id='content'>x</div>",
        "<svg><script>alert(1)</script></svg>",
        "<math><mtext></mtext><mglyph><style><img src=x onerror=alert(1)></style></mglyph></math>",
        "![x](data:text/html,<script>alert(1)</script>)",
        "`<script>`\n<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
        "<base href='http://evil/'><meta http-equiv=refresh content=0>",
    ],
)
def test_nothing_that_acts_or_imitates_survives(text):
    html = str(render(text)).lower()
    tags = html.replace("&lt;", "").replace("&gt;", "")
    for bad in (
        "<script",
        "onerror=alert(1)>",
        "<iframe",
        "<form",
        "<style",
        "style=",
        "class=",
        "id=",
        "<base",
        "<meta",
    ):
        assert bad not in tags
    assert 'href="java' not in html
    assert 'src="data:text' not in html


def test_tables_code_and_details_are_rendered():
    html = render("|a|b|\n|-|-|\n|1|2|\n\n```\n<x>\n```\n\n<details><summary>More</summary>text</details>")
    assert "<td>1</td>" in html
    assert "<code>&lt;x&gt;" in html
    assert "<details><summary>More</summary>" in html


def test_relative_links_are_taken_from_the_base_and_others_left_alone():
    html = render(
        "[a](b.md) [c](../d) [e](#f) [g](/h) [i](https://j/) ![k](l.png)",
        link_base="/o/r/blob/main/x/",
        image_base="/raw/",
    )
    for link in ("/o/r/blob/main/x/b.md", "/o/r/blob/main/d", "#f", "/h", "https://j/"):
        assert f'href="{link}"' in html
    assert 'src="/raw/l.png"' in html


@pytest.mark.parametrize("bad", ["[", "![", "<div>", "*a ", "> ", "`", "|a", "a\n", "&", "- ", "<!--", "\\"])
def test_text_made_to_be_slow_is_bounded(bad):
    begun = time.thread_time()
    render(bad * (4 * MAX_CHARACTERS // len(bad)))
    render(bad * (MAX_SIGNS // 2))
    assert time.thread_time() - begun < 10


def test_a_long_text_is_cut_and_says_so():
    assert "Cut after" in render("word " * MAX_CHARACTERS)
    assert "Cut after" not in render("word")
