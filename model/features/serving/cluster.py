"""Engine server on several GPUs or machines: replicas run by Ray Serve. Each is the application of `http/server.py` around its own
LocalEngine on its own device.

`python -m model serve --cluster` starts them on this machine, `serve run model.features.serving.cluster:app` on those of a Ray
cluster.
"""

import os
import signal
import threading
from collections.abc import Mapping
from typing import Any

import ray
import torch
from ray import serve
from ray.serve.config import AutoscalingConfig, HTTPOptions, RequestRouterConfig
from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter
from ray.serve.schema import LoggingConfig
from starlette.types import ASGIApp, Receive, Scope, Send

from model.engine import environment, log
from model.engine.api import Models
from model.engine.guards.access import AccessLimits, is_loopback
from model.engine.guards.hosts import KnownHosts
from model.engine.local import LocalEngine
from model.engine.scheduling.scheduler import DEADLINE, MOST_RUNNING
from model.engine.trace_engine import with_traces
from model.engine.uploads import Uploads
from model.errors import BadSetting, NoTokenSet, UnknownField, phrase
from model.features.serving.http.server import CALLERS, application, refusal
from model.features.serving.replicas import ClusterUploads, UploadsProcess, stay_on_loopback
from model.requests.sent_text import whole_number

MOST_REPLICAS = 1024
REQUESTS_PER_REPLICA = MOST_RUNNING // 2
"""Open requests per replica above which another replica is started."""

KEEP_ALIVE = 75
"""Seconds that an unused connection stays open."""

STOP_SECONDS = 10
"""Time for open requests to end when the cluster is stopped."""

HEALTH_SECONDS = 2.0
"""Interval of health checks; a replica that fails is replaced."""


class Replica:
    """One process with one device; answers like `python -m model serve`.

    Args:
        variables: its HEADLIGHT_… environment variables.
        files: handle of the UploadsProcess.
    """

    def __init__(self, variables: Mapping[str, str], files: Any) -> None:
        # Before anything else: Ray opens its port as soon as the replica is ready.
        stay_on_loopback()
        os.environ.update(variables)
        log.configure()
        peers = ClusterUploads(files)
        local = LocalEngine.from_environment(Uploads(peers=peers))
        self._engine = with_traces(local, local.folder, peers)
        # The list begins to open every model, so that the first visitor of a new replica does not wait for all of
        # that.
        self._engine.ask(Models())

    def __serve_build_asgi_app__(self) -> ASGIApp:
        """The application of this replica, built by Ray Serve."""
        access = AccessLimits.from_environment(os.environ)
        host = application(self._engine, access)
        return host if access.token else LoopbackOnly(KnownHosts(host, "127.0.0.1", os.environ, refusal))


class LoopbackOnly:
    """Refuses callers from other machines. Ray's proxies may listen on any address; a server that strangers can reach needs a
    token.

    Args:
        host: the application that answers local callers.
    """

    def __init__(self, host: ASGIApp) -> None:
        self._host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI protocol."""
        address, _port = scope.get("client") or ("", 0)
        if scope["type"] != "http" or is_loopback(address):
            return await self._host(scope, receive, send)
        error = NoTokenSet()
        return await refusal(error)(scope, receive, send)


def app(arguments: dict[str, str]) -> serve.Application:
    """The application that Ray Serve runs: `serve run model.features.serving.cluster:app replicas=2-8`.

    Args:
        arguments: `replicas`: a number, or a range for autoscaling; the default is from one to the number of devices of this
            machine. All replicas get the HEADLIGHT_… variables of this process.

    Raises:
        BadSetting: an argument or a variable is not allowed.
    """
    if unknown := arguments.keys() - {"replicas"}:
        name = min(unknown)
        raise UnknownField(name="app", found=name, allowed="replicas")
    on_gpu, threads = environment.device().type == "cuda", environment.threads() or 1
    devices = torch.cuda.device_count() if on_gpu else max(1, (os.cpu_count() or 1) // threads)
    environment.precision()  # refuse here: Ray would restart a failing replica forever
    least, most = _replicas(arguments.get("replicas") or f"1-{devices}")
    replica = serve.deployment(
        serve.ingress()(Replica),
        name="Replica",
        ray_actor_options={"num_gpus": int(on_gpu), "num_cpus": threads},
        max_ongoing_requests=CALLERS,
        autoscaling_config=AutoscalingConfig(min_replicas=least, max_replicas=most, target_ongoing_requests=REQUESTS_PER_REPLICA),
        request_router_config=RequestRouterConfig(request_router_class=ConsistentHashRouter),
        health_check_period_s=HEALTH_SECONDS,
        graceful_shutdown_timeout_s=DEADLINE,
        logging_config=LoggingConfig(enable_access_log=False),
    )
    uploads = serve.deployment(UploadsProcess, name="UploadsProcess", ray_actor_options={"num_cpus": 0})
    ours = {name: value for name, value in os.environ.items() if name.startswith("HEADLIGHT_")}
    return replica.bind(ours | {"HEADLIGHT_THREADS": str(threads)}, uploads.bind())


def run_cluster(host: str, port: int, replicas: str) -> None:
    """Serves the engine from a Ray cluster on this machine until the process is stopped.

    Args:
        host: the address to listen on.
        port: the port.
        replicas: as for `app`; "": the default.

    Raises:
        BadSetting: as for `app`.
    """
    built = app({"replicas": replicas})
    ended = threading.Event()
    ray.init(address="local", include_dashboard=False)
    for signal_ in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_, lambda *_: ended.set())
    try:
        serve.start(http_options=HTTPOptions(host=host, port=port, keep_alive_timeout_s=KEEP_ALIVE))
        serve.run(built)
        while not ended.wait(1):  # an endless wait does not see signals on every system
            pass
        # The shutdown waits for open requests. It has a thread of its own, so that it keeps the process for
        # STOP_SECONDS at most.
        stopping = threading.Thread(target=serve.shutdown, daemon=True)
        stopping.start()
        stopping.join(STOP_SECONDS)
    finally:
        ray.shutdown()


def _replicas(asked: str) -> tuple[int, int]:
    """Least and most replicas."""
    least, dash, most = asked.partition("-")
    first, last = (whole_number(part, 1, MOST_REPLICAS) for part in (least, most if dash else least))
    if first is None or last is None or first > last:
        raise BadSetting(
            name="replicas",
            found=asked,
            allowed=phrase("a whole number from 1 to {last:,}, or two of them such as 2-8", last=MOST_REPLICAS),
        )
    return first, last
