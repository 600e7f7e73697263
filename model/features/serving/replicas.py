"""State that all replicas share: uploads, and ports that are open on loopback only. No torch."""

import logging
from typing import Any

import ray.util
from ray.exceptions import RayError
from ray.serve._private import replica
from ray.serve.exceptions import RayServeException

from model.engine.guards.access import is_loopback
from model.engine.shared_uploads import UploadedFiles

FILE_SECONDS = 10.0
"""How long a replica waits for an uploaded file of another replica."""


class ClusterUploads:
    """Uploads of all replicas, as seen by one of them.

    Args:
        kept: handle of the UploadsProcess.
    """

    def __init__(self, kept: Any) -> None:
        self._kept = kept

    def put(self, key: str, data: bytes, name: str) -> None:
        """Stores a file for all replicas. If that fails, its sender is asked for it again when it is missing."""
        self._ask("put", key, data, name)

    def get(self, key: str) -> tuple[bytes, str] | None:
        """A file uploaded to any replica; None: not found, or the process did not answer."""
        answer: tuple[bytes, str] | None = self._ask("get", key)
        return answer

    def _ask(self, what: str, *given: object) -> Any:
        try:
            return getattr(self._kept, what).remote(*given).result(timeout_s=FILE_SECONDS)
        except (RayError, RayServeException, TimeoutError) as error:
            logging.getLogger("headlight.serve").warning("the files of all cannot be reached: %s", type(error).__name__)
            return None


class UploadsProcess(UploadedFiles):
    """The process that stores the uploads of all replicas."""

    def __init__(self) -> None:
        super().__init__()
        stay_on_loopback()


def stay_on_loopback() -> None:
    """Closes this process to other machines if Ray itself runs on loopback, as with `python -m model serve --cluster`.

    Ray Serve 2.60 opens a port on all addresses in each replica, for calls between replicas that are off by default, and has no
    setting for it. Call this before the replica is ready.
    """
    if is_loopback(ray.util.get_node_ip_address()):
        opened = replica.add_port_to_grpc_server
        replica.add_port_to_grpc_server = lambda server, address: opened(server, address.replace("[::]", "127.0.0.1"))
