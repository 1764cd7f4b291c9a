"""How does Markdown from a repository or a job become HTML that is safe to show?"""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

import nh3
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

# The parser takes time for each sign that could mean something: about a second at these limits for the worst text,
# some milliseconds for an ordinary one.
MAX_CHARACTERS = 128 * 1024
MAX_SIGNS = 12_000
_SIGNS = "[*_`<|&\\\n"

_PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

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


def render(text: str, *, link_base: str = "", image_base: str = "") -> SafeString:
    """
    `text` as HTML: CommonMark with tables and strikethrough, raw HTML kept only as far as it is harmless.

    Scripts, styles, event handlers, forms, classes and ids are gone and links lead to http, https and mailto only,
    so that the result can neither run anything nor imitate the page around it. Relative links and images are taken
    from `link_base` and `image_base`, where given. What is longer than MAX_CHARACTERS is cut, and says so; what has
    more than MAX_SIGNS signs of Markdown is shown as it was written.
    """
    cut = text[:MAX_CHARACTERS].replace("\0", "\N{REPLACEMENT CHARACTER}")
    if sum(cut.count(sign) for sign in _SIGNS) > MAX_SIGNS:
        return format_html("<pre>{}</pre>{}", cut, _note(text))

    def relocate(tag: str, attribute: str, value: str) -> str:
        base = {("a", "href"): link_base, ("img", "src"): image_base}.get((tag, attribute), "")
        return _join(base, value) if base else value

    html = nh3.clean(
        _PARSER.render(cut),
        tags=_TAGS,
        clean_content_tags={"script", "style"},
        attributes=_ATTRIBUTES,
        attribute_filter=relocate,
        url_schemes={"http", "https", "mailto"},
        link_rel="nofollow noopener noreferrer",
    )
    return mark_safe(html + _note(text))  # noqa: S308 - the cleaner is what makes it safe


def _note(text: str) -> SafeString:
    if len(text) <= MAX_CHARACTERS:
        return SafeString("")
    return format_html("<p><em>Cut after {} characters.</em></p>", MAX_CHARACTERS)


def _join(base: str, value: str) -> str:
    try:
        parts = urlsplit(value)
    except ValueError:
        return ""
    if parts.scheme or parts.netloc or value.startswith(("/", "#")):
        return value
    return urljoin(base, value)
