"""A visitor without a browser: the whole script, viz/main.py, run by AppTest on whatever checkpoints the engine finds."""

import json
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from tests.patience import HANG_S
from viz.session import background_calls

MAIN = Path(__file__).parents[2] / "viz" / "main.py"
PAGES = ("explore", "step", "masks", "positions", "compare")
"""Those that draw a run of any model; the page Training draws a model's snapshots."""

EVERY_PAGE = (*PAGES, "whatif", "training", "checkpoint")

SILENT = ("headlight.scheme", "headlight.file_limit", "headlight.drops", "headlight.intro", "headlight.live")
"""Components that watch the page and draw nothing."""


class Visitor:
    """One session. Every run of the script must end without an exception on the page.

    Args:
        page: where the visitor comes in.
        query: the parameters of the link.
    """

    def __init__(self, page: str = "explore", **query: str) -> None:
        self.app = AppTest.from_file(MAIN, default_timeout=HANG_S)
        for name, value in query.items():
            self.app.query_params[name] = value
        self.go(page)

    def go(self, page: str) -> None:
        """Opens another page of the same session."""
        self.app._page_hash = calc_hash(page)  # AppTest names pages by their files; these are functions
        self._run()

    def type(self, field: str, text: str) -> None:
        """Types into a box that is tied to `field` of the state, and presses Enter."""
        self.app.text_input(key=f"widget:{field}").set_value(text)
        self._run()

    def choose(self, field: str, value: object) -> None:
        """Chooses from a list that is tied to `field`."""
        self.app.selectbox(key=f"widget:{field}").set_value(value)
        self._run()

    def set(self, field: str, value: float) -> None:
        """Moves a slider or fills a number that is tied to `field`."""
        key = f"widget:{field}"
        sliders = [slider for slider in self.app.slider if slider.key == key]
        (sliders[0] if sliders else self.app.number_input(key=key)).set_value(value)
        self._run()

    def press(self, key: str) -> None:
        """Presses a button."""
        self.app.button(key=key).click()
        self._run()

    def report(self, drawing: str, **selection: object) -> None:
        """Makes a choice in a drawing, as its script reports it."""
        self.keep(drawing, selection=selection)
        self._run()

    def keep(self, drawing: str, **state: object) -> None:
        """Runs the script with what a drawing keeps: once, as AppTest forgets it."""
        parts = {part.proto.component_name: part.proto.id for part in self.app.get("bidi_component")}
        states = self.app._tree.get_widget_states()  # AppTest has no way to act on a component
        states.widgets.append(WidgetState(id=parts[f"headlight.{drawing}"], json_value=json.dumps(state)))
        self.app._run(states)

    def open(self, part: str) -> None:
        """Unfolds a part of the page that is drawn only then."""
        self.app.session_state[part] = True
        self._run()

    def again(self) -> None:
        """Runs the script again, as a browser does for what it was told in other ways, until nothing waits."""
        self._run()

    def _run(self) -> None:
        with pytest.MonkeyPatch.context() as patch:  # on a busy machine a page that draws a run again would lose what was clicked
            patch.setattr(background_calls, "PATIENCE_S", HANG_S)
            self.app.run()
            while self.waits:
                self.app.run()
        assert not self.app.exception, self.app.exception

    @property
    def waits(self) -> bool:
        """Whether the page shows that it waits for an answer of the engine."""
        return "headlight.waiting" in [part.proto.component_name for part in self.app.get("bidi_component")]

    @property
    def problems(self) -> list[str]:
        """What the page says about what could not be done as asked."""
        return [warning.value.replace("\\", "").replace("\u2060", "") for warning in self.app.warning]

    @property
    def words(self) -> str:
        """The sentences of the page, one a line."""
        written = (part.proto.body for kind in ("html", "markdown", "caption") for part in self.app.get(kind))
        return "\n".join((*written, *(info.value for info in self.app.info)))

    @property
    def stale(self) -> bool:
        """Whether the page shows the last picture, since what is asked for now cannot be run."""
        return _holds(self.app.main, "stale")

    @property
    def url(self) -> dict[str, str]:
        """The parameters in the address bar."""
        return {name: value if isinstance(value, str) else value[-1] for name, value in self.app.query_params.items()}

    @property
    def view(self) -> Any:
        """The state."""
        return self.app.session_state["view"]

    @property
    def drawn(self) -> int:
        """How many pictures the page has. Those of plotly have no property that it does not know: the app does not look."""
        drawings = [d for d in self.app.get("bidi_component") if d.proto.component_name not in SILENT]
        charts = self.app.get("plotly_chart")
        for chart in charts:
            go.Figure(json.loads(chart.proto.spec))
        return len(drawings) + len(charts)

    def scene(self, drawing: str) -> dict[str, Any]:
        """What the first drawing of a kind was told, without its numbers."""
        return self.scenes(drawing)[0]

    def scenes(self, drawing: str) -> list[dict[str, Any]]:
        """What all drawings of a kind were told, without their numbers."""
        found = [d.proto.bytes for d in self.app.get("bidi_component") if d.proto.component_name == f"headlight.{drawing}"]
        return [json.loads(each[4 : 4 + int.from_bytes(each[:4], "little")]) for each in found]

    def tokens(self, strip: str) -> list[str]:
        """The texts of a strip on the page Explore."""
        strips = {each["name"]: each["tokens"] for each in self.scene("strips")["strips"]}
        return [token["text"] for token in strips[strip]]


def _holds(block: Any, key: str) -> bool:
    """Whether a container with this key stands somewhere in a block, and holds something."""
    own = getattr(getattr(block, "proto", None), "id", "").endswith(f"-{key}")
    return bool(own and block.children) or any(_holds(child, key) for child in getattr(block, "children", {}).values())
