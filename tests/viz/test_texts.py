"""Texts: whole sentences, one catalogue, nothing lost on the way to a translation."""

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages import extract, pofile

from model import errors
from model.errors import HeadlightError
from viz import texts

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "viz").rglob("*.py"))
SCRIPTS = sorted((ROOT / "viz").rglob("*.js"))
CATALOGUE = ROOT / "viz" / "locale" / "headlight.pot"


def subclasses(root: type[HeadlightError]) -> Iterator[type[HeadlightError]]:
    yield root
    for child in root.__subclasses__():
        yield from subclasses(child)


OWN_TEMPLATES = [e for e in subclasses(HeadlightError) if e.__module__.startswith(errors.__name__) and "template" in vars(e)]


def calls(path: Path) -> Iterator[ast.Call]:
    """Every call of `_`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_":
            yield node


def gaps(sentence: str) -> set[str]:
    return {name.split(".")[0].split("[")[0] for _text, name, _format, _conversion in string.Formatter().parse(sentence) if name}


def messages() -> set[str]:
    """What babel finds in the sources, and the sentences that errors own."""
    found = {
        str(message[1])
        for path in SOURCES
        for message in extract.extract_from_file("python", path, keywords={"_": None}, comment_tags=())
    }
    return found | {e.on_screen or e.template for e in OWN_TEMPLATES}


def test_without_a_translation_the_sentence_is_the_sources() -> None:
    assert texts._("{heads} heads", heads=8) == "8 heads"
    assert texts._("100 % {sure}") == "100 % {sure}"


def test_what_people_typed_fills_a_gap_and_is_never_read_as_one() -> None:
    assert texts._("You typed “{text}”.", text="{text.__class__} {0} %s") == "You typed “{text.__class__} {0} %s”."


def test_a_translation_is_taken_and_its_gaps_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gettext
    import io

    from babel.messages.catalog import Catalog
    from babel.messages.mofile import write_mo

    catalogue = Catalog(locale="de")
    catalogue.add("{heads} heads", "{heads} Köpfe")
    catalogue.add(errors.UnknownHead.template, "Den Kopf {asked} gibt es bei {site} nicht; der letzte ist {last}.")
    buffer = io.BytesIO()
    write_mo(buffer, catalogue)
    monkeypatch.setattr(texts, "_catalogue", gettext.GNUTranslations(io.BytesIO(buffer.getvalue())))
    assert texts._("{heads} heads", heads=8) == "8 Köpfe"
    error = errors.UnknownHead(asked=9, site="encoder.0.0.self", last=7)
    assert texts.sentence(error) == "Den Kopf 9 gibt es bei encoder.0.0.self nicht; der letzte ist 7."
    assert str(error).startswith("There is no head 9")


@pytest.mark.parametrize("error", OWN_TEMPLATES, ids=lambda e: e.__name__)
def test_an_error_says_the_same_on_screen_as_on_the_command_line_or_what_it_has_for_screens(error: type[HeadlightError]) -> None:
    made = error(**dict.fromkeys(gaps(error.template), "x  \n y"))
    assert texts.sentence(made) == (" ".join(error.on_screen.format(**made.fields).split()) or str(made))
    assert "\n" not in str(made)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_sentences_are_literal_and_their_gaps_are_filled(path: Path) -> None:
    for call in calls(path):
        where = f"{path.name}:{call.lineno}"
        if isinstance(call.args[0], ast.BoolOp) and path.name == "texts.py":
            continue  # what an error says, which stands in the catalogue by its own
        assert len(call.args) == 1, f"{where}: one sentence, then gaps by name"
        sentence = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
        assert isinstance(sentence, str), f"{where}: a sentence must be written out, not put together"
        for_javascript = path.name == "strings.py" and not call.keywords
        if all(k.arg for k in call.keywords) and not for_javascript:
            given = {k.arg for k in call.keywords}
            assert gaps(sentence) == given, f"{where}: gaps {gaps(sentence)}, filled {given}"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.name)
def test_javascript_holds_no_sentences(path: Path) -> None:
    source = re.sub(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    literals = re.findall(r'"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'|`((?:[^`\\]|\\.)*)`', source)
    for literal in map("".join, literals):
        sentence = re.search(r"[A-Za-z]+ [A-Za-z]+ [A-Za-z]+", re.sub(r"\$\{[^}]*\}", " ", literal))
        assert sentence is None or is_css(literal), f"{path.name}: {literal!r} belongs into Python, inside _()"


def is_css(literal: str) -> bool:
    """Selectors, fonts and declarations have words too."""
    return bool(re.search(r"[{}:;=#\[\]<>]|px|sans-serif|monospace", literal))


def test_the_catalogue_is_up_to_date() -> None:
    with CATALOGUE.open("rb") as file:
        written = {str(m.id) for m in pofile.read_po(file) if m.id}
    hint = "run the command of CONTRIBUTING.md that collects the texts"
    assert written - messages() == set(), f"no longer in the sources: {hint}"
    assert messages() - written == set(), f"not yet in the catalogue: {hint}"


def test_every_translation_fills_the_same_gaps() -> None:
    for path in sorted((ROOT / "viz" / "locale").glob("*/LC_MESSAGES/headlight.po")):
        with path.open("rb") as file:
            for message in pofile.read_po(file):
                if message.id and message.string:
                    assert gaps(str(message.string)) == gaps(str(message.id)), f"{path.parent.parent.name}: {message.id}"
