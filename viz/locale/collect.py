"""Collects every sentence on screen into headlight.pot, the template of translations: `python -m viz.locale.collect`.

The sentences are the literal first arguments of `_` and `N_` in `viz`, the first two of `_n`, the sentences of `model/errors`,
the phrases that fill their gaps, and what bundled checkpoints say about themselves. They are read from the syntax tree, which also
holds the calls inside f-strings.
"""

import ast
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po

from model import errors
from viz.phrases import NOT_IN_ERRORS

ROOT = Path(__file__).parents[2]
CATALOGUE = Path(__file__).parent / "headlight.pot"
SHOWN = (
    "checkpoints",
    "engine",
    "huggingface",
    "inference",
    "attribution",
    "safe_loading",
    "spec",
    "tokenizers",
    "trace",
    "transformer",
)
"""Rooms of `model` whose errors reach a screen."""

SAYING = (
    "checkpoints/layouts",
    "huggingface",
    "inference/beam_memory.py",
    "inference/edits",
    "inference/inputs.py",
    "inference/long_inputs.py",
    "inference/recorded_trace.py",
    "inference/recorder.py",
    "inference/run.py",
    "inspection/diagnostics.py",
    "inspection/leftovers.py",
    "safe_loading",
)
"""Files of `model` whose every sentence can reach a screen: as a note, a question, evidence, or the reason in an error."""

NOT_SAYING = ("layout_files.py", "plan.py", "sandbox.py", "sandbox_process.py", "worker.py")
"""Files in these folders that hold code and names; their sentences are listed in `phrases.NOT_IN_ERRORS`."""

NAMES = ("EXAMPLE", "_NAMES")
"""Variables that hold an example or names of settings."""

SILENT = ("compile", "fullmatch", "getLogger", "split")
"""Methods whose arguments are no sentences."""

ERRORS = frozenset(name for name, kind in vars(errors).items() if isinstance(kind, type))
NOT_SHOWN = ("path",)
LITERALS = {"_": 1, "N_": 1, "_n": 2}
"""How many literal sentences a call begins with."""

Message = str | tuple[str, str]
"""A sentence, or its singular and its plural."""


def sentences() -> Iterator[tuple[Message, str]]:
    """Every sentence with its file."""
    for path in sorted((ROOT / "viz").rglob("*.py")):
        for message in of_source(path.read_text(encoding="utf-8")):
            yield message, path.relative_to(ROOT).as_posix()
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.HeadlightError) and "template" in vars(kind):
            own = kind.on_screen or kind.template
            yield (kind.singular, own) if kind.singular else own, "model/errors"
    yield from ((phrase, "viz/phrases.py") for phrase in NOT_IN_ERRORS)
    yield from of_model()
    for path in sorted((ROOT / "checkpoints").glob("*/spec.json")):
        for text in of_checkpoint(json.loads(path.read_text(encoding="utf-8"))):
            yield text, path.parent.relative_to(ROOT).as_posix()


def of_model() -> Iterator[tuple[str, str]]:
    """Every phrase that `model` puts into a gap or a page shows by itself, with its file."""
    for rooms, take in ((SHOWN, phrases), (SAYING, said)):
        for room in rooms:
            path = ROOT / "model" / room
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                if take is phrases or file.name not in NOT_SAYING:
                    for phrase in take(file.read_text(encoding="utf-8")):
                        yield phrase, file.relative_to(ROOT).as_posix()


def said(source: str) -> Iterator[str]:
    """The phrases in a file whose every sentence can reach a screen; a piece of a sentence, which begins with a blank, is none."""
    for text in _literals(ast.parse(source)):
        if (text[:1].isalnum() or text[:1] in "{“") and not re.search(r"\{[a-z]", text):
            yield from filter(_is_phrase, [text])


def _literals(node: ast.AST) -> Iterator[str]:
    """All texts below a node, except for docstrings and messages for programmers."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Assert():
            return
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) if name in NAMES:
            return
        case ast.Call(func=ast.Attribute(attr=name)) if name in SILENT:
            return
        case ast.Raise(exc=ast.Call(func=ast.Name(id=name))) if name not in ERRORS:
            return
        case ast.Constant(value=str()) | ast.JoinedStr():
            yield from _templates(node)
            inside: list[ast.AST] = [part.value for part in getattr(node, "values", ()) if isinstance(part, ast.FormattedValue)]
        case _:
            inside = list(ast.iter_child_nodes(node))
    for child in inside:
        yield from _literals(child)


def phrases(source: str) -> Iterator[str]:
    """The phrases in a Python file of `model` that fill gaps of errors, with their own gaps numbered: "{0} ids".

    A phrase is a text or f-string with a space in it that is given to an error.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in ERRORS:
            for field in node.keywords:
                if field.arg not in NOT_SHOWN:
                    yield from filter(_is_phrase, _templates(field.value))


def _templates(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.IfExp):
        yield from (*_templates(value.body), *_templates(value.orelse))
    elif isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.JoinedStr):
        number = itertools.count()
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else f"{{{next(number)}}}" for part in value.values)


def _is_phrase(text: str) -> bool:
    words = set(re.findall(r"[a-zA-Z]{2,}", re.sub(r"\{\d+\}", "", text)))
    return " " in text and bool(words - {"is", "and", "or", "not", "of"})


def of_checkpoint(told: Mapping[str, Any]) -> Iterator[str]:
    """The texts of a bundled checkpoint that are shown on screen."""
    yield from (
        told["title"],
        told["summary"],
        *told["languages"].values(),
        *told.get("example_labels", ()),
        *told.get("notes", ()),
    )


def of_source(source: str) -> Iterator[Message]:
    """The sentences of a Python file, from the first to the last."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        assert isinstance(call.func, ast.Name)
        texts = [arg.value for arg in call.args[: LITERALS.get(call.func.id, 0)] if isinstance(arg, ast.Constant)]
        if len(texts) == 2:
            yield str(texts[0]), str(texts[1])
        elif texts:
            yield str(texts[0])


def main() -> None:
    """Writes the catalogue without dates and line numbers, so that it changes only with the sentences."""
    catalogue = Catalog()
    for sentence, file in sentences():
        catalogue.add(sentence, locations=[(file, 0)])
    with CATALOGUE.open("wb") as out:
        write_po(out, catalogue, width=120, omit_header=True, sort_by_file=True, include_lineno=False)


if __name__ == "__main__":
    main()
