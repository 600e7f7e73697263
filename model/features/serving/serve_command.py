"""`python -m model serve`: the engine server."""

import os

import click
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from model.engine import log
from model.engine.api import Models
from model.engine.client_address import MOST_PROXIES, VARIABLE
from model.engine.guards.access import AccessLimits, is_loopback
from model.engine.guards.connections import guard
from model.engine.guards.hosts import KnownHosts, more_hosts
from model.engine.trace_engine import from_environment
from model.errors import BadSetting
from model.features.serving.http.server import application, refusal

KEEP_ALIVE = 75
"""Seconds that an unused connection stays open."""

STOP_SECONDS = 10
"""Time for open requests to end when the server is stopped."""

RAY = {
    "RAY_AUTH_MODE": "token",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Variables that Ray reads on import: processes authenticate by token, log lines are not merged, traffic stays on loopback (despite
the variable's name), and no usage statistics are sent."""


@click.command()
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="the address to listen on; another than loopback needs a token"
)
@click.option("--port", type=click.IntRange(1, 65535), default=8765, show_default=True, help="the port to listen on")
@click.option("--cluster", is_flag=True, help="several processes, one for each device, by Ray Serve (requirements-cluster.txt)")
@click.option("--replicas", default="", metavar="N|N-M", help="of a cluster: how many, or from how many to how many as needed")
@click.option(
    "--proxies",
    type=click.IntRange(0, MOST_PROXIES),
    metavar="N",
    help=f"how many proxies stand before it, each of which writes X-Forwarded-For  [default: {VARIABLE}, else 0]",
)
def serve(host: str, port: int, cluster: bool, replicas: str, proxies: int | None) -> None:
    """Serves the engine over HTTP, for apps with HEADLIGHT_ENGINE=http://HOST:PORT."""
    log.configure()
    if proxies is not None:
        os.environ[VARIABLE] = str(proxies)  # for the replicas of a cluster
    access = checked_access(host)
    more_hosts(os.environ)  # refused here: a cluster would start a failing replica again and again
    if cluster:
        os.environ.update(RAY)
        try:
            from model.features.serving.cluster import run_cluster
        except ModuleNotFoundError as error:
            allowed = "left out where Ray is not installed (pip install -r requirements-cluster.txt)"
            raise BadSetting(name="--cluster", found=str(error), allowed=allowed) from error
        run_cluster(host, port, replicas)
        return
    if replicas:
        raise BadSetting(name="--replicas", found=replicas, allowed="left out where there is no --cluster")
    engine = from_environment()
    engine.ask(Models())
    # One that others can reach has a token, which a page of another site does not know.
    named = is_loopback(host) or more_hosts(os.environ)
    served = application(engine, access)
    uvicorn.run(
        KnownHosts(served, host, os.environ, refusal) if named else served,
        host=host,
        port=port,
        loop="asyncio",  # fixed, whatever other packages are installed
        http=guard(H11Protocol),
        proxy_headers=False,  # client_address.py does this; uvicorn would trust any caller on loopback
        log_level="warning",
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=STOP_SECONDS,
    )


def checked_access(host: str) -> AccessLimits:
    """Access limits from the environment.

    Raises:
        BadSetting: strangers could reach `host`, and there is no token.
    """
    access = AccessLimits.from_environment(os.environ)
    if not (access.token or is_loopback(host)):
        raise BadSetting(name="--host", found=host, allowed="127.0.0.1, or another address together with a HEADLIGHT_TOKEN")
    return access
