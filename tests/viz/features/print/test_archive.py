"""The archive of a run: it holds the numbers of the run, opens again, and its notebook is one that notebooks accept."""

import ast
import io
import json
import zipfile
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import click
import numpy as np
import pandas as pd
import pytest

from model.__main__ import cli, main
from model.cli import figure as handed_over
from model.errors import UnknownHead
from model.features.circuit.logit_parts import logit_sum
from model.features.circuit.score_parts import score_sum
from model.features.circuit.sums import Why, Writes
from model.requests.request import RunRequest
from model.trace import serialization, trace_files
from model.trace.types import Site, Trace
from tests import opened
from tests.networks import save_checkpoint
from tests.viz.test_views_step import made as made_up
from viz import __main__ as viz_command
from viz.features.print import run_archive
from viz.features.print.run_archive import About, ArchivedCell

RUN = serialization.from_bytes(opened.GREEDY.read_bytes())
SITE = Site("decoder", 0, 1, "cross")


def files(trace: Trace, place: ArchivedCell, about: About = About(), **makers: object) -> dict[str, bytes]:
    return unpacked(run_archive.archive(trace, place, about, **makers))  # type: ignore[arg-type]


def unpacked(data: bytes) -> dict[str, bytes]:
    """The files of an archive, each without the folder that holds all of them."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        assert packed.testzip() is None
        return {name.partition("/")[2]: packed.read(name) for name in packed.namelist()}


@pytest.fixture(scope="module")
def whole() -> bytes:
    """An archive of RUN, which takes a second to make."""
    return run_archive.archive(RUN, ArchivedCell(SITE, 1), About(card="Trained by nobody."))


@pytest.fixture(scope="module")
def found(whole: bytes) -> dict[str, bytes]:
    return unpacked(whole)


def test_the_archive_holds_the_run_and_opens_again(whole: bytes, found: dict[str, bytes]) -> None:
    assert {"run.trace.safetensors", "figures/overview.html", "tables/heads.csv", "notebook.ipynb", "README.txt"} <= found.keys()
    assert found["run.trace.safetensors"] == serialization.to_bytes(RUN)
    again = run_archive.archive(RUN, ArchivedCell(SITE, 1), About(card="Trained by nobody."))
    assert again == whole, "equal runs give equal archives"
    assert serialization.to_bytes(trace_files.read_bytes(whole, "run.zip")) == serialization.to_bytes(RUN)


def test_its_tables_are_the_numbers_of_the_run(found: dict[str, bytes]) -> None:
    table = pd.read_csv(io.BytesIO(found[f"tables/{SITE}-head-2.csv"]), index_col=0)
    assert np.array_equal(table.to_numpy(np.float32), RUN.at(SITE).head(1))
    assert len([name for name in found if name.startswith("tables/")]) == 2 + sum(a.heads for a in RUN.attention.values())
    steps = pd.read_csv(io.BytesIO(found["tables/steps.csv"]))
    assert steps[steps.chosen].id.tolist() == [step.chosen.id for step in RUN.steps]


def test_its_link_asks_for_this_run_and_its_card_is_there(found: dict[str, bytes]) -> None:
    asked = parse_qs(urlsplit(found["link.txt"].decode().strip()).query)
    assert asked == {"model": ["tiny"], "text": ["w4 w5 w6"], "max": ["4"]}
    assert "Trained by nobody." in found["model.md"].decode()
    assert RUN.model["fingerprint"] in found["model.md"].decode()
    assert json.loads(found["request.json"]) == dict(RUN.request)
    typed = replace(RUN, request={**RUN.request, "source": [2, 4, 3]})
    assert "link.txt" not in files(typed, ArchivedCell(SITE), makers=()), "ids are not the text of a link"
    assert "link.txt" in files(typed, ArchivedCell(SITE), About(link="http://here/explore?model=tiny"), makers=())


def test_its_notebook_is_valid_and_names_no_token_in_its_code(found: dict[str, bytes]) -> None:
    hostile = "\"\"\"'''`<script>{gap}"
    strip = replace(RUN.tokens["source"], texts=(hostile,) * len(RUN.tokens["source"]))
    risky = replace(RUN, tokens={**RUN.tokens, "source": strip}, model={**RUN.model, "title": hostile})
    for made in (
        found,
        files(risky, ArchivedCell(SITE), makers=()),
        files(opened.program(), ArchivedCell(Site("program", 0, 1, "self"), 1), makers=()),
    ):
        notebook = json.loads(made["notebook.ipynb"])
        assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
        ids = [cell["id"] for cell in notebook["cells"]]
        assert len(set(ids)) == len(ids)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                assert cell.keys() == {"cell_type", "execution_count", "metadata", "outputs", "source", "id"}
                ast.parse(cell["source"])
                assert hostile not in cell["source"]
            else:
                assert "<" not in cell["source"]


@pytest.mark.slow
def test_its_notebook_reads_what_a_long_run_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second cell, run here: weights of a run whose file holds queries and keys instead."""
    data = opened.stored("long")
    long = serialization.from_bytes(data)
    site = next(iter(long.attention))
    code = json.loads(files(long, ArchivedCell(site), makers=())["notebook.ipynb"])["cells"][1]["source"]
    (tmp_path / "run.trace.safetensors").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(code, names)
    assert np.allclose(names["weights_of"](str(site)), np.asarray(long.at(site).weights), atol=1e-6)


def test_another_maker_adds_its_figures() -> None:
    def maker(trace: Trace, place: ArchivedCell) -> list[tuple[str, bytes]]:
        return [(f"{place.site}.svg", b"<svg/>")]

    made = files(RUN, ArchivedCell(SITE), makers=(maker,))
    assert made[f"figures/{SITE}.svg"] == b"<svg/>"
    assert "figures/overview.html" not in made
    with pytest.raises(UnknownHead):
        run_archive.archive(RUN, ArchivedCell(SITE, 9))


def test_figures_for_print_are_in_it_and_large_maps_are_images(found: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"figures/head.svg", "figures/lines.svg", "figures/atlas.svg", "figures/mask.svg"} <= found.keys()
    assert all(ElementTree.fromstring(data).tag.endswith("svg") for name, data in found.items() if name.endswith(".svg"))
    assert b"<image" not in found["figures/head.svg"]
    monkeypatch.setattr(run_archive, "MOST_SHAPES", 3)
    assert b"<image" in dict(run_archive.printed(RUN, ArchivedCell(SITE)))["head.svg"]


@pytest.mark.slow
def test_the_command_writes_the_archive_of_a_trace_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], whole: bytes) -> None:
    card, out = tmp_path / "CARD.md", tmp_path / "run.zip"
    card.write_text("Trained by nobody.", encoding="utf-8")
    told = ["archive", str(opened.GREEDY), f"--out={out}", f"--site={SITE}", "--head=1", f"--card={card}"]
    assert viz_command.main(told) == 0, capsys.readouterr().err
    assert out.read_bytes() == whole
    assert viz_command.main([*told, "--figures=pdf", "--figures=png"]) == 0
    with zipfile.ZipFile(out) as packed:
        kinds = {name.rpartition(".")[2]: packed.read(name)[:4] for name in packed.namelist() if "/figures/" in name}
    assert kinds == {"html": b"<!do", "pdf": b"%PDF", "png": b"\x89PNG"}
    assert viz_command.main(["archive", str(opened.GREEDY), f"--out={out}", "--head=9"]) == 1
    assert "There is no head 9" in capsys.readouterr().err


def test_run_hands_its_trace_and_its_card_to_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bytes) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "CARD.md").write_text("Trained by nobody.", encoding="utf-8")
    with click.Context(cli):
        handed_over.save(RUN, Path("out.zip"), str(SITE), 1)
    assert (tmp_path / "out.zip").read_bytes() == whole


def test_sums_are_in_it_and_its_notebook_draws_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, trace = made_up("paper")
    asked = RunRequest.from_json(trace.request)
    why = score_sum(found.network, trace, Why(asked, "decoder.0.1.cross", 1, 1, 2))
    writes = logit_sum(found.network, trace, Writes(asked, 1, "runner-up"))
    summed = replace(trace, sums={"why": why.to_json(), "writes": writes.to_json()})
    packed = files(summed, ArchivedCell(SITE, 1), makers=())
    assert json.loads(packed["sums/why.json"]) == why.to_json()
    assert json.loads(packed["sums/writes.json"]) == writes.to_json()
    assert "sums/" in packed["README.txt"].decode()
    (tmp_path / "sums").mkdir()
    for name in ("run.trace.safetensors", "sums/why.json", "sums/writes.json"):
        (tmp_path / name).write_bytes(packed[name])
    monkeypatch.chdir(tmp_path)
    drawing = MagicMock()
    drawing.subplots.return_value = MagicMock(), MagicMock()
    cells = [cell["source"] for cell in json.loads(packed["notebook.ipynb"])["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {"plt": drawing, "np": np, "json": json}
    out = io.StringIO()
    with redirect_stdout(out):
        for source in cells[-2:]:
            exec(source, names)
    assert names["matrix"].sum() == pytest.approx(why.recorded, abs=1e-5)
    assert names["values"].sum() == pytest.approx(writes.recorded, abs=1e-5)
    assert f"recorded {why.recorded}" in out.getvalue()
    none = files(trace, ArchivedCell(SITE, 1), makers=())
    assert not [name for name in none if name.startswith("sums/")]
    assert "sums/" not in none["README.txt"].decode()


def test_a_trace_file_holds_its_sums_and_the_command_adds_those_that_were_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, trace = made_up("paper")
    asked = RunRequest.from_json(trace.request)
    sums = {
        "why": score_sum(found.network, trace, Why(asked, "decoder.0.1.cross", 1, 1, 2)).to_json(),
        "writes": logit_sum(found.network, trace, Writes(asked, 1, "runner-up")).to_json(),
    }
    summed = replace(trace, sums=sums)
    again = serialization.from_bytes(serialization.to_bytes(summed))
    assert json.dumps(dict(again.sums), sort_keys=True) == json.dumps(sums, sort_keys=True)
    (tmp_path / "run.trace.safetensors").write_bytes(serialization.to_bytes(trace))
    for name, own in sums.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(own), encoding="utf-8")
    given = [f"--sum={tmp_path / name}.json" for name in sums]
    told = ["archive", str(tmp_path / "run.trace.safetensors"), f"--out={tmp_path / 'run.zip'}", *given]
    assert viz_command.main(told) == 0, capsys.readouterr().err
    packed = unpacked((tmp_path / "run.zip").read_bytes())
    assert {name: json.loads(packed[f"sums/{name}.json"]) for name in sums} == json.loads(json.dumps(sums))
    assert trace_files.read_bytes((tmp_path / "run.zip").read_bytes(), "run.zip").sums.keys() == sums.keys()
    (tmp_path / "why.json").write_text('{"matrix": [[1, 2], [3]]}', encoding="utf-8")
    assert viz_command.main(told) == 1
    assert "what `why --json` or `writes --json` printed" in capsys.readouterr().err


@pytest.mark.slow
def test_run_puts_the_sums_of_its_run_into_the_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_checkpoint(tmp_path / "tiny")
    out = tmp_path / "run.zip"
    model, source = str(tmp_path / "tiny"), "w4 w5 w6"
    assert main(["run", model, "--source", source, "--max-length", "4", "--head=1", f"--archive={out}"]) == 0
    packed = unpacked(out.read_bytes())
    opened_again = trace_files.read_bytes(out.read_bytes(), "run.zip")
    why, writes = (json.loads(packed[f"sums/{name}.json"]) for name in ("why", "writes"))
    weights = opened_again.at(why["site"]).head(1)
    assert (why["head"], why["query"], why["key"]) == (1, len(weights) - 1, int(weights[-1].argmax()))
    assert why["agrees"]
    assert writes["agrees"]
    assert not opened_again.stages, "the run itself keeps what was asked for"
    capsys.readouterr()
    cell = [f"--{name}={why[name]}" for name in ("site", "head", "query", "key")]
    assert main(["why", model, "--source", source, "--max-length", "4", *cell, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == why
