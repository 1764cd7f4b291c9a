"""How does a line of terminal output become HTML? Colours turn into class names, every other escape vanishes."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field, replace
from html import escape

# Longest forms first: CSI, the strings (OSC, DCS, SOS, PM, APC), two-character escapes, lone controls.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0a-\x0c\x0e-\x1f\x7f-\x9f]"
)
# What every one of them begins with: looking for this alone is many times faster than trying the forms at each place.
_BEGINNING = re.compile(r"[\x00-\x08\x0a-\x0c\x0e-\x1f\x7f-\x9f]")
_MOST_KNOWN = 32  # characters
_FLAGS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike"}
_FLAGS_OFF = {22: {"bold", "dim"}, 23: {"italic"}, 24: {"underline"}, 27: {"inverse"}, 29: {"strike"}}
_CUBE = (0, 95, 135, 175, 215, 255)
_COLOUR_NAMES = re.compile(
    r"(?P<ground>[fb])-(?:1[0-5]|[0-9])\Z|(?P<cube>[fb])r[0-5] (?P=cube)g[0-5] (?P=cube)b[0-5]\Z"
)


@dataclass(frozen=True)
class Style:
    """What the sequences so far ask for: class names for the text's colour, its background, and how it is set."""

    text: str = ""
    background: str = ""
    flags: frozenset[str] = field(default_factory=frozenset)

    @functools.cached_property
    def classes(self) -> str:
        text, background, flags = self.text, self.background, self.flags
        if "inverse" in flags and (text or background):
            text, background = _moved(background, "f"), _moved(text, "b")
            flags -= {"inverse"}
        return " ".join(part for part in (text, background, *sorted(flags)) if part)

    def dump(self) -> str:
        """For a cursor in a page's address; `load` reads it back."""
        return "~".join((self.text, self.background, ".".join(sorted(self.flags)))).rstrip("~")

    @classmethod
    def load(cls, dumped: str) -> Style:
        """The style that `dump` wrote; of anything else, the plain one."""
        text, background, flags = (*dumped[:200].split("~"), "", "", "")[:3]
        return cls(
            text=text if _is_colour(text, "f") else "",
            background=background if _is_colour(background, "b") else "",
            flags=frozenset(flags.split(".")) & frozenset(_FLAGS.values()),
        )


PLAIN = Style()


def render(line: str, style: Style = PLAIN) -> tuple[str, Style]:
    """One line as safe HTML, and the style that holds at its end, for the next line."""
    line = line.rstrip("\r\n")
    if line.isprintable() and not style.classes:  # as most lines: no escape, no carriage return
        return escape(line), style
    pieces: list[str] = []
    position = 0
    while beginning := _BEGINNING.search(line, position):
        match = _ESCAPES.match(line, beginning.start())
        assert match is not None  # the last form takes what no other takes
        _write(pieces, line[position : match.start()], style)
        position = match.end()
        if match["final"] == "m":
            known = _select_again if len(match["parameters"]) <= _MOST_KNOWN else _select
            style = known(style, match["parameters"])
    _write(pieces, line[position:], style)
    return "".join(pieces), style


def plain(line: str) -> str:
    """The line without any escape, as text: for titles, not for HTML."""
    return _ESCAPES.sub("", line.rstrip("\r\n")).rpartition("\r")[2]


def _write(pieces: list[str], text: str, style: Style) -> None:
    # A carriage return starts the line anew: a progress bar shows its last state.
    if "\r" in text:
        pieces.clear()
        text = text.rpartition("\r")[2]
    if not text:
        return
    classes = style.classes
    pieces.append(f'<span class="{classes}">{escape(text)}</span>' if classes else escape(text))


def _select(style: Style, parameters: str) -> Style:
    """Apply one SGR sequence (ECMA-48 8.3.117; colons as ITU T.416 has them)."""
    codes = [int(code) if code.isdigit() and len(code) < 5 else 0 for code in re.split("[;:]", parameters)][:64]
    while codes:
        code = codes.pop(0)
        if code == 0:
            style = PLAIN
        elif code in _FLAGS:
            style = replace(style, flags=style.flags | {_FLAGS[code]})
        elif code in _FLAGS_OFF:
            style = replace(style, flags=style.flags - _FLAGS_OFF[code])
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style = replace(style, text=f"f-{code - 30 if code < 90 else code - 82}")
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style = replace(style, background=f"b-{code - 40 if code < 100 else code - 92}")
        elif code == 38:
            style = replace(style, text=_extended(codes, "f") or style.text)
        elif code == 48:
            style = replace(style, background=_extended(codes, "b") or style.background)
        elif code == 39:
            style = replace(style, text="")
        elif code == 49:
            style = replace(style, background="")
    return style


# Programs ask for few styles, each of them thousands of times.
_select_again = functools.lru_cache(maxsize=512)(_select)


def _extended(codes: list[int], ground: str) -> str:
    """Take the rest of `38;5;n` or `38;2;r;g;b`. A true colour becomes the nearest of the 216 of the colour cube."""
    kind = codes.pop(0) if codes else 0
    if kind == 5 and codes:
        number = codes.pop(0)
        if number < 16:
            return f"{ground}-{number}"
        if number < 232:
            return _cube(ground, (number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6)
        if number < 256:
            return _cube(ground, *[_nearest(8 + 10 * (number - 232))] * 3)
    if kind == 2 and len(codes) >= 3:
        red, green, blue = codes[:3]
        del codes[:3]
        return _cube(ground, _nearest(red), _nearest(green), _nearest(blue))
    return ""


def _cube(ground: str, red: int, green: int, blue: int) -> str:
    return f"{ground}r{red} {ground}g{green} {ground}b{blue}"


def _nearest(value: int) -> int:
    return min(range(6), key=lambda level: abs(_CUBE[level] - value))


def _moved(colour: str, ground: str) -> str:
    """The same colour as text ("f") or background ("b")."""
    return " ".join(ground + part[1:] for part in colour.split())


def _is_colour(name: str, ground: str) -> bool:
    match = _COLOUR_NAMES.match(name)
    return match is not None and ground in (match["ground"], match["cube"])
