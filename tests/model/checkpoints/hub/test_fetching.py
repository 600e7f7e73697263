"""Downloads by name: what is fetched, what is pinned, how a broken download goes on, and each failure in one sentence."""

import json
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import httpx2
import pytest

from model.checkpoints.hub import cache, fetching, plans, worker
from model.checkpoints.hub.fetching import fetch, plan
from model.checkpoints.hub.names import HubName
from model.errors import (
    CannotRun,
    FetchFailed,
    GatedModel,
    HeadlightError,
    HubAway,
    HubOff,
    HubRefused,
    NoDisk,
    NoMemoryFor,
    NoSuchHubModel,
    NoSuchRevision,
    NotFetched,
)
from tests.hub_server import COMMIT, TOKEN, Hub, Repo, contents
from tests.model.checkpoints.hub.conftest import NAME
from tests.patience import settled

pytestmark = pytest.mark.slow

PIECE = 2**16
OTHER = "11c5a3d5811f50298f278a704980280950aedb10"
NEEDED = {"config.json", "generation_config.json", "tokenizer.json", "model.safetensors"}
WEIGHTS = "model.safetensors"


def heard(found: list[tuple[int, int]]) -> Callable[[int, int], None]:
    return lambda done, of: found.append((done, of))


def nobody(done: int, of: int) -> None:
    """Nobody hears the bytes."""


def fails(hub: Hub, revision: str = "", name: str = NAME) -> HeadlightError:
    """The error of a plan or of its download."""
    with pytest.raises(HeadlightError) as caught:
        fetch(plan(HubName(name, revision)), nobody)
    return caught.value


def test_a_plan_says_what_a_download_takes_before_its_first_byte(hub: Hub, tiny: dict[str, bytes]) -> None:
    hub.repos[NAME].parameters = {"F32": 1234}
    found = plan(HubName("gpt2"))
    assert (found.name, found.title, found.commit, found.license) == (f"hub:{NAME}@{COMMIT}", NAME, COMMIT, "mit")
    assert {file.name: file.bytes for file in found.files} == {name: len(tiny[name]) for name in NEEDED}
    assert found.missing == found.bytes == sum(len(tiny[name]) for name in NEEDED)
    assert (found.shape.architecture, found.shape.layers, found.shape.heads, found.shape.dtype) == ("gpt2", 2, 3, "float32")
    assert (found.parameters, found.memory) == (1234, 4 * 1234)
    assert found.refused is None
    assert not cache.repos(), "nothing is kept"
    assert not any("resolve" in path and WEIGHTS in path for _method, path, *_rest in hub.asked)


def test_only_what_is_needed_is_downloaded_and_its_commit_is_pinned(hub: Hub, tiny: dict[str, bytes]) -> None:
    told: list[tuple[int, int]] = []
    wanted = plan(HubName("gpt2"))
    folder = fetch(wanted, heard(told))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {name: tiny[name] for name in NEEDED}
    assert told[-1] == (wanted.bytes, wanted.bytes)
    assert (cache.name_of(folder), folder.name) == (HubName(NAME, COMMIT), COMMIT)
    asked = {path.rpartition("/")[2] for _method, path, *_rest in hub.asked}
    assert not asked & {"modeling_gpt2.py", "pytorch_model.bin", "README.md", "gpt2.onnx"}
    for name in (HubName("gpt2"), HubName(NAME), HubName(NAME, "main"), HubName(NAME, COMMIT), HubName(NAME, COMMIT[:7])):
        assert cache.find(name) == folder
    hub.repos[NAME].refs["main"] = OTHER
    hub.repos[NAME].files[WEIGHTS] = tiny[WEIGHTS]
    newer = fetch(plan(HubName(NAME)), nobody)
    assert (cache.find(HubName(NAME)), cache.find(HubName(NAME, COMMIT))) == (newer, folder)


def test_bin_is_fetched_only_without_safetensors_and_shards_are_those_of_the_index(hub: Hub) -> None:
    files = hub.repos[NAME].files
    weights = files.pop(WEIGHTS)
    assert [file.name for file in plan(HubName(NAME)).files][-1] == "pytorch_model.bin"
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    files |= dict.fromkeys((*index["weight_map"].values(), "model-00003-of-00002.safetensors"), weights)
    files["model.safetensors.index.json"] = json.dumps(index).encode()
    assert {file.name for file in plan(HubName(NAME)).files} == {
        *(NEEDED - {WEIGHTS}),
        "model.safetensors.index.json",
        *index["weight_map"].values(),
    }


def test_a_stopped_download_goes_on_where_it_was(hub: Hub, tiny: dict[str, bytes]) -> None:
    half, stops = PIECE, list[Callable[[], None]]()
    hub.breaks, hub.holds = half, True
    wanted = plan(HubName(NAME))

    @contextmanager
    def stopping(stop: Callable[[], None]) -> Any:
        stops.append(stop)
        yield

    def stop_at_half() -> None:
        settled(lambda: any(part.stat().st_size == half for part in cache.root().rglob("*.part")))
        stops[0]()

    threading.Thread(target=stop_at_half).start()
    with pytest.raises(FetchFailed, match="the download was stopped"):
        fetch(wanted, nobody, stopping)
    assert cache.find(HubName(NAME)) is None
    again = plan(HubName(NAME))
    assert again.missing == len(tiny[WEIGHTS]) - half
    hub.breaks, hub.asked = 0, []
    assert (fetch(again, nobody) / WEIGHTS).read_bytes() == tiny[WEIGHTS]
    assert [span for method, path, _token, span in hub.asked if method == "GET" and WEIGHTS in path] == [f"bytes={half}-"]


def test_a_lost_connection_is_taken_up_again_at_once(hub: Hub, tiny: dict[str, bytes]) -> None:
    hub.breaks = PIECE
    assert (fetch(plan(HubName(NAME)), nobody) / WEIGHTS).read_bytes() == tiny[WEIGHTS]
    assert [span for method, path, _token, span in hub.asked if method == "GET" and WEIGHTS in path] == ["", f"bytes={hub.breaks}-"]


def test_a_connection_that_was_reset_is_taken_up_again_while_bytes_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def append(url: str, target: BinaryIO, *rest: Any) -> None:
        asked.append(target.tell())
        if len(asked) != 3:  # the third brings nothing
            target.write(b"abc")
        raise httpx2.ReadError("reset by peer")

    monkeypatch.setattr(worker, "_append", append)
    with pytest.raises(httpx2.ReadError):
        worker._download("https://hub.test/x", tmp_path / "x.part", 9, worker._Progress(9))
    assert asked == [0, 3, 6]


def test_a_token_goes_to_the_hub_and_nowhere_else(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    hub.repos[NAME].gated = True
    refused = fails(hub)
    assert isinstance(refused, GatedModel)
    assert f"Accept them at {hub.url}/{NAME}, then log in" in str(refused)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    wanted = plan(HubName(NAME))
    folder = fetch(wanted, nobody)
    assert all(with_token for *_rest, with_token, _span in hub.asked[-4:])
    kept = [path for path in folder.parents[3].rglob("*") if path.is_file()]
    assert kept
    assert not any(TOKEN.encode() in path.read_bytes() for path in kept)
    assert TOKEN not in f"{wanted}{refused}"
    hub.repos[NAME].refs["main"] = OTHER
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert isinstance(fails(hub, "main"), GatedModel)


@pytest.mark.parametrize(
    ("status", "advice"),
    [(401, "rejects the login"), (403, "may not read"), (404, "check the name"), (429, "too many requests"), (503, "later")],
)
def test_each_status_of_the_hub_is_a_sentence(hub: Hub, status: int, advice: str) -> None:
    hub.fails = {f"/api/models/{NAME}": status}
    refused = fails(hub)
    assert isinstance(refused, HubRefused)
    assert (refused.fields["host"], refused.fields["status"]) == ("127.0.0.1", status)
    assert advice in str(refused)


def test_wrong_names_revisions_and_models_that_do_not_run_are_told_before_a_download(hub: Hub) -> None:
    fetch(plan(HubName(NAME)), nobody)
    wrong = fails(hub, name="openai-comunity/gpt2")
    assert isinstance(wrong, NoSuchHubModel)
    assert str(wrong).endswith(f"Similar names on this machine: {NAME}.")
    unknown = fails(hub, "v9")
    assert isinstance(unknown, NoSuchRevision)
    assert "has no revision “v9”" in str(unknown)
    files, before = hub.repos[NAME].files, dict(hub.repos[NAME].files)
    files["config.json"] = json.dumps({"model_type": "nonesuch"}).encode()
    cannot = fails(hub)
    assert isinstance(cannot, CannotRun)
    assert "its architecture, nonesuch, is not one of the transformers library" in str(cannot)
    assert "headlight.py" in str(cannot)
    files["config.json"] = json.dumps({"model_type": "gpt2", "quantization_config": {"bits": 4}}).encode()
    assert "quantized" in str(fails(hub))
    files.clear()
    files |= {"model.gguf": b"GGUF", "README.md": b""}
    assert "only GGUF files" in str(fails(hub))
    files |= {"config.json": before["config.json"]}
    files.pop("model.gguf")
    assert "no config.json with weights" in str(fails(hub))


def test_another_hash_or_length_than_announced_is_refused_and_forgotten(hub: Hub, tiny: dict[str, bytes]) -> None:
    repo, content = hub.repos[NAME], tiny[WEIGHTS]
    for due, said in (
        (bytes(len(content)), "does not have the hash that the Hub announces"),
        (content[:-10], "is longer than announced"),
        (content + b"more", "is shorter than announced"),
    ):
        repo.announced = {WEIGHTS: due}
        error = fails(hub)
        assert isinstance(error, FetchFailed)
        assert said in str(error)
        assert cache.find(HubName(NAME)) is None
    repo.announced = {}
    assert (fetch(plan(HubName(NAME)), nobody) / WEIGHTS).read_bytes() == content


@pytest.mark.parametrize("hash_", ["../../../../evil", "/evil", "..", "a\\b", "", "x" * 200])
def test_a_hub_cannot_name_a_file_outside_of_the_cache(hub: Hub, hash_: str) -> None:
    """What it says of a file or a commit becomes a name."""
    home, repo = cache.root().parent, hub.repos[NAME]
    if hash_:
        repo.etags = {WEIGHTS: hash_}
        fetch(plan(HubName(NAME)), nobody)
        repo.refs["main"] = hash_
        assert "which is no hash" in str(fails(hub))
    repo.refs["main"] = COMMIT
    repo.files |= {"../evil.safetensors": b"x", "..": b"x"}
    index = {"weight_map": {"a": "../evil.safetensors", "b": "..", "c": WEIGHTS}}
    repo.files["model.safetensors.index.json"] = json.dumps(index).encode()
    assert {file.name for file in plan(HubName(NAME)).files} <= repo.files.keys() - {"../evil.safetensors", ".."}
    assert {path.name for path in home.parent.iterdir()} <= {home.name}
    assert not any("evil" in path.name for path in home.rglob("*"))


@pytest.mark.parametrize("host", ["127.0.0.2", "10.1.2.3", "169.254.169.254", "[::1]", "localhost"])
def test_a_hub_cannot_send_this_machine_into_its_own_network(hub: Hub, host: str) -> None:
    hub.repos[NAME].elsewhere = {WEIGHTS: f"http://{host}:9/model"}
    refused = fails(hub)
    assert isinstance(refused, FetchFailed)
    assert f"redirects to {host.strip('[]')}, which is no public address" in str(refused)


def test_a_hub_that_answers_otherwise_the_second_time_is_refused(hub: Hub, tiny: dict[str, bytes]) -> None:
    """Whoever loses a connection is asked again, for the rest."""
    repo, hub.breaks = hub.repos[NAME], PIECE
    wanted = plan(HubName(NAME))
    repo.second = {WEIGHTS: tiny[WEIGHTS][::-1]}
    with pytest.raises(FetchFailed, match="does not have the hash"):
        fetch(wanted, nobody)
    assert cache.find(HubName(NAME)) is None


def test_content_that_another_program_left_is_compared_too(hub: Hub, tiny: dict[str, bytes]) -> None:
    blob = fetch(plan(HubName(NAME)), nobody).joinpath(WEIGHTS).resolve()
    blob.write_bytes(tiny[WEIGHTS][::-1])
    with pytest.raises(FetchFailed, match="does not have the hash"):
        fetch(plan(HubName(NAME)), nobody)
    assert cache.find(HubName(NAME)) is None
    assert (fetch(plan(HubName(NAME)), nobody) / WEIGHTS).read_bytes() == tiny[WEIGHTS]


def test_a_file_is_kept_where_there_are_no_links(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blob, link = tmp_path / "blobs" / "x", tmp_path / "snapshots" / "x"
    for path in (blob, link):
        path.parent.mkdir()
    blob.write_bytes(b"content")

    def refuse(self: Path, target: str) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    worker._link(blob, link)
    assert (link.read_bytes(), blob.exists()) == (b"content", False)


def test_an_answer_without_an_end_is_ended(hub: Hub) -> None:
    hub.endless = True
    assert "answer about it is larger than 67,108,864 bytes" in str(fails(hub))


def test_what_does_not_fit_the_disk_or_the_memory_is_not_downloaded(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repos[NAME].huge = {WEIGHTS: 10**15}
    full = fails(hub)
    assert isinstance(full, NoDisk)
    assert "needs 1,000,000.0 GB of disk" in str(full)
    hub.repos[NAME].huge = {}
    monkeypatch.setattr(fetching, "machine_bytes", lambda: 1000.0)
    assert isinstance(fails(hub), NoMemoryFor)
    assert not cache.repos()


@pytest.mark.parametrize(("kind", "bytes_"), [("gemma2", 2), ("bloom", 4), ("blip", 2)])
def test_memory_is_that_of_the_number_type_in_which_a_network_runs(
    kind: str, bytes_: int, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of architectures without a row, in bfloat16, two can be changed and run in it, one of which writes its attention out; the
    other is recorded, in float32."""
    import torch
    from transformers import BloomConfig, BloomForCausalLM, Gemma2Config, Gemma2ForCausalLM

    from model.huggingface.folder import open_folder
    from model.huggingface.loading import load
    from tests import captioners

    small = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "intermediate_size": 20}
    made = {
        "gemma2": lambda: Gemma2ForCausalLM(Gemma2Config(vocab_size=2000, hidden_size=16, **small)),
        "bloom": lambda: BloomForCausalLM(BloomConfig(vocab_size=2000, hidden_size=16, n_layer=2, n_head=2)),
        "blip": lambda: captioners.network("blip"),
    }[kind]()
    made.to(torch.bfloat16).save_pretrained(tmp_path / kind)
    numbers = sum(parameter.numel() for parameter in made.parameters())
    hub.repos["some/half"] = Repo(contents(tmp_path / kind))
    wanted = plan(HubName("some/half"))
    assert wanted.shape.dtype == "bfloat16"
    assert wanted.memory == pytest.approx(bytes_ * numbers, rel=0.2)
    folder = fetch(wanted, nobody)
    opened = load(open_folder(folder), torch.device("cpu"))
    held = sum(parameter.numel() * parameter.element_size() for parameter in opened.network.library.parameters())
    assert wanted.memory == pytest.approx(held, rel=0.2), "what is told before the download is what it takes when it is open"
    monkeypatch.setattr(cache, "machine_bytes", lambda: 0.6 * 4 * numbers)
    assert bool(cache.models()) == (bytes_ == 2)


@pytest.mark.skipif(sys.platform == "win32", reason="limits a process by what Unix has")
def test_a_disk_that_is_full_in_the_middle_is_told_and_what_came_is_kept(hub: Hub, tiny: dict[str, bytes]) -> None:
    import resource

    wanted = plan(HubName(NAME))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(tiny[WEIGHTS]) // 2, hard))
    try:
        with pytest.raises(FetchFailed, match=r"the disk is full \(File too large\); free some space"):
            fetch(wanted, nobody)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert 0 < plan(HubName(NAME)).missing < len(tiny[WEIGHTS])
    assert (fetch(wanted, nobody) / WEIGHTS).read_bytes() == tiny[WEIGHTS]


def test_without_a_network_what_is_there_is_found(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fetch(plan(HubName(NAME)), nobody)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    away = fails(hub, name="other/model")
    assert isinstance(away, HubAway)
    assert "models on this machine run without it" in str(away)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "HF_HUB_OFFLINE is set" in str(fails(hub, name="other/model"))
    assert cache.find(HubName("gpt2")) == folder


def test_the_owner_may_forbid_downloads_and_names(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fetch(plan(HubName(NAME)), nobody)
    hub.asked = []
    monkeypatch.setenv("HEADLIGHT_HUB", "cache")
    assert cache.locate(HubName(NAME)) == folder
    assert isinstance(fails(hub, name="other/model"), NotFetched)
    monkeypatch.setenv("HEADLIGHT_HUB", "off")
    assert isinstance(fails(hub), HubOff)
    with pytest.raises(HubOff):
        cache.locate(HubName(NAME))
    assert not cache.models()
    monkeypatch.delenv("HEADLIGHT_HUB")
    monkeypatch.setenv("HEADLIGHT_PUBLIC", "1")
    with pytest.raises(HubOff):
        cache.locate(HubName(NAME))
    assert not hub.asked


def test_the_cache_lists_what_runs_here_and_nothing_else(hub: Hub, tiny: dict[str, bytes]) -> None:
    folder = fetch(plan(HubName(NAME)), nobody)
    hub.repos["some/mamba"] = hub.repos[NAME]
    fetch(plan(HubName("some/mamba")), nobody)
    broken = next(path for path in cache.root().glob("models--some--mamba/snapshots/*"))
    (broken / WEIGHTS).unlink()
    (found,) = cache.models()
    assert (found.name, found.path, found.refs) == (HubName(NAME, COMMIT), folder, ("main",))
    assert found.bytes == len(tiny[WEIGHTS])
    assert found.shape == plans.Shape("gpt2", 2, 3, "float32")
    (broken / "config.json").unlink()
    (broken / "config.json").write_text('{"model_type": "nonesuch"}')
    (broken / WEIGHTS).write_bytes(tiny[WEIGHTS])
    assert [each.path for each in cache.models()] == [folder]


def test_names_like_a_wrong_one_are_found(hub: Hub) -> None:
    assert cache.near("gpt3") == "–"
    fetch(plan(HubName(NAME)), nobody)
    assert (cache.near("gpt3"), cache.near("other/model")) == (NAME, "–")
    with pytest.raises(NotFetched, match=f"Similar names here: {NAME}"):
        cache.locate(HubName("gpt22"))
    assert Path(cache.locate(HubName("gpt2"))).name == COMMIT
