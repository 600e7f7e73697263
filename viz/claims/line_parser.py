"""The parts of a line of a lecture, read from left to right. Each function raises Unreadable if the next part has another form."""

import json
import re

from model.errors import HeadlightError
from model.requests.sent_text import whole_number
from model.trace.types import Site
from viz.claims.subjects import Head, Named, Token
from viz.i18n.translate import _

_PART = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\{[^{}]*\}|→|->|!=|<=|>=|[=≠<>≤≥:#]|[^\s"{}=≠<>≤≥:#]+)')


class Unreadable(ValueError):
    """A line that is not of the form that docs/lectures.md defines; its text is a sentence."""


class Parts:
    """The parts of a line, read from left to right.

    Args:
        text: the line.
    """

    def __init__(self, text: str) -> None:
        self._parts = list[str]()
        # Part by part: a text in quotes, a group in braces, a sign, or anything up to the next of these.
        end = 0
        while text[end:].strip():
            match = _PART.match(text, end)
            if match is None:
                raise Unreadable(_("“{rest}” cannot be read", rest=text[end:].strip()[:40]))
            self._parts.append("→" if match[1] == "->" else match[1])
            end = match.end()

    @property
    def next(self) -> str:
        """The next part; empty at the end."""
        return self._parts[0] if self._parts else ""

    def take(self, what: str) -> str:
        """The next part, which is `what` in an error."""
        if not self._parts:
            raise Unreadable(_("missing at the end: {what}", what=what))
        return self._parts.pop(0)

    def skip(self, part: str) -> bool:
        """Takes the next part if it is `part`."""
        if self.next != part:
            return False
        self._parts.pop(0)
        return True

    def expect(self, part: str) -> None:
        """Takes the next part, which must be `part`."""
        if not self.skip(part):
            raise Unreadable(_("“{part}” is expected before “{found}”", part=part, found=self.next))

    def end(self) -> None:
        """Refuses further parts."""
        if self._parts:
            raise Unreadable(_("“{found}” is not expected", found=self.next))

    def quoted(self, what: str) -> str:
        """The next part, a text in quotes."""
        part = self.take(what)
        if not part.startswith('"'):
            raise Unreadable(_("{what}: {found} is not in double quotes", what=what, found=part))
        try:
            # Half of a surrogate pair, which JSON can write and UTF-8 cannot, becomes a replacement sign.
            return str(json.loads(part)).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        except ValueError as error:
            raise Unreadable(_("{found} is not a quoted string in JSON syntax", found=part)) from error

    def whole(self, what: str) -> int:
        """The next part, a whole number."""
        part = self.take(what)
        if (number := whole_number(part, 0, 10**9 - 1)) is None:
            raise Unreadable(_("{what}: {found} is not a whole number", what=what, found=part))
        return number

    def token(self, what: str) -> Token:
        """A token: an index, or its text, with #2 for the second of that text."""
        if not self.next.startswith('"'):
            return self.whole(what)
        text = self.quoted(what)
        return Named(text, self.whole(_("number after #")) if self.skip("#") else 0)

    def row(self) -> Token:
        """A row: as a token; `after` names the row of a decoder by the token that it reads."""
        # `after` before a number changes nothing: an index names the same row either way.
        after, row = self.skip("after"), self.token(_("row"))
        return Named(row.text, row.number, after=True) if after and isinstance(row, Named) else row

    def head(self) -> Head:
        """A head: SITE head N; each of both may be left out."""
        site = ""
        if "." in self.next and not self.next.startswith('"'):
            try:
                site = str(Site.parse(self.take("")))
            except HeadlightError as error:
                raise Unreadable(str(error)) from error
        return Head(site, self.whole(_("head number")) if self.skip("head") else -1)
