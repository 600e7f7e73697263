"""What others draw the same attention with: their pages, made in an environment of their own and served from here alone."""

import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, Route

HERE = Path(__file__).parent
ROOM = HERE / ".peers"
PYTHON = ROOM / ("Scripts" if sys.platform == "win32" else "bin") / "python"

SECONDS, BYTES = 60, 8 << 30
"""What a peer may take to make its page, and again to paint it; and the memory it may make it in."""

READY = 20
"""Seconds for what does not count before it begins: modules and weights."""

SCRIPTS = {
    "require.min.js": "requirejs/require.js",
    "d3.min.js": "d3/dist/d3.min.js",
    "jquery.min.js": "jquery/dist/jquery.min.js",
}
"""Scripts that pages fetch from a content delivery network, by the end of their address, and where npm puts them."""

NAMES = {
    "bertviz-model-view": "bertviz model_view",
    "bertviz-head-view": "bertviz head_view (one layer at a time)",
    "circuitsvis": "CircuitsVis attention_patterns",
    "inspectus": "inspectus (one averaged map)",
}


class NoPeers(Exception):
    """The peers cannot be installed here."""


@dataclass(frozen=True)
class Made:
    """A page.

    Attributes:
        html: where it is.
        seconds: from the weights in memory to its text.
    """

    html: Path
    seconds: float


class TooMuch(Exception):
    """A peer did not do it within SECONDS or BYTES."""


def install() -> None:
    """Makes the peers' environment, once.

    Raises:
        NoPeers: npm is not here, or a registry does not answer.
    """
    done = ROOM / "done"
    wanted = (HERE / "requirements.txt").read_text(encoding="utf-8") + (HERE / "package.json").read_text(encoding="utf-8")
    if done.is_file() and done.read_text(encoding="utf-8") == wanted:
        return
    if shutil.which("npm") is None:
        raise NoPeers("The peers were not measured: npm is not here, which fetches the scripts of their pages; install Node.js.")
    ROOM.mkdir(exist_ok=True)
    shutil.copy(HERE / "package.json", ROOM)
    commands: list[list[str | Path]] = [
        [sys.executable, "-m", "venv", ROOM],
        [PYTHON, "-m", "pip", "install", "--quiet", "--requirement", HERE / "requirements.txt"],
        ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", ROOM],
    ]
    for command in commands:
        if subprocess.run(command, check=False).returncode:
            raise NoPeers(f"The peers were not measured: {' '.join(map(str, command))} failed.")
    done.write_text(wanted, encoding="utf-8")


def make(peer: str, case: tuple[int, ...], out: Path) -> Made:
    """The page that a peer makes of such attention, in a process of its own.

    Args:
        case: layers, heads, tokens, and how many of the tokens are no padding.

    Raises:
        TooMuch: it takes more time or memory than it may.
    """
    command: list[str | Path] = [PYTHON, HERE / "peer_page.py", peer, *map(str, case), out]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))

    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS + READY, preexec_fn=limited, check=False)
    except subprocess.TimeoutExpired:
        raise TooMuch(f"> {SECONDS} s") from None
    if ended.returncode:
        raise TooMuch("> 8 GB" if "MemoryError" in ended.stderr or ended.returncode < 0 else ended.stderr.splitlines()[-1])
    seconds = float(ended.stdout.splitlines()[-1])
    if seconds > SECONDS:
        raise TooMuch(f"> {SECONDS} s")
    return Made(out, seconds)


def answer_for_the_network(page: Page) -> None:
    """Serves a page's scripts from npm's folder, and nothing else from elsewhere."""

    def answer(route: Route) -> None:
        found = next((path for end, path in SCRIPTS.items() if route.request.url.endswith(end)), None)
        if found is None:
            route.abort()
        else:
            route.fulfill(path=ROOM / "node_modules" / found)

    page.route(lambda url: not url.startswith("http://127.0.0.1"), answer)
