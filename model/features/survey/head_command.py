"""`python -m model head`: one head over many texts: cells with certain tokens, and its queries and keys in a plane."""

import csv
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from model.checkpoints.layouts.given_answers import parse_settings
from model.cli.options import AS_JSON, DEVICE, SETTINGS
from model.cli.telling import told
from model.engine.environment import best_device
from model.engine.local import CHECKPOINTS, LocalEngine
from model.errors import BadSetting
from model.features.survey.examples import Examples, Wanted, searched
from model.features.survey.plane import Plane, plane
from model.features.survey.questions import plain
from model.features.survey.reading import HeadTexts, ReadHead, read_on
from model.features.survey.survey_command import EDITS, MOST, TEXTS, named, texts_of
from model.features.survey.trees import parts_of
from model.spec.edits import read_edits
from model.spec.sent_text import spreadsheet_text

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
    name, answers = named(checkpoint, engine), tuple(parse_settings(settings).items())
    question = ReadHead(name, answers, texts=(), site=site, head=head, edits=read_edits("; ".join(edits)))
    chosen = texts_of(given, checkpoint, engine, question).items[:most]
    with told("texts") as on_count:
        on_count(0, len(chosen))
        for found in read_on(engine.ask, question, chosen):
            on_count(*found.steps)
    parts = [
        (parts_of(own.queries, chosen[at].source, chosen[at].tree), parts_of(own.keys, chosen[at].source, chosen[at].tree))
        for at, own in zip(found.places, found.texts, strict=True)
    ]
    examples = searched(found.texts, Wanted(query, key, query_part, key_part, least), parts)
    flat = plane(found.texts) if file is not None else None
    if flat is not None and file is not None:
        _write(flat, found, file)
    if as_json:
        click.echo(json.dumps(_values(found, examples, flat), ensure_ascii=False))
    else:
        click.echo("\n".join(_lines(found, examples, flat, least)))


def _write(flat: Plane, found: HeadTexts, file: Path) -> None:
    """Writes a row for each query and key.

    Raises:
        BadSetting: it cannot be written there.
    """
    try:
        with file.open("w", encoding="utf-8", newline="") as opened:
            table = csv.writer(opened)
            table.writerow(("of", "text", "position", "token", "x", "y"))
            for is_key, text, position, (x, y) in zip(flat.keys, flat.texts, flat.positions, flat.points, strict=True):
                own = found.texts[text]
                token = (own.keys if is_key else own.queries).texts[position]
                kind, cell = "key" if is_key else "query", spreadsheet_text(token)
                table.writerow((kind, found.places[text], position, cell, f"{x:.6g}", f"{y:.6g}"))
    except OSError as error:
        raise BadSetting(name="--plane", found=str(file), allowed=f"a path that can be written ({error.strerror})") from error


def _about(flat: Plane) -> dict[str, Any]:
    numbers = {"in_rows": flat.in_rows, "in_rows_unprojected": flat.in_rows_unprojected, "in_pairs": flat.in_pairs}
    return {"points": len(flat.points), "variance": list(flat.variance), "scale": flat.scale, "rows": flat.rows} | {
        name: plain(value) for name, value in numbers.items()
    }


def _values(found: HeadTexts, examples: Examples, flat: Plane | None) -> dict[str, Any]:
    """The result as JSON values."""
    numbers = {
        name: plain(value) if isinstance(value, float) else value for name, value in vars(examples).items() if name != "examples"
    }
    cells = [
        asdict(each) | {"text": found.places[each.text]} | _tokens(found, each.text, each.query, each.key)
        for each in examples.examples
    ]
    told_ = {
        "model": found.question.model,
        "site": found.question.site,
        "head": found.question.head,
        "fingerprint": found.fingerprint,
    }
    told_ |= {"texts_read": len(found.texts), "skipped": len(found.problems), "full": found.full}
    return told_ | {"search": numbers | {"examples": cells}, "plane": None if flat is None else _about(flat)}


def _tokens(found: HeadTexts, text: int, query: int, key: int) -> dict[str, str]:
    own = found.texts[text]
    return {"query_token": own.queries.texts[query], "key_token": own.keys.texts[key]}


def _lines(found: HeadTexts, examples: Examples, flat: Plane | None, least: float) -> Iterator[str]:
    """The result for people."""
    left = (
        f"; {len(found.asked) - found.done:,} were left out, because enough was read"
        if found.full and found.done < len(found.asked)
        else ""
    )
    yield f"{len(found.texts):,} texts read; {len(found.problems):,} could not be run{left}"
    yield (
        f"{examples.count:,} of {examples.of:,} cells with these tokens have a weight of at least {least:g}, in {examples.texts:,} "
        f"texts; by chance {examples.dealt:z.1f} (each row's weights dealt out at random), with equal weights {examples.uniform:,}"
    )
    if examples.of:
        yield f"mean weight {examples.mean:z.3f}, with equal weights {examples.uniform_mean:z.3f}"
    for each in examples.examples[:MOST_LINES]:
        own = found.texts[each.text]
        row = f"{own.queries.texts[each.query]} ({each.query}) → {own.keys.texts[each.key]} ({each.key})"
        yield f"{each.weight:z.3f}  {row}  text {found.places[each.text]}: {' '.join(own.keys.texts)}"
    if flat is not None:
        shares = f"{flat.variance[0]:z.3f} + {flat.variance[1]:z.3f}"
        yield f"plane: {len(flat.points):,} points, shares of the variance {shares}; rank correlation of nearness"
        whole = f"{flat.in_rows_unprojected:z.3f} before the projection"
        yield f"  with weights inside of rows: {flat.in_rows:z.3f} ({flat.rows:,} rows; {whole})"
        yield f"  with products of random pairs: {flat.in_pairs:z.3f}"
