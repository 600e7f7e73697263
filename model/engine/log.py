"""JSON log: one line per event. Texts that visitors typed are left out unless HEADLIGHT_LOG=texts.

The message of an unexpected error may quote a typed text, so it is left out too; its class and traceback are logged.
"""

import json
import logging
import os
import secrets
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import Any

from cachetools import TTLCache

from model.errors import BadSetting, phrase

NAME = "headlight"
TEXTS = "texts"
_ROOT = Path(__file__).parents[2]
_LOCK = threading.Lock()
_LOGGED: TTLCache[tuple[object, ...], str] = TTLCache(256, 60.0)
"""Numbers of incidents that were logged with their tracebacks, by class and place."""


def configure() -> None:
    """Sets up logging to standard error.

    Raises:
        BadSetting: HEADLIGHT_LOG has a value that is not allowed.
    """
    if (asked := os.environ.get("HEADLIGHT_LOG", "")) not in ("", TEXTS):
        raise BadSetting(name="HEADLIGHT_LOG", found=asked, allowed=phrase("{texts}, or nothing", texts=TEXTS))
    log = logging.getLogger(NAME)
    log.setLevel(logging.INFO)
    # May be called more than once in a process: a second handler would write each line twice.
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter())
        log.addHandler(handler)


def logs_texts() -> bool:
    """Whether typed texts are logged."""
    return os.environ.get("HEADLIGHT_LOG") == TEXTS


def incident(error: BaseException, **about: object) -> str:
    """Logs an unexpected error; returns the number of the incident, which the visitor is told.

    Of errors of one class from one place, one a minute is logged with its traceback: a visitor who causes them again and again must
    not fill a disk. The others are logged with the number of that one.

    Args:
        about: more entries of the line.
    """
    number, last = secrets.token_hex(3), extract_tb(error.__traceback__)[-1:]
    # Equal are errors of one class that were raised in one line of code; the lists of frames are empty where an
    # error was never raised.
    kind = (type(error).__name__, *((frame.filename, frame.lineno) for frame in last))
    # Of several threads with the same new error, `setdefault` lets one be the first; all others get its number.
    with _LOCK:
        first = _LOGGED.setdefault(kind, number)
    if first == number:
        logging.getLogger(NAME).error({"event": "incident", "incident": number, **about}, exc_info=error)
    else:
        logging.getLogger(NAME).error({"event": "incident", "incident": number, "like": first, **about})
    return number


class JsonFormatter(logging.Formatter):
    """Formats a record, whose message is a sentence or a dict, as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line: `time` (UTC), `level`, the message, and `errors`, the most recent first."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
        }
        line |= record.msg if isinstance(record.msg, dict) else {"event": record.getMessage()}
        if record.exc_info and record.exc_info[1]:
            line["errors"] = [_described(error) for error in _chain(record.exc_info[1])]
        return json.dumps(line, ensure_ascii=False, default=str)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    # As Python prints them: the cause that was named, or else the error that was being handled, unless it was
    # hidden with `from None`.
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _described(error: BaseException) -> dict[str, Any]:
    """Class and traceback of an error, the last call at the end; its message only if texts are logged."""
    at = [f"{_within(frame.filename)}:{frame.lineno} {frame.name}" for frame in extract_tb(error.__traceback__)]
    return {"class": type(error).__name__, "at": at} | ({"words": str(error)} if logs_texts() else {})


def _within(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else file
