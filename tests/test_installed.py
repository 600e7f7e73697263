"""What `pip install .` installs: one package that answers from anywhere, without the clone, and leaves nothing when it goes."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import httpx
import pytest

from model.__main__ import cli
from package.command import COMMANDS
from tests.browser.servers import free_port
from tests.patience import HANG_S

ROOT = Path(__file__).parents[1]
HERE = Path(sysconfig.get_path("purelib"))
"""The packages of the environment that runs the tests."""


def test_the_help_names_every_command() -> None:
    assert sorted(COMMANDS) == cli.list_commands(cli.make_context("model", ["--help"], resilient_parsing=True))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this repository."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT], check=True)
    (made,) = folder.glob("*.whl")
    return made


class Environment:
    """An environment with the wheel and nothing else but what it is given, which are links to packages of this one."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.programs = folder / ("Scripts" if os.name == "nt" else "bin")
        (self.packages,) = folder.glob("**/site-packages")
        self.before = set(self.files())
        self.pip("install", "--no-deps", "--no-index", str(wheel))

    def files(self) -> Iterator[Path]:
        """Everything below its packages."""
        return self.packages.rglob("*")

    def pip(self, *words: str) -> None:
        subprocess.run([self.programs / "python", "-m", "pip", "--quiet", *words], check=True)

    def python(self, code: str) -> str:
        """What a program prints."""
        done = subprocess.run([self.programs / "python", "-c", code], capture_output=True, text=True, check=False, cwd="/")
        assert not done.returncode, done.stderr
        return done.stdout.strip()


@pytest.fixture(scope="module")
def bare(wheel: Path) -> Iterator[Environment]:
    with tempfile.TemporaryDirectory() as folder:
        yield Environment(Path(folder) / "venv", wheel)


@pytest.mark.thorough
def test_the_wheel_is_small_and_holds_one_package(wheel: Path) -> None:
    assert wheel.stat().st_size <= 95e6
    with zipfile.ZipFile(wheel) as archive:
        assert {name.partition("/")[0].partition("-")[0] for name in archive.namelist()} == {"headlight", "headlight_attention"}
        assert archive.read("headlight/recorder.py") == (ROOT / "headlight.py").read_bytes()
        for folder in ("model", "viz", "checkpoints", "lectures", "docs", ".streamlit"):
            mine = {p.relative_to(ROOT) for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts}
            inside = {name for name in archive.namelist() if name.startswith(f"headlight/app/{folder}/")}
            assert inside == {f"headlight/app/{path.as_posix()}" for path in mine}
        facts = Parser().parsestr(archive.read("headlight_attention-0.1.0.dist-info/METADATA").decode())
    needed = [line for line in facts.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert needed == ["numpy", "safetensors"]
    assert f"torch=={importlib.metadata.version('torch').partition('+')[0]}; extra == 'app'" in facts.get_all("Requires-Dist", [])


@pytest.mark.thorough
def test_an_import_loads_nothing_and_the_help_needs_nothing(bare: Environment) -> None:
    loaded = bare.python("import headlight, sys; print(*sorted({n.split('.')[0] for n in sys.modules} - sys.stdlib_module_names))")
    assert set(loaded.split()) <= {"__main__", "headlight", "_distutils_hack", "sitecustomize"}
    says = subprocess.run([bare.programs / "headlight", "--help"], capture_output=True, text=True, check=True)
    assert "headlight view FILE_OR_FOLDER" in says.stdout
    assert bare.python("import importlib.util as u; print(u.find_spec('model'), u.find_spec('viz'))") == "None None"


@pytest.mark.thorough
@pytest.mark.parametrize(("words", "needs"), [([], "streamlit"), (["record"], "torch"), (["run"], "click")])
def test_what_is_missing_is_named(bare: Environment, words: list[str], needs: str) -> None:
    done = subprocess.run([bare.programs / "headlight", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"This needs packages that are not installed here, {needs} first: pip install ")
    assert len(done.stderr.splitlines()) == 1


def unprivileged() -> list[str]:
    """Words before a command that then may write only where permissions say so, although the tests may run as root."""
    return [] if os.geteuid() else ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


def answers(app: "subprocess.Popen[bytes]", address: str) -> int:
    """The status of the first answer; the process must not end before."""
    waits = httpx.HTTPTransport(retries=0)
    with httpx.Client(transport=waits, timeout=HANG_S, trust_env=False) as client:
        while app.poll() is None:
            try:
                return client.get(address).status_code
            except httpx.TransportError:
                continue
    raise AssertionError(f"it ended with {app.returncode}")


@pytest.fixture
def closed(wheel: Path) -> Iterator[tuple[Environment, Path]]:
    """An environment with what the extra `app` brings, whose package cannot be written, and a folder that cannot, either."""
    with tempfile.TemporaryDirectory() as folder:
        whole, nowhere = Environment(Path(folder) / "venv", wheel), Path(folder) / "nowhere"
        (whole.packages / "ours.pth").write_text(str(HERE))
        nowhere.mkdir()
        package = whole.packages / "headlight"
        for path in (nowhere, package, *package.rglob("*")):
            path.chmod(path.stat().st_mode & ~0o222)
        yield whole, nowhere
        for path in (nowhere, package, *package.rglob("*")) if package.exists() else ():
            path.chmod(path.stat().st_mode | 0o200)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("setpriv") is None, reason="needs setpriv")
def test_the_app_answers_where_nothing_can_be_written(closed: tuple[Environment, Path]) -> None:
    whole, nowhere = closed
    port = free_port()
    command = [*unprivileged(), str(whole.programs / "headlight"), "--port", str(port), "--server.headless=true"]
    environment = os.environ | {"HOME": str(nowhere), "HEADLIGHT_DEVICE": "cpu"}
    with subprocess.Popen(command, cwd=nowhere, env=environment, stderr=subprocess.PIPE) as app:
        try:
            assert answers(app, f"http://127.0.0.1:{port}/") == 200
        finally:
            app.terminate()
    assert not [*nowhere.iterdir()]
    run = [*unprivileged(), str(whole.programs / "headlight"), "run", "reverse-digits", "--source", "1 2 3"]
    assert subprocess.run(run, capture_output=True, text=True, check=True, cwd=nowhere, env=environment).stdout.strip() == "321"


@pytest.mark.thorough
def test_it_leaves_nothing_when_it_goes(bare: Environment) -> None:
    bare.python("import headlight.command")
    bare.pip("uninstall", "--yes", "headlight-attention")
    assert set(bare.files()) == bare.before
