"""Texts: whole sentences, one catalogue, nothing lost on the way to a translation."""

import ast
import re
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from babel.messages import pofile
from babel.messages.catalog import Message
from babel.messages.frontend import CommandLineInterface

from model import errors
from model.errors import HeadlightError
from viz.i18n import translate

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "viz").rglob("*.py"))
SCRIPTS = sorted((ROOT / "viz").rglob("*.js"))
CATALOGUE = ROOT / "viz" / "i18n" / "locale" / "headlight.pot"


VERBS = "as|is|has|was|moves|attends|resembles|contains|exists"
COUNTED = re.compile(rf"\{{\w+(:,)?\}} ((?!(?:{VERBS})\b)\w+ )?(?!(?:{VERBS})\b)[a-z]+s\b")
"""A gap before a plural: "{count} special tokens"."""
NEVER_ONE = {
    "{millions} million parameters",  # of one million, too
    "{strip} tokens",  # a name
    "{columns} columns",  # pairs of them
    "{written} tokens",  # the first one is never guessed
    "{all} tokens", "{columns} weights", "{count} heads", "{count} positions", "{count} snapshots", "{keys} weights", "{loss} nats",
    "{count} times",  # a text that is there once needs no number
    "{bits} bits", "{longest} characters", "{most:,} cells", "{number} nats", "{change} bits", "{change} nats", "{divergence} nats",
    "{longest} encoder positions", "{most} positions", "{most} tokens", "{positions} positions",
    "{positions} vectors", "{value} nats", "{weights:,} weights", "{width} numbers",
}  # fmt: skip
"""Counts that are units of measure, sizes of a model, or limits of the pages."""


def subclasses(root: type[HeadlightError]) -> Iterator[type[HeadlightError]]:
    yield root
    for child in root.__subclasses__():
        yield from subclasses(child)


OWN_TEMPLATES = [e for e in subclasses(HeadlightError) if e.__module__.startswith(errors.__name__) and "template" in vars(e)]


LITERALS = {"_": 1, "N_": 1, "_n": 2}


@cache
def calls(path: Path) -> tuple[tuple[ast.Call, int], ...]:
    """Every call of `_` and `_n`, also inside f-strings, with the number of sentences that it begins with."""
    found = (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    return tuple((node, LITERALS[node.func.id]) for node in found if isinstance(node.func, ast.Name) and node.func.id in LITERALS)


def ids(message: Message) -> tuple[str, ...]:
    """The sentence of a message, or its singular and its plural."""
    return (message.id,) if isinstance(message.id, str) else tuple(message.id)


def gaps(sentence: str) -> set[str]:
    return {name.split(".")[0].split("[")[0] for _text, name, _format, _conversion in string.Formatter().parse(sentence) if name}


def test_without_a_translation_the_sentence_is_the_sources() -> None:
    assert translate._("{heads} heads", heads=8) == "8 heads"
    assert translate._("100 % {sure}") == "100 % {sure}"


def test_what_people_typed_fills_a_gap_and_is_never_read_as_one() -> None:
    assert translate._("You typed “{text}”.", text="{text.__class__} {0} %s") == "You typed “{text.__class__} {0} %s”."


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
    monkeypatch.setattr(translate, "catalogue", lambda _language: gettext.GNUTranslations(io.BytesIO(buffer.getvalue())))
    assert translate._("{heads} heads", heads=8) == "8 Köpfe"
    error = errors.UnknownHead(asked=9, site="encoder.0.0.self", last=7)
    assert translate.error_message(error) == "Den Kopf 9 gibt es bei encoder.0.0.self nicht; der letzte ist 7."
    assert str(error).startswith("There is no head 9")


@pytest.mark.parametrize(
    ("template", "gap", "said"),
    [
        ("第 {x} 层", 3, "第 3 层"),
        ("共 {x} 个", "softmax", "共 softmax 个"),
        ("替换 {x} 的值", "查询", "替换查询的值"),
        ("“{x}” 的值", "查 询", "“查 询” 的值"),
        ("{x} 个", "查询", "查询个"),
        ("位于 {x!r} 处", "a", "位于 'a' 处"),
        ("占 {x:.0%} 的权重", 0.5, "占 50% 的权重"),
    ],
)
def test_a_blank_beside_a_gap_separates_no_two_chinese_words(template: str, gap: object, said: str) -> None:
    with translate.speaking("zh-CN"):
        assert translate._filled(template, {"x": gap}) == said


def test_one_thing_and_several_have_a_sentence_each() -> None:
    assert [translate._n("{n} head", "{n} heads", n, n=n) for n in (0, 1, 2)] == ["0 heads", "1 head", "2 heads"]
    for ahead, said in ((1, "1 request is ahead"), (2, "2 requests are ahead")):
        assert said in str(errors.Busy(ahead=ahead))
        assert translate.error_message(errors.Busy(ahead=ahead)) == str(errors.Busy(ahead=ahead))


MARKS = ("_", "_n", "N_", "phrase", "counted", "message", "messages")


def test_no_sentence_stands_inside_an_f_string() -> None:
    """Thirteen texts on screen could not be translated: Babel reads no f-strings in Python 3.11."""
    for path in [*SOURCES, *sorted((ROOT / "model").rglob("*.py"))]:
        for text in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(text, ast.JoinedStr):
                inside = [node.func.id for node in ast.walk(text) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
                assert not set(inside) & set(MARKS), f"{path.name}:{text.lineno}"


def test_a_number_before_a_noun_has_a_singular() -> None:
    """The page said "1 rows are compared": what counts things goes through `_n`, or is in NEVER_ONE."""
    for path in SOURCES:
        for call, sentences in calls(path):
            text = call.args[0].value if isinstance(call.args[0], ast.Constant) else ""
            for counted in COUNTED.finditer(text if isinstance(text, str) else ""):
                assert sentences == 2 or counted[0] in NEVER_ONE, f"{path.name}:{call.lineno}: {counted[0]!r} may be one thing"


@pytest.mark.parametrize("error", OWN_TEMPLATES, ids=lambda e: e.__name__)
def test_an_error_says_the_same_on_screen_as_on_the_command_line_or_what_it_has_for_screens(error: type[HeadlightError]) -> None:
    made = error(**dict.fromkeys(gaps(error.template), "x  \n y") | ({error.counted: 2} if error.counted else {}))
    assert translate.error_message(made) == " ".join(str(made.on_page).split())
    assert bool(error.on_screen) == (translate.error_message(made) != str(made))
    assert "\n" not in str(made)


def test_sentences_are_literal_and_their_gaps_are_filled() -> None:
    own = [path for path in SOURCES if path.name != "texts.py"]  # that one says the sentences of errors, which their classes hold
    for path, (call, sentences) in ((source, found) for source in own for found in calls(source)):
        where = f"{path.relative_to(ROOT)}:{call.lineno}"
        number = sentences - 1  # `_n` also takes the number that decides between its sentences
        assert len(call.args) == sentences + number, f"{where}: the sentences, then gaps by name"
        for arg in call.args[:sentences]:
            sentence = arg.value if isinstance(arg, ast.Constant) else None
            assert isinstance(sentence, str), f"{where}: a sentence must be written out, not put together"
            for_javascript = path.name == "strings.py" and not call.keywords
            if all(k.arg for k in call.keywords) and not for_javascript:
                given = {k.arg for k in call.keywords}
                assert gaps(sentence) == given, f"{where}: gaps {gaps(sentence)}, filled {given}"


def test_javascript_holds_no_sentences() -> None:
    for path in SCRIPTS:
        source = re.sub(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        literals = re.findall(r'"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'|`((?:[^`\\]|\\.)*)`', source)
        for literal in map("".join, literals):
            sentence = re.search(r"[A-Za-z]+ [A-Za-z]+ [A-Za-z]+", re.sub(r"\$\{[^}]*\}", " ", literal))
            assert sentence is None or is_css(literal), f"{path.name}: {literal!r} belongs into Python, inside _()"


def is_css(literal: str) -> bool:
    """Selectors, fonts and declarations have words too."""
    return bool(re.search(r"[{}:;=#\[\]<>]|px|sans-serif|monospace", literal))


INSERTED = {
    "{what} must be a number, not {found}",
    "The edits of this link were ignored. {problem}",
    "{count} × {draw}",
    "{what}: {first} → {second}",
}
"""Sentences of pages with a translated text in a gap that does not follow a colon: a whole sentence of its own, or a name."""


def inserted(path: Path) -> Iterator[tuple[str, str]]:
    """The sentences in a file that get another message into a gap, directly, and the name of the gap."""
    owned = {kind.__name__: kind.template for kind in OWN_TEMPLATES}
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in {*MARKS, *owned}:
            first = call.args[0] if call.args else None
            sentence = str(first.value) if isinstance(first, ast.Constant) else owned.get(call.func.id, "")
            for field in call.keywords:
                inner = [node.func for node in ast.walk(field.value) if isinstance(node, ast.Call)]
                if field.arg and inner and getattr(inner[0], "id", "") in {*MARKS, "said", "sentence", "translated"}:
                    yield sentence, field.arg


def stands_alone(sentence: str, gap: str) -> bool:
    """Whether what fills a gap is a clause after a colon, a label before one, or the whole."""
    before, _gap, after = sentence.partition(f"{{{gap}}}")
    return before.endswith(": ") or (not before and after.startswith(": ")) or sentence == f"{{{gap}}}"


def test_a_message_stands_in_another_only_as_a_clause_after_a_colon() -> None:
    """“begin ist '2 IDs', muss aber weggelassen: … sein”: a sentence is not assembled from pieces of others."""
    found = {(sentence, gap) for path in [*SOURCES, *sorted((ROOT / "model").rglob("*.py"))] for sentence, gap in inserted(path)}
    assert len(found) > 10
    wrong = {sentence for sentence, gap in found if not stands_alone(sentence, gap)}
    assert wrong <= INSERTED, wrong - INSERTED


def test_the_catalogue_is_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command in CONTRIBUTING.md writes what is there, to the byte: no dates and no line numbers."""
    (command,) = re.findall(r"babel\.messages\.frontend (extract .*)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    fresh = tmp_path / "fresh.pot"
    monkeypatch.chdir(ROOT)
    CommandLineInterface().run(  # type: ignore[no-untyped-call]
        ["pybabel", "-q", *command.replace("viz/i18n/locale/headlight.pot", str(fresh)).split()]
    )
    assert fresh.read_text(encoding="utf-8") == CATALOGUE.read_text(encoding="utf-8"), "run the command of CONTRIBUTING.md"


def test_what_an_error_says_on_screen_is_in_the_catalogue() -> None:
    with CATALOGUE.open("rb") as file:
        written = {one for message in pofile.read_po(file) if message.id for one in ids(message)}
    shown = {
        kind.__name__: kind.on_screen or kind.template for kind in OWN_TEMPLATES if kind not in (HeadlightError, errors.DataError)
    }
    assert {name for name, text in shown.items() if text not in written} == set()


def test_every_translation_fills_the_same_gaps() -> None:
    for path in sorted((ROOT / "viz" / "i18n" / "locale").glob("*/LC_MESSAGES/headlight.po")):
        with path.open("rb") as file:
            for message in pofile.read_po(file):
                for string in [message.string] if isinstance(message.string, str) else message.string or ():
                    if message.id and string:
                        assert gaps(string) <= gaps(ids(message)[-1]), f"{path.parent.parent.name}: {message.id}"
