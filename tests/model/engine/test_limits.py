"""Limits of a server for strangers rest on what is computed and on where a question comes from, never on what a visitor says."""

import asyncio
import itertools
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from model.__main__ import main
from model.engine import environment
from model.engine.api import Describe, Engine, Explain, Export, Run, Tensors, Texts
from model.engine.client_address import client_address
from model.engine.guards.access import AccessLimits
from model.engine.local import LocalEngine
from model.engine.rate_limit import CACHED_SECONDS, RateLimit
from model.engine.scheduling.queue import SESSION, Session
from model.errors import BadSetting, Refused, TooCostly, TooFast, TooManyCharacters, TooManyTokens, WorkedEnough
from model.features.circuit.circuits import Paths
from model.features.serving.http.protocol import SESSION_HEADER
from model.features.serving.http.server import application
from model.features.what_if.questions import Heads, Prune
from model.requests.inputs import Features, RandomFeatures
from model.requests.questions import Question
from model.requests.request import Decoding, RunRequest
from tests.hosts import behind
from viz.session.patient_engine import NonBlockingEngine

PUBLIC = {"HEADLIGHT_PUBLIC": "1"}
SLOW = AccessLimits(pace=0.001, burst=2)


def ask(app: ASGIApp, peer: str, *headers: dict[str, str]) -> list[int]:
    """The statuses of questions from one address, one for each set of headers."""

    async def asked() -> list[int]:
        transport = httpx.ASGITransport(app, client=(peer, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return [(await client.post("/v1/models", headers=each)).status_code for each in headers]

    return asyncio.run(asked())


def test_who_says_another_session_with_each_question_is_slowed_down_all_the_same(local: LocalEngine) -> None:
    host = application(local, AccessLimits.from_environment(PUBLIC))
    found = ask(host, "192.0.2.7", *({SESSION_HEADER: f"session {i}", "x-forwarded-for": f"10.0.0.{i}"} for i in range(300)))
    assert 60 <= found.count(200) < 200
    assert found.count(429) == 300 - found.count(200)
    assert ask(host, "192.0.2.8", {}) == [200], "another address is not slowed down by it"


def test_behind_a_proxy_the_address_that_the_proxy_saw_counts(local: LocalEngine) -> None:
    host = application(local, replace(SLOW, proxies=1))
    forged = [{"x-forwarded-for": f"10.0.0.{i}, 192.0.2.7"} for i in range(4)]
    assert ask(host, "127.0.0.1", *forged) == [200, 200, 429, 429]
    assert ask(host, "127.0.0.1", {"x-forwarded-for": "192.0.2.8"}) == [200]


@pytest.mark.parametrize(
    ("peer", "forwarded", "proxies", "address"),
    [
        ("192.0.2.7", [], 0, "192.0.2.7"),
        ("192.0.2.7", ["10.0.0.1"], 0, "192.0.2.7"),
        ("127.0.0.1", ["10.0.0.1, 192.0.2.7"], 1, "192.0.2.7"),
        ("127.0.0.1", ["10.0.0.1", "192.0.2.7"], 1, "192.0.2.7"),
        ("127.0.0.1", ["10.0.0.1, 192.0.2.7, 203.0.113.1"], 2, "192.0.2.7"),
        ("127.0.0.1", ["192.0.2.7"], 2, "127.0.0.1"),
        ("127.0.0.1", [], 1, "127.0.0.1"),
        ("127.0.0.1", ["10.0.0.1,"], 1, "127.0.0.1"),
        ("127.0.0.1", ["192.0.2.7:4711"], 1, "192.0.2.7"),
        ("127.0.0.1", ["[2001:db8:1:2::3]:4711"], 1, "2001:db8:1:2::/64"),
        ("2001:db8:1:2:3:4:5:6", [], 0, "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", [], 0, "192.0.2.7"),
        ("", [], 0, ""),
        ("127.0.0.1", ["unknown"], 1, "unknown"),
    ],
)
def test_the_address_is_counted_from_the_right(peer: str, forwarded: list[str], proxies: int, address: str) -> None:
    assert client_address(peer, forwarded, proxies) == address


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": (4,) * 513}, "has 513 tokens"),
        ({"source": RandomFeatures(513)}, "has 513 tokens"),
        ({"source": Features(((0.0,),) * 513)}, "has 513 tokens"),
        ({"target": (4,) * 513}, "has 513 tokens"),
        ({"source_pad_to": 513}, "has 513 tokens"),
        ({"decoding": Decoding("beam", max_length=1000, beam_size=3)}, "could write 3,000 tokens"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_would_be_computed_is_counted(local: LocalEngine, changes: dict[str, Any], words: str) -> None:
    request = replace(RunRequest("tiny", "w4"), **changes)
    public = AccessLimits.from_environment(PUBLIC)
    for engine in (
        behind(local, public),
        NonBlockingEngine(local, Session("mine", "192.0.2.7"), public),
    ):
        with pytest.raises(Refused, match=words):
            engine.ask(Run(request))
    AccessLimits().check_question(Run(request))


@pytest.mark.parametrize("decoding", [Decoding(), Decoding("beam", 60, beam_size=32), Decoding(max_length=1000, beam_size=32)])
def test_decodes_of_a_usual_size_are_not_refused(decoding: Decoding) -> None:
    AccessLimits.from_environment(PUBLIC).check_question(Run(RunRequest("tiny", "w4", decoding=decoding)))


def test_what_a_target_makes_needless_is_not_counted() -> None:
    long = Decoding("beam", max_length=1000, beam_size=32)
    AccessLimits.from_environment(PUBLIC).check_question(Run(RunRequest("tiny", "w4", "w5", decoding=long)))


@pytest.mark.parametrize("changes", [{"source": "x" * 8193}, {"target": "x" * 8193}])
def test_a_text_is_not_split_where_it_cannot_fit(changes: dict[str, Any]) -> None:
    with pytest.raises(TooManyCharacters, match="has 8,193 characters, but the limit is 8,192"):
        AccessLimits.from_environment(PUBLIC).check_question(Run(replace(RunRequest("tiny", "w4"), **changes)))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def admitted(limit: RateLimit, caller: str, count: int, question: Hashable = None) -> int:
    """How many of so many questions are admitted."""
    found = 0
    for _ in range(count):
        try:
            limit.admit(caller, question)
        except Refused:
            continue
        found += 1
    return found


def test_a_bucket_is_emptied_at_once_and_filled_at_its_rate() -> None:
    clock = Clock()
    limit = RateLimit(rate=10, burst=60, timer=clock)
    assert admitted(limit, "a", 100) == 60
    clock.now += 0.55
    assert admitted(limit, "a", 100) == 5
    assert admitted(limit, "b", 100) == 60
    clock.now += 1e6
    assert admitted(limit, "a", 100) == 60


def test_an_equal_question_is_not_counted_while_its_answer_is_cached() -> None:
    clock = Clock()
    limit = RateLimit(rate=0.001, burst=2, timer=clock)
    assert admitted(limit, "a", 100, ("run", 1)) == 100
    assert admitted(limit, "a", 100, ("run", 2)) == 100
    assert admitted(limit, "a", 100, ("run", 3)) == 0
    clock.now += CACHED_SECONDS + 1
    assert admitted(limit, "a", 100, ("run", 1)) == 0


def test_a_costly_question_counts_as_many_and_one_that_costs_more_than_the_bucket_is_admitted_when_it_is_full() -> None:
    clock = Clock()
    limit = RateLimit(rate=10, burst=60, timer=clock)
    limit.admit("a", "shares", cost=50)
    assert admitted(limit, "a", 100) == 10
    clock.now += 6
    limit.admit("a", "all", cost=500)
    assert admitted(limit, "a", 1) == 0


def public_engines(local: LocalEngine, **changes: Any) -> tuple[Engine, Engine]:
    """A public engine server, and the engine of a public app."""
    limits = [replace(AccessLimits.from_environment(PUBLIC), **changes) for _ in range(2)]
    return behind(local, limits[0]), NonBlockingEngine(local, Session("mine", "192.0.2.7"), limits[1])


def test_who_asked_what_takes_long_waits_and_still_runs(local: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both orders of pruning stalled a public server; a question whose answer is cached costs nothing."""
    monkeypatch.setattr("model.features.what_if.work.RUN", 0.6)
    for number, engine in enumerate(public_engines(local, pace=0.5)):
        least, most = (Prune(RunRequest("tiny", f"w{4 + number}", "w5 w6"), order) for order in ("least", "most"))
        engine.ask(least)
        with pytest.raises(WorkedEnough, match=r"Ask it again in [\d,]+ seconds"):
            engine.ask(most)
        engine.ask(least)
        engine.ask(Run(RunRequest("tiny", "w4")))


def test_what_costs_more_than_the_burst_is_admitted_and_what_never_passes_says_what_does(
    local: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunRequest("tiny", "w4 w5", "w5 w6")
    for engine in public_engines(local):
        assert engine.ask(Paths(run, "w4 w6")).heads, "all paths were always refused"
        with monkeypatch.context() as costly:
            costly.setattr("model.features.what_if.work.RUN", 0.48)
            with pytest.raises(TooCostly, match="accepts at most 6,000: name the head that the paths lead to"):
                engine.ask(Paths(run, "w4 w7"))


def test_a_debt_is_paid_back_before_the_next_costly_question() -> None:
    clock = Clock()
    limit = RateLimit(rate=10, burst=60, timer=clock, debt=540)
    limit.admit("a", cost=600)
    assert limit.wait("a", 1) == pytest.approx(54.1)
    clock.now += 54
    with pytest.raises(TooFast):
        limit.admit("a", cost=1)
    clock.now += 0.2
    limit.admit("a", cost=1)


def test_a_long_run_is_not_measured_on_a_public_server(local: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Heads(RunRequest("tiny", "w4 w5", "w5 w6"), ("without",))
    local.ask(asked)
    monkeypatch.setattr(environment, "PUBLIC_MEASURED", 3)
    monkeypatch.setenv("HEADLIGHT_PUBLIC", "1")
    with pytest.raises(TooManyTokens, match="this server does not measure what matters"):
        local.ask(asked)


def test_callers_without_number_are_remembered_in_bounds() -> None:
    limit = RateLimit(rate=10, burst=60, callers=100)
    for number in range(1000):
        limit.admit(str(number), number)
    assert len(limit._buckets) == len(limit._counted) == 100


def test_visitors_of_the_app_are_counted_each_alone_by_app_and_host(local: LocalEngine) -> None:
    host = behind(local, replace(SLOW, proxies=1))
    words = itertools.cycle(("w4", "w5", "w6", "w7", "w8", "w9"))
    for visitor in ("192.0.2.7", "192.0.2.8"):
        engine = NonBlockingEngine(host, Session("mine", visitor), AccessLimits())
        for _ in range(2):
            engine.ask(Run(RunRequest("tiny", next(words))))
        with pytest.raises(Refused, match="Too many requests"):
            engine.ask(Run(RunRequest("tiny", next(words))))
    assert SESSION.get() == Session()


@pytest.mark.parametrize(
    "question",
    [
        lambda i: Run(RunRequest("tiny", f"w{4 + i}")),
        lambda i: Explain(RunRequest("tiny", f"w{4 + i}"), "encoder.0.0.self", 0, 0, 0),
        lambda i: Describe("tiny", (("layout", str(i)),)),
        lambda i: Tensors("tiny", names=(("output.bias", "output.weight", "positions/encoder")[i],)),
        lambda i: Texts("tiny", strip="source", ids=(4 + i,)),
    ],
    ids=["run", "explain", "describe", "tensors", "texts"],
)
def test_every_question_of_the_app_counts_and_an_equal_one_does_not(
    local: LocalEngine, question: Callable[[int], Question[Any]]
) -> None:
    engine = NonBlockingEngine(local, Session("mine", "192.0.2.7"), AccessLimits(pace=0.001, burst=2))
    for number in (0, 1, 0, 1):
        engine.ask(question(number))
    with pytest.raises(Refused, match="Too many requests"):
        engine.ask(question(2))


def test_two_kinds_of_questions_about_one_model_are_counted_as_two(local: LocalEngine) -> None:
    engine = NonBlockingEngine(local, Session("mine", "192.0.2.7"), AccessLimits(pace=0.001, burst=1))
    engine.ask(Describe("tiny"))
    with pytest.raises(Refused, match="Too many requests"):
        engine.ask(Export("tiny"))


@pytest.mark.parametrize("proxies", ["many", "-1", "17", "1.5", "٣", "0000000000001"])
def test_a_number_of_proxies_that_cannot_be_is_refused(
    proxies: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadSetting, match=r"HEADLIGHT_PROXIES: .* is not accepted. Allowed: a whole number from 0 to 16"):
        AccessLimits.from_environment({"HEADLIGHT_PROXIES": proxies})
    monkeypatch.setenv("HEADLIGHT_PROXIES", proxies)
    assert main(["serve", "--port", "1"]) == 1
    assert "HEADLIGHT_PROXIES" in capsys.readouterr().err


@pytest.mark.slow
def test_serve_is_told_of_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[AccessLimits] = []
    monkeypatch.setenv("HEADLIGHT_PROXIES", "1")
    monkeypatch.setattr("model.features.serving.serve_command.application", lambda engine, access: started.append(access))
    monkeypatch.setattr("uvicorn.run", lambda app, **options: started.append(options["proxy_headers"]))
    for options in ([], ["--proxies", "2"], ["--proxies", "0"]):
        assert main(["serve", *options]) == 0
    assert [access if isinstance(access, bool) else access.proxies for access in started] == [1, False, 2, False, 0, False]


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (RunRequest("tiny", (4,) * 600), "The source has 600 tokens, and this server accepts at most 512. Shorten it."),
        (RunRequest("tiny", (4,), (4,) * 700), "The target has 700 tokens, and this server accepts at most 512. Shorten it."),
        (
            RunRequest("tiny", (4,), source_pad_to=800),
            "With its padding the source has 800 tokens, and this server accepts at most 512. Pad less.",
        ),
    ],
)
def test_a_refusal_names_the_input_that_is_too_long(request_: RunRequest, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        AccessLimits.from_environment(PUBLIC).check_question(Run(request_))
    assert str(refused.value) == sentence
