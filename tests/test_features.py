"""Features: each can be taken out, and a made-up one is added by its folder and its name alone."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from model.features import FEATURES as OF_MODEL
from tests.app.conftest import SPEC
from tests.networks import save_checkpoint
from viz.features import FEATURES as OF_VIZ

pytestmark = [pytest.mark.slow, pytest.mark.thorough]
ROOT = Path(__file__).parents[1]
LINKED = ("tests", "checkpoints", "lectures", "docs", "headlight.py", "app.py", ".streamlit")
LISTS = {"model": OF_MODEL, "viz": OF_VIZ}
"""The features by the folder of their list."""

FEATURES = tuple(dict.fromkeys((*OF_MODEL, *OF_VIZ)))
"""All of them: one feature has a folder in either, or in both."""

GREETING = {
    "model": {
        "questions.py": """
from dataclasses import dataclass

from model.requests.questions import ModelQuestion


@dataclass(frozen=True)
class Greet(ModelQuestion[str]):
    \"\"\"A greeting.\"\"\"
""",
        "answers.py": """
from model.features.greeting.questions import Greet

ANSWERS = {Greet: lambda engine, question: f"hello {engine.describe(question.model).name}"}
""",
        "feature.py": """
from model.feature import Feature
from model.features.greeting.questions import Greet
from model.requests.endpoints import JSON, as_json, endpoint

FEATURE = Feature(
    endpoints=(endpoint(Greet, JSON, "A greeting.", *as_json(str, "greeting")),),
    answers="model.features.greeting.answers",
)
""",
    },
    "viz": {
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
    },
}
"""The files of a feature that brings a page, a part of Explore, a claim, a URL parameter, the help of a panel,
and a question with its answer, also over HTTP."""

TAKEN_OUT = """
from importlib import import_module
from tests.app.visiting import Visitor

for module in modules:
    import_module(module)
visitor = Visitor("explore", text="w4 w5")
assert visitor.problems == [], visitor.problems
chips = json.dumps(visitor.scene("strips"))
assert "w4" in chips and "w5" in chips

from click.testing import CliRunner
from model.__main__ import cli

ran = CliRunner().invoke(cli, ["run", f"{os.environ['HEADLIGHT_CHECKPOINTS']}/tiny", "--source", "w4 w5"])
assert ran.exit_code == 0, ran.output
assert CliRunner().invoke(cli, ["--help"]).exit_code == 0
"""

ADDED = """
from tests.app.visiting import Visitor
from viz.features.lectures.presenter.pictures import picture
from viz.features.lectures.script import check, parser
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
from model.features.greeting.questions import Greet
from model.features.serving.http.server import application
from model.features.serving.http.client import RemoteEngine
from model.engine.guards.access import AccessLimits
from tests.hosts import listening

assert the_engine().ask(Greet("tiny")) == "hello tiny"
with listening(application(the_engine(), AccessLimits())) as port:
    assert RemoteEngine(f"http://127.0.0.1:{port}").ask(Greet("tiny")) == "hello tiny"
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
        exec(script, {"json": json, "os": os, "modules": modules})
        said = ""
    except BaseException:
        said = traceback.format_exc()
    with open(os.path.join(folder, "said.txt"), "w") as file:
        file.write(said)
    os._exit(0)
"""
"""Tries each copy in a process of its own, which has loaded the libraries already."""


LEFT_OUT = ("main", "__main__", "checkpoint_texts", "cluster", "replicas", "worker")
"""Modules that are programs, or need more than the app does."""


def needed_by(feature: str) -> set[str]:
    """All features that one needs, as the lists say."""
    needs = {need for listed in LISTS.values() for need in listed.get(feature, ())}
    before = set[str]()
    while needs != before:
        before, needs = needs, needs | {need for name in needs for listed in LISTS.values() for need in listed.get(name, ())}
    return needs


def copied(folder: Path) -> Path:
    """A copy of the project."""
    folder.mkdir()
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    for top in LISTS:
        shutil.copytree(ROOT / top, folder / top, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def without(folder: Path, name: str) -> None:
    """Takes a feature out of a copy: its folders and its line in the lists. Those that need it are left out of what runs."""
    for top in LISTS:
        shutil.rmtree(folder / top / "features" / name, ignore_errors=True)
        init = folder / top / "features" / "__init__.py"
        init.write_text(re.sub(rf'^    "{name}": .*\n', "", init.read_text(encoding="utf-8"), flags=re.MULTILINE), "utf-8")


def with_greeting(folder: Path) -> None:
    """Adds the made-up feature to a copy: its files, and its line in the lists."""
    for top, files in GREETING.items():
        (folder / top / "features" / "greeting").mkdir()
        for file, text in files.items():
            (folder / top / "features" / "greeting" / file).write_text(text, encoding="utf-8")
        init = folder / top / "features" / "__init__.py"
        init.write_text(init.read_text(encoding="utf-8").replace("\n}\n", '\n    "greeting": (),\n}\n'), "utf-8")


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """How the script of each copy ended, by the feature that was taken out or added: with nothing, or with an error."""
    place = tmp_path_factory.mktemp("copies")
    (place / "shelf").mkdir()
    save_checkpoint(place / "shelf" / "tiny", SPEC)
    tried: dict[str, tuple[str, list[str], str]] = {}
    for name in FEATURES:
        without(copy := copied(place / name), name)
        files = [path.relative_to(copy).with_suffix("") for top in LISTS for path in (copy / top).rglob("*.py")]
        gone = {name} | {other for listed in LISTS.values() for other in listed if name in needed_by(other)}
        kept = [path for path in files if path.name not in LEFT_OUT and gone.isdisjoint(path.parts[2:3])]
        modules = [".".join(path.parts).removesuffix(".__init__") for path in kept]
        tried[name] = (str(copy), ["app", *sorted(modules)], TAKEN_OUT)
    with_greeting(copy := copied(place / "greeting"))
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
