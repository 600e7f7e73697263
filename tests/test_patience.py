"""No test depends on how busy the machine is: what it waits for may take minutes, unless the wait is a look of a loop."""

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.patience import PROGRAM_LIMITS

ROOT = Path(__file__).parent
LEAST_S = 60.0
LEAST_SCRIPT_S = 1.0
LOOK_S = 0.1
"""Pauses between the looks of a loop are no longer than this, and so decide nothing."""

IN_MILLISECONDS = ROOT / "browser"
"""Where `timeout` is Playwright's."""

DECIDES_NOTHING = {
    ("test_folders.py", "second.wait(0.5)"),  # another thread may not take this chance
    ("test_live.py", "page.wait_for_timeout(400)"),  # nothing may be asked meanwhile, here and in the next three
    ("test_live.py", "page.wait_for_timeout(1500)"),
    ("test_live_bad_input.py", "page.wait_for_timeout(300)"),
    ("test_page_alone.py", "page.wait_for_timeout(200)"),
    ("test_visiting.py", "page.wait_for_timeout(500)"),
}
"""Shorter pauses after which a busy machine has done less, and the same is true."""

WAITS = ("wait", "join", "result", "sleep", "wait_for_timeout", "set_default_timeout", "settimeout")
"""Functions whose first argument is a limit or a pause."""

WORTH_PARSING = re.compile(rf"(timeout=|({'|'.join(WAITS)})\(|monotonic\(\) \+ )[\d.]")


def limits(tree: ast.AST) -> Iterator[tuple[str, float]]:
    """Each limit that is written as a number: the call or the sum with it, and the number."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            named = [keyword.value for keyword in node.keywords if keyword.arg in ("timeout", "default_timeout")]
            waits = isinstance(node.func, ast.Attribute) and node.func.attr in WAITS
            for limit in [*named, *(node.args[:1] if waits else [])]:
                if isinstance(limit, ast.Constant) and isinstance(limit.value, int | float):
                    yield ast.unparse(node), limit.value
        elif (
            isinstance(node, ast.BinOp)
            and ast.unparse(node).startswith("time.monotonic() + ")
            and isinstance(node.right, ast.Constant)
        ):
            yield ast.unparse(node), float(str(node.right.value))


def too_short(path: Path) -> list[str]:
    """The limits of a file that a busy machine may reach."""
    name, unit = str(path.relative_to(ROOT)), 1000.0 if path.is_relative_to(IN_MILLISECONDS) else 1.0
    text = path.read_text("utf-8")
    return [
        f"{name}: {code}"
        for code, limit in (limits(ast.parse(text)) if WORTH_PARSING.search(text) else ())
        if LOOK_S * unit < limit < LEAST_S * unit and (path.name, code) not in DECIDES_NOTHING
    ]


def test_no_limit_of_a_test_is_reached_by_a_busy_machine() -> None:
    files = [path for path in ROOT.rglob("test_*.py") if ROOT / "load" not in path.parents] + [*ROOT.glob("*.py")]
    short = [limit for path in sorted(set(files)) for limit in too_short(path)]
    assert not short, f"Wait for a state, with tests.patience.HANG_S as the limit: {short}"


@pytest.mark.parametrize("module", PROGRAM_LIMITS)
def test_a_limit_of_the_program_stands_where_tests_lift_it(module: str) -> None:
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    assert f"\n{PROGRAM_LIMITS[module]} = " in Path(found.origin).read_text("utf-8")


SCRIPT_LIMIT = re.compile(r"^const (\w+_MS) = (.*?);", re.MULTILINE)
"""A span of time in a script."""

PATIENT = re.compile(r"globalThis\.headlightPatience \?\? \d+")
"""One that browser tests lengthen (tests/browser/conftest.py): in it, the script expects something of the server."""

EXPECTS_NOTHING = {
    "AGAIN_MS": "pauses between tries, which go on",
    "AHEAD_MS": "a random pause before what is needed later is fetched",
    "KEPT_MS": "a minute",
    "NOTICE_MS": "how long a notice stays, at which tests look many times",
    "QUIET_MS": "a pause before the script runs",
}
"""Other spans of a second and more in scripts, and why none decides a test's result."""


def test_tests_lengthen_what_a_script_waits_for_the_server() -> None:
    for path in (ROOT.parent / "viz").rglob("*.js"):
        for name, span in SCRIPT_LIMIT.findall(path.read_text("utf-8")):
            short = span.replace("_", "").isdecimal() and int(span) < 1000 * LEAST_SCRIPT_S
            assert PATIENT.fullmatch(span) or short or name in EXPECTS_NOTHING, f"{path.name}: {name} = {span}"


@pytest.mark.parametrize(
    ("code", "limit"),
    [
        ("gate.wait(5)", 5),
        ("httpx.get(url, timeout=2.5)", 2.5),
        ("expect(node).to_be_visible(timeout=2000)", 2000),
        ("until = time.monotonic() + 30", 30),
        ("time.sleep(0.3)", 0.3),
    ],
)
def test_a_limit_is_found(code: str, limit: float) -> None:
    assert [found for _, found in limits(ast.parse(code))] == [limit]
