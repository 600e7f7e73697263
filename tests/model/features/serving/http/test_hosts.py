"""Under which names a server answers: a page of another site that gives its name the address 127.0.0.1 gets nothing."""

import asyncio
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from model.__main__ import main
from model.engine.api import Batches, Gauges
from model.engine.guards.access import AccessLimits
from model.engine.guards.hosts import KnownHosts
from model.errors import BadSetting
from model.features.serving.http.server import application
from model.requests.questions import Question

THIS_MACHINE = "localhost localhost:8501 LOCALHOST localhost. 127.0.0.1 127.0.0.1:8501 127.8.9.1 [::1] [::1]:8501".split()
OTHERS = [
    "evil.example",
    "evil.example:8501",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evil.example@127.0.0.1",
    "127.0.0.1/evil.example",
    "127.0.0.1:x",
    "127.0.0.1:99999999",
    "127.0.0.1:" + "9" * 5000,
    "192.0.2.7",
    "0.0.0.0",
    "[::1",
    "::1]",
    "[",
    "",
    " ",
    "\t",
    "//localhost",
    "*",
]


def client(address: str, hosts: str = "") -> TestClient:
    async def answer(request: object) -> PlainTextResponse:
        return PlainTextResponse("here")

    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.close()

    inner = Starlette(routes=[Route("/", answer), WebSocketRoute("/socket", socket)])
    app = KnownHosts(inner, address, {"HEADLIGHT_HOSTS": hosts}, lambda error: PlainTextResponse(str(error), 403))
    return TestClient(app)


def statuses(found: TestClient, names: list[str]) -> list[int]:
    return [found.get("/", headers={"host": name}).status_code for name in names]


def connects(found: TestClient, host: str) -> bool:
    try:
        with found.websocket_connect("/socket", headers={"host": host, "origin": f"http://{host}"}):
            return True
    except WebSocketDisconnect as refused:
        return refused.code != 1008


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost"])
def test_a_server_that_only_this_machine_reaches_answers_to_its_names_alone(address: str) -> None:
    found = client(address)
    assert statuses(found, THIS_MACHINE) == [200] * len(THIS_MACHINE)
    assert statuses(found, OTHERS) == [403] * len(OTHERS)
    assert connects(found, "127.0.0.1:8501")
    assert not connects(found, "evil.example:8501")


def test_a_refusal_says_what_was_asked_and_what_to_do() -> None:
    assert client("127.0.0.1").get("/", headers={"host": "app.example.org"}).text == (
        "This server does not answer to the name “app.example.org”. Use localhost on its own machine, or an IP address that it "
        "listens on, or add the name to the setting HEADLIGHT_HOSTS."
    )


@pytest.mark.parametrize("address", ["", "0.0.0.0", "::", "192.0.2.7", "lecture.example.org"])
def test_a_server_that_others_reach_answers_to_addresses_and_to_names_of_its_own(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answered to every name, so a page of another site could be rebound to it."""
    monkeypatch.setattr("socket.gethostname", lambda: "Laptop.uni.example")
    phones = ["192.0.2.7:8501", "laptop.local:8501", "[2001:db8::1]:8501", "laptop", "LAPTOP.uni.example.", *THIS_MACHINE]
    found = client(address)
    assert statuses(found, phones) == [200] * len(phones)
    others = [name for name in OTHERS if name not in ("192.0.2.7", "0.0.0.0")]
    others += ["laptop.evil.example", "192.0.2.7.evil.example", "1.2.3", "0x7f.1", "app.example.org"]
    assert statuses(found, others) == [403] * len(others)
    assert connects(found, "laptop.local:8501")
    assert not connects(found, "evil.example:8501")
    assert statuses(client(address, "app.example.org"), [*phones, "app.example.org:8501"]) == [200] * (len(phones) + 1)
    assert statuses(client(address, "*"), ["evil.example"]) == [200]


def test_the_name_that_a_server_listens_on_is_one_of_its_names() -> None:
    assert statuses(client("lecture.example.org"), ["lecture.example.org:8501", "lecture.example.com"]) == [200, 403]


def test_other_names_can_be_listed() -> None:
    found = client("127.0.0.1", "App.example.org, *.uni.example ,[2001:db8::1],")
    right = ["app.example.org", "APP.example.org.:80", "a.uni.example", "a.b.uni.example", "[2001:db8::1]:8501", "localhost"]
    assert statuses(found, right) == [200] * len(right)
    wrong = ["x.app.example.org", "uni.example", "evil-uni.example", "example.org", "2001:db8::1"]
    assert statuses(found, wrong) == [403] * len(wrong)
    assert statuses(client("127.0.0.1", "*"), ["evil.example"]) == [200]


@pytest.mark.parametrize("hosts", ["app.example.org:8501", "http://app.example.org", "a b", "a,*.", "[x]", "a*", "é!"])
def test_a_list_of_another_form_is_refused_when_the_server_starts(hosts: str) -> None:
    with pytest.raises(BadSetting, match="HEADLIGHT_HOSTS"):
        client("127.0.0.1", hosts)


def test_nothing_but_requests_is_looked_at() -> None:
    scopes: list[str] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        scopes.append(scope["type"])

    refusing = KnownHosts(inner, "127.0.0.1", {}, lambda error: PlainTextResponse(str(error), 403))
    asyncio.run(refusing({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert scopes == ["lifespan"]


@pytest.mark.slow
@pytest.mark.parametrize(("options", "status"), [([], 403), (["--host", "0.0.0.0"], 404)])
def test_the_engine_server_keeps_to_it(monkeypatch: pytest.MonkeyPatch, options: list[str], status: int) -> None:
    served: list[Any] = []
    monkeypatch.setenv("HEADLIGHT_TOKEN", "token")
    monkeypatch.setattr("uvicorn.run", lambda app, **options: served.append(app))
    monkeypatch.setattr("model.features.serving.serve_command.application", lambda engine, access: Starlette())
    assert main(["serve", *options]) == 0
    found = TestClient(served[0])
    assert found.post("/v1/models", headers={"host": "localhost:8765"}).status_code == 404
    refused = found.post("/v1/models", headers={"host": "evil.example:8765"})
    assert refused.status_code == status
    assert status == 404 or refused.json()["error"] == "UnknownHost"


@pytest.mark.parametrize("path", ["run", "receive", "models"])
def test_a_page_in_a_browser_cannot_make_an_engine_work(path: str) -> None:
    found = TestClient(application(IdleEngine(), AccessLimits()))  # type: ignore[arg-type]  # never asked
    headers = {"origin": "http://evil.example", "content-type": "text/plain"}
    refused = found.post(f"/v1/{path}", content=b"{}", headers=headers)
    assert refused.status_code == 403
    assert refused.headers["connection"] == "close"
    assert refused.json()["error"] == "NotForPages"


class IdleEngine:
    """Fails if it is asked for anything."""

    def ask(self, question: Question[Any]) -> dict[str, int]:
        assert isinstance(question, Gauges | Batches)
        return {}
