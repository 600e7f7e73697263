"""The log of a process: a JSON line for each event, without what people typed unless HEADLIGHT_LOG=texts asks for it.

The words of an error that nobody foresaw may quote what was typed, so they count as typed; its class and its frames do not.
"""

import json
import logging
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import Any

from model.errors import BadSetting

NAME = "headlight"
TEXTS = "texts"
_ROOT = Path(__file__).parents[2]


def begin() -> None:
    """Lets the process write its log to standard error.

    Raises:
        BadSetting: HEADLIGHT_LOG is something else than is allowed.
    """
    if (asked := os.environ.get("HEADLIGHT_LOG", "")) not in ("", TEXTS):
        raise BadSetting(name="HEADLIGHT_LOG", found=asked, allowed=f"{TEXTS}, or left out")
    log = logging.getLogger(NAME)
    log.setLevel(logging.INFO)
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(Lines())
        log.addHandler(handler)


def texts_too() -> bool:
    """Whether somebody asked for what people typed."""
    return os.environ.get("HEADLIGHT_LOG") == TEXTS


class Lines(logging.Formatter):
    """One line of JSON for each record, whose message is a sentence or a dict of what is to be said."""

    def format(self, record: logging.LogRecord) -> str:
        """The line: `time` (UTC), `level`, the message, and `errors`, the last one first."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
        }
        line |= record.msg if isinstance(record.msg, dict) else {"event": record.getMessage()}
        if record.exc_info and record.exc_info[1]:
            line["errors"] = [_told(error) for error in _chain(record.exc_info[1])]
        return json.dumps(line, ensure_ascii=False, default=str)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, the one that it came from, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _told(error: BaseException) -> dict[str, Any]:
    """The class of an error and where it was raised, the last call at the end; what it says only where that was asked for."""
    at = [f"{_within(frame.filename)}:{frame.lineno} {frame.name}" for frame in extract_tb(error.__traceback__)]
    return {"class": type(error).__name__, "at": at} | ({"words": str(error)} if texts_too() else {})


def _within(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else file
