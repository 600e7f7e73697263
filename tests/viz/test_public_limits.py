"""The app before strangers: each visitor has a pace of its own, by address where that is known and else by session."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit as st

from model.engine.guards.access import AccessLimits
from model.engine.scheduling.queue import Session
from tests.app.conftest import shelf, stocked, tiny  # noqa: F401
from tests.app.visiting import Visitor
from viz.session import access

TOO_FAST = "Too many requests. Wait a moment."


LIMITS: list[AccessLimits] = []


@pytest.fixture(autouse=True)
def strangers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A public server with access limits of its own."""
    monkeypatch.setenv("HEADLIGHT_PUBLIC", "1")
    LIMITS[:] = [AccessLimits(pace=0.001, burst=20)]
    before = access.access_limits
    before.cache_clear()
    yield
    before.cache_clear()


@pytest.mark.slow
def test_a_visitor_in_haste_is_slowed_down_and_another_is_not(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    from_address(monkeypatch, "192.0.2.7")
    assert any(TOO_FAST in problem for problem in typed_until_refused(Visitor()))
    from_address(monkeypatch, "192.0.2.8")
    other = Visitor()
    other.type("text", "w4 w5")
    assert other.problems == []
    assert other.drawn


def from_address(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Visitors come from there: AppTest has no connection, so it knows no address."""
    monkeypatch.setattr(access, "access_limits", lambda: LIMITS[0])
    monkeypatch.setattr(access, "_visitor", lambda: address)


def typed_until_refused(visitor: Visitor) -> list[str]:
    """What a visitor is told who types ever another sentence."""
    for count in range(1, 30):
        visitor.type("text", "w4 " * count)
        if visitor.problems:
            return visitor.problems
    return []


@pytest.mark.slow
def test_looking_again_at_the_same_is_never_too_fast(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    from_address(monkeypatch, "192.0.2.7")
    visitor = Visitor()
    for number in range(30):
        visitor.type("text", ("w4", "w5")[number % 2])
        assert visitor.problems == []


@pytest.mark.parametrize(
    ("address", "forwarded", "proxies", "visitor"),
    [
        ("192.0.2.7", [], "0", "192.0.2.7"),
        ("192.0.2.7", ["10.0.0.1"], "", "192.0.2.7"),
        (None, ["10.0.0.1, 192.0.2.7"], "1", "192.0.2.7"),
        (None, [], "", "session"),
        (None, ["10.0.0.1"], "", "session"),
    ],
)
def test_visitors_are_told_apart_by_address_or_else_by_session(
    monkeypatch: pytest.MonkeyPatch, address: str | None, forwarded: list[str], proxies: str, visitor: str
) -> None:
    def headers(name: str) -> list[str]:
        assert name == "x-forwarded-for"
        return forwarded

    monkeypatch.setattr(st, "context", SimpleNamespace(ip_address=address, headers=SimpleNamespace(get_all=headers)))
    monkeypatch.setenv("HEADLIGHT_PROXIES", proxies)
    assert access.session("session") == Session("session", visitor)
    assert access.access_limits() is access.access_limits()
    monkeypatch.delenv("HEADLIGHT_PUBLIC")
    assert access.session("session") == Session("session"), "where nothing is limited, nobody needs to know the address"
