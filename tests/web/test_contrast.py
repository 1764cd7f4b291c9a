"""Can the colours of a log be read? Each of the sixteen, also dimmed and on each tinted background, in both schemes.

The ratio and its limit: WCAG 2.2, success criterion 1.4.3.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CSS = (Path(__file__).resolve().parents[2] / "forge/static/forge/forge.css").read_text()
LEAST = 4.5
Colour = tuple[float, float, float]


def palette(scheme: str) -> dict[str, Colour]:
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part)) for part in _parts())
    chosen = light if scheme == "light" else {**light, **dark}
    return {name: _read(value) for name, value in chosen.items()}


def _parts() -> tuple[str, str]:
    first, second = re.findall(r":root \{(.*?)\n *\}", CSS, re.DOTALL)[:2]
    return first, second


def _read(value: str) -> Colour:
    red, green, blue = (int(value[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def mixed(over: Colour, under: Colour, share: float) -> Colour:
    red, green, blue = (a * share + b * (1 - share) for a, b in zip(over, under, strict=True))
    return red, green, blue


def luminance(colour: Colour) -> float:
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: Colour, other: Colour) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def number(pattern: str) -> float:
    found = re.search(pattern, CSS)
    assert found is not None, pattern
    return float(found[1])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_of_a_log_is_readable(scheme: str) -> None:
    colours = palette(scheme)
    dim = number(r"\.dim \{ opacity: (\.\d+);")
    tint = number(r'\[class\*="b-"\].*var\(--tint\) (\d+)%') / 100
    page = colours["background"]
    inks = [colours["text"], *(colours[f"ansi-{number}"] for number in range(16))]
    grounds = [page, *(mixed(colours[f"ansi-{number}"], page, tint) for number in range(16))]
    ratios = {
        (ink, ground, share): contrast(mixed(inks[ink], grounds[ground], share), grounds[ground])
        for ink in range(len(inks))
        for ground in range(len(grounds))
        for share in (1.0, dim)
    }
    worst = min(ratios, key=lambda key: ratios[key])
    assert ratios[worst] >= LEAST, f"ink {worst[0] - 1} on {worst[1] - 1} at {worst[2]}: {ratios[worst]:.2f}"
