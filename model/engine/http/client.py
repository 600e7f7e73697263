"""RemoteEngine: an engine on another host, asked over HTTP. The process that uses it needs no torch."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import httpx
from cachetools import LRUCache
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential_jitter

from model.engine.api import Engine, ModelInfo
from model.engine.client_address import CLIENT, FORWARDED_HEADER
from model.engine.http import protocol
from model.engine.http.protocol import (
    QUESTIONS,
    RECEIVE,
    SESSION_HEADER,
    SPEAKS,
    SPEAKS_HEADER,
    Nothing,
    OfCell,
    OfModel,
    OfTensors,
    OfTexts,
)
from model.engine.lru_cache import LruCache
from model.engine.session import SessionEngine
from model.errors import BadSetting, EngineAway, EngineMismatch, HeadlightError, Refused, UnknownModel, from_json
from model.inspection.report import Inspection
from model.spec.request import KEEP, RunRequest, Settings
from model.trace import serialization
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Array, Trace

Value = TypeVar("Value")

CACHE_BYTES = 64 * 2**20
PATIENCE = httpx.Timeout(150.0, connect=2.0)
"""Seconds: longer than the host's own deadline, so that its sentence arrives."""

RETRIED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
"""A connection that failed, or broke, on the way to the host or behind a proxy (`_whole`). To ask again is safe, since nothing is
changed by a question; a time-out is not asked again, since the host may still be working on it."""

AGAIN_SECONDS = 2.0
"""How long a broken connection is tried again before the host counts as away."""

FRESH_SECONDS = 2.0
"""How long small answers count as new: one page asks for the same several times."""

SMALL, MOST_SMALL = 2**20, 256
UPLOAD_BYTES = 128 * 2**20
"""Files that were sent are kept here, so that a host that was restarted can be sent them again."""


class RemoteEngine:
    """Asks the engine at `url`. Safe to be used from many threads.

    Args:
        url: `http://HOST:PORT`, as `python -m model serve` says.
        token: what the host's HEADLIGHT_TOKEN is.
        transport: how bytes get there; None: over the network.
        cache_bytes: bytes of traces that are kept for equal requests.
    """

    def __init__(
        self, url: str, token: str = "", transport: httpx.BaseTransport | None = None, cache_bytes: int = CACHE_BYTES
    ) -> None:
        self._url = url.rstrip("/")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        limits = httpx.Limits(max_connections=256, max_keepalive_connections=32)
        self._client = httpx.Client(
            base_url=self._url, headers=headers, timeout=PATIENCE, transport=transport, limits=limits, trust_env=False
        )
        self._traces: LruCache[RunRequest, Trace] = LruCache(cache_bytes, attrgetter("nbytes"))
        self._small: LruCache[tuple[str, bytes], tuple[float, bytes]] = LruCache(
            SMALL * MOST_SMALL, lambda answer: len(answer[1]), MOST_SMALL
        )
        self._weights: LRUCache[tuple[str, Settings], str] = LRUCache(MOST_SMALL)
        self._uploads: LruCache[str, tuple[bytes, str]] = LruCache(UPLOAD_BYTES, lambda file: len(file[0]))
        self._away_since: float | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Ends its connections."""
        self._client.close()

    @property
    def device(self) -> str:
        """Where the host computes, for people."""
        return protocol.unpack_infos(self._ask_small("models", Nothing()))[0]

    def models(self) -> tuple[ModelInfo, ...]:
        """What the host offers; while it is away, what it offered last."""
        return protocol.unpack_infos(self._ask_small("models", Nothing()))[1]

    def of(self, session: str) -> Engine:
        """This engine as one session sees it."""
        return SessionEngine(self, session)

    def receive(self, data: bytes, name: str) -> str:
        """Sends a file to the host.

        Raises:
            HeadlightError: the host does not take it, and why.
        """
        reply = self._post(RECEIVE, data, "application/octet-stream", params={"name": name})
        known_as = str(json.loads(reply)["name"])
        self._uploads.keep(known_as, (data, name))
        return known_as

    def open_path(self, path: Path) -> str:
        """Refuses: the host computes elsewhere and does not see this machine's files.

        Raises:
            Refused: always.
        """
        raise Refused(
            what="The path", found="of another machine than the engine's", allowed="send the file, or start Headlight there"
        )

    def describe(self, model: str, settings: Settings = ()) -> ModelInfo:
        """What a model is; while the host is away, what it was last."""
        return protocol.unpack_info(self._ask_small("describe", OfModel(model, settings), model))

    def inspect(self, model: str, settings: Settings = ()) -> Inspection:
        """The diagnosis of a model's file."""
        return protocol.unpack_inspection(self._ask_small("inspect", OfModel(model, settings), model))

    def run(self, request: RunRequest, session: str = "") -> Trace:
        """The trace of one run; the same object again for an equal request, while the cache holds it.

        Raises:
            EngineAway: the host does not answer.
            EngineMismatch: it has other weights than before. The next run counts these as the right ones.
            HeadlightError: what the host says.
        """
        if (trace := self._traces.get(request)) is None:
            trace = serialization.from_bytes(self._ask("run", request, request.model, session))
            trace = replace(trace, request=replace(request, precision=trace.request.get("precision")).to_json())
            self._compare(request, str(trace.model.get("fingerprint", "")))
            self._traces.keep(request, trace)
        return trace

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int, session: str = "") -> Explanation:
        """The arithmetic of one attention cell of a run that keeps everything."""
        asked = OfCell(replace(request, keep=KEEP), site, head, query, key)
        return protocol.unpack_explanation(self._ask("explain", asked, request.model, session))

    def tensors(self, model: str, names: tuple[str, ...], settings: Settings = ()) -> dict[str, Array]:
        """Tensors of a model by name."""
        return protocol.unpack_arrays(self._ask_small("tensors", OfTensors(model, names, settings), model))

    def export(self, model: str, settings: Settings = ()) -> bytes:
        """The model as a folder of our own, zipped."""
        return self._ask("export", OfModel(model, settings), model)

    def texts(self, model: str, strip: str, ids: tuple[int, ...], settings: Settings = ()) -> tuple[str, ...]:
        """What ids of a strip are called on screen."""
        return tuple(json.loads(self._ask_small("texts", OfTexts(model, strip, ids, settings), model)))

    def figures(self) -> dict[str, float]:
        """Nothing: the host shows its own at /metrics."""
        return {}

    def batches(self) -> dict[int, int]:
        """Nothing: the host shows its own."""
        return {}

    def answers(self) -> bool:
        """Whether the host can be asked now."""
        try:
            response = self._client.get("/healthz", timeout=2.0)
            self._speaks_as_we_do(response)
        except (httpx.TransportError, EngineMismatch):
            return False
        self._away_since = None
        return response.is_success

    def _compare(self, request: RunRequest, fingerprint: str) -> None:
        """Notices that a model's weights are others than in the runs before, which are then forgotten."""
        key = request.model, request.settings
        with self._lock:
            before, self._weights[key] = self._weights.get(key, fingerprint), fingerprint
        if before != fingerprint:
            self._traces.forget(lambda old: old.model == request.model)
            self._small.forget()
            raise EngineMismatch(host=self._url, what=f"weights of {request.model}", found=fingerprint[:8], expected=before[:8])

    def _ask_small(self, what: str, body: object, model: str = "") -> bytes:
        """A small answer: a fresh one is not asked for again, and while the host is away the last one counts."""
        key = what, protocol.pack(asdict(body))  # type: ignore[call-overload]  # bodies are dataclasses
        then, kept = self._small.get(key) or (-FRESH_SECONDS, b"")
        if time.monotonic() - then < FRESH_SECONDS:
            return kept
        try:
            reply = self._ask(what, body, model)
        except EngineAway:
            if kept:
                return kept
            raise
        if len(reply) <= SMALL:
            self._small.keep(key, (time.monotonic(), reply))
        return reply

    def _ask(self, what: str, body: object, model: str = "", session: str = "") -> bytes:
        """The reply to a question. A host that has forgotten files which were sent gets them again."""
        path, data = QUESTIONS[what].path, protocol.pack(asdict(body))  # type: ignore[call-overload]
        headers = {SESSION_HEADER: session} if session else {}
        try:
            return self._post(path, data, protocol.JSON, headers=headers)
        except (UnknownModel, BadSetting) as error:
            if self._uploads.get(str(error.fields.get("asked", error.fields.get("found")))) is None:
                raise
            settings: Settings = getattr(body, "request", body).settings  # type: ignore[attr-defined]  # all that name a model have them
            for name in (model, *dict(settings).values()):
                if (sent := self._uploads.get(name)) is not None:
                    self.receive(*sent)
            return self._post(path, data, protocol.JSON, headers=headers)

    def _post(self, path: str, data: bytes, media: str, **options: Any) -> bytes:
        headers = {"content-type": media} | options.pop("headers", {})
        if client := CLIENT.get():
            headers[FORWARDED_HEADER] = client
        response = self._again(lambda: self._client.post(path, content=data, headers=headers, **options))
        self._speaks_as_we_do(response)
        if response.status_code == httpx.codes.OK:
            return response.content
        raise self._error(response)

    def _again(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        """Sends; a broken connection is tried again for a moment, unless the host is known to be away.

        Raises:
            EngineAway: no answer.
        """
        seconds = AGAIN_SECONDS if self._away_since is None else 0.0
        retrying = Retrying(
            retry=retry_if_exception_type(RETRIED),
            stop=stop_after_delay(seconds),
            wait=wait_exponential_jitter(multiplier=0.05, max=0.5, jitter=0.05),
            reraise=True,
        )
        began = time.monotonic()
        try:
            response = retrying(_whole, send)
        except httpx.TransportError as error:
            self._away_since = self._away_since or began
            raise EngineAway(host=self._url, seconds=round(time.monotonic() - self._away_since)) from error
        self._away_since = None
        return response

    def _speaks_as_we_do(self, response: httpx.Response) -> None:
        if (found := response.headers.get(SPEAKS_HEADER, "none")) != SPEAKS:
            raise EngineMismatch(host=self._url, what="the protocol", found=found, expected=SPEAKS)

    def _error(self, response: httpx.Response) -> HeadlightError:
        try:
            return from_json(response.json())
        except (ValueError, KeyError, TypeError, AttributeError):
            return HeadlightError(detail=f"The engine at {self._url} replied with the status {response.status_code} and no words.")


def _whole(send: Callable[[], httpx.Response]) -> httpx.Response:
    """The host's own reply.

    Raises:
        httpx.TransportError: there is none; a proxy's word that it lost the host is no reply of the host.
    """
    response = send()
    if response.is_server_error and SPEAKS_HEADER not in response.headers:
        raise httpx.RemoteProtocolError(f"a proxy answers {response.status_code}")
    return response
