"""Makes `headlight/viewer` of the wheel: what draws a run in a notebook, out of `model` and `viz`.

    python package/viewer.py FOLDER

It is copied, not written again: the modules that `viz.features.notebook.show` imports, directly or not. Their names change, since
the programs of others have packages called `model`, too: `from model.trace.types import Trace` becomes
`from headlight.viewer.model.trace.types import Trace`. The `__init__.py` of a package is left empty, unless something is imported
from it itself, because those of rooms import what a notebook has not, such as Streamlit.
"""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
START = "viz.features.notebook.show"
TOPS = ("model", "viz")
INTO = "headlight.viewer"
FRONTEND = "viz/canvas/frontend"


def path_of(module: str) -> Path | None:
    """The file of a module or a package; None: there is none, as of a name inside a module."""
    below = ROOT.joinpath(*module.split("."))
    return next((path for path in (below.with_suffix(".py"), below / "__init__.py") if path.is_file()), None)


def imports(tree: ast.Module) -> list[ast.ImportFrom]:
    """The imports from `model` and `viz` that run when a module is imported.

    Raises:
        ValueError: one is `import model…`, whose name could not be changed without changing the code below it.
    """
    renamable = list[ast.ImportFrom]()
    for node in tree.body:
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] in TOPS for alias in node.names):
            raise ValueError(f"line {node.lineno}: write `from … import …`, which package/viewer.py can copy.")
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in TOPS:
            renamable.append(node)
    return renamable


def modules() -> set[str]:
    """The modules that START imports, directly or not, and itself."""
    waiting, needed = [START], set[str]()
    while waiting:
        module = waiting.pop()
        path = path_of(module)
        if module in needed or path is None:
            continue
        needed.add(module)
        for node in imports(ast.parse(path.read_text(encoding="utf-8"))):
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                waiting.append(inside if path_of(inside) else str(node.module))
    return needed


def renamed(source: str) -> str:
    """The source of a module, its imports from `model` and `viz` renamed; those inside functions, too."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in TOPS:
            lines[node.lineno - 1] = lines[node.lineno - 1].replace(f"from {node.module} ", f"from {INTO}.{node.module} ", 1)
    return "".join(lines)


def files() -> dict[str, bytes]:
    """What lies in the folder, by its path there."""
    made = {"__init__.py": b'"""Made by package/viewer.py."""\n'}
    for module in sorted(modules()):
        path = path_of(module)
        assert path is not None
        made[path.relative_to(ROOT).as_posix()] = renamed(path.read_text(encoding="utf-8")).encode()
        for parent in path.relative_to(ROOT).parents:
            if parent.parts:
                made.setdefault(f"{parent.as_posix()}/__init__.py", b"")
    drawn = (path for path in sorted((ROOT / FRONTEND).iterdir()) if path.is_file())
    return made | {f"{FRONTEND}/{path.name}": path.read_bytes() for path in drawn}


def write(folder: Path) -> None:
    """Writes the folder."""
    for name, data in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
