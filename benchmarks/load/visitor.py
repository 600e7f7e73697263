"""A client of the app that speaks like a browser, without one: Streamlit's protobuf messages over a websocket."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import httpx
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

PATIENCE = 120.0
"""Seconds after which a script run counts as lost."""

AGAIN_SECONDS = 0.1
"""Seconds after which a page that waits for an answer asks again how far it is, as viz/session/waiting.js does."""

KEPT_RUNS = 2
"""Number of script runs for which a browser caches a large message, so that the server need not send it again."""


ENDS = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)


@dataclass(frozen=True)
class Shown:
    """An element on the page.

    Attributes:
        element: Streamlit's description of it.
        fragment: the fragment of the script that runs when the element is used; "": the whole script.
    """

    element: Element
    fragment: str


NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Failed(Exception):
    """The script failed, showed an error, or did not end."""


class Visitor:
    """One session. Each method returns when the page rests.

    Args:
        connection: websocket to the server.
        address: address of the app.
        query: parameters of the link.
        headers: sent with each request, such as a cookie.
    """

    def __init__(self, connection: ClientConnection, address: str, query: dict[str, str], headers: Mapping[str, str]) -> None:
        self._connection, self._address, self._headers = connection, address, headers
        self._query = urlencode(query)
        self._page = ""
        self._widgets: dict[str, WidgetState] = {}
        self._kept: dict[str, tuple[int, Shown]] = {}
        self._run = 0
        self._shown: dict[str, Shown] = {}

    async def join(self) -> None:
        """Opens the page."""
        await self._rerun()

    async def select(self, site: str, head: int) -> None:
        """Clicks on a head of the atlas."""
        state = WidgetState(json_value=json.dumps({"selection": {"site": site, "head": head}}))
        drawing = self.drawing("atlas")
        await self._set(drawing.element.bidi_component.id, drawing.fragment, state)

    async def type(self, text: str) -> None:
        """Types a sentence into the text box and presses Enter."""
        box = next(each for each in self._shown.values() if each.element.text_input.id.endswith("-widget:text"))
        await self._set(box.element.text_input.id, box.fragment, WidgetState(string_value=text))

    @property
    def said(self) -> list[str]:
        """The warnings on the page."""
        alerts = [shown.element.alert for shown in self._shown.values() if shown.element.HasField("alert")]
        return [alert.body.replace("\\", "").replace("\u2060", "") for alert in alerts if alert.format == Alert.WARNING]

    def scene(self, drawing: str) -> dict[str, Any]:
        """The header of a drawing's scene, without its arrays."""
        data = self.drawing(drawing).element.bidi_component.bytes
        header: dict[str, Any] = json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])
        return header

    def tokens(self, strip: str) -> list[str]:
        """The texts of a strip."""
        strips = {each["name"]: each["tokens"] for each in self.scene("strips")["strips"]}
        return [token["text"] for token in strips[strip]]

    def drawing(self, name: str) -> Shown:
        """The component `headlight.NAME`."""
        return next(self._drawings(name))

    def _drawings(self, name: str) -> Iterator[Shown]:
        return (each for each in self._shown.values() if each.element.bidi_component.component_name == f"headlight.{name}")

    async def _set(self, widget: str, fragment: str, state: WidgetState) -> None:
        state.id = widget
        self._widgets[widget] = state
        await self._rerun(fragment)

    async def _rerun(self, fragment: str = "") -> None:
        await self._once(fragment)
        while (waiting := next(self._drawings("waiting"), None)) is not None:  # the page waits for an answer of the engine
            await self._answer(json.loads(waiting.element.bidi_component.json)["path"])
            await self._once(waiting.fragment)

    async def _answer(self, path: str) -> None:
        """Waits until the engine has the answer that the route at `path` tells about."""
        async with httpx.AsyncClient(
            base_url=self._address, headers=self._headers, timeout=PATIENCE, trust_env=False, verify=False
        ) as client:
            seen = 0
            while not (told := (await client.get(path, params={"seen": seen})).json())["done"]:
                seen = told["seen"]
                await asyncio.sleep(AGAIN_SECONDS)

    async def _once(self, fragment: str) -> None:
        """Runs the script, or a fragment of it."""
        self._run += 1
        self._kept = {name: kept for name, kept in self._kept.items() if self._run - kept[0] <= KEPT_RUNS}
        asked = ClientState(query_string=self._query, page_script_hash=self._page, fragment_id=fragment)
        asked.cached_message_hashes.extend(self._kept)
        asked.widget_states.widgets.extend(self._widgets.values())
        try:
            async with asyncio.timeout(PATIENCE):
                await self._connection.send(BackMsg(rerun_script=asked).SerializeToString())
                while not self._read(await self._connection.recv(decode=False)):
                    pass
        except TimeoutError as error:
            raise Failed(f"no end of the script within {PATIENCE:.0f} s") from error

    def _read(self, data: bytes) -> bool:
        """Processes one message; returns whether it is the last one of the run."""
        message = ForwardMsg.FromString(data)
        match message.WhichOneof("type"):
            case "new_session":
                self._page = message.new_session.page_script_hash
                again = set(message.metadata.run.fragment_ids)
                self._shown = {path: shown for path, shown in self._shown.items() if again and shown.fragment not in again}
            case "page_info_changed":
                self._query = message.page_info_changed.query_string
            case "ref_hash":
                self._show(message, self._kept[message.ref_hash][1])
            case "delta" if message.delta.HasField("new_element"):
                self._show(message, Shown(message.delta.new_element, message.delta.fragment_id))
            case "script_finished":
                if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                    raise Failed("the script does not compile")
                return message.script_finished in ENDS
        return False

    def _show(self, message: ForwardMsg, shown: Shown) -> None:
        if message.metadata.cacheable or message.ref_hash:
            self._kept[message.ref_hash or message.hash] = self._run, shown
        self._shown["/".join(map(str, message.metadata.delta_path))] = shown
        match shown.element.WhichOneof("type"):
            case "exception":
                raise Failed(shown.element.exception.message)
            case "alert" if shown.element.alert.format == Alert.ERROR:
                raise Failed(shown.element.alert.body)


@asynccontextmanager
async def visiting(address: str, headers: Mapping[str, str] = NO_HEADERS, **query: str) -> AsyncIterator[Visitor]:
    """Connects a visitor, who has not joined yet, and disconnects at the end.

    Args:
        address: address of the app, `http://127.0.0.1:PORT/`.
        headers: sent with each request, such as the cookie by which a proxy knows where the visitor belongs.
        query: parameters of the link.
    """
    stream = f"{address.replace('http', 'ws', 1).rstrip('/')}/_stcore/stream"
    spoken = [Subprotocol("streamlit")]
    async with connect(
        stream, subprotocols=spoken, additional_headers=headers, compression=None, max_size=None, open_timeout=PATIENCE, proxy=None
    ) as connection:
        yield Visitor(connection, address, query, headers)
