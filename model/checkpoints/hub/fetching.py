"""Plans and downloads of a Hub's models, as this process sees them: a process of its own (`worker`) asks the Hub."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from model import errors
from model.checkpoints.hub import cache
from model.checkpoints.hub.names import HubName, mode
from model.checkpoints.hub.plans import HubFile, Plan, Shape, disk_left, is_weight
from model.errors import CannotRun, CheckpointError, FetchFailed, HubOff, NoSuchHubModel, NotFetched, phrase
from model.huggingface import folder
from model.huggingface.chat_templates import OWN_FILE
from model.sharing.system_memory import machine_bytes

OnBytes: TypeAlias = Callable[[int, int], None]
"""Hears how many bytes are there, of how many."""

Stopping: TypeAlias = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Makes the context in which somebody can stop: then it calls the given action."""

ROOT = Path(__file__).parents[3]


def plan(name: HubName, stopping: Stopping = nullcontext) -> Plan:  # type: ignore[assignment]  # takes anything
    """What a download of a model would take and bring. Its settings are read for it, and nothing is kept.

    Raises:
        HubOff, NotFetched: the owner does not allow downloads.
        CannotRun: it would not run here.
        NoSuchHubModel, NoSuchRevision, GatedModel, HubRefused, HubAway, FetchFailed: the Hub's answer, or none.
    """
    _check_allowed(name)
    texts = [folder.CONFIG, folder.GENERATION, folder.TOKENIZER, *folder.VOCABULARY_FILES, *folder.PREPARATION, OWN_FILE]
    order = {"plan": {"repo": name.repo, "revision": name.revision, "texts": texts, "weights": list(folder.WEIGHTS)}}
    try:
        # the process ends with its answer, so no connection stays open
        with _asking_worker(name, order, stopping) as lines:
            answer = next(lines)["plan"]
    except NoSuchHubModel as error:
        raise NoSuchHubModel(model=name.typed, near=cache.near(name.repo)) from error
    repo, commit = str(answer["repo"]), str(answer["commit"])
    shape = _runnable_shape(repo, answer)
    return Plan(
        name=str(HubName(repo, commit)),
        title=repo,
        revision=name.revision,
        commit=commit,
        files=tuple(HubFile(**file) for file in answer["files"]),
        missing=answer["missing"],
        license=answer["license"],
        shape=shape,
        parameters=sum(map(int, answer["parameters"].values())),
        folder=answer["folder"],
        memory_there=machine_bytes(),
        disk_there=disk_left(Path(answer["folder"])),
    )


def fetch(wanted: Plan, count: OnBytes, stopping: Stopping = nullcontext) -> Path:  # type: ignore[assignment]  # takes anything
    """Downloads what a plan says, unless it is there; goes on where an earlier download ended.

    Args:
        count: hears the bytes.
        stopping: makes the context in which it can be stopped.

    Returns:
        The folder of the model.

    Raises:
        HubOff, NotFetched: the owner does not allow downloads.
        NoDisk, NoMemoryFor: there is no room for it.
        GatedModel, HubRefused, HubAway, FetchFailed: it was not downloaded; what came is kept for the next time.
    """
    name = HubName(wanted.title, wanted.commit)
    _check_allowed(name)
    if wanted.refused is not None:
        raise wanted.refused
    files = [asdict(file) for file in wanted.files]
    order = {"fetch": {"repo": wanted.title, "commit": wanted.commit, "revision": wanted.revision, "files": files}}
    with _asking_worker(name, order, stopping) as lines:
        for line in lines:
            if "bytes" in line:
                count(line["bytes"], line["of"])
    if (path := cache.find(name)) is None:
        raise FetchFailed(model=wanted.title, reason=phrase("the download ended before all files had arrived"))
    return path


def _check_allowed(name: HubName) -> None:
    if (allowed := mode()) == "off":
        raise HubOff(model=name.typed)
    if allowed == "cache":
        raise NotFetched(model=name.typed, near=cache.near(name.repo))


def _runnable_shape(repo: str, answer: dict[str, Any]) -> Shape:
    """The shape of a model. Refuses one that would not run, before anything is downloaded.

    Raises:
        CannotRun: it has no settings or weights that are read here, or an architecture that does not run.
    """
    if answer["config"] is None or not any(is_weight(file["name"]) for file in answer["files"]):
        reason = phrase("it has no config.json with weights in safetensors or .bin")
        if any(str(name).endswith(".gguf") for name in answer["listed"]):
            reason = phrase("it contains only GGUF files: download one of them yourself and open it by its path")
        raise CannotRun(model=repo, reason=reason)
    try:
        opened = folder.with_settings(Path(repo), answer["config"], {})
        cache.check_runs(repo, opened)
        return cache.shape(opened)
    except CheckpointError as error:
        reason = error.fields.get("reason", str(error))  # type: ignore[assignment]
        raise CannotRun(model=repo, reason=reason) from error


@contextmanager
def _asking_worker(name: HubName, order: dict[str, Any], stopping: Stopping) -> Iterator[Iterator[dict[str, Any]]]:
    """A process that asks the Hub; the lines that it answers with. It ends with this context.

    Raises:
        HeadlightError: the error that it tells, or that it ended without an answer.
    """
    environment = os.environ | {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "PYTHONIOENCODING": "utf-8"}
    options: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "model.checkpoints.hub.worker"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, start_new_session=True, **options) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        output = process.stdout
        try:
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            with stopping(process.kill):
                yield _read_lines(name, output)
        finally:
            process.kill()


def _read_lines(name: HubName, output: Any) -> Iterator[dict[str, Any]]:
    for text in output:
        line = json.loads(text)
        if "error" in line:
            raise errors.from_json(line["error"])
        if "done" in line:
            return
        yield line
        if "plan" in line:
            return
    raise FetchFailed(model=name.typed, reason=phrase("the download was stopped; ask for it again, and it continues from there"))
