"""One word for one thing, one spelling: the catalogue of the screen, the documentation, comments and docstrings."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from babel.messages import pofile

ROOT = Path(__file__).parents[1]
BRITISH = re.compile(
    r"colour\w*|neighbour\w*|behaviour\w*|favour\w*|centred?\b|\bgrey\b|labelled|modelled|cancelled|optimiser\w*"
    r"|(?:special|normal|initial|recogn|token|quant|serial|summar|visual|organ|optim|emphas|general|random)is(?:ed|es|e|ing|ation)",
    re.IGNORECASE,
)
RETIRED = {
    "atlas": "overview", "clock": "token by token, inside the network", "number type": "precision", "likeliest": "most likely",
    "likelier": "more likely", "normed": "normalized", "learned numbers": "parameters", "first side": "side A",
    "second side": "side B", "target to feed": "forced target", "twin": "duplicate", "nobody": "a sentence with a subject",
    "beginnings": "hypotheses", "arithmetic": "calculation", "looks at": "attends to", "looked at": "attended to",
    "where (a|the|one|any) (head|network)s? look": "what it attends to", "where (it|did it) look": "what it attends to",
    "(?<!training )films?": "training film, video", "previous output": "the output without the edits",
    "hid(e|den) special|special tokens? hidden": "left out",
}  # fmt: skip
"""Words that the screen no longer uses, with what it says instead: docs/glossary.md."""

RIDDLES = {
    r"(was|were|is) told|nobody told": "was specified", r"look(ing|ed)? into": "inspect", r"hand(s|ed)? out": "returns",
    r"keeps? it to itself": "does not expose it", r"is its word": "cannot be checked", r"kept from looking": "masked",
    r"stands? (in|at|before|after|twice)\b": "is, occurs", r"writes? nothing|tokens are written|written tokens": "generates",
    r"closed to this program": "not readable", r"are told apart": "the kind of", r"learned numbers": "parameters",
    r"(?<!there )(is|are) no (text|table|name|role|link|instruction|JSON)\b": "is not a", r"computed anew": "recomputed",
}  # fmt: skip
"""What sentences of the whole catalogue, those of `model` included, no longer say, with what they say instead."""

SPOKEN = {
    "en": (
        r"(look(s|ed|ing)? (at|ahead|back|only|inside|everywhere|there)|where .{0,20}\blook(s|ed)?)\b|may look|forbid|likeliest"
        r"|(keys?|words?|tokens?) does .* read most|this caption|Film: "
    ),
    "de": r"\b(zurück)?ge?schaut|\bschauen\b|\bblickt?\b|verbieten|verboten",
    "zh-CN": r"[头行词]看(?!到|不到|全|近|远)|不能看 \*|看向|禁止|读得最多",
    "zh-TW": r"[頭列詞]看(?!到|不到|全|近|遠)|不能看 \*|看向|禁止|讀得最多",
}
"""What lectures do not say, by language: heads and rows attend (achten, 注意), an edit hides a key."""

PEERS = ROOT / "benchmarks" / ".peers"  # the tools that the benchmark installs
FOLDERS = ("model", "viz", "tests", "benchmarks")
PYTHON = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")) if PEERS not in path.parents]
PROSE = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "checkpoints").glob("*/CARD.md"))]


@cache
def catalogue(of: tuple[str, ...] = ("viz/", "model/errors")) -> list[str]:
    """The sentences whose first place begins with one of `of`; by default the screen's own."""
    with (ROOT / "viz" / "i18n" / "locale" / "headlight.pot").open("rb") as file:
        said = [message for message in pofile.read_po(file) if message.id]
    messages = [message.id for message in said if message.locations[0][0].startswith(of)]
    return [text for message in messages for text in ([message] if isinstance(message, str) else message)]


def comments(source: str) -> Iterator[str]:
    """Comments and docstrings."""
    starts = {
        node.value.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.start[0] in starts):
            yield token.string


def british(text: str) -> list[str]:
    """British spellings in a text, code in backticks left out."""
    return [found[0] for found in BRITISH.finditer(re.sub(r"```.*?```|`[^`]*`|\w*_\w*", "", text, flags=re.DOTALL))]


def test_the_list_finds_british_spellings_and_no_american_ones() -> None:
    assert british("coloured neighbours, centred; it specialises and normalised a grey favourite") == [
        "coloured", "neighbours", "centred", "specialises", "normalised", "grey", "favourite",
    ]  # fmt: skip
    assert british("colored neighbors, centered `colours`; this is organic, a specialist, tokens, a promise") == []


def test_the_screen_has_american_spelling() -> None:
    assert [(found, text) for text in catalogue() for found in british(text)] == []


@pytest.mark.parametrize("path", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_documentation_has_american_spelling(path: Path) -> None:
    assert british(path.read_text(encoding="utf-8")) == []


def test_comments_have_american_spelling() -> None:
    """Names of the code may be written otherwise: a comment calls them what they are."""
    for path in PYTHON:
        source = path.read_text(encoding="utf-8")
        if BRITISH.search(source) and path != Path(__file__):
            names = {
                token.string for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type == tokenize.NAME
            }
            found = {word for text in comments(source) for word in british(text)} - names
            assert found == set(), path.relative_to(ROOT)


@pytest.mark.parametrize("word", RETIRED)
def test_the_screen_has_one_word_for_one_thing(word: str) -> None:
    pattern = re.compile(rf"\b{word}\b", re.IGNORECASE)
    assert [text for text in catalogue() if pattern.search(text)] == [], f"say: {RETIRED[word]}"


@pytest.mark.parametrize("path", sorted((ROOT / "lectures").glob("*.md")), ids=lambda path: path.stem)
def test_lectures_have_the_words_of_the_pages(path: Path) -> None:
    pattern = re.compile(SPOKEN[path.stem.partition(".")[2]])
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith(("view:", "expect:")) and pattern.search(line)] == []


@pytest.mark.parametrize("riddle", RIDDLES)
def test_a_sentence_says_what_it_means(riddle: str) -> None:
    """A note said "that these weights were trained as bert is its word": only the errors and the pages were read."""
    pattern = re.compile(rf"\b(?:{riddle})", re.IGNORECASE)
    assert [text for text in catalogue(("",)) if pattern.search(text)] == [], f"say: {RIDDLES[riddle]}"


def test_apostrophes_on_screen_are_those_of_print() -> None:
    assert [text for text in catalogue(("",)) if re.search(r"\w'\w|s' ", text)] == []
