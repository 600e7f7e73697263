"""`python -m model head`: one head over many texts: cells with certain tokens, and its queries and keys in a plane."""

import csv
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from model.checkpoints.layouts.given_answers import parse_settings
from model.cli.answer import show
from model.cli.asking import name_in
from model.cli.options import AS_JSON, DEVICE, SETTINGS
from model.cli.progress import progress_of
from model.engine.environment import best_device
from model.engine.local import CHECKPOINTS, LocalEngine
from model.errors import BadSetting
from model.features.survey.examples import Example, Examples, Wanted, searched
from model.features.survey.plane import Plane, plane
from model.features.survey.questions import plain
from model.features.survey.reading import HeadTexts, ReadHead, read_on
from model.features.survey.survey_command import EDITS, MOST, TEXTS, texts_of
from model.features.survey.trees import parts_of
from model.requests.edits import read_edits
from model.requests.sent_text import spreadsheet_text

MOST_LINES = 20
"""Examples that are printed; --json has more."""


@click.command("head")
@click.argument("checkpoint")
@click.argument("site")
@click.argument("head", type=click.IntRange(0))
@TEXTS
@MOST
@EDITS
@click.option("--query", default="", metavar="WORD", help="look for rows of this word")
@click.option("--key", default="", metavar="WORD", help="look for keys of this word")
@click.option("--query-part", default="", metavar="UPOS", help="look for rows of this part of speech, such as VERB (CoNLL-U)")
@click.option("--key-part", default="", metavar="UPOS", help="look for keys of this part of speech")
@click.option("--least", type=click.FloatRange(0, 1), default=0.3, show_default=True, help="smallest weight of an example")
@click.option("--plane", "file", type=click.Path(path_type=Path), help="writes the queries and keys in a plane into this CSV file")
@SETTINGS
@AS_JSON
@DEVICE
def one_head(
    checkpoint: str,
    site: str,
    head: int,
    given: str,
    most: int | None,
    edits: tuple[str, ...],
    query: str,
    key: str,
    query_part: str,
    key_part: str,
    least: float,
    file: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
    device: str,
) -> None:
    """Looks for examples of a head of CHECKPOINT in many texts, and draws its queries and keys in a plane."""
    engine = LocalEngine(CHECKPOINTS, best_device(device))
    name, answers = name_in(engine, checkpoint), tuple(parse_settings(settings).items())
    question = ReadHead(name, answers, texts=(), site=site, head=head, edits=read_edits("; ".join(edits)))
    chosen = texts_of(given, checkpoint, engine, question).items[:most]
    with progress_of("texts") as on_count:
        on_count(0, len(chosen))
        for texts in read_on(engine.ask, question, chosen):
            on_count(*texts.steps)
    parts = [
        (parts_of(maps.queries, text.source, text.tree), parts_of(maps.keys, text.source, text.tree))
        for maps, text in zip(texts.texts, (chosen[number] for number in texts.places), strict=True)
    ]
    examples = searched(texts.texts, Wanted(query, key, query_part, key_part, least), parts)
    flat = None if file is None else plane(texts.texts)
    if flat is not None and file is not None:
        _write(flat, texts, file)
    values = _values(texts, examples, flat)
    lines = [_readable(texts, cell) for cell in examples.examples[:MOST_LINES]]
    show(values, as_json, {"search": values["search"] | {"examples": lines}})


def _write(flat: Plane, texts: HeadTexts, file: Path) -> None:
    """Writes a row for each query and key.

    Raises:
        BadSetting: it cannot be written there.
    """
    try:
        with file.open("w", encoding="utf-8", newline="") as opened:
            table = csv.writer(opened)
            table.writerow(("of", "text", "position", "token", "x", "y"))
            for is_key, text, position, (x, y) in zip(flat.keys, flat.texts, flat.positions, flat.points, strict=True):
                maps = texts.texts[text]
                token = (maps.keys if is_key else maps.queries).texts[position]
                kind, cell = "key" if is_key else "query", spreadsheet_text(token)
                table.writerow((kind, texts.places[text], position, cell, f"{x:.6g}", f"{y:.6g}"))
    except OSError as error:
        raise BadSetting(name="--plane", found=str(file), allowed=f"a path that can be written ({error.strerror})") from error


def _about(flat: Plane) -> dict[str, Any]:
    numbers = {"in_rows": flat.in_rows, "in_rows_unprojected": flat.in_rows_unprojected, "in_pairs": flat.in_pairs}
    return {"points": len(flat.points), "variance": list(flat.variance), "scale": flat.scale, "rows": flat.rows} | {
        name: plain(value) for name, value in numbers.items()
    }


def _values(texts: HeadTexts, examples: Examples, flat: Plane | None) -> dict[str, Any]:
    """The result as JSON values."""
    about = {name: getattr(texts.question, name) for name in ("model", "site", "head")} | {"fingerprint": texts.fingerprint}
    about |= {"texts_read": len(texts.texts), "skipped": len(texts.problems), "full": texts.full}
    numbers = {name: plain(value) if isinstance(value, float) else value for name, value in vars(examples).items()}
    cells = [asdict(cell) | {"text": texts.places[cell.text]} | _tokens(texts, cell) for cell in examples.examples]
    return about | {"search": numbers | {"examples": cells}, "plane": None if flat is None else _about(flat)}


def _tokens(texts: HeadTexts, cell: Example) -> dict[str, str]:
    maps = texts.texts[cell.text]
    return {"query_token": maps.queries.texts[cell.query], "key_token": maps.keys.texts[cell.key]}


def _readable(texts: HeadTexts, cell: Example) -> dict[str, Any]:
    """An example for people: its tokens with their numbers, and its text."""
    tokens = _tokens(texts, cell)
    names = f"{tokens['query_token']} ({cell.query}) → {tokens['key_token']} ({cell.key})"
    return {"weight": cell.weight, "cell": names, "text": texts.places[cell.text], "": " ".join(texts.texts[cell.text].keys.texts)}
