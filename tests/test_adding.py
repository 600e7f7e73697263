"""The table "Where to change and add what" of CONTRIBUTING.md is true: one of each is added where it says to a copy, and works.

Everything below an EDIT is all that was changed; the scripts then use what was added.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
TABLE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS = {
    "a URL parameter": "a URL parameter",
    "a recorded value": "what a run records",
    "a page": "a page of the core",
    "a layout": "how a file of another program is opened",
    "a kind of positional encoding": "how the network computes",
}
"""The row of the table that says where each of them is added."""


EDITS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "a URL parameter": (
        (
            "viz/url/view_state.py",
            "    def decoding(self)",
            '    zoom: int = parameter(7, "zoom", "x", values.whole(1, 9), of_a_run="zoom", reset_by="sentence", typed=True)\n\n',
        ),
    ),
    "a recorded value": (
        (
            "model/transformer/layers.py",
            (
                '        return run.see(f"stages/{name}/output", self.contract(inner))  # [batch, position, model]\n\n\n'
                "class GatedFeedForward"
            ),
            '        run.see(f"stages/{name}/doubled", 2 * inner)\n',
        ),
    ),
    "a page": (
        ("viz/main.py", "from viz.views import", "from viz.views import greeting\n"),
        (
            "viz/main.py",
            "        *(brought(page) for page in of_features if page.needs_run),",
            '        entry(drawing(greeting.show), "Hi", "greeting", "waving_hand"),\n',
        ),
    ),
    "a layout": (
        (
            "model/checkpoints/layouts/detect.py",
            "from model.checkpoints.layouts.own import",
            "from model.checkpoints.layouts.named import NAMED\n",
        ),
        ("model/checkpoints/layouts/detect.py", "    NATIVE_NAMES,\n", "    NAMED,\n"),
    ),
    "a kind of positional encoding": (
        (
            "model/transformer/positions.py",
            "def running(start",
            'class Steps(NoPositions):\n    """Counts."""\n\n    def rows(self, start: int, count: int) -> Tensor:\n'
            "        return torch.arange(start, start + count)[:, None].expand(-1, self.table.shape[1]).float()\n\n\n",
        ),
        ("model/requests/network.py", '"sinusoidal-column", "stored"', '"steps", '),
        ("model/transformer/build.py", "    NoPositions,\n", "    Steps,\n"),
        ("model/transformer/build.py", '    "none": NoPositions', '    "steps": Steps,\n'),
        ("viz/views/positions.py", '        "learned": _("Learned")', '        "steps": _("Counted"),\n'),
    ),
}
"""What is added: a file, the text in it before which it is put, and what."""

NEW_FILES = {
    "viz/views/greeting.py": "import streamlit as st\n\ndef show(page):\n    st.info(f'hello {page.info.name}')\n",
    "model/checkpoints/layouts/named.py": """
from model.checkpoints.layouts.base import Layout, requires
from model.requests.network import AttentionSpec, ModelSpec, StackSpec

_STACK = StackSpec(vocab=11, d_model=8, layers=2, attention=AttentionSpec(heads=2, head_dim=4), hidden=12, max_positions=16)
NAMED = Layout(
    name="named",
    title="Names that begin with ours_",
    match=requires("ours_output.weight"),
    rules=lambda shapes, told: {name: name.removeprefix("ours_") for name in shapes.of},
    ask=lambda shapes, told: (),
    read=lambda shapes, answers: ModelSpec(encoder=_STACK, decoder=_STACK),
)
""",
}

SCRIPTS = {
    "a URL parameter": """
from viz.features.compare import view as compare_view
from viz.url import links, view_state
view, problems = links.read({"zoom": "3", "against": "zoom=2"})
assert (view.zoom, problems) == (3, []), problems
assert links.write(view) == {"zoom": "3", "against": "zoom=2"}
assert compare_view.second_side(view).zoom == 2
assert "zoom to “10”. Allowed: a whole number from 1 to 9." in links.read({"zoom": "10"})[1][0]
assert view_state.new_sentence()["zoom"] == view_state.another_model()["zoom"] == 7
assert "zoom" in view_state.typed()
""",
    "a recorded value": """
from model.engine.api import Run
from model.engine.local import LocalEngine
from model.requests.request import RunRequest
from model.trace import serialization
save_checkpoint(folder / "tiny")
trace = LocalEngine(folder, torch.device("cpu")).ask(Run(RunRequest("tiny", "w4 w5", keep=("stages",))))
again = serialization.from_bytes(serialization.to_bytes(trace))
found = again.stages["encoder.0.0.feed_forward/doubled"]
assert (found == 2 * again.stages["encoder.0.0.feed_forward/hidden"]).all() and found.any()
""",
    "a page": """
from tests.app.visiting import Visitor
save_checkpoint(folder / "tiny")
visitor = Visitor("greeting", text="w4")
assert visitor.app.info[0].value == "hello tiny", visitor.app.info
""",
    "a layout": """
from model.checkpoints.layouts.loading import load
from model.inference.run import run
from model.requests.request import RunRequest
built = network(replace(VARIANTS["paper"], decoder=VARIANTS["paper"].encoder))
torch.save({f"ours_{name}": value for name, value in built.state_dict().items()}, folder / "x.pt")
loaded = load(folder / "x.pt", {}, torch.device("cpu"))
assert str(run(loaded, RunRequest("x", (2, 5, 3), (2, 4)), torch.device("cpu"), "cpu").at("decoder.0.1.cross").site)
assert all(torch.equal(value, loaded.network.state_dict()[name]) for name, value in built.state_dict().items())
""",
    "a kind of positional encoding": """
from tests.app.visiting import Visitor
stack = replace(VARIANTS["paper"].encoder, positions="steps")
save_checkpoint(folder / "tiny", replace(VARIANTS["paper"], encoder=stack))
from model.engine.api import Run
from model.engine.local import LocalEngine
from model.requests.request import RunRequest
trace = LocalEngine(folder, torch.device("cpu")).ask(Run(RunRequest("tiny", "w4 w5")))
assert trace.positions["encoder"][:, 0].tolist() == list(range(len(trace.tokens["source"])))
visitor = Visitor("positions", text="w4 w5", site="encoder.0.0.self")
assert any("Counted" in each.value for each in visitor.app.markdown)
""",
}
ALL_OF_THEM = """
import json, os, sys, traceback
from dataclasses import replace
from pathlib import Path
import torch
from tests.networks import VARIANTS, network, save_checkpoint
from viz.session.state import the_engine
said = {}
for what, script in json.loads(sys.argv[2]).items():
    folder = Path(sys.argv[1]) / what
    folder.mkdir()
    os.environ["HEADLIGHT_CHECKPOINTS"] = str(folder)
    the_engine.clear()
    try:
        exec(script, globals() | {"folder": folder})
        said[what] = ""
    except BaseException:
        said[what] = traceback.format_exc()
(Path(sys.argv[1]) / "said.json").write_text(json.dumps(said))
"""
"""One process runs them one after the other, each with its own folder of checkpoints and its own engine: imports take seconds."""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with one of each added."""
    to = tmp_path_factory.mktemp("copy")
    for folder in ("model", "viz", "tests"):
        shutil.copytree(ROOT / folder, to / folder, ignore=shutil.ignore_patterns("golden", "*.pt"))
    shutil.copy(ROOT / "headlight.py", to)
    for path, text in NEW_FILES.items():
        (to / path).write_text(text, encoding="utf-8")
    for path, before, added in (edit for edits in EDITS.values() for edit in edits):
        text = (to / path).read_text(encoding="utf-8")
        assert text.count(before) == 1, (path, before)
        (to / path).write_text(text.replace(before, added + before), encoding="utf-8")
    return to


@pytest.fixture(scope="module")
def said(copied: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """How each script ended: with nothing, or with an error."""
    folder = tmp_path_factory.mktemp("scripts")
    command = [sys.executable, "-c", ALL_OF_THEM, str(folder), json.dumps(SCRIPTS)]
    environment = os.environ | {"PYTHONPATH": str(copied)}
    done = subprocess.run(command, cwd=copied, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, str] = json.loads((folder / "said.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("what", SCRIPTS)
def test_what_is_added_where_the_table_says_works(said: dict[str, str], what: str) -> None:
    assert said[what] == ""


@pytest.mark.parametrize("what", EDITS)
def test_the_table_names_every_file_that_was_changed(what: str) -> None:
    row = next(line for line in TABLE.splitlines() if line.startswith(f"| {ROWS[what]} "))
    if what == "a recorded value":  # where it is computed: anywhere
        assert 'run.see("stages/' in row
        return
    for path in {path for path, _before, _added in EDITS[what]} | {
        path for path in NEW_FILES if path.startswith(_HOMES.get(what, "-"))
    }:
        assert any(
            f"`{part}`" in row for part in (path, f"{Path(path).parent}/", Path(path).name, f"{'/'.join(path.split('/')[:2])}/")
        ), path


_HOMES = {"a page": "viz/views/", "a layout": "model/checkpoints/layouts/"}
