"""A Hub with a tiny GPT-2, and an empty cache, for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from model.huggingface import offline
from tests import folders
from tests.hub_server import Hub, Repo, contents, serving

NAME = "openai-community/gpt2"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a tiny GPT-2 that reads words, and files of which nothing may be downloaded."""
    folder = tmp_path_factory.mktemp("tiny-gpt2")
    words = folders.byte_pairs()
    folders.save(folder, "gpt2", vocab_size=words.get_vocab_size())
    words.save(str(folder / "tokenizer.json"))
    others = {
        "modeling_gpt2.py": b"raise SystemExit",
        "pytorch_model.bin": b"never",
        "README.md": b"# GPT-2",
        "onnx.onnx": b"never",
    }
    return contents(folder) | others


@pytest.fixture
def hub(tiny: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A Hub that HF_ENDPOINT names, and an empty cache that HF_HOME names, in this process and in those that it starts."""
    with serving(Hub({NAME: Repo(dict(tiny))}, old={"gpt2": NAME})) as there:
        use(there, tmp_path / "home", monkeypatch)
        yield there


def use(hub: Hub, home: Path, patch: pytest.MonkeyPatch) -> None:
    """Lets the library's variables name a Hub and a cache, here and in processes."""
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "TRANSFORMERS_OFFLINE", "HEADLIGHT_HUB", "HEADLIGHT_PUBLIC"):
        patch.delenv(name, raising=False)
    patch.setenv("HF_ENDPOINT", hub.url)
    patch.setenv("HF_HOME", str(home))
    patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(home / "hub"))
    patch.setattr(offline, "HOSTS", offline.HOSTS | {"127.0.0.1"})
