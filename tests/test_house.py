"""The rules of the house: who may import whom, and how large things may grow. A failure says which rule is broken, and where."""

import ast
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "benchmarks" / ".peers"
"""The environment of what others draw with, once it was measured: not ours."""
TOPS = ("model", "viz", "benchmarks", "tests")
PYTHON = [ROOT / "app.py", *sorted(p for top in TOPS for p in (ROOT / top).rglob("*.py") if PEERS not in p.parents)]
ROOMS = [p for p in PYTHON if p.relative_to(ROOT).parts[0] != "tests"]
WRITTEN = [*ROOMS, *sorted(p for end in ("js", "css") for p in (ROOT / "viz").rglob(f"*.{end}"))]
TORCH_FREE = (
    "trace",
    "wire",
    "errors",
    "checked",
    "spec",
    "inspection",
    "engine",
    "engine.base",
    "engine.sitting",
    "engine.kept",
    "engine.line",
    "engine.lru_cache",
)
LAZY = ("model.engine", "model.engine.local")
"""The one import that is made only when an engine is opened, so that whoever speaks of engines does not load torch."""


def name_of(path: Path) -> str:
    """The module in a file: model/engine/__init__.py is model.engine."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(path): path for path in PYTHON}


@cache
def imports(module: str) -> frozenset[str]:
    """Every module that `module` imports, inside functions too, as far as a name can be one."""
    found = set[str]()
    for node in ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports by a relative path: name modules in full, from the root"
            inside = {f"{node.module}.{alias.name}" for alias in node.names} & FILES.keys()
            found |= inside or {node.module or ""}
    return frozenset(found)


def within(module: str, *tops: str) -> bool:
    return any(module == top or module.startswith(f"{top}.") for top in tops)


def modules(*tops: str) -> list[str]:
    return [name for name in FILES if within(name, *tops)]


def foreign(module: str) -> set[str]:
    """What a module imports that is neither Python's own nor in this project."""
    ours = {"app", "model", "viz", "benchmarks", "tests"}
    return {name for name in imports(module) if name.split(".")[0] not in sys.stdlib_module_names | ours}


@cache
def road_to_torch(module: str) -> tuple[str, ...]:
    """The shortest chain of imports by which a module gets to torch; empty where there is none."""
    roads: dict[str, tuple[str, ...]] = {module: (module,)}
    ahead = deque(roads)
    while ahead:
        here = ahead.popleft()
        for name in sorted(imports(here)):
            if within(name, "torch"):
                return (*roads[here], name)
            if name not in FILES or (here, name) == LAZY:
                continue
            parts = name.split(".")
            for step in (".".join(parts[:n]) for n in range(1, len(parts) + 1)):  # a module's packages are imported before it
                if step in FILES and step not in roads:
                    roads[step] = (*roads[here], step)
                    ahead.append(step)
    return ()


def test_a_road_to_torch_is_found() -> None:
    assert road_to_torch("model.inspection") == ()
    assert road_to_torch("model.engine.local")[-1].split(".")[0] == "torch"
    assert road_to_torch("model.__main__")[0] == "model.__main__"


@pytest.mark.parametrize("module", modules("model"))
def test_model_knows_nothing_of_screens(module: str) -> None:
    wrong = sorted(name for name in imports(module) if within(name, "streamlit", "plotly", "viz"))
    assert not wrong, f"Nothing in model may import streamlit, plotly or viz: {module} imports {wrong}"


@pytest.mark.parametrize("module", modules("viz", "app"))
def test_viz_never_gets_to_torch(module: str) -> None:
    road = road_to_torch(module)
    assert not road, f"Nothing in viz may import torch, by whatever road: {' -> '.join(road)}"


@pytest.mark.parametrize("module", [f"model.{name}" for name in TORCH_FREE])
def test_a_machine_without_torch_can_speak_of_traces_and_engines(module: str) -> None:
    road = road_to_torch(module)
    assert not road, f"{module} must run where there is no torch: {' -> '.join(road)}"


def test_they_run_without_torch_indeed() -> None:
    names = [f"model.{name}" for name in TORCH_FREE]
    code = f"import sys, importlib\nfor n in {names}:\n importlib.import_module(n)\n if 'torch' in sys.modules: sys.exit(n)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"torch was loaded by importing {done.stderr.strip()}, which must run without it"


FIGURES = ("numpy", "plotly", "model.trace", "model.errors", "viz.labels", "viz.theme", "viz.texts", "viz.figures")


@pytest.mark.parametrize("module", modules("viz.figures"))
def test_figures_are_made_of_traces_alone(module: str) -> None:
    ours = {name for name in imports(module) if within(name, "model", "viz")}
    wrong = sorted(name for name in foreign(module) | ours if not within(name, *FIGURES))
    assert not wrong, f"viz.figures may import {', '.join(FIGURES)} and Python's own modules: {module} imports {wrong}"


ABOVE = {
    "viz.views": ("viz.main",),
    "viz.walk": ("viz.main", "viz.views"),
    "viz.figures": ("viz.main", "viz.views", "viz.walk", "viz.canvas", "viz.page", "streamlit"),
    "viz.canvas": ("viz.main", "viz.views", "viz.walk", "viz.figures", "viz.page"),
    "viz.links": ("viz.main", "viz.views", "viz.figures", "viz.canvas", "viz.page", "streamlit"),
    "viz.export": ("viz.main", "viz.views", "viz.canvas", "viz.page", "streamlit"),
    "viz.labels": ("viz.main", "viz.views", "viz.figures", "viz.canvas", "viz.page", "streamlit"),
    "viz.theme": ("viz.main", "viz.views", "viz.figures", "viz.canvas", "viz.page", "streamlit"),
    "viz.texts": ("viz.main", "viz.views", "viz.figures", "viz.canvas", "viz.page", "streamlit"),
}
"""The arrows of docs/architecture.md point down: what stands at the left may not import what stands at the right."""


@pytest.mark.parametrize("module", modules(*ABOVE))
def test_arrows_point_down(module: str) -> None:
    above = next(names for part, names in ABOVE.items() if within(module, part))
    wrong = sorted(name for name in imports(module) if within(name, *above))
    assert not wrong, f"Arrows point from app over views to figures, canvas, links and export, never back: {module} imports {wrong}"


@pytest.mark.parametrize("module", modules("viz.views", "viz.walk", "viz.figures", "viz.canvas", "viz.links", "viz.export"))
def test_a_page_asks_an_engine_and_never_the_network(module: str) -> None:
    allowed = (
        "model.trace",
        "model.beams",
        "model.errors",
        "model.wire",
        "model.spec",
        "model.explain",
        "model.stages",
        "model.teaching",
        "model.inspection",
        "model.engine.base",
        "model.engine.files",
    )
    wrong = sorted(name for name in imports(module) if within(name, "model") and name not in allowed)
    assert not wrong, f"What draws may import of model only {', '.join(allowed)}: {module} imports {wrong}"


def test_app_hands_over_at_once() -> None:
    wrong = sorted(name for name in imports("app") if within(name, "model"))
    assert not wrong, f"app.py may import viz and what serves it, not model: it imports {wrong}"
    assert len(FILES["app"].read_text(encoding="utf-8").splitlines()) < 80, "app.py must stay under 80 lines: it holds no logic"


def test_a_module_of_viz_hides_no_package() -> None:
    names = {p.stem for p in (ROOT / "viz").glob("*.py")} | {p.parent.name for p in (ROOT / "viz").glob("*/__init__.py")}
    hidden = sorted((names - {"__init__"}) & (sys.stdlib_module_names | packages_distributions().keys()))
    assert not hidden, f"Streamlit puts viz/ first on the path, so a module there must not be called like a package: {hidden}"


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_stays_under_300_lines(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines < 300, f"A file stays under 300 lines: {path.relative_to(ROOT)} has {lines}; divide it"


def functions(module: str) -> Iterator[int]:
    """Lines of each function, its docstring left out."""
    for node in ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            said = (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(node) is not None else 0
            yield (node.end_lineno or 0) - node.lineno + 1 - said


@pytest.mark.parametrize("top", ["model", "viz", "benchmarks"])
def test_functions_are_short(top: str) -> None:
    found = median(lines for module in modules(top) for lines in functions(module))
    assert found < 12, f"A function's median stays under 12 lines: in {top} it is {found}"


def test_nothing_is_called_by_a_name_that_says_nothing() -> None:
    files = [str(p.relative_to(ROOT)) for p in PYTHON if p.stem in ("utils", "util", "helpers", "misc", "common")]
    assert not files, f"No module is called utils: say what it does. {files}"
    for module, path in FILES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = isinstance(node, ast.ClassDef) and node.name.endswith("Manager")
            assert not named, f"No class is called Manager: say what it does. {module} has one"
