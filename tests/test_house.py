"""The rules of the house: imports keep the contracts of pyproject.toml, and things grow no larger than they may. A failure says
which rule is broken, and where.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from statistics import median
from typing import TypeAlias

import pytest

from model import errors

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "benchmarks" / ".peers"
"""The environment of what others draw with, once it was measured: not ours."""
TOPS = ("model", "viz", "benchmarks", "tests")
PYTHON = [
    ROOT / "app.py",
    ROOT / "headlight.py",
    *sorted(p for top in TOPS for p in (ROOT / top).rglob("*.py") if PEERS not in p.parents),
]
ROOMS = [p for p in PYTHON if p.relative_to(ROOT).parts[0] != "tests"]
WRITTEN = [*ROOMS, *sorted(p for end in ("js", "css") for p in (ROOT / "viz").rglob(f"*.{end}"))]
TORCH_FREE = (
    "sharing.caches errors requests.network requests.request requests.validation "
    "requests.endpoints feature measures.of_run trace.rollout "
    "trace.types trace.serialization inspection.report engine engine.api engine.endpoints engine.shared_uploads "
    "engine.scheduling.queue "
    "features.circuit.circuits features.circuit.saved_sums features.modern_attention.costs features.what_if.questions "
    "features.what_if.results features.survey.examples features.survey.plane features.survey.questions features.survey.reading "
    "features.survey.survey features.survey.tables features.serving.http.client "
    + " ".join(f"features.{name}.feature" for name in "circuit modern_attention serving survey training what_if".split())
).split()


def name_of(path: Path) -> str:
    """The module in a file: model/engine/__init__.py is model.engine."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(path): path for path in PYTHON}


@cache
def tree_of(module: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


@cache
def imports(module: str) -> frozenset[str]:
    """Every module that `module` imports, inside functions too, as far as a name can be one."""
    found = set[str]()
    for node in ast.walk(tree_of(module)):
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


def test_imports_keep_the_contracts() -> None:
    """The contracts stand in pyproject.toml, and nowhere else. In a process of its own: import-linter turns all loggers off."""
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_machine_without_torch_can_speak_of_traces_and_engines() -> None:
    names = [f"model.{name}" for name in TORCH_FREE]
    code = f"import sys, importlib\nfor n in {names}:\n importlib.import_module(n)\n if 'torch' in sys.modules: sys.exit(n)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"torch was loaded by importing {done.stderr.strip()}, which must run without it"


FIGURES = ("numpy plotly model.trace.types model.errors viz.labels.tokens viz.figures.theme viz.i18n.translate viz.figures").split()


def test_figures_are_made_of_traces_alone() -> None:
    for module in modules("viz.figures"):
        ours = {name for name in imports(module) if within(name, "model", "viz")}
        wrong = sorted(name for name in foreign(module) | ours if not within(name, *FIGURES))
        assert not wrong, f"viz.figures may import {', '.join(FIGURES)} and Python's own modules: {module} imports {wrong}"


def room_of(module: str) -> str:
    """The folder, or the file of viz, that a module belongs to: model.features.serving.http.server belongs to model.engine.

    Each feature is a room of its own.
    """
    return ".".join(module.split(".")[: 3 if within(module, "model.features", "viz.features") else 2])


def features_in(folder: str) -> dict[str, tuple[str, ...]]:
    """The names of features, in the order of their imports, with what each says that it needs."""
    lists = (node for node in tree_of(folder).body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "FEATURES")
    names: dict[str, tuple[str, ...]] = ast.literal_eval(next(lists).value or ast.Dict([], []))
    return names


FEATURES = {folder: features_in(folder) for folder in ("model.features", "viz.features")}


@pytest.mark.parametrize("top", ["model", "viz"])
def test_a_feature_says_which_others_it_needs(top: str) -> None:
    """What the part in viz needs includes what the part in model does: one does not run without the other."""
    for name, said in FEATURES[f"{top}.features"].items():
        parts = {f"{top}.features.{name}", f"model.features.{name}"}
        imported = {other.split(".")[2] for module in modules(*parts) for other in imports(module) if within(other, *FEATURES)}
        assert set(said) == imported - {name}, f"{top}/features/__init__.py says what {name} needs; it differs from what it imports"


def height(room: str) -> int:
    """The floor of a room: one above the highest that it imports."""
    below = {room_of(name) for module in modules(room) for name in imports(module) if within(name, room.split(".")[0])}
    return 1 + max((height(each) for each in below - {room, room.split(".")[0]}), default=0)


def test_viz_has_few_rooms_on_few_floors() -> None:
    rooms = {room_of(name) for name in modules("viz") if not within(name, "viz.features")} - {"viz"}
    loose = sorted(path.name for path in (ROOT / "viz").glob("*.py"))
    floors = max(map(height, rooms))
    assert len(rooms) <= 16, f"viz has at most 16 rooms; put a new file into one of them: {sorted(rooms)}"
    assert floors <= 8, f"viz has at most 8 floors, and now {floors}: {sorted((height(room), room) for room in rooms)}"
    assert loose == ["__init__.py", "__main__.py", "feature.py", "main.py", "panels.py"], (
        f"A file of viz belongs into a room: {loose}"
    )


def asked_by_class(tree: ast.AST) -> set[str]:
    """The names of classes that `isinstance` and `match` ask for."""
    classes = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            classes |= {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
        elif isinstance(node, ast.MatchClass):
            classes.add(ast.unparse(node.cls))
    return classes


def names_from(module: str, room: str) -> set[str]:
    """The names that a module imports from a room."""
    nodes = (node for node in ast.walk(tree_of(module)) if isinstance(node, ast.ImportFrom))
    return {alias.asname or alias.name for node in nodes if within(node.module or "", room) for alias in node.names}


def test_networks_answer_for_themselves() -> None:
    for module in modules("model"):
        if not within(module, "model.huggingface", "model.checkpoints"):
            wrong = sorted(asked_by_class(tree_of(module)) & names_from(module, "model.huggingface"))
            assert not wrong, f"A network answers for itself (model/transformer/networks.py): {module} asks for the classes {wrong}"


def test_only_the_loader_of_folders_opens_one_without_a_row() -> None:
    users = {m for m in modules("model") for name in imports(m) if within(name, "model.huggingface.recorded")}
    above = sorted(user for user in users if not within(user, "model.huggingface.recorded"))
    assert above == ["model.huggingface.loading"], f"Whoever runs a network asks the network itself, not its class: {above}"


def test_a_class_that_is_asked_for_is_found() -> None:
    code = "isinstance(network, Own | Foreign)\nmatch network:\n    case Other() as other: ...\n"
    assert asked_by_class(ast.parse(code)) == {"Own", "Foreign", "Other"}


def test_model_has_nothing_but_rooms_at_its_root() -> None:
    loose = sorted(path.name for path in (ROOT / "model").glob("*.py") if path.name not in ("__init__.py", "__main__.py"))
    assert loose == ["feature.py"], f"A file of model belongs into a room: {loose}"


def test_a_page_asks_an_engine_and_never_the_network() -> None:
    allowed = (
        "model.trace.types model.trace.steps model.trace.beam_tree model.errors model.trace.serialization "
        "model.requests.edits model.requests.inputs model.requests.layout_file model.requests.network model.requests.request "
        "model.requests.sent_text model.requests.snapshots model.trace.cell_arithmetic model.trace.rollout model.trace.stages "
        "model.trace.unusual "
        "model.measures.catalogue model.measures.maps model.measures.of_run model.measures.rows "
        "model.trace.source_lines "
        "model.inspection.report model.engine.api model.engine.sent_files model.sharing.caches"
    ).split()
    of_features = (
        "circuit.circuits circuit.saved_sums circuit.sums modern_attention.costs survey.agreement survey.differences "
        "survey.examples survey.film survey.mattering survey.plane survey.questions survey.reading survey.relations survey.roles "
        "survey.statistics survey.survey survey.tables survey.texts survey.trees what_if.questions what_if.results"
    ).split()
    allowed += [f"model.features.{module}" for module in of_features]
    places = "viz.views", "viz.features", "viz.figures", "viz.canvas", "viz.url.view_state", "viz.export.tables"
    without_a_page = (
        "viz.features.live",
        "viz.features.lectures",
        "viz.features.print",
        "viz.features.notebook",
    )  # routes, notebooks, too
    for module in (name for name in modules(*places) if not within(name, *without_a_page)):
        wrong = sorted(name for name in imports(module) if within(name, "model") and name not in allowed)
        assert not wrong, f"What draws may import of model only {', '.join(allowed)}: {module} imports {wrong}"


def test_app_hands_over_at_once() -> None:
    wrong = sorted(name for name in imports("app") if within(name, "model"))
    assert not wrong, f"app.py may import viz and what serves it, not model: it imports {wrong}"
    assert len(FILES["app"].read_text(encoding="utf-8").splitlines()) < 90, "app.py must stay under 90 lines: it holds no logic"


def test_the_recorder_is_one_file_that_needs_torch_numpy_and_safetensors() -> None:
    wrong = sorted(name for name in imports("headlight") if name.split(".")[0] in ("app", *TOPS))
    assert not wrong, f"headlight.py is copied beside programs that may have a package model of their own: it imports {wrong}"
    needed = {name.split(".")[0] for name in foreign("headlight")} - {"IPython"}  # only in a notebook, which has it
    assert needed == {"torch", "numpy", "safetensors"}


def test_a_module_of_viz_hides_no_package() -> None:
    names = {p.stem for p in (ROOT / "viz").glob("*.py")} | {p.parent.name for p in (ROOT / "viz").glob("*/__init__.py")}
    hidden = sorted((names - {"__init__"}) & (sys.stdlib_module_names | packages_distributions().keys()))
    assert not hidden, f"Streamlit puts viz/ first on the path, so a module there must not be called like a package: {hidden}"


def test_a_file_has_at_most_400_lines() -> None:
    whole = ROOT / "headlight.py"  # one file by design: people copy it beside a program of theirs (docs/record.md)
    lines = {
        path: sum(map(bool, map(str.strip, path.read_text(encoding="utf-8").splitlines()))) for path in WRITTEN if path != whole
    }
    long = [f"{path.relative_to(ROOT)} has {count}" for path, count in lines.items() if count > 400]
    assert not long, f"A file has at most 400 lines, blank ones not counted; divide it: {', '.join(long)}"


def functions(module: str) -> Iterator[int]:
    """Lines of each function, its docstring left out."""
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            said = (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(node) is not None else 0
            yield (node.end_lineno or 0) - node.lineno + 1 - said


@pytest.mark.parametrize("top", ["model", "viz", "benchmarks"])
def test_functions_are_short(top: str) -> None:
    found = median(lines for module in modules(top) for lines in functions(module))
    assert found < 12, f"A function's median stays under 12 lines: in {top} it is {found}"


DOCUMENTED = modules("app", "headlight", "model", "viz", "benchmarks")

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Public functions and classes, and the methods of all classes, with their names; also those under `if`, `with` and `try`.

    Exempt are functions inside functions, private ones, and `__init__`: the docstring of its class says what it takes.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            special = child.name.startswith("__") and child.name != "__init__"
            if special or not child.name.startswith("_"):
                yield f"{prefix}{child.name}", child
            if isinstance(child, ast.ClassDef):
                yield from definitions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.stmt | ast.ExceptHandler):
            yield from definitions(child, prefix)


def undocumented(tree: ast.Module) -> list[str]:
    """Names of the definitions without a docstring."""
    return [name for name, found in definitions(tree) if not ast.get_docstring(found)]


def test_everything_public_has_a_docstring() -> None:
    found = [module for module in DOCUMENTED if not ast.get_docstring(tree_of(module))]
    found += [f"{module}.{name}" for module in DOCUMENTED for name in undocumented(tree_of(module))]
    assert not found, f"Say what it computes, shapes in the words of the axes, errors, source: no docstring of {', '.join(found)}"


def test_a_missing_docstring_is_found() -> None:
    code = """
def f():
    def g(): ...

class _A:
    "A."
    def __init__(self): ...
    def m(self): ...
    def __len__(self): ...
    def _n(self): ...

if True:
    def h(): ...
"""
    assert undocumented(ast.parse(code)) == ["f", "_A.m", "_A.__len__", "h"]


CLASS = re.compile("[A-Z]")
UNREACHABLE = ("AssertionError", "TypeError")
"""Errors of a programmer: nobody catches them."""


def raised(node: ast.AST) -> Iterator[str]:
    """Classes that a function raises itself; not inside functions inside it, nor where it may catch them at once."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Raise) and child.exc is not None:
            made = child.exc.func if isinstance(child.exc, ast.Call) else child.exc
            yield made.attr if isinstance(made, ast.Attribute) else getattr(made, "id", "")
        if isinstance(child, ast.Try) and child.handlers:
            for part in (*child.handlers, *child.orelse, *child.finalbody):
                yield from raised(part)
        elif not isinstance(child, Definition | ast.Lambda):
            yield from raised(child)


def untold(tree: ast.Module) -> list[str]:
    """Public functions with errors that neither their docstring nor that of the module names, nor a class that these derive from.

    A command of a command line is exempt: its docstring is what `--help` prints.
    """
    found = []
    for name, function in definitions(tree):
        if isinstance(function, ast.ClassDef) or any("command" in ast.unparse(each) for each in function.decorator_list):
            continue
        told = f"{ast.get_docstring(function)} {ast.get_docstring(tree)}"
        for error in filter(CLASS.match, raised(function)):
            kin = [each.__name__ for each in type.mro(getattr(errors, error))[:-3]] if hasattr(errors, error) else [error]
            if error not in UNREACHABLE and not any(each in told for each in kin):
                found.append(f"{name}: {error}")
    return found


def test_a_docstring_names_the_errors_that_a_function_raises() -> None:
    found = [f"{module}.{each}" for module in DOCUMENTED for each in untold(tree_of(module))]
    assert not found, f"Name these errors under Raises: {', '.join(found)}"


def test_an_error_that_is_not_named_is_found() -> None:
    code = """
def f():
    "Fails."
    raise OverLimit(path=1)

def g():
    "Raises CheckpointError."
    raise OverLimit(path=1)

def h():
    "Catches it."
    try:
        raise ValueError
    except ValueError:
        return
"""
    assert untold(ast.parse(code)) == ["f: OverLimit"]


def test_nothing_is_called_by_a_name_that_says_nothing() -> None:
    files = [str(p.relative_to(ROOT)) for p in PYTHON if p.stem in ("utils", "util", "helpers", "misc", "common")]
    assert not files, f"No module is called utils: say what it does. {files}"
    for module, path in FILES.items():
        named = re.search(r"^\s*class \w*Manager\b", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert not named, f"No class is called Manager: say what it does. {module} has one"
