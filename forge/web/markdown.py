"""How does Markdown from a repository or a job become HTML that is safe to show?"""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

# Both parsers take time with the length of the text, the second also with the depth of its tags: about two seconds
# at these limits for the worst text, a few milliseconds for an ordinary one.
MAX_CHARACTERS = 128 * 1024
MAX_TAGS = 10_000

_WITH_HTML = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_WITHOUT_HTML = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])

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
    from `link_base` and `image_base`, where given. What is longer than MAX_CHARACTERS is cut, and says so.
    """
    cut = text[:MAX_CHARACTERS].replace("\0", "\N{REPLACEMENT CHARACTER}")
    parser = _WITH_HTML if cut.count("<") <= MAX_TAGS else _WITHOUT_HTML

    def relocate(tag: str, attribute: str, value: str) -> str:
        base = {("a", "href"): link_base, ("img", "src"): image_base}.get((tag, attribute), "")
        return _join(base, value) if base else value

    html = nh3.clean(
        parser.render(cut),
        tags=_TAGS,
        clean_content_tags={"script", "style"},
        attributes=_ATTRIBUTES,
        attribute_filter=relocate,
        url_schemes={"http", "https", "mailto"},
        link_rel="nofollow noopener noreferrer",
    )
    if len(text) > MAX_CHARACTERS:
        html += f"<p><em>Cut after {MAX_CHARACTERS:,} characters.</em></p>"
    return mark_safe(html)  # noqa: S308 - the cleaner is what makes it safe


def _join(base: str, value: str) -> str:
    try:
        parts = urlsplit(value)
    except ValueError:
        return ""
    if parts.scheme or parts.netloc or value.startswith(("/", "#")):
        return value
    return urljoin(base, value)
