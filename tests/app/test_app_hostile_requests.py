"""The whole app as it is served, before requests that no page of it sends: each gets an answer, none a traceback."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import httpx
import pytest
from streamlit.proto.Common_pb2 import DoubleArray, FileUploaderState, StringArray
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.load.visitor import Visitor, visiting
from tests.browser.servers import APP, SAID, free_port, started
from tests.patience import HANG_S

pytestmark = pytest.mark.thorough

HEADERS = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}
DIGITS = "9" * 5000
PATHS = [
    "/",
    "/explore",
    "/masks?seed=" + DIGITS,
    "/_stcore/health",
    "/_stcore/host-config",
    "/media/none",
    "/component/none/x",
    "/static/none.js",
    "/class",
    f"/class/{DIGITS}",
    "/class/%00%ff",
    "/class/00000000/events",
    "/class/00000000/qr.svg?origin=http://[",
    "/hold/masks.en",
    f"/hold/{DIGITS}",
    f"/hold/{DIGITS}/handout",
    "/hold/..%2f..%2fetc/file",
    f"/headlight/waiting/x?seen={DIGITS}",
    f"/headlight/script/{DIGITS}",
    f"/headlight/{DIGITS}/{DIGITS}",
    "/headlight/%00/%00",
    "/docs/..%2f..%2fREADME.md",
    "/_stcore/metrics",
    "/%2e%2e/%2e%2e/etc/passwd",
    "//evil.example/..",
]
STRANGE = {
    "origin": "http://[",
    "cookie": f"headlight-device={DIGITS}; headlight-key=\xff; ;;==",
    "x-forwarded-for": "[, ,::",
    "accept-language": f"de;q={DIGITS}, ;;,*",
    "range": f"bytes={DIGITS}-",
    "if-none-match": DIGITS,
    "content-type": "application/json",
}


Served: TypeAlias = tuple[httpx.Client, int, Path]
"""A client of a server, the server's port, and the file of what it writes as errors."""


@contextmanager
def serving(folder: Path, **settings: str) -> Iterator[Served]:
    port = free_port()
    classes = {"HEADLIGHT_CLASSES": str(folder / "classes"), "HEADLIGHT_DEVICE": "cpu"}
    address, process = started(APP, port, folder, **classes, **settings)
    try:
        with httpx.Client(base_url=address, timeout=HANG_S) as client:
            yield client, port, folder / SAID
    finally:
        process.terminate()
        process.wait(HANG_S)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The app on its owner's machine, whose requests no pace limits."""
    with serving(tmp_path_factory.mktemp("owner")) as found:
        yield found


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A public server on loopback."""
    with serving(tmp_path_factory.mktemp("public"), HEADLIGHT_PUBLIC="1") as found:
        yield found


def upgraded(port: int, host: str, origin: str) -> str:
    """The status line of the answer to the request for a WebSocket."""
    head = (
        f"GET /_stcore/stream HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), 60) as caller:
        caller.sendall(head.encode())
        return caller.recv(4096).decode("latin-1").partition("\r\n")[0]


def test_no_request_ends_in_an_error_and_every_answer_carries_its_headers(
    served: Served,
) -> None:
    client, _port, said = served
    before = said.read_text("utf-8")
    for path in PATHS:
        for method, headers in (("GET", dict[str, str]()), ("GET", STRANGE), ("POST", STRANGE), ("DELETE", STRANGE)):
            sent = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
            answer = client.request(method, path, headers=sent, content=b"[" if method == "POST" else None)
            assert answer.status_code < 500, (method, path)
            assert HEADERS.items() <= dict(answer.headers).items(), (method, path)
            assert answer.headers["content-security-policy"].endswith("frame-ancestors 'self'"), (method, path)
    assert "Traceback" not in said.read_text("utf-8").removeprefix(before)


def test_a_header_without_an_end_is_refused(served: Served) -> None:
    """As tests/model/engine/test_connections.py does, of the app as Streamlit starts it."""
    client, port, _errors = served
    with socket.create_connection(("127.0.0.1", port), 60) as caller:
        caller.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        try:
            for _ in range(64):
                caller.sendall(b"y" * 2**16)
            received = caller.recv(4096)
        except (ConnectionResetError, BrokenPipeError):
            received = b""
    assert received == b"" or b" 431 " in received
    assert client.get("/_stcore/health").status_code == 200


def test_a_public_server_keeps_its_metrics_to_itself(public: Served) -> None:
    client, _port, _said = public
    assert client.get("/_stcore/metrics").status_code == 403
    assert client.get("/_stcore/health").status_code == 200


VALUES = [
    DIGITS,
    "-" + "9" * 4000,
    "1e400",
    "-1e400",
    "NaN",
    "Infinity",
    "true",
    "null",
    '"x"',
    "[[[[]]]]",
    '{"a":1}',
    '"\\ud800"',
    '"\\u0000"',
]
BODIES = [b"", b"[", b"{}", b"[]", b"null", b"[" * 8000, b"\xff\xfe", b"{" * 5000]


def test_whatever_a_message_holds_it_is_answered(served: Served) -> None:
    client, _port, said = served
    before, page = said.read_text("utf-8"), {"content-type": "application/json", "sec-fetch-site": "same-origin"}
    opened = client.post("/class", json={"lecture": "masks.en"}).json()
    client.cookies.clear()
    room = f"/class/{opened['code']}"
    fields = "lecture text step change value pointer choice view phase black key".split()
    bodies = BODIES + [f'{{"{field}": {value}}}'.encode() for field in fields for value in VALUES]
    for path in ("/class", f"{room}/steer", f"{room}/answer", f"{room}/key", "/hold/masks.en/view", "/headlight/live/x"):
        for body in bodies:
            headers = page | {"cookie": f"headlight-key={opened['key']}; headlight-device=x"}
            answer = client.post(path, content=body, headers=headers)
            assert answer.status_code < 500 or answer.status_code == 503, (path, body[:40], answer.text)
            client.cookies.clear()
    assert client.post(f"{room}/steer", json={"step": 1}, headers={"cookie": f"headlight-key={opened['key']}"}).status_code == 200
    assert "Traceback" not in (logged := said.read_text("utf-8").removeprefix(before))
    assert "incident" not in logged


@pytest.mark.parametrize("server", ["served", "public"])
def test_a_page_of_another_site_reaches_nothing_by_a_name_for_this_machine(server: str, request: pytest.FixtureRequest) -> None:
    client, port, said = request.getfixturevalue(server)
    for path in PATHS:
        assert client.get(path, headers={"host": f"evil.example:{port}"}).status_code == 403, path
    for method, path in (("POST", "/class"), ("POST", "/headlight/live/x"), ("PUT", "/_stcore/upload_file/a/b")):
        evil = {"host": "evil.example", "origin": "http://evil.example", "content-type": "application/json"}
        assert client.request(method, path, headers=evil, content=b"{}").status_code == 403
    evil_host = f"evil.example:{port}"
    assert " 403 " in upgraded(port, evil_host, f"http://{evil_host}")
    assert " 403 " in upgraded(port, f"127.0.0.1:{port}", f"http://{evil_host}")
    assert " 403 " in upgraded(port, f"127.0.0.1:{port}", "http://["), "a malformed origin"
    assert "incident" not in said.read_text("utf-8")
    for name in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
        assert " 101 " in upgraded(port, name, f"http://{name}")


FORGED = (
    WidgetState(bool_value=True),
    WidgetState(double_value=1.5),
    WidgetState(json_value="{geheim"),
    WidgetState(bytes_value=b"\xffgeheim"),
    WidgetState(string_value="../geheim"),
    WidgetState(trigger_value=True),
    WidgetState(string_array_value=StringArray(data=["geheim"] * 3)),
    WidgetState(double_array_value=DoubleArray(data=[float("nan")] * 3)),
    WidgetState(file_uploader_state_value=FileUploaderState()),
)


def test_forged_values_of_widgets_are_as_if_nothing_had_been_sent(served: Served) -> None:
    """One of them left its session with an error in each run, and the log with as many incidents."""
    client, _port, said = served
    before = said.read_text("utf-8")
    asyncio.run(forged(str(client.base_url)))
    assert said.read_text("utf-8").removeprefix(before) == ""


async def forged(address: str) -> None:
    """Sends forged values for every widget of the first page to a session, which goes on as ever."""
    async with visiting(address, text="Ein Hund.") as visitor:
        await visitor.join()
        found = {widget.partition("-widget:")[2] or widget: (widget, fragment) for widget, fragment in widgets(visitor)}
        assert {"language", "reading", "text"} <= found.keys()
        assert len(found) > 15
        widget, fragment = found["max_length"]
        await visitor._set(widget, fragment, WidgetState(int_value=2))
        assert len(visitor.tokens("target")) == 3, "the page sends whole numbers, which the widget takes for floats"
        for widget, fragment in found.values():
            for state in FORGED:
                await visitor._set(widget, fragment, state)
            del visitor._widgets[widget]
        big = next(each for name, each in found.items() if name.endswith("-big-button"))
        await visitor._set(*big, WidgetState(trigger_value=True))  # a value that is right has pressed it: back to all panels
        del visitor._widgets[big[0]]
        await visitor.type("Ein Mann.")
        for _ in range(20):  # runs of forged values may still be on their way: each message ends one of them
            spelled = "".join(visitor.tokens("source")).replace("##", "")  # a value that is right may have chosen another model
            if "mann" in spelled:
                return
            await visitor.join()
        pytest.fail(f"the page shows {spelled!r} and says {visitor.said}")


def widgets(visitor: Visitor) -> list[tuple[str, str]]:
    """The ids of all widgets that a visitor sees, each with its fragment."""
    told = ((getattr(shown.element, str(shown.element.WhichOneof("type"))), shown.fragment) for shown in visitor._shown.values())
    return [(element.id, fragment) for element, fragment in told if getattr(element, "id", "")]
