"""Access limits of a server: token, body sizes, input sizes and rate. Refused requests are not read."""

import hmac
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from math import ceil
from typing import Any

from model.engine.api import Models
from model.engine.charging import CHARGE, Price
from model.engine.client_address import client_address, trusted_proxies
from model.engine.rate_limit import RateLimit
from model.engine.scheduling.queue import SESSION
from model.engine.sent_files import names_server_file
from model.errors import (
    MustNotBeSet,
    NoTokenSet,
    NoUploads,
    Refused,
    TooCostly,
    TooFast,
    TooLarge,
    TooLong,
    TooMuchToWrite,
    WorkedEnough,
    WrongToken,
    phrase,
)
from model.requests.inputs import POSITIONS, PUBLIC_POSITIONS, Chat
from model.requests.questions import ModelQuestion, Question, RunQuestion
from model.requests.request import RunRequest, check_size
from model.requests.sent_text import whole_number

BODY = 4 * 2**20
"""Most bytes of a JSON body."""

STATUS: dict[type[Refused], int] = {
    WrongToken: 401,
    NoTokenSet: 401,
    NoUploads: 403,
    TooLarge: 413,
    TooFast: 429,
    WorkedEnough: 429,
}
"""HTTP status by what is refused."""

WORK_AT_ONCE, MOST_WORK = 10, 100
"""Factors of `burst`: the runs that the questions of a caller may cost at once, and the runs that a single question may cost. After
a question of more than the former, its caller waits until the rest is paid back."""


@dataclass
class AccessLimits:
    """Access limits of one server.

    Attributes:
        token: the bearer token that callers must send; "": none.
        uploads: most bytes of an upload; 0: uploads are refused.
        positions: most tokens, ids or rows of an input, padding included. The tokens of a text are counted by the engine.
        written: most tokens that a decode may write, over all hypotheses.
        pace: requests a second that one address may send in the long run.
        burst: requests that one address may send at once.
        proxies: number of trusted proxies in front of this process.
    """

    token: str = ""
    uploads: int = 256 * 2**20
    positions: int = POSITIONS
    written: int = 32_000
    pace: float = 200.0
    burst: float = 1000.0
    proxies: int = 0
    limit: RateLimit = field(init=False)
    work: RateLimit = field(init=False)

    def __post_init__(self) -> None:
        """Creates the rate limits: of requests, and of what questions cost in runs, which may run up a debt."""
        # Two buckets: a page sends many small requests, and a single small request can cost hundreds of runs.
        at_once = WORK_AT_ONCE * self.burst
        self.limit = RateLimit(self.pace, self.burst)
        self.work = RateLimit(self.pace, at_once, debt=self.most_work - at_once)

    @property
    def most_work(self) -> int:
        """Runs that one question may cost."""
        return round(MOST_WORK * self.burst)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "AccessLimits":
        """Limits from HEADLIGHT_TOKEN and HEADLIGHT_PROXIES. HEADLIGHT_PUBLIC=1 refuses uploads and sets low limits.

        Raises:
            BadSetting: HEADLIGHT_PROXIES is not a valid number.
        """
        token, proxies = environment.get("HEADLIGHT_TOKEN", ""), trusted_proxies(environment)
        if environment.get("HEADLIGHT_PUBLIC") == "1":
            return cls(token, uploads=0, positions=PUBLIC_POSITIONS, written=2048, pace=10, burst=60, proxies=proxies)
        return cls(token, proxies=proxies)

    def admit(self, authorization: str, peer: str, forwarded: Iterable[str] = ()) -> None:
        """Checks the token and the rate limit of a request.

        Args:
            authorization: the Authorization header.
            peer: address of the other end of the connection.
            forwarded: the X-Forwarded-For headers.

        Raises:
            Refused: wrong token, or too many requests.
        """
        # `compare_digest` takes the same time for every wrong token. `==` stops at the first wrong character, so
        # its time would tell how many were right.
        if self.token and not hmac.compare_digest(authorization.encode(), f"Bearer {self.token}".encode()):
            raise WrongToken()
        self.limit.admit(client_address(peer, forwarded, self.proxies))

    @contextmanager
    def charging(self, question: Question[Any], caller: str) -> Iterator[None]:
        """Context in which `caller` pays for a question: now what it costs in any case, and later what the engine finds out.

        Raises:
            Refused: the caller has to wait, or this server never computes so much.
        """
        if question.cost > 1:
            self._take(caller, question.cost)
        # Many prices depend on the tokens, which only the engine knows. It charges through this variable, in this
        # thread.
        before = CHARGE.set(lambda price: self._charge(caller, price))
        try:
            yield
        finally:
            CHARGE.reset(before)

    def _charge(self, caller: str, price: Price) -> None:
        if price.runs > self.most_work:
            # Waiting would not help here: such a question is above what this server ever computes. The error says
            # what to ask.
            raise TooCostly(found=price.runs, allowed=self.most_work, instead=price.instead(self.most_work))
        self._take(caller, price.runs)

    def _take(self, caller: str, runs: int) -> None:
        try:
            self.work.admit(caller, cost=runs)
        except TooFast as error:
            # TooFast does not say how long to wait, which is no matter of seconds here: a debt can take minutes to
            # pay back.
            raise WorkedEnough(seconds=ceil(self.work.wait(caller, runs))) from error

    def admit_call(self, question: Question[Any]) -> None:
        """Checks one question of this thread's session to the engine of this process: its rate, and the size of a run.

        Listing the models is not counted: every script run does it.

        Raises:
            Refused: the run is too large, or the visitor asks too fast.
            BadSetting: a setting of the run names a file of the server.
        """
        if not isinstance(question, Models):
            self.limit.admit(SESSION.get().client, (type(question), question))
        if isinstance(question, RunQuestion):
            self.check_question(question)

    async def body(self, stream: AsyncIterator[bytes], announced: str, upload: bool) -> bytes:
        """Reads the body of a request and refuses it as soon as it is too long.

        Args:
            stream: its chunks.
            announced: the Content-Length header.
            upload: whether it is an upload.

        Raises:
            Refused: it is too long, or an upload where none is allowed.
        """
        if upload and not self.uploads:
            raise NoUploads()
        most, body = self.uploads if upload else BODY, bytearray()
        # The header is believed where it says too much, since then nothing has to be read. Where it says too little
        # or is missing, the loop below counts what really comes.
        if (length := whole_number(announced[:20], 0, 10**20)) is not None and length > most:
            raise _too_long(length, most)
        async for piece in stream:
            body += piece
            if len(body) > most:
                raise _too_long(len(body), most)
        return bytes(body)

    def check_question(self, question: Question[Any]) -> None:
        """Refuses questions that strangers may not ask.

        Raises:
            BadSetting: a setting names a file of the server.
            Refused: an input is too long.
        """
        # A file of the server would be opened with the rights of the server: a stranger may name none, only what
        # was sent.
        about = question.request if isinstance(question, RunQuestion) else question
        if isinstance(about, RunRequest | ModelQuestion):
            for name, value in about.settings:
                if names_server_file(name, value):
                    raise MustNotBeSet(name=name, reason=phrase("a question reads no file of the host"))
        if isinstance(about, RunRequest):
            self._count(about)

    def _count(self, request: RunRequest) -> None:
        """Refuses runs that are too large, as far as that is known before tokenization."""
        # A text is limited by its characters here, since its tokens are not known yet; ids are counted as they are.
        # The engine counts tokens once more.
        for strip, given in (("source", request.source), ("target", request.target or "")):
            if isinstance(given, str | Chat):
                check_size(strip, given, self.positions)
            elif len(given) > self.positions:
                raise TooLong(found=len(given), allowed=self.positions, strip=strip)
        if (padded := max(request.source_pad_to or 0, request.source_valid or 0)) > self.positions:
            raise TooLong(found=padded, allowed=self.positions, strip="padding")
        decoding = request.decoding
        at_once = decoding.beam_size if decoding.method == "beam" else 1
        written = 0 if request.target is not None else decoding.max_length * at_once
        if written > self.written:
            raise TooMuchToWrite(found=written, allowed=self.written)


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from its own machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _too_long(size: int, most: int) -> TooLarge:
    return TooLarge(found=ceil(size / 2**20 * 10) / 10, allowed=most / 2**20)
