"""What a drawing still has to report when its page is left: it is neither lost nor drawn into the next page."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, WebSocketRoute
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.conftest import Serve
from tests.browser.patience import expect
from tests.browser.visits import chips, drawing, loud, opened, rest, until

pytestmark = pytest.mark.browser

APP = Path(__file__).parents[2] / "app.py"
REPORTED_MS = 400
"""So long the player collects steps before it reports them."""


class SlowAnswers:
    """Holds back what the server says, as a busy one does, while `held`."""

    def __init__(self, page: Page) -> None:
        self.held, self.page, self._waiting = False, page, list[str | bytes]()
        page.route_web_socket("**/_stcore/stream", self.join)

    def join(self, browser: WebSocketRoute) -> None:
        """A page has connected."""
        self.browser, server = browser, browser.connect_to_server()
        server.on_message(self.take)

    def take(self, message: str | bytes) -> None:
        """The server has said something."""
        if self.held:
            self._waiting.append(message)
        else:
            self.browser.send(message)

    @property
    def ends(self) -> int:
        """How many runs of the script are known to have ended only to the server."""
        return sum(map(is_end, self._waiting))

    def go_on(self) -> None:
        """Says what was held back."""
        self.held = False
        while self._waiting:
            self.browser.send(self._waiting.pop(0))


def is_end(message: str | bytes) -> bool:
    """Whether a message of the server says that a run of the script has ended."""
    return bool(ForwardMsg.FromString(message).WhichOneof("type") == "script_finished")


def stepping(page: Page, serve: Serve) -> Page:
    """The page Step through, its player ready for keys."""
    page = opened(page, f"{serve(APP)}/step?text=ein+hund+spielt+im+schnee")
    expect(drawing(page, "player")).to_have_attribute("data-step", "0")
    drawing(page, "player").locator("button").first.focus()
    return page


def step_in(page: Page) -> list[str]:
    return parse_qs(urlsplit(page.url).query).get("step", [])


def test_a_step_that_is_not_reported_yet_goes_along_to_the_next_page(watched: Page, serve: Serve) -> None:
    page = stepping(watched, serve)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.get_by_role("link", name="Masks").click()
    page.wait_for_url("**/masks?*")
    until(page, lambda: step_in(page) == ["2"])
    page.get_by_role("link", name="Step through").click()
    page.wait_for_url("**/step?*")
    expect(drawing(page, "player")).to_have_attribute("data-step", "2")
    page.keyboard.press("ArrowLeft")  # seconds after this page was left for another, and is here again
    until(page, lambda: step_in(page) == ["1"])
    page.keyboard.press("ArrowRight")
    until(page, lambda: step_in(page) == ["2"])
    page.get_by_role("link", name="Step through").click()  # nothing is left: reports go on
    rest(page)
    drawing(page, "player").locator("button").first.focus()
    page.keyboard.press("ArrowRight")
    until(page, lambda: step_in(page) == ["3"])


@pytest.mark.thorough
def test_what_is_done_on_a_page_that_is_left_is_not_drawn_into_the_next_one(watched: Page, serve: Serve) -> None:
    """The server's answer to the link comes late; until then the page is there, and its keys work."""
    answers = SlowAnswers(watched)
    page = stepping(watched, serve)
    answers.held = True
    page.get_by_role("link", name="Masks").click()
    drawing(page, "player").locator("button").first.focus()
    page.keyboard.press("ArrowRight")
    expect(drawing(page, "player")).to_have_attribute("data-step", "1")
    page.wait_for_timeout(2 * REPORTED_MS)
    answers.go_on()
    page.wait_for_url("**/masks?*")
    rest(page)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(loud(page)).to_have_count(0)
    assert urlsplit(page.url).path == "/masks"


@pytest.mark.thorough
def test_what_is_done_after_the_browsers_back_key_is_not_drawn_into_the_page_before(watched: Page, serve: Serve) -> None:
    """Runs end meanwhile that the browser learns of late: it then dropped what the server took for known, and was dead."""
    answers = SlowAnswers(watched)
    page = opened(watched, f"{serve(APP)}/masks?text=ein+hund+spielt+im+schnee")
    page.get_by_role("link", name="Step through").click()
    page.wait_for_url("**/step?*")
    expect(drawing(page, "player")).to_have_attribute("data-step", "0")
    rest(page)
    answers.held = True
    while urlsplit(page.url).path == "/step":  # parameters of its URL are places in the browser's history, too
        ends = answers.ends
        page.go_back(wait_until="commit")
        until(page, lambda ends=ends: answers.ends > ends)  # type: ignore[misc]
    drawing(page, "player").locator("button").first.focus()
    page.keyboard.press("ArrowRight")
    expect(drawing(page, "player")).to_have_attribute("data-step", "1")
    page.wait_for_timeout(2 * REPORTED_MS)
    answers.go_on()
    expect(drawing(page, "player")).to_have_count(0)
    rest(page)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(loud(page)).to_have_count(0)
    assert urlsplit(page.url).path == "/masks"


@pytest.mark.thorough
def test_back_to_other_parameters_of_a_page_does_not_leave_it(watched: Page, serve: Serve) -> None:
    page = stepping(watched, serve)
    page.keyboard.press("ArrowRight")
    until(page, lambda: step_in(page) == ["1"])
    rest(page)
    page.go_back(wait_until="commit")
    assert urlsplit(page.url).path == "/step"
    assert step_in(page) != ["1"]
    page.keyboard.press("ArrowRight")
    until(page, lambda: step_in(page) in (["1"], ["2"]))


@pytest.mark.thorough
@pytest.mark.parametrize("then", ["Run", "Masks"])
def test_what_is_clicked_before_the_answer_to_a_sentence_is_here_does_not_take_it_back(
    watched: Page, serve: Serve, then: str
) -> None:
    """The click comes with the URL of the sentence before."""
    answers = SlowAnswers(watched)
    page = opened(watched, f"{serve(APP)}/step?text=ein+hund+spielt+im+schnee")
    rest(page)
    answers.held = True
    page.get_by_role("textbox", name="Input sentence").fill("zwei hunde")
    page.keyboard.press("Enter")
    until(page, lambda: answers.ends > 0)
    page.get_by_role("button" if then == "Run" else "link", name=then, exact=True).click()
    page.wait_for_timeout(REPORTED_MS)
    answers.go_on()
    if then == "Masks":
        page.wait_for_url("**/masks?*")
    until(page, lambda: parse_qs(urlsplit(page.url).query)["text"] == ["zwei hunde"])
    rest(page)
    expect(page.get_by_role("textbox", name="Input sentence")).to_have_value("zwei hunde")
    if then == "Run":
        expect(chips(page, "source")).to_have_text(["<sos>", "zwei", "hunde", "<eos>"])
