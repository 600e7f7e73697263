"""`python -m model survey`: what each head does over many texts."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from model.checkpoints import loader
from model.checkpoints.layouts.given_answers import parse_settings
from model.cli.options import AS_JSON, DEVICE, SETTINGS
from model.cli.telling import told
from model.engine.api import Describe
from model.engine.environment import best_device
from model.engine.local import CHECKPOINTS, LocalEngine
from model.errors import BadSetting, from_json
from model.features.survey import film as films
from model.features.survey import tables, texts
from model.features.survey.differences import Difference, differences
from model.features.survey.questions import MeasureTexts, StoredSurvey, plain
from model.features.survey.relations import accuracies
from model.features.survey.survey import BATCH, Survey, begun, gone_on, merged
from model.features.survey.texts import Texts
from model.measures.catalogue import MEASURES
from model.spec.edits import read_edits
from model.spec.questions import ModelQuestion

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
    question = MeasureTexts(
        named(checkpoint, engine), tuple(parse_settings(settings).items()), texts=(), edits=read_edits("; ".join(edits))
    )
    chosen = texts_of(given, checkpoint, engine, question)
    chosen = replace(chosen, items=chosen.items[:most])
    if film:
        _film(engine, question, chosen, out, as_json)
        return
    other = None if against is None else _other(against, engine)
    if shares:
        found = merged([tables.read(file) for file in shares])
        _save(found, out)
    else:
        found = _surveyed(engine, question, chosen, out, _share(cluster, len(chosen.items), out))
    if other is not None:
        _against(differences(other, found), as_json)
    elif as_json:
        click.echo(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        click.echo("\n".join(_lines(found)))


def _check_place(out: Path) -> None:
    """Refuses an --out that no file can have before anything runs. A device such as /dev/full may be read without an end.

    Raises:
        BadSetting: it is such a place.
    """
    if out.exists() and not out.is_file():
        raise BadSetting(name="--out", found=str(out), allowed="the path of a file, which may exist or not")
    if not out.parent.is_dir():
        raise BadSetting(name="--out", found=str(out), allowed="the path of a file in a folder that exists")


def named(checkpoint: str, engine: LocalEngine) -> str:
    """The engine's name of a model, or of one that lies at a path of this machine."""
    bundled = not Path(checkpoint).is_absolute() and (CHECKPOINTS / checkpoint).exists()
    return engine.open_path(loader.locate(checkpoint, CHECKPOINTS)) if Path(checkpoint).exists() and not bundled else checkpoint


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
    found = begun(question, chosen, share)
    if out is not None and out.exists():
        before = tables.read(out)
        if replace(before.about, fingerprint="") != found.about or before.share != share:
            allowed = f"a file of this survey, or a new one: it holds one of {before.about.model} over {before.about.texts}"
            raise BadSetting(name="--out", found=str(out), allowed=allowed)
        found = before
    began = found.steps[0]
    with told("texts") as on_count:
        on_count(0, found.steps[1] - began)
        try:
            for number, further in enumerate(gone_on(engine.ask, question, chosen, found), start=1):
                found = further
                on_count(found.steps[0] - began, found.steps[1] - began)
                if number % SAVE_EVERY == 0:
                    _save(found, out)
        finally:
            _save(found, out)
    return found


def _save(found: Survey, out: Path | None) -> None:
    if out is not None and found.statistics.texts:
        try:
            tables.write(found, out)
        except OSError as error:
            raise BadSetting(name="--out", found=str(out), allowed=f"a path that can be written ({error.strerror})") from error


def _lines(found: Survey) -> Iterator[str]:
    """A survey as a table for people: the means of each head, then its roles."""
    own, names = found.statistics, list(MEASURES)
    empty = f", {found.about.empty:,} empty lines left out" if found.about.empty else ""
    yield f"{own.texts:,} texts of {found.about.texts}, {own.tokens:,} tokens; {found.skipped:,} could not be run{empty}"
    yield from (f"text {number + 1:,} could not be run: {from_json(problem)}" for number, problem in found.problems.items())
    if (more := found.skipped - len(found.problems)) > 0:
        yield f"{more:,} more texts could not be run"
    copying = np.full(len(own.heads), np.nan) if found.copying is None else found.copying
    yield f"{'site':22}{'head':>5}" + "".join(f"{name[:10]:>11}" for name in (*names, "copying"))
    for row, (site, head) in enumerate(own.heads):
        cells = (f"{own.mean[row, column]:z11.3f}" if own.count[row, column] else f"{'–':>11}" for column in range(len(names)))
        yield f"{site:22}{head:5}" + "".join(cells) + (f"{'–':>11}" if np.isnan(copying[row]) else f"{copying[row]:z11.3f}")
    for (site, head), roles in zip(own.heads, found.roles, strict=True):
        for role in roles:
            yield (
                f"{site} head {head}: {role.criterion.role}: {role.criterion.measure} {role.mean:z.3f} (criterion: at least "
                f"{role.criterion.threshold}; untrained {role.untrained:z.3f}, weights in random order {role.shuffled:z.3f}"
                + (f"; on random repetitions {role.repeated:z.3f}" if role.criterion.repeated else "")
                + f"); in {100 * role.share:z.0f} of 100 texts"
                + (f"; in the others most of {role.rest} ({role.rest_mean:z.3f})" if role.rest else "")
            )
    if found.relations is not None:
        yield f"{'relation':16}{'the word attends':18}{'words':>7}{'best head':>30}{'right':>8}{'offset':>8}{'right':>8}"
        for each in accuracies(found.relations, own.sites):
            site, head = own.heads[each.head]
            head_ = f"{site} head {head}"
            yield (
                f"{each.relation:16}{each.direction:18}{each.words:7,}{head_:>30}{each.right:z8.3f}{each.offset:+8}{each.baseline:z8.3f}"
            )
    for variant, why in found.without.items():
        missing = "no role that random repetitions decide" if variant == "repeated" else "no roles without a baseline"
        yield f"{missing}: {why['fields'].get('reason', why)}"


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


def _against(found: list[Difference], as_json: bool) -> None:
    """Tells the differences: this survey minus the other one."""
    if as_json:
        told_ = [vars(each) | {"difference": each.difference, "errors": plain(each.errors)} for each in found]
        click.echo(json.dumps(told_, ensure_ascii=False))
        return
    click.echo(f"{'site':22}{'head':>5}  {'measure':16}{'before':>9}{'now':>9}{'change':>9}{'error':>8}{'in errors':>11}")
    for each in found[:MOST_LINES]:
        numbers = f"{each.first:z9.3f}{each.second:z9.3f}{each.difference:+z9.3f}{each.error:z8.3f}{each.errors:+z11.1f}"
        click.echo(f"{each.site:22}{each.head:5}  {each.measure:16}{numbers}")
    if len(found) > MOST_LINES:
        click.echo(f"{len(found) - MOST_LINES:,} further ones are smaller beside their errors; --json has all")


def _film(engine: LocalEngine, question: MeasureTexts, chosen: Texts, out: Path | None, as_json: bool) -> None:
    """Measures the texts in every snapshot, and tells the film.

    Raises:
        BadSetting: the model has no snapshots, or the film cannot be written.
    """
    steps = engine.ask(Describe(question.model, question.settings)).snapshots
    if not steps:
        raise BadSetting(name="--film", found=question.model, allowed="a model with snapshots of its training")
    with told("texts") as on_count:
        of = len(steps) * len(chosen.items)
        found = films.filmed(engine.ask, question, chosen, steps, lambda done: on_count(done, of))
    if out is not None:
        try:
            films.write(found, out)
        except OSError as error:
            raise BadSetting(name="--out", found=str(out), allowed=f"a path that can be written ({error.strerror})") from error
    if as_json:
        click.echo(json.dumps(_of_film(found), ensure_ascii=False))
        return
    names = [name for column, name in enumerate(MEASURES) if found.count[:, :, column].any()]
    read = int(found.count.max(axis=(1, 2)).min())  # of the snapshot in which fewest could be run
    skipped = f", {len(chosen.items) - read:,} could not be run" if read < len(chosen.items) else ""
    click.echo(f"{read:,} texts of {chosen.name} in {len(steps)} snapshots{skipped}; mean ± standard deviation over texts")
    click.echo(f"{'step':>8}  {'site':22}{'head':>5}" + "".join(f"{name[:13]:>16}" for name in names))
    for at, step in enumerate(found.steps):
        for row, (site, head) in enumerate(found.heads):
            columns = [list(MEASURES).index(name) for name in names]
            cells = (f"{found.mean[at, row, c]:z10.3f} ±{found.std[at, row, c]:z4.2f}" for c in columns)
            click.echo(f"{step:8}  {site:22}{head:5}" + "".join(cells))


def _of_film(found: films.SurveyFilm) -> dict[str, object]:
    """A film as JSON values."""

    def numbers(row: int) -> dict[str, dict[str, list[float | None]]]:
        return {
            name: {key: [plain(value) for value in getattr(found, key)[:, row, column]] for key in films.COLUMNS}
            for column, name in enumerate(MEASURES)
            if found.count[:, row, column].any()
        }

    heads = [{"site": site, "head": head, "measures": numbers(row)} for row, (site, head) in enumerate(found.heads)]
    return vars(found.about) | {"steps": list(found.steps), "heads": heads}
