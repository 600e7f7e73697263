"""One word, one number: a measure of a head of a run is the same wherever it is shown, and computed in one place."""

import json
import re
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from model import __main__ as program
from model.engine.api import Engine, Run
from model.features.survey.questions import MeasureTexts, Text
from model.measures.catalogue import MEASURES
from model.requests.request import RunRequest
from model.trace.types import Site, Trace
from tests.plain_measures import by_loop
from viz.canvas.wire import overviews
from viz.canvas.wire.transport import unpack
from viz.claims.runs import StepRuns
from viz.export import tables
from viz.features.lectures.script import parser
from viz.features.lectures.script.claim_values import number_of
from viz.features.lectures.script.claims import OF_RUNS, claim
from viz.features.training import metrics as training_metrics
from viz.features.training.view import MEASURES as DRAWN
from viz.labels import measures
from viz.metrics import heads
from viz.metrics.teacher_forcing import fed

MODEL, TEXT = "reverse-digits", "3141592653"
LECTURE = f"---\ntitle: T\nlanguage: en\nminutes: 5\nmodels: {MODEL}\n---\nview: /explore?model={MODEL}&text={TEXT}\n"
ROOT = Path(__file__).parents[2]

Numbers = Mapping[tuple[str, int, str], float]
"""By site, head and measure."""


def of_loops(trace: Trace) -> Numbers:
    return {
        (str(site), head, name): by_loop(name, trace, attention, head) if MEASURES[name].exists_in(site.kind) else np.nan
        for site, attention in trace.attention.items()
        for head in range(attention.heads)
        for name in MEASURES
        if name not in ("norm", "alignment_error")
    }


def of_explore(trace: Trace) -> Numbers:
    table = heads.all_heads(trace)
    return {(site, head, name): table.loc[(site, head), name] for site, head in table.index for name in heads.SHOWN}


def of_csv(trace: Trace) -> Numbers:
    table, places = pd.read_csv(BytesIO(tables.csv(heads.all_heads(trace)))), heads.all_heads(trace).index
    return {(site, head, name): table[name][row] for row, (site, head) in enumerate(places) for name in heads.SHOWN}


def of_overview(trace: Trace) -> Numbers:
    header, blobs = unpack(overviews.part(trace).data)
    places = [(row["site"], head) for group in header["groups"] for row in group["sites"] for head in range(len(row["names"]))]
    return {
        (site, head, name): blobs["readings"][row, column]
        for column, (site, head) in enumerate(places)
        for row, name in enumerate(heads.READINGS)
    }


def of_training(trace: Trace) -> Numbers:
    course = training_metrics.course([training_metrics.Frame(0, trace, None)], fed(trace).ids)
    return {
        (str(site), head, name): course.values[name][0, column]
        for column, (site, head) in enumerate(course.heads)
        for name in DRAWN
        if name in MEASURES
    }


def of_survey(engine: Engine) -> Numbers:
    answer = engine.ask(MeasureTexts(MODEL, texts=(Text(TEXT),)))
    places = [(site, head) for site, count in answer.sites.items() for head in range(count)]
    return {
        (*place, name): answer.values[0, row, column]
        for row, place in enumerate(places)
        for column, name in enumerate(MEASURES)
        if name not in ("norm", "alignment_error")
    }


def of_command(folder: Path) -> Numbers:
    (folder / "one.txt").write_text(f"{TEXT}\n", encoding="utf-8")
    done = CliRunner().invoke(program.cli, ["survey", MODEL, "--texts", str(folder / "one.txt"), "--json"])
    assert done.exit_code == 0, done.exception
    heads_ = json.loads(done.stdout)["heads"]
    return {
        (head["site"], head["head"], name): numbers["mean"]
        for head in heads_
        for name, numbers in head["measures"].items()
        if name != "norm"
    }


def of_claims(engine: Engine, trace: Trace) -> Numbers:
    runs = StepRuns(engine, parser.read(LECTURE, "t.en").steps[0])
    asked = [(str(site), 0, name) for site in trace.attention for name in OF_RUNS if name in MEASURES]
    known = [(site, head, name) for site, head, name in asked if MEASURES[name].exists_in(Site.parse(site).kind)]
    claims = {key: claim(f"measure {key[2]} {key[0]} head {key[1]} > 0", 1) for key in known if not np.isnan(of_loops(trace)[key])}
    return {key: number_of(runs, read.subject, read.scope) for key, read in claims.items()}


@pytest.mark.slow
def test_a_head_has_the_same_numbers_on_every_page_in_files_in_claims_and_on_the_command_line(
    engine: Engine, tmp_path: Path
) -> None:
    trace = engine.ask(Run(RunRequest(MODEL, TEXT)))
    plain = of_loops(trace)
    shown = {
        "Explore": of_explore(trace),
        "CSV": of_csv(trace),
        "overview": of_overview(trace),
        "Training": of_training(trace),
        "Survey": of_survey(engine),
        "command line": of_command(tmp_path),
        "claims": of_claims(engine, trace),
    }
    for page, numbers in shown.items():
        assert len(numbers) >= len(trace.attention), page
        for key, number in numbers.items():
            assert number == pytest.approx(plain[key], abs=1e-5, nan_ok=True), (page, *key)
    assert all(("decoder.0.0.cross", 0, "entropy") in numbers for page, numbers in shown.items() if page != "overview")


COMPUTED = {
    "entropy": (r"\* *np\.log\(|\bweights \* logs\b", "-(weights * np.log(weights)).sum()"),
    "distance": (r"np\.abs\(row - key\)|np\.abs\(site\.offset", "np.abs(row - key)"),
    "previous": (r"\[rows, rows - 1\]|np\.diagonal\(\w+, -?1", "weights[rows, rows - 1].mean()"),
    "first": (r"weights\[(?:\.\.\.|:, :), 0\]|known\[\.\.\., 0\]|\[:, 0\]\S*\.mean\(", "by_row[0] = weights[:, :, 0]"),
    "special": (r"weights @ special|\* special\)\.sum", "weights @ special"),
    "largest": (r"weights\.max\(axis=-1\)\.mean|largest\.mean\(axis=-1\)", "weights.max(axis=-1).mean()"),
    "near_diagonal": (r"distance <= 1|<= 1, weights", "np.where(distance <= 1, weights, 0)"),
    "coverage": (r"np\.minimum\(weights\.sum\(axis=1", "np.minimum(weights.sum(axis=1), 1.0)"),
    "similarity": (r"np\.minimum\((one|weights|attention)\b[^)]*weights", "np.minimum(one.weights, other.weights).sum(axis=-1)"),
}
"""How a measure looks where somebody computes it anew, and an example."""


def test_a_measure_is_computed_in_one_place() -> None:
    sources = {path: path.read_text(encoding="utf-8") for top in ("model", "viz") for path in (ROOT / top).rglob("*.py")}
    outside = {path: text for path, text in sources.items() if path.parent != ROOT / "model" / "measures"}
    assert len(outside) > 300
    for name, (pattern, example) in COMPUTED.items():
        assert re.search(pattern, example), name
        again = [f"{path.relative_to(ROOT)}: {found[0]}" for path, text in outside.items() for found in re.finditer(pattern, text)]
        assert not again, f"take the measure “{name}” from model.measures: {again}"


def test_a_measure_has_one_title_and_no_two_have_the_same() -> None:
    titles = measures.of_training() | measures.of_heads()
    assert set(MEASURES) < set(titles)
    assert len(set(titles.values())) == len(titles)
    words = {path: path.read_text(encoding="utf-8") for path in (ROOT / "viz").rglob("*.py")}
    for name, title in titles.items():
        places = [str(path.relative_to(ROOT)) for path, text in words.items() if f'_("{title}")' in text]
        assert places == ["viz/labels/measures.py"], (name, places)


ELSEWHERE = {
    "weight moved": (r"differences\.sum\(axis=-1\) / 2", "model/measures/rows.py"),
    "divergence of rows": (r"middle = \(np\.asarray\(weights", "model/measures/rows.py"),
    "divergence of predictions": (r"p \* \(one - other\)", "viz/features/what_if/edit_effect.py"),
    "Shapley value": (r"factorial\(", "model/features/what_if/heads.py"),
}
"""How other quantities of a head or of an output look where they are computed, and where that is."""


def test_other_quantities_are_computed_in_one_place() -> None:
    sources = [path for top in ("model", "viz") for path in (ROOT / top).rglob("*.py")]
    for name, (pattern, place) in ELSEWHERE.items():
        places = [str(path.relative_to(ROOT)) for path in sources if re.search(pattern, path.read_text(encoding="utf-8"))]
        assert places == [place], name


BARE = {
    "change": set(),
    "share": {"features/circuit"},
    "effect": {"features/circuit"},
    "divergence": {"features/survey", "views/explore"},
    "loss": set(),
    "alignment": set(),
    "length": set(),
}
"""Words that several quantities could have, and the rooms in which one of them alone has it as its title; elsewhere a title says of
what it is."""


def test_a_bare_word_is_the_title_of_one_quantity() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "viz").rglob("*.py")}
    for word, rooms in BARE.items():
        titles = {
            (title, path.parent)
            for path, text in sources.items()
            for title in re.findall(rf'_\("({word}(?: \([a-z]+\))?)"\)', text)
        }
        assert len({title for title, _room in titles}) <= 1, f"“{word}” has several units"
        assert {room.relative_to(ROOT / "viz").as_posix() for _title, room in titles} == rooms, f"“{word}”: say of what it is"
