"""Starting the host of an engine in this process."""

import os
from ipaddress import ip_address

import click
import uvicorn

from model import logbook
from model.engine.door import Door
from model.engine.local import LocalEngine
from model.engine.server import application
from model.errors import BadSetting

KEEP_ALIVE = 75
STOP_SECONDS = 10
"""What is on its way gets this long to end when the host is stopped."""


@click.command()
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="the address to listen on; another than loopback needs a token"
)
@click.option("--port", type=click.IntRange(1, 65535), default=8765, show_default=True, help="the port to listen on")
def serve(host: str, port: int) -> None:
    """Serves the engine over HTTP, for apps that are told HEADLIGHT_ENGINE=http://HOST:PORT."""
    logbook.begin()
    door = checked_door(host)
    engine = LocalEngine.from_environment()
    engine.models()
    uvicorn.run(
        application(engine, door),
        host=host,
        port=port,
        log_level="warning",
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=STOP_SECONDS,
    )


def checked_door(host: str) -> Door:
    """The door that the environment asks for.

    Raises:
        BadSetting: strangers could reach `host`, and there is no token.
    """
    door = Door.from_environment(os.environ)
    if not (door.token or _is_loopback(host)):
        raise BadSetting(name="--host", found=host, allowed="127.0.0.1, or another address together with a HEADLIGHT_TOKEN")
    return door


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
