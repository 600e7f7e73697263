"""The door of an engine's host: who may come in, with how much, how often. Whatever is refused is refused before it is read."""

import hmac
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from model.engine.base import Features, Given, RandomFeatures, RunRequest
from model.engine.files import names_a_file
from model.engine.sitting import Sitting
from model.errors import BadSetting, Refused
from model.explain import Explanation
from model.trace import Trace

BODY = 4 * 2**20
"""Bytes of a question: ids, texts, features."""

REMEMBERED = 10_000
"""Sessions whose pace is known."""

STATUS = {"The token": 401, "The upload": 403, "The body": 413, "The pace": 429}
"""Replies of HTTP by what is refused."""


@dataclass
class Door:
    """Rules of one host.

    Attributes:
        token: what a caller must know; "": everybody may come in.
        uploads: bytes of a file that is taken; 0: none is.
        positions: words, ids or rows of an input that are taken.
        pace: questions a second that one caller may go on asking.
        burst: questions that one caller may ask at once.
    """

    token: str = ""
    uploads: int = 256 * 2**20
    positions: int = 16_384
    pace: float = 200.0
    burst: float = 1000.0
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Door":
        """HEADLIGHT_TOKEN asks for a token; HEADLIGHT_PUBLIC=1 takes no uploads, short inputs and a human pace."""
        token = environment.get("HEADLIGHT_TOKEN", "")
        if environment.get("HEADLIGHT_PUBLIC") == "1":
            return cls(token, uploads=0, positions=512, pace=10, burst=60)
        return cls(token)

    def admit(self, authorization: str, caller: str) -> None:
        """Lets a question in.

        Args:
            authorization: the header of that name.
            caller: tells callers apart.

        Raises:
            Refused: wrong token, or too fast.
        """
        if self.token and not hmac.compare_digest(authorization.encode(), f"Bearer {self.token}".encode()):
            raise Refused(what="The token", found="missing or another", allowed="set HEADLIGHT_TOKEN to the one of this host")
        now = time.monotonic()
        left, last = self._left.pop(caller, (self.burst, now))
        left = min(self.burst, left + (now - last) * self.pace)
        self._left[caller] = (left - 1 if left >= 1 else left), now
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        if left < 1:
            raise Refused(what="The pace", found="too fast", allowed=f"at most {self.pace:.0f} questions a second; wait a moment")

    async def body(self, stream: AsyncIterator[bytes], announced: str, upload: bool) -> bytes:
        """The body of a request, refused as soon as it is known to be too long.

        Args:
            stream: its pieces.
            announced: the header content-length.
            upload: whether it is a file.

        Raises:
            Refused: it is too long, or a file where none is taken.
        """
        if upload and not self.uploads:
            raise Refused(what="The upload", found="a file", allowed="this host takes no files")
        most, found = self.uploads if upload else BODY, bytearray()
        if announced.isascii() and announced.isdecimal() and int(announced[:20]) > most:
            raise _too_long(int(announced[:20]), most)
        async for piece in stream:
            found += piece
            if len(found) > most:
                raise _too_long(len(found), most)
        return bytes(found)

    def look_at(self, body: object) -> None:
        """Refuses what may be asked of an engine at home, but not by strangers.

        Raises:
            BadSetting: a setting names a file of the host.
            Refused: an input is too long.
        """
        request = getattr(body, "request", body)
        for name, value in getattr(request, "settings", ()):
            if names_a_file(name, value):
                raise BadSetting(name=name, found=value, allowed="left out: a question reads no file of the host")
        if isinstance(request, RunRequest):
            longest = max(map(_length, (request.source, request.target or "")))
            if longest > self.positions:
                raise Refused(what="The input", found=f"{longest} tokens long", allowed=f"at most {self.positions}")


@dataclass(frozen=True)
class Guarded(Sitting):
    """A stranger's sitting, where there is no host with a door before the engine.

    Attributes:
        door: looks at each run before it is made.
    """

    door: Door

    def run(self, request: RunRequest) -> Trace:
        """As for Engine.

        Raises:
            Refused: the input is too long for this server.
        """
        self.door.look_at(request)
        return super().run(request)

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int) -> Explanation:
        """As for Engine, refused like a run."""
        self.door.look_at(request)
        return super().explain(request, site, head, query, key)


def _length(given: Given) -> int:
    """Tokens of an input, or a little less."""
    match given:
        case str():
            return max(len(given.split()), len(given) // 32)
        case Features(rows):
            return len(rows)
        case RandomFeatures(positions, _):
            return positions
    return len(given)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from its own machine alone."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _too_long(found: int, most: int) -> Refused:
    return Refused(what="The body", found=f"{found / 2**20:,.1f} MB long", allowed=f"at most {most / 2**20:,.0f} MB")
