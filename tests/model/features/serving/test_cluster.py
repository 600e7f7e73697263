"""Replicas on Ray Serve: the contract of every engine, and nothing lost when a replica dies or all are replaced."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from model.__main__ import main
from model.engine.api import Run
from model.engine.guards.access import AccessLimits
from model.engine.local import LocalEngine
from model.engine.uploads import Uploads
from model.errors import BadSetting
from model.features.serving.http.client import RemoteEngine
from model.features.serving.http.protocol import SESSION_HEADER, WIRE_VERSION, WIRE_VERSION_HEADER
from model.features.serving.http.server import application
from model.features.serving.serve_command import RAY
from model.requests.request import Decoding, RunRequest
from tests.browser.servers import free_port
from tests.hosts import ROOT, start
from tests.live import answered, live_session
from tests.model.engine import test_contract
from tests.networks import save_checkpoint
from tests.patience import HANG_S
from tests.runs import CPU, assert_same, for_session

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),  # at the import of ray.serve
]
globals().update({name: test for name, test in vars(test_contract).items() if name.startswith("test_")})

HEADERS = {"authorization": "Bearer secret"}
REQUESTS = [RunRequest("tiny", f"w4 w{i} w{j}", decoding=Decoding(max_length=4)) for i in range(4, 8) for j in range(4, 8)]
PEOPLE = 4
HURRIED, PAUSE = 20, 0.5
"""How often a person asks without a pause, which is longer than it takes to kill a replica; then others get at the cores, too."""


@dataclass(frozen=True)
class Cluster:
    """Two replicas on this machine: their address, the process that holds them, and the variables that reach it."""

    url: str
    process: psutil.Process
    environment: dict[str, str]

    def replicas(self) -> set[int]:
        """The processes of the replicas."""
        found = set[int]()
        for child in self.process.children(recursive=True):
            try:
                if child.cmdline()[0].startswith("ray::ServeReplica:default:Replica"):
                    found.add(child.pid)
            except (psutil.NoSuchProcess, IndexError):
                pass
        return found


def eventually(met: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + HANG_S
    while not met():
        assert time.monotonic() < until, f"not within {HANG_S} s: {what}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("cluster")
    save_checkpoint(found / "tiny", split="words")
    (found / "damaged").mkdir()
    return found


@pytest.fixture(scope="module")
def local(folder: Path) -> LocalEngine:
    return LocalEngine(folder, CPU)


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    kept = tempfile.mkdtemp(prefix="ray-")  # no path of pytest's: Ray's sockets are in it, whose paths are short
    environment = {"HEADLIGHT_TOKEN": "secret", "RAY_TMPDIR": kept, "RAY_AUTH_TOKEN": os.urandom(16).hex()}
    port = free_port()
    before, everybody = psutil.Process().children(), list[psutil.Process]()
    try:
        process = start(folder, port, "--cluster", "--replicas", "2", **environment)
        found = Cluster(f"http://127.0.0.1:{port}", psutil.Process(process.pid), environment)
        eventually(lambda: len(found.replicas()) == 2, "two replicas")
        yield found
        everybody = found.process.children(recursive=True)
        process.terminate()
        assert process.wait(HANG_S) == 0
        left = psutil.wait_procs(everybody, timeout=HANG_S)[1]
        assert not left, "processes that nobody ended"
    finally:
        for child in psutil.Process().children():
            everybody += [] if child in before else [*child.children(recursive=True), child]
        for each in everybody:
            if each.is_running():
                each.kill()
        shutil.rmtree(kept, ignore_errors=True)


@pytest.fixture(scope="module")
def engine(cluster: Cluster) -> Iterator[RemoteEngine]:
    with closing(RemoteEngine(cluster.url, "secret")) as found:
        yield found


@contextmanager
def people_asking(cluster: Cluster, local: LocalEngine) -> Iterator[Counter[int]]:
    """Several people who ask and ask; how many answers each of them got. All of these must be right."""
    expected, answered, ended = [local.ask(Run(request)) for request in REQUESTS], Counter[int](), threading.Event()
    wrong = list[BaseException]()

    def ask(person: int) -> None:
        session = f"person {person}" if person % 2 else ""
        with closing(RemoteEngine(cluster.url, "secret", cache_bytes=0)) as engine:
            while not ended.is_set() and not wrong:
                which = (answered[person] + person) % len(REQUESTS)
                try:
                    assert_same(for_session(session, engine.ask)(Run(REQUESTS[which])), expected[which])
                except BaseException as error:
                    wrong.append(error)
                answered[person] += 1
                ended.wait(PAUSE if answered[person] > HURRIED else 0)

    threads = [threading.Thread(target=ask, args=(person,)) for person in range(PEOPLE)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: all(answered[person] > 2 for person in range(PEOPLE)), "first answers")
        yield answered
        before = answered.copy()
        eventually(lambda: bool(wrong) or all(answered[p] > before[p] + 2 for p in range(PEOPLE)), "more answers")
    finally:
        ended.set()
        for thread in threads:
            thread.join(HANG_S)
    if wrong:
        raise wrong[0]


def test_a_replica_killed_under_load_loses_nothing_and_comes_back(cluster: Cluster, local: LocalEngine) -> None:
    with people_asking(cluster, local):
        victim = min(cluster.replicas())
        psutil.Process(victim).kill()
        eventually(lambda: victim not in cluster.replicas() and len(cluster.replicas()) == 2, "another replica")


def test_all_replicas_are_replaced_under_load_and_nothing_is_lost(cluster: Cluster, folder: Path, local: LocalEngine) -> None:
    before = cluster.replicas()
    there = {"HEADLIGHT_CHECKPOINTS": str(folder), "HEADLIGHT_DEVICE": "cpu", "RAY_ADDRESS": "auto"}
    variables, serve = os.environ | cluster.environment | RAY | there, str(Path(sys.executable).with_name("serve"))
    command = [serve, "run", "--non-blocking", "model.features.serving.cluster:app", "replicas=2"]
    with people_asking(cluster, local):
        done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        eventually(lambda: not before & cluster.replicas() and len(cluster.replicas()) == 2, "other replicas")


def test_a_file_that_one_replica_was_sent_is_known_to_all(cluster: Cluster, folder: Path) -> None:
    data = (folder / "tiny" / "model.safetensors").read_bytes()
    with httpx.Client(base_url=cluster.url, headers=HEADERS, timeout=HANG_S) as client:
        name = client.post("/v1/receive", params={"name": "mine.safetensors"}, content=data).json()["name"]
        replies = [client.post("/v1/describe", json={"model": name}) for _ in range(12)]
        assert [reply.json()["name"] for reply in replies] == [name] * 12
        assert client.post("/v1/describe", json={"model": "upload-0000000000000000"}).status_code == 404


def test_a_session_stays_with_one_replica(cluster: Cluster) -> None:
    def asked(client: httpx.Client, session: str) -> float:
        figures = client.get("/metrics", headers={SESSION_HEADER: session}).text
        counted = [line for line in figures.splitlines() if line.startswith('headlight_request_seconds_count{path="/v1/models"')]
        return float(counted[0].split()[1]) if counted else 0.0

    with httpx.Client(base_url=cluster.url, headers=HEADERS, timeout=HANG_S) as client:
        for person in map("person {}".format, range(8)):
            before = asked(client, person)
            for _ in range(3):
                client.post("/v1/models", headers={SESSION_HEADER: person}).raise_for_status()
            assert asked(client, person) == before + 3


def test_what_is_typed_is_drawn_as_on_an_engine_here(engine: RemoteEngine, local: LocalEngine) -> None:
    for person in ("one", "other"):
        for text in ("w4", "w4 w5", "w4 w5 w6"):
            drawn = [answered(live_session(each, person), text)[-1] for each in (engine, local)]
            assert drawn[0] == drawn[1]
            assert set(drawn[0][1]) == {"strips", "atlas", "cells", "lines"}


def test_nothing_listens_beyond_this_machine(cluster: Cluster) -> None:
    listening = set[str]()
    for each in [cluster.process, *cluster.process.children(recursive=True)]:
        listening |= {c.laddr.ip for c in each.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    assert listening
    assert listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in [name for name in os.environ if name.startswith("HEADLIGHT_")]:
        monkeypatch.delenv(name)
    from model.features.serving import cluster

    return cluster


def built(module: Any, **arguments: str) -> tuple[Any, int, int]:
    """What Ray is asked for: the deployment, and the least and the most replicas."""
    deployment = module.app(arguments)._bound_deployment
    scaled = deployment._deployment_config.autoscaling_config
    return deployment, scaled.min_replicas, scaled.max_replicas


def test_a_replica_takes_a_gpu_where_there_are_some_else_a_core(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    deployment, *replicas = built(module)
    assert deployment.ray_actor_options == {"num_cpus": 1, "num_gpus": 0}
    assert replicas == [1, 8]
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    monkeypatch.setenv("HEADLIGHT_THREADS", "2")
    deployment, *replicas = built(module)
    assert deployment.ray_actor_options == {"num_cpus": 2, "num_gpus": 1}
    assert replicas == [1, 3]
    assert deployment.init_args[0] == {"HEADLIGHT_THREADS": "2"}
    assert built(module, replicas="2-5")[1:] == (2, 5)
    assert built(module, replicas="4")[1:] == (4, 4)


@pytest.mark.parametrize("replicas", ["0", "3-2", "many", "2-", "-2", "2-3-4", "1.5", "99999", "٣"])
def test_a_number_of_replicas_that_cannot_be_is_refused(module: Any, replicas: str) -> None:
    with pytest.raises(
        BadSetting, match=rf"replicas: “{replicas}” is not accepted. Allowed: a whole number from 1 to 1,024, or two of them"
    ):
        module.app({"replicas": replicas})


def test_what_nobody_knows_is_refused(module: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadSetting, match=r"app has no field “colour”. Allowed: replicas"):
        module.app({"colour": "blue"})
    assert main(["serve", "--replicas", "2"]) == 1
    assert "left out where there is no --cluster" in capsys.readouterr().err
    assert main(["serve", "--cluster", "--host", "0.0.0.0"]) == 1
    assert "together with a HEADLIGHT_TOKEN" in capsys.readouterr().err
    monkeypatch.delitem(sys.modules, "model.features.serving.cluster")
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["serve", "--cluster"]) == 1
    assert "pip install -r requirements-cluster.txt" in capsys.readouterr().err


@pytest.mark.parametrize(("address", "status"), [("127.0.0.1", 200), ("::1", 200), ("192.0.2.7", 401)])
def test_without_a_token_strangers_are_refused_wherever_the_cluster_listens(
    module: Any, local: LocalEngine, address: str, status: int
) -> None:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(module.LoopbackOnly(application(local, AccessLimits())), client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.post("/v1/models")

    reply = asyncio.run(asked())
    assert reply.status_code == status
    assert ("tiny" in reply.text) == (status == 200)
    assert reply.headers[WIRE_VERSION_HEADER] == WIRE_VERSION


def test_where_the_files_of_all_cannot_be_reached_each_has_its_own(module: Any, folder: Path, caplog: Any) -> None:
    class Gone:
        def __getattr__(self, name: str) -> Any:
            raise TimeoutError

    uploads = Uploads(peers=module.ClusterUploads(Gone()))
    name = uploads.keep((folder / "tiny" / "model.safetensors").read_bytes(), "mine.safetensors")
    assert uploads.get(name) is not None
    assert uploads.get("upload-0000000000000000") is None
    assert "cannot be reached: TimeoutError" in caplog.text
