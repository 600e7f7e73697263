"""A survey as a Parquet file: one row for each head and measure, which pandas reads; the rest is in its metadata."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet
from safetensors import SafetensorError
from safetensors.numpy import load, save

from model.errors import BadSurvey, HeadlightError, phrase
from model.features.survey import mattering
from model.features.survey.agreement import Compared
from model.features.survey.questions import Text, plain
from model.features.survey.relations import Relations
from model.features.survey.statistics import BINS, EXTREMES, Statistics
from model.features.survey.survey import BASELINES, About, Baseline, Survey
from model.features.what_if.surveyed_means import ABOUT, CONTEXTS
from model.measures.catalogue import MEASURES, units
from model.requests.edits import read_edits
from model.requests.validation import read as validated
from model.trace.types import Array

COMPARED = b"headlight.compared"
"""Where the metadata hold the comparison of heads, as safetensors."""

RELATIONS = b"headlight.relations"
"""Where the metadata hold the counts along dependencies, as safetensors; empty where none were counted."""

MOST_VALUES = 2**26
"""Numbers that a file of a survey may hold: about two hundred times those of 72 heads. Packed files can claim any number."""

NAMES = ("site", "measure", "unit")
"""Columns that are there for other readers: the metadata say which heads these are, and texts could unfold to any length."""

RANKED = ("strongest", "weakest", "strongest_values", "weakest_values")
"""Columns with the texts of the largest and the smallest numbers, and these numbers, EXTREMES of each."""


def write(survey: Survey, path: Path) -> None:
    """Writes a survey.

    Raises:
        OSError: it cannot be written there.
    """
    write_whole(_table(survey), path)


def write_whole(table: arrow.Table, path: Path) -> None:
    """Writes a table as Parquet; a reader of an older file of that name never sees a part of the new one.

    Raises:
        OSError: it cannot be written there. Nothing of it is left.
    """
    fresh = path.with_name(path.name + ".part")
    try:
        parquet.write_table(table, fresh, compression="zstd")
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def to_bytes(survey: Survey) -> bytes:
    """The bytes of the file that `write` writes."""
    file = BytesIO()
    parquet.write_table(_table(survey), file, compression="zstd")
    return file.getvalue()


def _table(survey: Survey) -> arrow.Table:
    statistics, names = survey.statistics, list(MEASURES)
    rows = [(site, head) for site, head in statistics.heads for _ in names]
    columns: dict[str, Any] = {
        "site": [site for site, _ in rows],
        "head": [head for _, head in rows],
        "measure": names * len(statistics.heads),
        "unit": units(names) * len(statistics.heads),
        "count": statistics.count.ravel(),
        "mean": statistics.mean.ravel(),
        "std": statistics.deviation.ravel(),
        "min": statistics.lowest.ravel(),
        "max": statistics.highest.ravel(),
        "squares": statistics.squares.ravel(),
        "histogram": list(statistics.bins.reshape(-1, BINS)),
    }
    columns |= {name: list(getattr(statistics, name).reshape(-1, EXTREMES)) for name in RANKED}
    columns |= {"sampled": list(np.moveaxis(statistics.sampled, 0, -1).reshape(len(rows), -1))}
    for variant, baseline in survey.baselines.items():
        columns |= {f"{variant}_count": baseline.count.ravel(), f"{variant}_mean": baseline.mean.ravel()}
    others = {
        "about": asdict(survey.about),
        "sites": dict(statistics.sites),
        "texts": statistics.texts,
        "tokens": statistics.tokens,
        "sample": statistics.sample.tolist(),
        "done": survey.done,
        "baselines": {name: baseline.done for name, baseline in survey.baselines.items()},
        "skipped": survey.skipped,
        "problems": dict(survey.problems),
        "quoted": {
            number: [text.source, text.target, text.links, *filter(None, [text.tree])] for number, text in survey.quoted.items()
        },
        "without": dict(survey.without),
        "compared": survey.compared_done,
        "copying": None if survey.copying is None else list(map(plain, survey.copying)),
        "matters": None if survey.matters is None else mattering.to_json(survey.matters),
        "share": list(survey.share),
    }
    table = arrow.table(columns)
    contexts = save({site: contexts_of_site.astype(np.float32) for site, contexts_of_site in survey.statistics.contexts.items()})
    pairs = save(survey.compared.arrays()) if survey.compared else b""
    counts = save(survey.relations.arrays()) if survey.relations else b""
    metadata = {COMPARED: pairs, RELATIONS: counts, ABOUT: json.dumps(others, ensure_ascii=False), CONTEXTS: contexts}
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **metadata})


def read(path: Path) -> Survey:
    """The survey in a file.

    Raises:
        BadSurvey: it holds none.
    """
    try:
        return from_bytes(path.read_bytes(), path.name)
    except OSError as error:
        raise BadSurvey(file=path.name, reason=error.strerror or "OSError") from error


def from_bytes(data: bytes, name: str) -> Survey:
    """The survey in the bytes of a file of this name, perhaps from a stranger.

    Raises:
        BadSurvey: they hold none.
    """
    try:
        file = parquet.ParquetFile(BytesIO(data))
        # Counted in the metadata, before anything is unpacked: a small file can unfold to any number of values.
        groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
        if sum(group.column(number).num_values for group in groups for number in range(group.num_columns)) > MOST_VALUES:
            raise ValueError("too many numbers")
        table = file.read(columns=[name for name in file.schema_arrow.names if name not in NAMES])
        metadata = file.schema_arrow.metadata or {}
        survey = _survey(table, json.loads(metadata[ABOUT]), load(metadata[CONTEXTS]))
        pairs = metadata[COMPARED]
        counts = metadata.get(RELATIONS)
        relations = Relations.of(load(counts)) if counts else None
        return replace(survey, compared=Compared.of(load(pairs)) if pairs else None, relations=relations)
    except (
        OSError,
        arrow.ArrowException,
        SafetensorError,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        HeadlightError,
    ) as error:
        raise BadSurvey(file=name, reason=phrase("it is not a survey that this version wrote")) from error


def _survey(table: arrow.Table, others: Mapping[str, Any], contexts: Mapping[str, Array]) -> Survey:
    sites = {str(site): int(heads) for site, heads in others["sites"].items()}
    shape = (sum(sites.values()), len(MEASURES))

    def flat(name: str) -> Any:
        return table[name].to_numpy(zero_copy_only=False).reshape(shape).copy()

    def deep(name: str, last: int) -> Any:
        return np.array(table[name].to_pylist()).reshape(*shape, last)

    sample = np.array(others["sample"], np.int64)
    names: Iterable[tuple[str, int]] = ((name, EXTREMES) for name in RANKED)
    statistics = Statistics(
        sites,
        int(others["texts"]),
        int(others["tokens"]),
        count=flat("count"),
        mean=flat("mean"),
        squares=flat("squares"),
        lowest=flat("min"),
        highest=flat("max"),
        bins=deep("histogram", BINS),
        sample=sample,
        sampled=np.moveaxis(deep("sampled", len(sample)), -1, 0).astype(np.float32),
        contexts={site: contexts_of_site.astype(np.float64) for site, contexts_of_site in contexts.items()},
        **{name: deep(name, size) for name, size in names},
    )
    baselines: dict[str, Baseline] = {
        name: Baseline(int(others["baselines"][name]), flat(f"{name}_count"), flat(f"{name}_mean"))
        for name in BASELINES
        if name in others["baselines"]
    }
    quoted = {
        int(number): validated(Text, dict(zip(("source", "target", "links", "tree"), parts, strict=False)), "survey.quoted")
        for number, parts in others["quoted"].items()
    }
    if not set(statistics.chosen) <= set(quoted):
        raise ValueError("texts are missing")
    about = validated(About, others["about"], "survey.about")
    read_edits("; ".join(about.edits))
    copying, matters = others.get("copying"), others.get("matters")
    return Survey(
        about,
        statistics,
        int(others["done"]),
        baselines,
        int(others["skipped"]),
        {int(number): error for number, error in others["problems"].items()},
        quoted,
        others["without"],
        compared_done=int(others["compared"]),
        share=(int(others.get("share", [1])[0]), int(others.get("share", [1])[-1])),
        copying=None if copying is None else np.array(copying, np.float64).reshape(len(statistics.heads)),
        matters=None if matters is None else mattering.from_json(matters, statistics.heads),
    )
