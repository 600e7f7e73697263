"""Peers: other libraries that draw attention. Their pages are made in their own environment and served from this machine only."""

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
"""Limits of a peer: seconds to make its page, and again to paint it; and bytes of memory to make it."""

READY = 20
"""Further seconds for imports and weights, which do not count."""

SCRIPTS = {
    "require.min.js": "requirejs/require.js",
    "d3.min.js": "d3/dist/d3.min.js",
    "jquery.min.js": "jquery/dist/jquery.min.js",
}
"""Scripts that pages fetch from a content delivery network: the end of the address, and the path where npm installs the script."""

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
    """A page that a peer made.

    Attributes:
        html: path of the page.
        seconds: seconds from the weights in memory to the page's text.
    """

    html: Path
    seconds: float


class TooMuch(Exception):
    """A peer exceeded SECONDS or BYTES, or failed."""


def install() -> None:
    """Creates the peers' environment, unless it is there already.

    Raises:
        NoPeers: npm is not installed, or a registry does not answer.
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
    """Makes a peer's page in a process of its own.

    Args:
        case: layers, heads, tokens, and the number of tokens that are not padding.

    Raises:
        TooMuch: it exceeds the limits of time or memory, or fails.
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
    """Serves a page's scripts from npm's folder, and blocks all other requests to the network."""

    def answer(route: Route) -> None:
        found = next((path for end, path in SCRIPTS.items() if route.request.url.endswith(end)), None)
        if found is None:
            route.abort()
        else:
            route.fulfill(path=ROOM / "node_modules" / found)

    page.route(lambda url: not url.startswith("http://127.0.0.1"), answer)
