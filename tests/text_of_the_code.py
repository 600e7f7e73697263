"""Names that say nothing and comments, counted in model and viz; `python -m tests.text_of_the_code` prints both.

`text_of_the_code.txt` lists what is not as it should be yet, one line a file or folder. The list may only shrink: after you have
renamed or commented, `python -m tests.text_of_the_code --write` writes it anew. Git keeps both sides where two branches changed it
(.gitattributes), which the next `--write` tidies.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".txt")
SAYS_NOTHING = frozenset("found own each there told said shown gaps place one".split())
"""Participles and pronouns: a name says what the value is (`trace`, `missing_tensors`), a function's is a verb with its object."""
MANY_COMMENTS = ("model/engine", "model/inference", "model/features/circuit", "model/features/what_if")
"""Where a newcomer stops most often: 5 % of the lines are comments, and 1 % elsewhere."""


def bound_names(tree: ast.AST) -> Iterator[str]:
    """All names that a module binds: variables, arguments, attributes, functions, classes, imports."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name


def names_that_say_nothing(code: str) -> int:
    """How many bindings of a module have one of the ten names, as they are, private, or as a class."""
    return sum(name.strip("_").lower() in SAYS_NOTHING for name in bound_names(ast.parse(code)))


def folder_of(path: str) -> str:
    """The folder that a file's comments are counted in: model/engine/local.py is in model/engine, a feature is a folder."""
    parts = path.split("/")[:-1]
    return "/".join(parts[: 3 if "features" in parts else 2])


def sources() -> dict[str, str]:
    """The code of each file of model and viz."""
    paths = [path for top in ("model", "viz") for path in sorted((ROOT / top).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def comment_shares(codes: dict[str, str]) -> dict[str, float]:
    """The percentage of lines that are comments, by folder."""
    lines, comments = Counter[str](), Counter[str]()
    for path, code in codes.items():
        lines[folder_of(path)] += len(code.splitlines())
        comments[folder_of(path)] += len(re.findall(r"^\s*#", code, re.MULTILINE))
    return {folder: 100 * comments[folder] / count for folder, count in lines.items() if count > 50}


def exceptions(codes: dict[str, str]) -> dict[str, int]:
    """What the list should hold: the bindings of each file, and 0 for each folder with too few comments."""
    shares = comment_shares(codes)
    quiet = {folder: 0 for folder, share in shares.items() if share < (5 if folder in MANY_COMMENTS else 1)}
    return {path: count for path, code in codes.items() if (count := names_that_say_nothing(code))} | quiet


def listed(text: str) -> dict[str, int]:
    """The exceptions that a list holds: of two lines for the same file the smaller one."""
    allowed: dict[str, int] = {}
    for line in text.splitlines():
        path, _, count = line.partition(" ")
        allowed[path] = min(allowed.get(path, sys.maxsize), int(count or 0))
    return allowed


def as_list(counts: dict[str, int]) -> str:
    """Exceptions as the list writes them: a file with its bindings, a folder by its name."""
    return "".join(f"{path} {count}\n" if count else f"{path}\n" for path, count in sorted(counts.items()))


def main() -> None:
    """Prints or writes the list; refuses one that has grown as a whole (files may move)."""
    codes = sources()
    counts, before = exceptions(codes), listed(LIST.read_text(encoding="utf-8"))
    names = sum(counts.values())
    if "--write" not in sys.argv[1:]:
        for folder, share in sorted(comment_shares(codes).items()):
            print(f"{share:5.1f} % comments  {folder}")
        print(f"{names} bindings with a name that says nothing, in {sum(map(bool, counts.values()))} files")
    elif names > sum(before.values()):
        sys.exit(f"{names} bindings with a name that says nothing, and {sum(before.values())} in the list, which may only shrink")
    else:
        LIST.write_text(as_list(counts), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
