"""The log: lines of JSON, and nothing of what people typed unless somebody asked for it."""

import json
import logging
import sys
from typing import Any

import pytest

from model.engine import log as logbook
from model.errors import BadSetting


def record(message: object) -> logging.LogRecord:
    """As `logging` makes one where an error has been caught that quotes what was typed."""
    words: dict[str, int] = {}
    found: tuple[Any, Any, Any] = (None, None, None)
    try:
        try:
            words["geheim"]
        except KeyError as error:
            raise RuntimeError("no word geheim") from error
    except RuntimeError:
        found = sys.exc_info()
    return logging.LogRecord("headlight", logging.ERROR, __file__, 1, message, (), found)


@pytest.mark.parametrize("message", ["incident abc123", {"event": "incident abc123"}], ids=["sentence", "dict"])
def test_an_error_is_told_by_class_and_place_alone(message: object) -> None:
    text = logbook.JsonFormatter().format(record(message))
    assert "\n" not in text
    assert "geheim" not in text
    line = json.loads(text)
    assert (line["level"], line["event"]) == ("error", "incident abc123")
    assert line["time"].endswith("+00:00")
    assert [error["class"] for error in line["errors"]] == ["RuntimeError", "KeyError"]
    assert line["errors"][1]["at"][-1].startswith("tests/model/engine/test_log.py:")
    assert line["errors"][1]["at"][-1].endswith(" record")


def test_its_words_are_told_where_texts_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_LOG", "texts")
    assert [error["words"] for error in json.loads(logbook.JsonFormatter().format(record("x")))["errors"]] == [
        "no word geheim",
        "'geheim'",
    ]


def test_an_error_that_comes_again_and_again_is_logged_with_its_traceback_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logbook, "_LOGGED", {})
    caplog.set_level(logging.ERROR, logbook.NAME)

    def failing(kind: type[Exception]) -> str:
        try:
            raise kind("geheim")
        except Exception as error:
            return logbook.incident(error, view={"model": "tiny"})

    numbers = [failing(ValueError), failing(ValueError), failing(KeyError)]
    lines = [json.loads(logbook.JsonFormatter().format(each)) for each in caplog.records]
    assert [line["incident"] for line in lines] == numbers
    assert len(set(numbers)) == 3
    assert [("errors" in line, line.get("like"), line.get("view")) for line in lines] == [
        (True, None, {"model": "tiny"}),
        (False, numbers[0], {"model": "tiny"}),
        (True, None, {"model": "tiny"}),
    ]
    assert "geheim" not in json.dumps(lines)


def test_another_wish_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_LOG", "all")
    with pytest.raises(BadSetting, match=r"HEADLIGHT_LOG: “all” is not accepted. Allowed: texts, or nothing"):
        logbook.configure()


def test_each_event_is_written_once_however_often_it_is_begun(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger(logbook.NAME)
    before, log.handlers = log.handlers, []
    try:
        logbook.configure()
        logbook.configure()
        log.info({"path": "/v1/run", "status": 200})
    finally:
        log.handlers = before
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line) | {"time": ""} == {"time": "", "level": "info", "path": "/v1/run", "status": 200}
