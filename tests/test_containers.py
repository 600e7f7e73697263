"""Container files. No image is built here: a linter reads them, and what they copy and start is copied and started without one."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.browser.servers import free_port
from tests.networks import save_checkpoint
from tests.patience import HANG_S
from viz.features.print.fonts import PREFERRED

ROOT = Path(__file__).parents[1]
IMAGES = ("Dockerfile", "Dockerfile.engine")
HADOLINT = Path(sys.executable).parent / "hadolint"
NOT_IN_THE_APP = ("accelerate", "prometheus_client", "sacrebleu", "spacy", "tensorboardX", "tokenizers", "torch", "transformers")
"""What `import` calls the packages of requirements.txt that requirements-web.txt leaves out, as far as they matter."""

WITHOUT_TORCH = f"""
import sys
sys.modules.update(dict.fromkeys({NOT_IN_THE_APP}))  # `import torch` fails
from streamlit.testing.v1 import AppTest
app = AppTest.from_file("viz/main.py", default_timeout={HANG_S}).run()
assert not app.exception, app.exception
assert not app.warning, app.warning
assert len(app.get("bidi_component")) > 1
"""


def instructions(image: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile in their order, each with what stands behind it."""
    lines = (ROOT / image).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    words = (line.partition(" ") for line in lines if line and not line.startswith("#"))
    return [(word, " ".join(rest.split())) for word, _, rest in words]


def of(image: str, instruction: str) -> list[str]:
    return [rest for word, rest in instructions(image) if word == instruction]


def command(image: str, instruction: str) -> list[str]:
    """The words of the last CMD, or of the HEALTHCHECK's."""
    words: list[str] = json.loads(
        of(image, instruction)[-1].removeprefix("CMD ").partition("CMD ")[2] or of(image, instruction)[-1]
    )
    return words


def composed(name: str) -> dict[str, Any]:
    """The services of a compose file; what another file is to leave out is `reset`."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("!reset null", "reset")  # a tag of compose's own
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    return services


@pytest.mark.skipif(sys.platform == "win32", reason="no hadolint for Windows in the package index")
def test_the_linter_has_nothing_to_say() -> None:
    found = subprocess.run([HADOLINT, "--no-color", *IMAGES], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_is_of_the_tested_python_and_nobody_in_it_is_root(image: str) -> None:
    (base,) = of(image, "FROM")
    python = re.fullmatch(r"python:(\d+)\.(\d+)-slim-[a-z]+", base)
    assert python
    assert f'target-version = "py{python[1]}{python[2]}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    order = [word for word, _ in instructions(image)]
    (user,) = of(image, "USER")
    assert int(user) > 0
    assert not {"RUN", "COPY", "ADD"} & set(order[order.index("USER") :])
    assert {"HEALTHCHECK", "EXPOSE", "CMD"} <= set(order)


@pytest.mark.parametrize("image", IMAGES)
def test_no_secret_gets_into_an_image(image: str) -> None:
    told = " ".join(of(image, "ENV") + of(image, "ARG"))
    assert not re.search("token|secret|password|key", told, flags=re.IGNORECASE)
    rules = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert rules[0] == "*"
    assert ".streamlit/secrets.toml" in rules
    allowed = {rule[1:] for rule in rules if rule.startswith("!")}
    assert {name for copied in of(image, "COPY") for name in copied.split()[:-1]} <= allowed
    assert all((ROOT / name).exists() for name in allowed)


@pytest.mark.slow
@pytest.mark.parametrize(("image", "file"), [("Dockerfile", "requirements-web.txt"), ("Dockerfile.engine", "requirements.txt")])
def test_what_an_image_installs_is_what_the_tests_ran_with(image: str, file: str) -> None:
    (install,) = (run for run in of(image, "RUN") if "pip" in run)
    assert install == f"pip install --no-cache-dir -r {file}"
    assert any(
        f"pip install -r {file}" in page.read_text(encoding="utf-8") for page in (ROOT / "README.md", ROOT / "docs/hosting.md")
    )
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "-r", file],
        cwd=ROOT,
        env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Would install" not in done.stdout


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_has_a_font_for_figures_with_chinese_text(image: str) -> None:
    (fonts,) = (run for run in of(image, "RUN") if "apt-get" in run)
    assert "fonts-wqy-microhei=" in fonts
    assert "WenQuanYi Micro Hei" in PREFERRED, "its family is one of those that are tried first"


def test_only_the_pages_are_published_and_only_to_this_machine_unless_told() -> None:
    services = composed("compose.yaml")
    assert [name for name in services if "ports" in services[name]] == ["proxy"]
    (published,) = services["proxy"]["ports"]
    assert published == "${HEADLIGHT_PUBLISH:-127.0.0.1:8501}:8501"
    told = services["pages-1"]["environment"]
    assert told["HEADLIGHT_HOSTS"] == "${HEADLIGHT_HOSTS:-localhost}", (
        "in a container the app cannot see that it is published on loopback"
    )
    for service in services.values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    for name, image in zip(("pages-1", "pages-2", "engine"), (IMAGES[0], *IMAGES), strict=True):
        assert services[name]["build"] == {"context": ".", "dockerfile": image}
        assert services[name]["environment"]["HEADLIGHT_TOKEN"].startswith("${HEADLIGHT_TOKEN:?")


def test_the_pages_ask_the_engine_where_it_listens_and_wait_for_it() -> None:
    services = composed("compose.yaml")
    (port,) = of("Dockerfile.engine", "EXPOSE")
    assert services["pages-1"]["environment"]["HEADLIGHT_ENGINE"] == f"http://engine:{port}"
    assert command("Dockerfile.engine", "CMD")[-4:] == ["--host", "0.0.0.0", "--port", port]
    assert services["pages-1"]["depends_on"] == {"engine": {"condition": "service_healthy"}}


def test_the_processes_of_pages_differ_in_their_name_alone_and_the_proxy_knows_both() -> None:
    services, proxy = composed("compose.yaml"), (ROOT / "haproxy.cfg").read_text(encoding="utf-8")
    (port,) = of("Dockerfile", "EXPOSE")
    first, second = services["pages-1"], services["pages-2"]
    assert second == first | {"environment": first["environment"] | {"HEADLIGHT_PROCESS": "2"}}
    assert first["environment"]["HEADLIGHT_PROCESS"] == "1"
    assert set(re.findall(r"\$\{PAGES_\d-([^}]+)\}", proxy)) == {f"pages-{number}:{port}" for number in (1, 2)}
    assert services["proxy"]["volumes"] == ["./haproxy.cfg:/usr/local/etc/haproxy/haproxy.cfg:ro"]


def test_the_engine_gets_a_gpu_unless_the_other_file_takes_it_away() -> None:
    (device,) = composed("compose.yaml")["engine"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    without = composed("compose.cpu.yaml")
    assert without == {"engine": {"environment": {"HEADLIGHT_DEVICE": "cpu"}, "deploy": "reset"}}


@pytest.mark.slow
def test_an_image_starts_with_the_files_that_it_copies_and_the_app_needs_no_torch(tmp_path: Path) -> None:
    app, engine = (copied(image, tmp_path / image) for image in IMAGES)
    assert (engine / "checkpoints" / "multi30k-de-en" / "model.safetensors").exists()
    save_checkpoint(tmp_path / "shelf" / "tiny", split="words")
    told = {"HEADLIGHT_TOKEN": "secret", "HEADLIGHT_CHECKPOINTS": str(tmp_path / "shelf"), "HEADLIGHT_DEVICE": "cpu"}
    with started("Dockerfile.engine", engine, told) as asked_at:
        told = {"HEADLIGHT_TOKEN": "secret", "HEADLIGHT_ENGINE": f"http://127.0.0.1:{asked_at}"}
        with started("Dockerfile", app, told):
            environment = clean() | told
            draws = [sys.executable, "-c", WITHOUT_TORCH]
            done = subprocess.run(draws, cwd=app, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr


def copied(image: str, to: Path) -> Path:
    """The working folder of an image, as its COPY instructions make it."""
    to.mkdir()
    for entry in of(image, "COPY"):
        *names, target = entry.split()
        for name in names:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, to / target, ignore=shutil.ignore_patterns("secrets.toml"))
            else:
                shutil.copy(ROOT / name, to / target)
    return to


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("HEADLIGHT_", "PYTHONPATH"))}


@contextmanager
def started(image: str, folder: Path, told: dict[str, str]) -> Iterator[int]:
    """The port at which an image's command listens, on loopback, once its health check is content."""
    (inside,) = of(image, "EXPOSE")
    port = free_port()

    def here(words: list[str]) -> list[str]:
        program = {"python": [sys.executable], "streamlit": [sys.executable, "-m", "streamlit"]}[words[0]]
        return [*program, *(word.replace(inside, str(port)).replace("0.0.0.0", "127.0.0.1") for word in words[1:])]

    environment = clean() | told
    process = subprocess.Popen(here(command(image, "CMD")), cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    check = here(command(image, "HEALTHCHECK"))
    try:
        until = time.monotonic() + HANG_S
        while subprocess.run(check, env=environment, stderr=subprocess.DEVNULL, check=False).returncode:
            assert process.poll() is None, f"{image}: its command ended"
            assert time.monotonic() < until, f"{image}: never healthy"
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(HANG_S)
