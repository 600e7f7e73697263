"""Features: each can be taken out, and a made-up one is added by its folder and its name alone."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.conftest import SPEC
from tests.networks import save_checkpoint
from viz.features import FEATURES

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
LINKED = ("model", "tests", "checkpoints", "lectures", "docs", "headlight.py", "app.py", ".streamlit")

GREETING = {
    "view.py": """
from dataclasses import dataclass

from viz.url import parsers as values
from viz.url.parsers import parameter


@dataclass(frozen=True, kw_only=True)
class GreetingView:
    times: int = parameter(1, "times", "how often somebody is greeted", values.whole(1, 9), reset_by="sentence")
""",
    "page.py": """
import streamlit as st

from viz.features.greeting.view import GreetingView
from viz.panels import Panel, Text, TextLine


def words(page, view):
    return " ".join(["hello"] * view.of(GreetingView).times + [page.info.name])


def show(page):
    st.info(words(page, page.view))


def panels(page, view):
    return [Panel("greeting", "Greeting", Text([TextLine(words(page, view))]))]


def part(page):
    st.success(words(page, page.view))
""",
    "feature.py": """
from viz.claims.kinds import ClaimKind, alone
from viz.feature import Feature, FeaturePage, FoldedPart
from viz.features.greeting import page
from viz.features.greeting.view import GreetingView

FEATURE = Feature(
    pages=(FeaturePage(path="greeting", title="Greeting", icon="waving_hand", show=page.show, panels=page.panels),),
    folded=(FoldedPart(name="welcome", title="Welcome", icon="waving_hand", draw=page.part),),
    claims={"greetings": ClaimKind(alone, lambda runs, subject, scope: runs.view.of(GreetingView).times)},
    parameters=GreetingView,
    help={"greeting": ("Greeting", "It greets. It greets again.", "glossary.md")},
)
""",
}
"""The files of a feature that brings a page, a part of Explore, a claim, a URL parameter, and the help of a panel."""

TAKEN_OUT = """
from importlib import import_module
from tests.app.visiting import Visitor

for module in modules:
    import_module(module)
visitor = Visitor("explore", text="w4 w5")
assert visitor.problems == [], visitor.problems
chips = json.dumps(visitor.scene("strips"))
assert "w4" in chips and "w5" in chips
"""

ADDED = """
from tests.app.visiting import Visitor
from viz.lectures.presenter.pictures import picture
from viz.lectures.script import check, parser
from viz.session.state import the_engine
from viz.widgets import panel_help

visitor = Visitor("greeting", text="w4", times="3")
assert [info.value for info in visitor.app.info] == ["hello hello hello tiny"]
assert visitor.url == {"model": "tiny", "text": "w4", "times": "3"}
visitor = Visitor("explore", text="w4", times="3", open="welcome")
assert (visitor.problems, visitor.url["open"]) == ([], "welcome")
assert "hello hello hello tiny" in [each.value for each in visitor.app.success]
visitor.type("text", "w5")
assert "times" not in visitor.url
assert "It greets again." in panel_help.html("greeting")
front = "---\\ntitle: T\\nlanguage: en\\nminutes: 5\\nmodels: tiny\\n---\\n"
lecture = front + "view: /greeting?text=w4&times=2\\nexpect: greetings = {}\\n"
right, wrong = (parser.read(lecture.format(times), "t.en").steps[0] for times in (2, 3))
assert check.check_step(right, the_engine()) == []
assert len(check.check_step(wrong, the_engine())) == 1
shown = picture(the_engine(), right.page, right.view)
assert [panel.heading for panel in shown.panels] == ["Greeting"], shown.panels
assert b"hello hello tiny" in b"".join(shown.scenes.values())
"""

EACH_IN_A_CHILD = """
import json, os, sys, traceback
import pandas, plotly.graph_objects, pytest, streamlit.testing.v1, torch

for name, (folder, modules, script) in json.load(sys.stdin).items():
    if os.fork():
        os.wait()
        continue
    os.chdir(folder)
    sys.path.insert(0, folder)
    try:
        exec(script, {"json": json, "modules": modules})
        said = ""
    except BaseException:
        said = traceback.format_exc()
    with open(os.path.join(folder, "said.txt"), "w") as file:
        file.write(said)
    os._exit(0)
"""
"""Tries each copy in a process of its own, which has loaded the libraries already."""


def imported_by(feature: str) -> set[str]:
    """The features that a feature imports."""
    names = set[str]()
    for path in (ROOT / "viz" / "features" / feature).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [f"{modules[0]}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names |= {other for other in FEATURES for module in modules if f"{module}.".startswith(f"viz.features.{other}.")}
    return names - {feature}


def going_with(feature: str) -> list[str]:
    """The feature, and those that import it: they go together."""
    gone = [feature]
    for later in FEATURES[FEATURES.index(feature) + 1 :]:
        gone += [later] if imported_by(later) & set(gone) else []
    return gone


def copied(folder: Path, names: tuple[str, ...]) -> Path:
    """A copy of the project whose list of features has these names."""
    folder.mkdir()
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "viz", folder / "viz", ignore=shutil.ignore_patterns("__pycache__"))
    init = folder / "viz" / "features" / "__init__.py"
    text = init.read_text(encoding="utf-8")
    before = next(line for line in text.splitlines() if line.startswith("FEATURES = "))
    init.write_text(text.replace(before, f"FEATURES = {names!r}"), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """How the script of each copy ended, by the feature that was taken out or added: with nothing, or with an error."""
    place = tmp_path_factory.mktemp("copies")
    (place / "shelf").mkdir()
    save_checkpoint(place / "shelf" / "tiny", SPEC)
    tried: dict[str, tuple[str, list[str], str]] = {}
    for name in FEATURES:
        gone = going_with(name)
        copy = copied(place / name, tuple(kept for kept in FEATURES if kept not in gone))
        for each in gone:
            shutil.rmtree(copy / "viz" / "features" / each)
        paths = (path.relative_to(copy).with_suffix("") for path in (copy / "viz").rglob("*.py") if path.name != "main.py")
        modules = [
            ".".join(path.parts).removesuffix(".__init__") for path in paths if path.name not in ("__main__", "checkpoint_texts")
        ]
        tried[name] = (str(copy), ["app", *sorted(modules)], TAKEN_OUT)
    copy = copied(place / "greeting", (*FEATURES, "greeting"))
    (copy / "viz" / "features" / "greeting").mkdir()
    for file, text in GREETING.items():
        (copy / "viz" / "features" / "greeting" / file).write_text(text, encoding="utf-8")
    tried["greeting"] = (str(copy), [], ADDED)
    environment = os.environ | {"HEADLIGHT_CHECKPOINTS": str(place / "shelf"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-c", EACH_IN_A_CHILD]
    subprocess.run(command, input=json.dumps(tried), env=environment, cwd=place, text=True, check=True)
    return {name: (place / name / "said.txt").read_text(encoding="utf-8") for name in tried}


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_is_taken_out_by_its_folder_and_its_name(said: dict[str, str], name: str) -> None:
    assert said[name] == ""


def test_a_feature_is_added_by_its_folder_and_its_name(said: dict[str, str]) -> None:
    assert said["greeting"] == ""
