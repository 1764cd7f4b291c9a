"""How does Markdown from a repository or a job become HTML that is safe to show?"""

from __future__ import annotations

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

# Rendering time grows with the text; a README or a job's summary beyond this is shown cut.
MAX_CHARACTERS = 1024 * 1024

_PARSER = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable(["table", "strikethrough"])

_TAGS = {
    *("h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "blockquote", "pre", "code", "kbd", "samp", "var"),
    *("em", "strong", "b", "i", "s", "del", "ins", "sub", "sup", "mark", "small", "abbr", "q", "cite"),
    *("ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption"),
    *("a", "img", "details", "summary", "div", "span"),
}
_ATTRIBUTES = {
    "a": {"href", "title"},
    "abbr": {"title"},
    "img": {"src", "alt", "title", "width", "height"},
    "ol": {"start"},
    "td": {"align", "colspan", "rowspan"},
    "th": {"align", "colspan", "rowspan", "scope"},
    "div": {"align"},
    "p": {"align"},
    "details": {"open"},
}
_CLEANER = nh3.Cleaner(
    tags=_TAGS,
    clean_content_tags={"script", "style"},
    attributes=_ATTRIBUTES,
    url_schemes={"http", "https", "mailto"},
    link_rel="nofollow noopener noreferrer",
)


def render(text: str) -> SafeString:
    """
    `text` as HTML: CommonMark with tables and strikethrough, raw HTML kept only as far as it is harmless.

    Scripts, styles, event handlers, forms, classes and ids are gone and links lead to http, https and mailto only,
    so that the result can neither run anything nor imitate the page around it.
    """
    cut = text[:MAX_CHARACTERS].replace("\0", "�")
    return mark_safe(_CLEANER.clean(_PARSER.render(cut)))  # noqa: S308 - the cleaner is what makes it safe
