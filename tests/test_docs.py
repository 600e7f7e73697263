"""The documentation is true: whatever people can name is named in it, and what it names is there."""

import io
import json
import re
import tomllib
from contextlib import redirect_stdout
from dataclasses import fields
from pathlib import Path
from urllib.parse import parse_qsl

import click
import pytest

from model import errors
from model.__main__ import cli
from model.checkpoints.loader import locate
from model.errors import HeadlightError
from model.requests.request import KEEP, RunRequest
from model.requests.snapshots import at_step
from model.trace import serialization
from model.trace.beam_tree import Node
from model.trace.steps import Candidate, Step
from model.trace.types import TENSORS_OF_ATTENTION, Attention, Site, Tokens, Trace
from tests.traces import translation
from viz.features.training.view import TrainingView
from viz.url import links

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), *sorted(ROOT.glob("*.md")), ROOT / "tests" / "README.md"]


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    """What stands between the heading `## title` and the next."""
    return re.split(r"^## ", text.split(f"\n## {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> list[list[str]]:
    """The cells of a page's tables, headings left out."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not set(line) <= set("|-: ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("name", cli.commands)
def test_the_command_line_is_documented_option_by_option(name: str) -> None:
    text, of_a_run = section(page("cli.md"), name), section(page("cli.md"), "run")
    if "| the options of `run` from `--source` to `--set` |" in text:
        text += of_a_run[: of_a_run.index("| `--keep NAMES`")]
    documented = {option for row in rows(text) for option in re.findall(r"(?:^|, )`(--[a-z-]+)", row[0])}
    assert documented == {option for parameter in cli.commands[name].params for option in parameter.opts if option.startswith("--")}


def test_the_command_lines_page_describes_no_command_that_is_not_there() -> None:
    described = set(re.findall(r"^## (.+)$", page("cli.md"), flags=re.MULTILINE))
    assert described | {"archive", "figure"} == set(cli.list_commands(click.Context(cli))), "these two: figures.md and open.md"


def test_the_command_lines_page_names_everything_that_can_be_kept() -> None:
    text = section(page("cli.md"), "run")
    assert all(f"`{kept}`" in text for kept in KEEP)


DESCRIBED = [Trace, Attention, Tokens, Step, Candidate, Node, Site, RunRequest]


@pytest.mark.parametrize("kind", DESCRIBED, ids=lambda kind: kind.__name__)
def test_the_traces_page_names_every_field(kind: type) -> None:
    text = page("trace.md")
    of_strips = {"name", "ids", "site"}  # an entry's own key, and ids/STRIP
    for field in fields(kind):
        assert f"`{field.name}`" in text or f"/{field.name}`" in text or field.name in of_strips, field.name


def test_the_traces_page_lists_the_tensors_of_a_real_file() -> None:
    listed = {name for row in rows(section(page("trace.md"), "Tensors in the file")) for name in re.findall(r"`([^`]+)`", row[0])}
    assert {f"attention/SITE/{name}" for name in TENSORS_OF_ATTENTION} <= listed
    patterns = [re.sub(r"SITE|STACK\.PASS\.LAYER|STACK", r"[^/]+", name) for name in listed]
    for name in stored_names(translation()):
        assert any(re.fullmatch(pattern, name) for pattern in patterns), name


def stored_names(trace: Trace) -> list[str]:
    data = serialization.to_bytes(trace)
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return [name for name in header if name != "__metadata__"]


def test_the_example_of_the_traces_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = re.search(r"```python\n(.*?)```", page("trace.md"), flags=re.DOTALL)
    assert example
    (tmp_path / "hund.trace.safetensors").write_bytes(serialization.to_bytes(translation()))
    monkeypatch.chdir(tmp_path)
    with redirect_stdout(io.StringIO()) as said:
        exec(example[1], {})
    lines = said.getvalue().splitlines()
    assert lines[0].startswith("<sos> → two: attends most to ")
    assert len(lines) == len(translation().steps)


def test_the_errors_page_names_every_error_and_no_other() -> None:
    classes = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, HeadlightError)}
    assert {row[0].strip("`") for row in rows(page("errors.md"))[1:]} == classes


def test_every_dependency_is_pinned_and_has_its_reason() -> None:
    text = page("dependencies.md") + page("decisions.md")
    for name in ("requirements.txt", "requirements-web.txt", "requirements-cluster.txt", "requirements-dev.txt"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "-r ")):
                package = re.fullmatch(r"([a-z0-9-]+)(?:\[[a-z]+\])?==[0-9.]+(?:; [a-z_]+ != \"[a-z0-9]+\")? +# .+", line)
                assert package, f"{name}: {line}"
                assert f"`{package[1]}`" in text, package[1]


def test_a_web_process_has_the_versions_of_the_app() -> None:
    pinned = [(ROOT / name).read_text(encoding="utf-8").splitlines()[1:] for name in ("requirements-web.txt", "requirements.txt")]
    assert set(pinned[0]) < set(pinned[1])
    assert not any(line.startswith("torch") for line in pinned[0])


def test_torch_is_pinned_without_a_build() -> None:
    assert re.search(r"^torch==2\.13\.0 ", (ROOT / "requirements.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_environment_variables_are_documented() -> None:
    sources = [*(ROOT / "model").rglob("*.py"), *(ROOT / "viz").rglob("*.py")]
    names = {name for path in sources for name in re.findall(r"HEADLIGHT_[A-Z]+", path.read_text(encoding="utf-8"))}
    told = (ROOT / "README.md").read_text(encoding="utf-8") + page("cli.md")
    assert names
    assert all(f"`{name}`" in told for name in names), names


def test_the_readme_has_the_two_lines_that_are_all_the_set_up() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "\npython3 -m venv .venv && .venv/bin/pip install -r requirements.txt && .venv/bin/streamlit run app.py\n" in readme
    test_line = "python3 -m venv .venv && .venv/bin/pip install -r requirements-dev.txt && .venv/bin/python -m pytest\n"
    assert f"\n{test_line}" in readme
    assert test_line in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_readme_counts_the_layouts_that_there_are() -> None:
    """It said eleven when there were fourteen."""
    listed = (ROOT / "model" / "checkpoints" / "layouts" / "detect.py").read_text(encoding="utf-8")
    listed = listed.partition("LAYOUTS: tuple[Layout, ...] = (")[2].partition("\n)\n")[0]
    count = len(re.findall(r"^    [A-Z_0-9]+,$", listed, re.MULTILINE))
    described = (ROOT / "docs" / "add-a-layout.md").read_text(encoding="utf-8").partition("\n\nThe prefixes")[0]
    assert len(re.findall(r"^\| `", described, re.MULTILINE)) == count
    english, chinese = {13: ("thirteen", "十三"), 14: ("fourteen", "十四"), 15: ("fifteen", "十五"), 16: ("sixteen", "十六")}[count]
    assert f"[{english} layouts]" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"[{chinese}种布局]" in (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")


def test_the_tree_in_the_readme_is_the_tree() -> None:
    tree = re.search(r"```\n(app\.py.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert tree
    folders: list[str] = []
    for line in tree[1].splitlines():
        indent, name = len(line) - len(line.lstrip()), line.split()[0]
        folders = [*folders[: indent // 2], name]
        assert Path(ROOT, *folders).exists(), "/".join(folders)


@pytest.mark.parametrize("top", ["model", "viz"])
def test_the_architecture_page_lists_every_room_in_the_order_of_the_contract(top: str) -> None:
    text = section(page("architecture.md"), "The rooms").partition(f"**`{top}/`**")[2].partition("\n**")[0]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract.get("containers") == [top])
    no_rooms = {"main", "feature"}  # single files
    assert [row[0].strip("`") for row in rows(text)][1:] == [layer for layer in reversed(layers) if layer not in no_rooms]


def test_the_index_of_the_documentation_names_every_page() -> None:
    named = set(re.findall(r"\]\(([\w-]+\.md)", page("README.md")))
    assert named | {"README.md"} == {path.name for path in DOCS.glob("*.md")}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_into_the_app_open_what_they_promise(path: Path) -> None:
    for link in re.findall(
        r"`/(?:explore|step|masks|positions|compare|training|checkpoint)\?([^`\s]+)`", path.read_text(encoding="utf-8")
    ):
        query = dict(parse_qsl(link, keep_blank_values=True))
        view, problems = links.read(query)
        assert problems == [], link
        model = at_step(view.model, snapshot) if (snapshot := view.of(TrainingView).snapshot) >= 0 else view.model
        assert not model or locate(model, ROOT / "checkpoints").exists(), link


def test_where_to_change_what_names_paths_that_exist() -> None:
    table = section((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), "Where to change and add what")
    named = re.findall(r"`((?:viz|model|lectures)/[\w/.]*)`", table)
    missing = sorted(path for path in named if not (ROOT / path).exists())
    assert len(named) > 20
    assert not missing, f"CONTRIBUTING.md sends newcomers to what is not there: {missing}"


def test_the_page_of_the_tests_names_files_that_exist() -> None:
    folder = ROOT / "tests"
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", (folder / "README.md").read_text(encoding="utf-8"))
    missing = sorted(path for path in named if not (folder / path).exists())
    assert len(named) > 20
    assert not missing, f"tests/README.md names what is not there: {missing}"
