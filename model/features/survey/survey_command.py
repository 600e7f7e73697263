"""`python -m model survey`: what each head does over many texts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from model.checkpoints.layouts.given_answers import parse_settings
from model.cli.answer import show
from model.cli.asking import name_in
from model.cli.options import AS_JSON, DEVICE, SETTINGS
from model.cli.progress import progress_of
from model.engine.api import Describe
from model.engine.environment import best_device
from model.engine.local import CHECKPOINTS, LocalEngine
from model.errors import BadSetting
from model.features.survey import film as films
from model.features.survey import tables, texts
from model.features.survey.differences import Difference, differences
from model.features.survey.questions import MeasureTexts, StoredSurvey, plain
from model.features.survey.survey import BATCH, Survey, begun, gone_on, merged
from model.features.survey.texts import Texts
from model.measures.catalogue import MEASURES
from model.requests.edits import read_edits
from model.requests.questions import ModelQuestion

SAVE_EVERY = 8
"""Batches after which what is there is saved, so that a survey that is interrupted goes on from there."""

MOST_LINES = 40
"""Differences that are printed; --json has all of them."""

TEXTS = click.option(
    "--texts",
    "given",
    default="bundled",
    show_default=True,
    metavar="FILE|bundled|repeated:N",
    help="a file of texts (survey.md), those that are bundled for the model, or N random texts that repeat",
)
MOST = click.option("--most", type=click.IntRange(1), help="read only the first ones")
EDITS = click.option(
    "--edit", "edits", multiple=True, metavar="EDIT", help="NAME key=value …: a change in every run (what-if.md); repeatable"
)


@click.command()
@click.argument("checkpoint")
@TEXTS
@MOST
@EDITS
@click.option("--out", type=click.Path(path_type=Path), help="the Parquet file to write; one that was interrupted goes on")
@click.option("--against", metavar="FILE|MODEL", help="tell the differences from this survey, or from that of this model")
@click.option("--cluster", metavar="K/N", help="read the K-th of N shares of the texts into --out: one process of N on a cluster")
@click.option(
    "--merge",
    "shares",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="add up the shares that --cluster has read instead of reading texts; repeatable",
)
@click.option("--film", is_flag=True, help="measure the texts in every snapshot of the model's training")
@SETTINGS
@AS_JSON
@DEVICE
def survey(
    checkpoint: str,
    given: str,
    most: int | None,
    edits: tuple[str, ...],
    out: Path | None,
    against: str | None,
    cluster: str | None,
    shares: tuple[Path, ...],
    film: bool,
    settings: tuple[str, ...],
    as_json: bool,
    device: str,
) -> None:
    """Measures what each head of CHECKPOINT does over many texts, and names heads by stated criteria."""
    if out is not None:
        _check_place(out)
    engine = LocalEngine(CHECKPOINTS, best_device(device))
    answers = tuple(parse_settings(settings).items())
    question = MeasureTexts(name_in(engine, checkpoint), answers, texts=(), edits=read_edits("; ".join(edits)))
    chosen = texts_of(given, checkpoint, engine, question)
    chosen = replace(chosen, items=chosen.items[:most])
    if film:
        _show_film(_filmed(engine, question, chosen, out), as_json)
        return
    other = None if against is None else _other(against, engine)
    if shares:
        result = merged([tables.read(file) for file in shares])
        _save(result, out)
    else:
        result = _surveyed(engine, question, chosen, out, _share(cluster, len(chosen.items), out))
    if other is not None:
        _show_differences(differences(other, result), as_json)
    else:
        show(result.to_json(), as_json, _readable(result))


def _check_place(out: Path) -> None:
    """Refuses an --out that no file can have before anything runs. A device such as /dev/full may be read without an end.

    Raises:
        BadSetting: it is such a place.
    """
    if out.exists() and not out.is_file():
        raise BadSetting(name="--out", found=str(out), allowed="the path of a file, which may exist or not")
    if not out.parent.is_dir():
        raise BadSetting(name="--out", found=str(out), allowed="the path of a file in a folder that exists")


def texts_of(given: str, checkpoint: str, engine: LocalEngine, question: ModelQuestion[Any]) -> Texts:
    """The texts that --texts names.

    Raises:
        BadSetting: it asks for no such number of random texts.
        BadTexts: a file that cannot be read.
    """
    if given == "bundled":
        return texts.bundled(checkpoint)
    kind, _, count = given.partition(":")
    if kind == "repeated" and not Path(given).exists():
        if not (count.isdecimal() and 1 <= int(count) <= texts.MOST_TEXTS):
            raise BadSetting(name="--texts", found=given, allowed=f"repeated:N with N from 1 to {texts.MOST_TEXTS:,}")
        return texts.repeated_for(int(count), engine.ask(Describe(question.model, question.settings)).spec)
    return texts.read_file(Path(given))


def _share(cluster: str | None, texts: int, out: Path | None) -> tuple[int, int]:
    """The share of --cluster; (1, 1): all texts.

    Raises:
        BadSetting: it is none, there are fewer batches of texts than shares, or nothing keeps what is read.
    """
    if cluster is None:
        return 1, 1
    number, _, of = cluster.partition("/")
    most = -(-texts // BATCH)
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= most):
        allowed = f"K/N, the K-th of N shares, with N at most {most:,}: a share has at least one batch of {BATCH} texts"
        raise BadSetting(name="--cluster", found=cluster, allowed=allowed)
    if out is None:
        raise BadSetting(name="--cluster", found=cluster, allowed="used with --out, the file of this share")
    return int(number), int(of)


def _surveyed(engine: LocalEngine, question: MeasureTexts, chosen: Texts, out: Path | None, share: tuple[int, int]) -> Survey:
    """The survey, from where the file that it is saved in has come to; standard error tells how far it is."""
    start = begun(question, chosen, share)
    if out is not None and out.exists():
        before = tables.read(out)
        # The file may only go on with the very same survey. The weights are compared later: they are known after a
        # batch.
        if replace(before.about, fingerprint="") != start.about or before.share != share:
            allowed = f"a file of this survey, or a new one: it holds one of {before.about.model} over {before.about.texts}"
            raise BadSetting(name="--out", found=str(out), allowed=allowed)
        start = before
    began = start.steps[0]
    result = start
    with progress_of("texts") as on_count:
        on_count(0, start.steps[1] - began)
        try:
            for number, result in enumerate(gone_on(engine.ask, question, chosen, start), start=1):
                on_count(result.steps[0] - began, result.steps[1] - began)
                if number % SAVE_EVERY == 0:
                    _save(result, out)
        # Also where a key was pressed or a text failed: what was read so far is kept, and the next call goes on
        # from there.
        finally:
            _save(result, out)
    return result


def _save(result: Survey, out: Path | None) -> None:
    if out is not None and result.statistics.texts:
        try:
            tables.write(result, out)
        except OSError as error:
            raise BadSetting(name="--out", found=str(out), allowed=f"a path that can be written ({error.strerror})") from error


def _readable(result: Survey) -> dict[str, Any]:
    """For people: the means of each head in one table, its roles in another."""
    values, names = result.to_json(), list(MEASURES)
    means = [
        {"site": head["site"], "head": head["head"]}
        | {name: head["measures"].get(name, {}).get("mean") for name in names}
        | {"copying": head["copying"]}
        for head in values["heads"]
    ]
    roles = [
        {"site": site, "head": head, "role": role.criterion.role, "measure": role.criterion.measure}
        | {"mean": role.mean, "at least": role.criterion.threshold, "untrained": role.untrained, "shuffled": role.shuffled}
        | {"repeated": plain(role.repeated) if role.criterion.repeated else None, "of texts": role.share}
        | {"in the others": role.rest, "their mean": plain(role.rest_mean)}
        for (site, head), roles_of_head in zip(result.statistics.heads, result.roles, strict=True)
        for role in roles_of_head
    ]
    missing = {
        "no role that random repetitions decide" if variant == "repeated" else "no roles without a baseline": why["fields"].get(
            "reason", str(why)
        )
        for variant, why in result.without.items()
    }
    return {"heads": means, "roles": roles, "relations": values.get("relations"), **missing}


def _other(against: str, engine: LocalEngine) -> Survey:
    """The survey of --against: a file, or that of a model.

    Raises:
        BadSetting: there is none.
    """
    if Path(against).is_file():
        return tables.read(Path(against))
    data = engine.ask(StoredSurvey(against))
    if not data:
        raise BadSetting(name="--against", found=against, allowed="the file of a survey, or a model that has one")
    return tables.from_bytes(data, against)


def _show_differences(rows: list[Difference], as_json: bool) -> None:
    """Prints the differences: this survey minus the other one."""
    values = [vars(row) | {"difference": row.difference, "errors": plain(row.errors)} for row in rows]
    names = {"first": "before", "second": "now", "difference": "change", "error": "error", "errors": "in errors"}
    strongest = [
        {name: value[name] for name in ("site", "head", "measure")} | {title: value[name] for name, title in names.items()}
        for value in values[:MOST_LINES]
    ]
    title = f"differences, the {len(strongest):,} largest beside their errors of {len(values):,}"
    show(values if as_json else {title: strongest}, as_json)


def _filmed(engine: LocalEngine, question: MeasureTexts, chosen: Texts, out: Path | None) -> films.SurveyFilm:
    """Measures the texts in every snapshot, and saves the film.

    Raises:
        BadSetting: the model has no snapshots, or the film cannot be written.
    """
    steps = engine.ask(Describe(question.model, question.settings)).snapshots
    if not steps:
        raise BadSetting(name="--film", found=question.model, allowed="a model with snapshots of its training")
    with progress_of("texts") as on_count:
        of = len(steps) * len(chosen.items)
        film = films.filmed(engine.ask, question, chosen, steps, lambda done: on_count(done, of))
    if out is not None:
        try:
            films.write(film, out)
        except OSError as error:
            raise BadSetting(name="--out", found=str(out), allowed=f"a path that can be written ({error.strerror})") from error
    return film


def _show_film(film: films.SurveyFilm, as_json: bool) -> None:
    """Prints every measure of every head in every snapshot; in text, its mean and standard deviation over the texts."""
    columns = {name: column for column, name in enumerate(MEASURES) if film.count[:, :, column].any()}

    def numbers(row: int) -> dict[str, dict[str, list[float | None]]]:
        return {
            name: {key: [plain(value) for value in getattr(film, key)[:, row, column]] for key in films.COLUMNS}
            for name, column in columns.items()
            if film.count[:, row, column].any()
        }

    heads = [{"site": site, "head": head, "measures": numbers(row)} for row, (site, head) in enumerate(film.heads)]
    rows = [
        {"step": step, "site": site, "head": head}
        | {name: f"{film.mean[at, row, c]:z.3f} ±{film.std[at, row, c]:z.2f}" for name, c in columns.items()}
        for at, step in enumerate(film.steps)
        for row, (site, head) in enumerate(film.heads)
    ]
    read = int(film.count.max(axis=(1, 2)).min())  # of the snapshot in which fewest could be run
    text = {"snapshots": len(film.steps), "texts that could be run": read, "mean ± standard deviation over texts": rows}
    show(vars(film.about) | {"steps": list(film.steps), "heads": heads}, as_json, {"heads": None, **text})
