"""What replicas have in common: the files that any of them was sent, and that they open no port to other machines. No torch."""

import logging
from typing import Any

import ray.util
from ray.exceptions import RayError
from ray.serve._private import replica
from ray.serve.exceptions import RayServeException

from model.engine.http.access import is_loopback
from model.engine.shared_uploads import Files

FILE_SECONDS = 10.0
"""How long a replica waits for a file that another one was sent."""


class FilesOfAll:
    """The files that were sent to any replica, as one of them reaches them.

    Args:
        kept: the handle of a Cabinet.
    """

    def __init__(self, kept: Any) -> None:
        self._kept = kept

    def put(self, known_as: str, data: bytes, name: str) -> None:
        """Keeps a file for all; where that fails, whoever sent it is asked for it again when it is missed."""
        self._ask("put", known_as, data, name)

    def get(self, known_as: str) -> tuple[bytes, str] | None:
        """A file that any replica was sent; None: nobody can say."""
        found: tuple[bytes, str] | None = self._ask("get", known_as)
        return found

    def _ask(self, what: str, *given: object) -> Any:
        try:
            return getattr(self._kept, what).remote(*given).result(timeout_s=FILE_SECONDS)
        except (RayError, RayServeException, TimeoutError) as error:
            logging.getLogger("headlight.serve").warning("the files of all cannot be reached: %s", type(error).__name__)
            return None


class Cabinet(Files):
    """The process that keeps the files of all replicas."""

    def __init__(self) -> None:
        super().__init__()
        stay_on_loopback()


def stay_on_loopback() -> None:
    """Closes this process to other machines where Ray itself keeps to loopback, as `python -m model serve --cluster` tells it to.

    Ray Serve 2.60 opens a port in each replica on all addresses, for calls between replicas that it does not make unless told, and
    has no setting for it. To be called before the replica is ready.
    """
    if is_loopback(ray.util.get_node_ip_address()):
        opened = replica.add_port_to_grpc_server
        replica.add_port_to_grpc_server = lambda server, address: opened(server, address.replace("[::]", "127.0.0.1"))
