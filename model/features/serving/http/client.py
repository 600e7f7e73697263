"""RemoteEngine: HTTP client of an engine server. Needs no torch."""

import json
import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import httpx
from cachetools import LRUCache
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential_jitter

from model.engine.api import Batches, Export, Fetch, Find, Gauges, Healthy, Offered, Offers, Receive, Run
from model.engine.client_address import FORWARDED_HEADER
from model.engine.scheduling.queue import SESSION
from model.engine.sent_files import sent_names
from model.errors import (
    BadSetting,
    EngineAway,
    EngineMismatch,
    HeadlightError,
    NotAnEngine,
    OtherMachine,
    UnknownModel,
    WeightsChanged,
    from_json,
    phrase,
)
from model.features.serving.http import progress_stream
from model.features.serving.http.protocol import (
    ENDPOINTS,
    RECEIVE,
    SESSION_HEADER,
    WIRE_VERSION,
    WIRE_VERSION_HEADER,
)
from model.requests.endpoints import JSON
from model.requests.questions import Answer, ModelQuestion, Question, RunQuestion
from model.requests.request import RunRequest, Settings
from model.sharing.caches import BUDGET, LruCache
from model.trace import serialization
from model.trace.types import Trace

TIMEOUT = httpx.Timeout(150.0, connect=2.0)
"""Longer than the server's own deadline, so that its error arrives."""

RETRIED_ERRORS = (httpx.ConnectError, httpx.ConnectTimeout, httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
"""Connections that failed or broke, also behind a proxy (`_host_reply`). Retrying is safe: requests change nothing. Time-outs are
not retried, since the server may still be working."""

RETRY_SECONDS = 2.0
"""How long a broken connection is retried before the server counts as away."""

HEALTH_SECONDS = 2.0
"""How long a server may take to say that it is well."""

FRESH_SECONDS = 2.0
"""How long cached small replies are fresh: one page asks for the same several times."""

REPLY_BYTES, MOST_REPLIES = 2**20, 256
"""Bytes of a reply up to which it is kept, and how many are; longer ones are asked for again."""

LONGEST_REPLY, LONGEST_JSON = 2 * 2**30, 64 * 2**20
"""Most bytes of a reply, which is read into memory: of arrays and files, and of JSON."""

UPLOAD_BYTES = 128 * 2**20
"""Most bytes of uploads kept here, to send them again to a server that was restarted."""


class RemoteEngine:
    """Client of the engine server at `url`. Thread-safe.

    Args:
        url: `http://HOST:PORT` of `python -m model serve`.
        token: the server's HEADLIGHT_TOKEN.
        transport: HTTP transport; None: the network.
        cache_bytes: most bytes of traces, besides the budget of the process; 0: none is cached.
    """

    def __init__(
        self, url: str, token: str = "", transport: httpx.BaseTransport | None = None, cache_bytes: float = math.inf
    ) -> None:
        self._url = url.rstrip("/")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        limits = httpx.Limits(max_connections=256, max_keepalive_connections=32)
        self._client = httpx.Client(
            base_url=self._url, headers=headers, timeout=TIMEOUT, transport=transport, limits=limits, trust_env=False
        )
        self._traces: LruCache[RunRequest, Trace] = LruCache(cache_bytes, attrgetter("nbytes"), budget=BUDGET, kind="traces")
        self._replies: LruCache[Question[Any], tuple[float, bytes]] = LruCache(
            REPLY_BYTES * MOST_REPLIES, lambda answer: len(answer[1]), MOST_REPLIES
        )
        self._weights: LRUCache[tuple[str, Settings], str] = LRUCache(MOST_REPLIES)
        self._uploads: LruCache[str, tuple[bytes, str]] = LruCache(UPLOAD_BYTES, lambda file: len(file[0]))
        # Since when the server has not answered; None: it answers. While it is away, each question is tried once
        # and not for two seconds, so that a page with many questions does not stand still.
        self._away_since: float | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Closes its connections."""
        self._client.close()

    def ask(self, question: Question[Answer]) -> Answer:
        """The server's answer. Traces are the same objects again for equal requests, while the cache holds them; while the server
        is away, the models and what is known of each are those that it told last.

        Raises:
            EngineAway: the server does not answer.
            EngineMismatch: the model's weights have changed. The next run accepts the new ones.
            HeadlightError: the server's error.
        """
        return cast(Answer, self._answer(question))

    def _answer(self, question: Question[Any]) -> Any:
        match question:
            case Run(request):
                return self._run(request)
            case Receive(data, name):
                return self._upload(data, name)
            case Healthy():
                return self._is_healthy()
            case Offered():
                return Offers("off")  # what another machine holds is for its owner to open
            case Find() | Fetch():
                raise OtherMachine()
            case Gauges() | Batches():
                return {}  # the server has its own at /metrics
            case RunQuestion() | Export():
                return ENDPOINTS[type(question)].unpack(self._reply(question))
        return ENDPOINTS[type(question)].unpack(self._cached_reply(question))

    def open_path(self, path: Path) -> str:
        """Refuses: the server cannot read this machine's files.

        Raises:
            Refused: always.
        """
        raise OtherMachine()

    def _run(self, request: RunRequest) -> Trace:
        if (trace := self._traces.get(request)) is None:
            trace = serialization.from_bytes(self._reply(Run(request)))
            trace = replace(trace, request=replace(request, precision=trace.request.get("precision")).to_json())
            self._compare(request, str(trace.model.get("fingerprint", "")))
            self._traces.keep(request, trace)
        return trace

    def _upload(self, data: bytes, name: str) -> str:
        reply = self._post(RECEIVE, data, "application/octet-stream", params={"name": name})
        key = str(json.loads(reply)["name"])
        self._uploads.keep(key, (data, name))
        return key

    def _is_healthy(self) -> bool:
        try:
            response = self._client.get("/healthz", timeout=HEALTH_SECONDS)
            self._check_version(response)
        except (httpx.TransportError, EngineMismatch):
            return False
        self._away_since = None
        return response.is_success

    def _compare(self, request: RunRequest, fingerprint: str) -> None:
        """Raises EngineMismatch if a model's weights have changed since earlier runs, and drops what was cached of them."""
        key = request.model, request.settings
        with self._lock:
            # Read and replaced in one step: of two threads that see new weights at the same time, one raises the
            # error.
            before, self._weights[key] = self._weights.get(key, fingerprint), fingerprint
        if before != fingerprint:
            self._traces.forget(lambda old: old.model == request.model)
            self._replies.forget()
            raise WeightsChanged(host=self._url, model=request.model, found=fingerprint[:8], expected=before[:8])

    def _cached_reply(self, question: Question[Any]) -> bytes:
        """The reply to a question, cached if small. While the server is away, an old reply is used."""
        # An old reply is kept after it is stale: it is what a page shows while the server is away.
        then, kept = self._replies.get(question) or (-FRESH_SECONDS, b"")
        if time.monotonic() - then < FRESH_SECONDS:
            return kept
        try:
            reply = self._reply(question)
        except EngineAway:
            if kept:
                return kept
            raise
        if len(reply) <= REPLY_BYTES:
            self._replies.keep(question, (time.monotonic(), reply))
        return reply

    def _reply(self, question: Question[Any]) -> bytes:
        """The reply to a question. Uploads that the server has dropped are sent again."""
        endpoint = ENDPOINTS[type(question)]
        data = endpoint.write(question)
        try:
            return self._post(endpoint.path, data, JSON, endpoint.runs)
        except (UnknownModel, BadSetting) as error:
            missing = sent_names(str(error.fields.get("asked", error.fields.get("found"))))
            about = question.request if isinstance(question, RunQuestion) else question
            if not isinstance(about, RunRequest | ModelQuestion) or all(self._uploads.get(name) is None for name in missing):
                raise
            # The error names one file, but a server that was started anew has lost them all: everything that this
            # question names is sent again, and then it is asked once more, not in a loop.
            for value in (about.model, *dict(about.settings).values()):
                for sent in filter(None, map(self._uploads.get, sent_names(value))):
                    self._upload(*sent)
            return self._post(endpoint.path, data, JSON, endpoint.runs)

    def _post(self, path: str, data: bytes, media: str, runs: bool = False, **options: Any) -> bytes:
        session, headers = SESSION.get(), {"content-type": media}
        headers |= {SESSION_HEADER: session.id} if session.id else {}
        headers |= {FORWARDED_HEADER: session.client} if session.client else {}
        if runs and progress_stream.is_wanted():
            response = self._with_retries(lambda: progress_stream.post(self._client, path, data, headers, LONGEST_REPLY))
        else:
            response = self._with_retries(lambda: self._sent(path, content=data, headers=headers, **options))
        self._check_version(response)
        if response.status_code == httpx.codes.OK:
            return response.content
        raise self._error(response)

    def _sent(self, path: str, **options: Any) -> httpx.Response:
        with self._client.stream("POST", path, **options) as response:
            is_json = response.headers.get("content-type", "").startswith(JSON)
            return progress_stream.whole(response, LONGEST_JSON if is_json else LONGEST_REPLY)

    def _with_retries(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        """Sends a request and retries broken connections for a moment, unless the server is known to be away.

        Raises:
            EngineAway: the server does not answer.
        """
        seconds = RETRY_SECONDS if self._away_since is None else 0.0
        retrying = Retrying(
            retry=retry_if_exception_type(RETRIED_ERRORS),
            stop=stop_after_delay(seconds),
            wait=wait_exponential_jitter(multiplier=0.05, max=0.5, jitter=0.05),
            reraise=True,
        )
        began = time.monotonic()
        try:
            response = retrying(_host_reply, send)
        except httpx.TransportError as error:
            self._away_since = self._away_since or began
            raise EngineAway(host=self._url, seconds=round(time.monotonic() - self._away_since)) from error
        self._away_since = None
        return response

    def _check_version(self, response: httpx.Response) -> None:
        if (version := response.headers.get(WIRE_VERSION_HEADER)) is None:
            raise NotAnEngine(host=self._url)
        if version != WIRE_VERSION:
            raise EngineMismatch(host=self._url, found=version, expected=WIRE_VERSION)

    def _error(self, response: httpx.Response) -> HeadlightError:
        try:
            return from_json(response.json())
        except (ValueError, KeyError, TypeError, AttributeError):
            fields = {"host": self._url, "status": response.status_code}
            return HeadlightError(detail=phrase("The engine at {host} replied with the status {status} and no message.", **fields))


def _host_reply(send: Callable[[], httpx.Response]) -> httpx.Response:
    """The reply of the server itself.

    Raises:
        httpx.TransportError: there is none. A proxy's 5xx reply is not a reply of the server.
    """
    response = send()
    if response.is_server_error and WIRE_VERSION_HEADER not in response.headers:
        raise httpx.RemoteProtocolError(f"a proxy answers {response.status_code}")
    return response
