"""Formulas in LaTeX as MathML, which browsers draw by themselves.

The converter passes tags and addresses that an author writes inside a formula on as they are, so what it returns is read again: an
element that is not of MathML's presentation makes the formula stay LaTeX source, and only harmless attributes are kept.
"""

import re
from html import escape
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert

LONGEST = 2_000
"""Most characters of a formula; of a longer one the source is shown."""

ELEMENTS = frozenset(
    [
        "math",
        "mrow",
        "mi",
        "mo",
        "mn",
        "mtext",
        "mspace",
        "msqrt",
        "mroot",
        "mfrac",
        "msub",
        "msup",
        "msubsup",
        "munder",
        "mover",
        "munderover",
        "mtable",
        "mtr",
        "mtd",
        "mpadded",
        "mphantom",
    ]
)
PRIMES = ("′", "″", "‴")
"""They are high by themselves: raised like a power, they would be far above their letter."""

ATTRIBUTES = frozenset(
    [
        "display",
        "mathvariant",
        "stretchy",
        "fence",
        "form",
        "accent",
        "largeop",
        "movablelimits",
        "minsize",
        "maxsize",
        "width",
        "height",
        "depth",
        "linethickness",
        "columnalign",
        "displaystyle",
        "lspace",
        "rspace",
    ]
)


def mathml(latex: str, block: bool = False) -> str:
    """The MathML of a formula; its source as code where it cannot be converted.

    Args:
        latex: the formula, without dollar signs.
        block: whether the formula has a line of its own.
    """
    mathml = _converted(latex, block) if len(latex) <= LONGEST else None
    return f"<code>{escape(latex)}</code>" if mathml is None else ElementTree.tostring(mathml, encoding="unicode")


def tree(latex: str, block: bool = False) -> dict[str, Any] | None:
    """The elements of a formula's MathML as JSON values, for a typesetter; None: it cannot be converted.

    Args:
        latex, block: as for `mathml`.
    """
    mathml = _converted(latex, block) if len(latex) <= LONGEST else None
    return None if mathml is None else _node(mathml)


def _node(element: ElementTree.Element) -> dict[str, Any]:
    bold = "bold" in element.attrib.get("mathvariant", "")
    return {"tag": element.tag, "text": element.text or "", "bold": bold, "parts": [_node(part) for part in element]}


def _converted(latex: str, block: bool) -> ElementTree.Element | None:
    """The MathML of a formula with the attributes on the list; None: it is broken, or an element is not one of ELEMENTS."""
    try:
        text = convert(latex, display="block" if block else "inline")
        tree_ = ElementTree.fromstring(re.sub(r' xmlns="[^"]*"', "", text, count=1))
    except (Exception, RecursionError):  # the converter raises whatever it meets in a broken formula
        return None
    for element in list(tree_.iter()):
        if element.tag not in ELEMENTS:
            return None
        if element.tag in ("msup", "msubsup") and element[-1].text in PRIMES:
            _put_prime_beside(element)
        element.attrib = {name: value for name, value in element.attrib.items() if name in ATTRIBUTES}
    return tree_


def _put_prime_beside(element: ElementTree.Element) -> None:
    """Makes a raised prime a sign beside its letter, before the index, if there is one."""
    letter, *index, prime = element
    prime.tag, prime.attrib = "mo", {"lspace": "0", "rspace": "0"}
    if not index:
        element.tag = "mrow"
        return
    primed = ElementTree.Element("mrow")
    primed.extend([letter, prime])
    element.tag, element[:] = "msub", [primed, *index]
