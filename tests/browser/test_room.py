"""What stands on a page has room: nothing lies over what it explains, no word is cut, no map scrolls that could be whole."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page

from tests.browser.emulation import a_phone
from tests.browser.patience import expect
from tests.browser.servers import APP
from tests.browser.test_pages import box, overlap
from tests.browser.visits import drawing, has_parameters, middle, rest, tile_of, until

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

Serve = Callable[[Path], str]
Within = Callable[[str], Page]
MODEL = {"model": "multi30k-de-en", "text": "Im Park spielt ein alter Mann Gitarre."}
NINETY = (
    "Ein alter Mann mit einem großen Hut sitzt auf einer Bank im Park und liest eine Zeitung , während zwei kleine "
    "Kinder mit einem roten Ball auf der grünen Wiese spielen , und eine junge Frau mit einem weißen Hund geht auf "
    "dem Weg an einem See entlang , in dem viele Enten schwimmen , und ein Mann auf einem Fahrrad fährt schnell an "
    "einer Gruppe von Menschen vorbei , die vor einem Café stehen und Kaffee trinken , während ein Musiker Gitarre "
    "spielt ."
)
HOLDS_FOCUS = (
    "() => { let at = document.activeElement; while (at?.shadowRoot) at = at.shadowRoot.activeElement; return at?.tagName; }"
)
ABOVE_WORDS = """(all) => Math.min(...all.map((one) => {
  const words = document.createRange();
  words.selectNodeContents(one);
  return words.getBoundingClientRect().top - one.parentElement.getBoundingClientRect().top - one.parentElement.clientTop;
}))"""
CUT = """(node) => {
  const pen = CanvasRenderingContext2D.prototype, { fillText } = pen;
  pen.fillText = function (text, ...at) { (node.texts ??= []).push(text); return fillText.call(this, text, ...at); };
  node.restore = () => { pen.fillText = fillText; };
}"""


def test_explore_has_room_for_labels_calculations_similar_heads_and_typed_words(
    watched: Page, within: Within, serve: Serve
) -> None:
    watched.set_viewport_size({"width": 1440, "height": 900})
    page = within(f"{serve(APP)}/?{urlencode(MODEL)}")
    lines = drawing(page, "lines").locator("canvas")
    lines.evaluate(CUT)
    places = drawing(page, "lines").evaluate("node => JSON.parse(node.dataset.layout)")
    row = next(place for place in places if (place["side"], place["index"]) == ("query", 3))
    lines.click(position={"x": row["x"] - 10, "y": row["y"] - lines.evaluate("node => node.offsetTop")})
    page.wait_for_url("**query=3**")
    rest(page)
    texts = lines.evaluate("node => { node.restore(); return node.texts; }")
    assert "man → plays" in texts
    assert not [text for text in texts if text.endswith("…")], "the label of the selected row was cut"
    lines.evaluate(CUT)
    drawing(page, "lines").locator("canvas").press("ArrowRight")  # a key is emphasized: each row has a number beside it
    until(page, lambda: any(text.startswith("0.") for text in lines.evaluate("node => node.texts ?? []")))
    assert not [text for text in lines.evaluate("node => { node.restore(); return node.texts; }") if text.endswith("…")]

    heat = drawing(page, "cells").locator("canvas")
    page.mouse.click(*middle(tile_of(page, "decoder.0.2.cross", 0, "cells"), 3, 3))
    calculation = page.get_by_role("dialog")
    expect(calculation.get_by_text("How this weight was calculated")).to_be_visible()
    until(page, lambda: not overlap(box(calculation), box(heat)))
    page.keyboard.press("Escape")
    expect(calculation).to_have_count(0)
    until(page, lambda: page.evaluate(HOLDS_FOCUS) == "CANVAS")
    rest(page)

    page.get_by_text("Similar heads").click()
    expect(page.locator(".st-key-alike-heads button").first).to_be_visible()
    assert box(page.locator(".st-key-alike-heads"))["width"] > 800
    rest(page)  # a help that is opened before is drawn anew, and closed

    a_help_closes_at_a_press_elsewhere(page)
    rest(page)  # until then the sentence is on its way, and another page would take it along


def a_help_closes_at_a_press_elsewhere(page: Page) -> None:
    page.locator(".st-key-panel-overview .help summary").click()
    expect(page.locator(".help[open]")).to_have_count(1)
    page.locator(".st-key-card-facts .heading").click()
    expect(page.locator(".help[open]")).to_have_count(0)
    for name in ("heat", "lines"):  # by the keyboard, one help after the other
        page.locator(f".st-key-card-{name} .help summary").press("Enter")
    expect(page.locator(".help[open]")).to_have_count(1)
    page.keyboard.press("Escape")


INK_AT_THE_END = "node => [...node.getContext('2d').getImageData(node.width - 1, 0, 1, node.height).data].some(Boolean)"


def test_long_labels_end_on_the_canvas_and_help_covers_no_token(watched: Page, within: Within, serve: Serve) -> None:
    watched.set_viewport_size({"width": 1024, "height": 768})
    text = "A man in a blue shirt is near a tree and a man in a blue shirt is near a tree and a woman is on stage with a basketball"
    page = within(f"{serve(APP)}/?{urlencode({'model': 'captions-lm', 'text': text})}")
    help_of_heads = box(page.locator(".st-key-panel-overview .help summary"))
    assert not [chip for chip in drawing(page, "strips").locator(".chip").all() if overlap(box(chip), help_of_heads)]
    expect(drawing(page, "strips").locator(".chip")).to_have_count(32)
    assert not drawing(page, "cells").locator("canvas").evaluate(INK_AT_THE_END), "a label before the last was cut"


def test_few_heads_fill_the_card(watched: Page, within: Within, serve: Serve) -> None:
    watched.set_viewport_size({"width": 1440, "height": 900})
    page = within(f"{serve(APP)}/?model=induction")
    card = drawing(page, "atlas").locator(".card")
    expect(card).to_have_count(1)
    until(page, lambda: box(card.locator("canvas"))["width"] > 0.8 * box(card)["width"])


@pytest.mark.parametrize("size", [(1440, 900), (1024, 768)])
def test_the_map_of_the_network_has_room_and_a_play_is_one_entry_of_the_history(
    watched: Page, within: Within, serve: Serve, size: tuple[int, int]
) -> None:
    width, height = size
    watched.set_viewport_size({"width": width, "height": height})
    page = within(f"{serve(APP)}/step?{urlencode(MODEL | {'clock': 'computation', 'stage': 'encoder.0.0.self/scores'})}")
    network = drawing(page, "network")

    def is_in_sight() -> bool:
        current, around = box(network.locator(".box.here")), box(network.locator(".window"))
        return around["y"] <= current["y"] < current["y"] + current["height"] <= around["y"] + around["height"]

    until(page, is_in_sight)
    assert network.locator(".title").evaluate_all("all => all.filter((one) => one.scrollWidth > one.clientWidth).length") == 0
    assert network.locator(".title").evaluate_all(ABOVE_WORDS) >= 0, "words touched the border of their box"
    keys, speed = box(network.locator(".keys")), box(network.locator("select").first)
    assert keys["y"] <= speed["y"] + speed["height"] / 2 <= keys["y"] + keys["height"], "the list of speeds stood in another line"
    network.locator(".play").click()
    expect(network).not_to_have_attribute("data-stage", "encoder.0.0.self/scores")
    network.locator(".play").click()
    expect(network.get_by_role("button", name="Play", exact=True)).to_be_visible()
    has_parameters(page, stage=network.get_attribute("data-stage") or "")
    rest(page)
    page.go_back()  # by the length of the history one could not tell: it has at most 50 entries, and other tests use the tab
    has_parameters(page, stage="encoder.0.0.self/scores")


def test_a_phone_is_told_of_fingers_and_its_tables_cover_nothing(watched: Page, within: Within, serve: Serve) -> None:
    with a_phone(watched):
        page = within(f"{serve(APP)}/whatif?{urlencode(MODEL)}")
        hints = drawing(page, "atlas").first.locator(".readout")
        expect(hints).to_contain_text("two fingers")
        expect(page.locator("kbd").filter(visible=True)).to_have_count(0)
        expect(page.get_by_text("Tap a token")).to_be_visible()
        one_row(page.get_by_role("radiogroup"))
        one_row(within(f"{serve(APP)}/compare?{urlencode(MODEL)}").get_by_role("radiogroup", name="Compare with"))
        page = within(f"{serve(APP)}/checkpoint?{urlencode(MODEL)}")
        caption = page.locator(".st-key-card-tensors [data-testid=stCaptionContainer]").last
        toolbar = page.locator(".st-key-card-tensors [data-testid=stElementToolbar]").first
        assert not overlap(box(caption), box(toolbar)), "the buttons of the table lay over the words"
        page = within(f"{serve(APP)}/training?{urlencode(DIGITS | {'lang': 'de'})}")
        nothing_is_broken(page.get_by_role("radiogroup").filter(has_text="Entropie (Nat)"))
        page = within(f"{serve(APP)}/survey?{urlencode(MODEL | {'lang': 'de'})}")
        page.get_by_text("Erhebung erstellen").click()
        nothing_is_broken(page.get_by_role("radiogroup").filter(has_text="Mitgelieferte Texte"))


def nothing_is_broken(choice: Locator) -> None:
    """No word of a choice takes two lines, and its buttons are within it."""
    assert choice.evaluate(BROKEN_WORDS) == []
    assert choice.evaluate("node => node.scrollWidth <= node.clientWidth + 1")


DIGITS = {"model": "reverse-digits", "text": "3141"}

BROKEN_WORDS = """node => {
  const broken = [], walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  for (let text = walk.nextNode(); text; text = walk.nextNode()) {
    for (const { 0: word, index } of text.data.matchAll(/\\p{Script=Latin}+/gu)) {
      const range = document.createRange();
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      if (range.getClientRects().length > 1) broken.push(word);
    }
  }
  return broken;
}"""
"""The words of an element that take more than one line."""

CUT_INSIDE = "node => [...node.querySelectorAll('*')].filter((one) => one.scrollWidth > one.clientWidth + 1).length"


@pytest.mark.parametrize("language", ["en", "de", "zh-CN", "zh-TW"])
def test_no_choice_is_cut_and_speeds_have_the_decimal_sign_of_the_language(
    watched: Page, within: Within, serve: Serve, language: str
) -> None:
    watched.set_viewport_size({"width": 1440, "height": 900})
    page = within(f"{serve(APP)}/step?{urlencode(MODEL | {'lang': language})}")
    expect(drawing(page, "player").locator("select option").first).to_have_text("0,5 ×" if language == "de" else "0.5 ×")
    choices = page.locator(".stSidebar .stSelectbox")
    expect(choices.first).to_be_visible()
    assert [choice.evaluate(CUT_INSIDE) for choice in choices.all()] == [0] * choices.count()


def one_row(group: Locator) -> None:
    """The buttons of a choice stand side by side."""
    tops = group.get_by_role("radio").evaluate_all("all => all.map((one) => Math.round(one.getBoundingClientRect().top))")
    assert len(tops) > 2
    assert len(set(tops)) == 1, "a choice wrapped"


def test_ninety_tokens_leave_the_maps_in_view_and_are_all_shown_on_request(watched: Page, within: Within, serve: Serve) -> None:
    watched.set_viewport_size({"width": 1440, "height": 900})
    page = within(f"{serve(APP)}/?{urlencode(MODEL | {'text': NINETY, 'query': '50'})}")
    strip, last = page.locator(".strip[data-strip=source]"), page.locator(".strip[data-strip=source] .chip").last
    for width, height, share in ((1440, 900, 0.4), (1024, 768, 0.5), (390, 844, 0.65)):
        page.set_viewport_size({"width": width, "height": height})
        page.get_by_test_id("stMain").evaluate("node => { node.scrollTop = 0; }")
        rest(page)
        folded = box(strip)["height"]
        inside, line = box(strip.locator(".chips")), box(strip.locator(".chip").first)["height"]
        assert inside["height"] >= 2 * line + 6, "the second line was cut"
        assert box(drawing(page, "atlas").locator(".card").first)["y"] < share * height
        selected = page.locator(".strip[data-strip=target] .chip.selected")
        assert overlap(box(selected), box(page.locator(".strip[data-strip=target] .chips"))), "the selected token was folded away"
        strip.get_by_role("button", name="Show all (").click()
        until(page, lambda folded=folded: box(strip)["height"] > 1.9 * folded)  # type: ignore[misc]
        strip.get_by_role("button", name="Show two lines").click()
        until(page, lambda folded=folded: box(strip)["height"] == folded)  # type: ignore[misc]
        strip.locator(".chip").first.focus()
        page.keyboard.press("End")
        assert overlap(box(last), box(strip.locator(".chips"))), "the keyboard led to a token that is not seen"


def test_help_and_labels_keep_to_their_places(watched: Page, within: Within, serve: Serve) -> None:
    watched.set_viewport_size({"width": 1024, "height": 768})
    page = within(f"{serve(APP)}/circuit?model=captions-lm")
    for panel in ("circuit", "composition", "paths"):
        card = page.locator(f".st-key-panel-{panel}")
        assert box(card.locator(".help summary").first)["y"] >= box(card)["y"] - 1, "a help lay on what is above its panel"
    page = within(f"{serve(APP)}/masks?{urlencode(MODEL)}")
    chosen = page.locator(".stSelectbox").first
    assert chosen.evaluate(CUT_INSIDE) == 0, "the name of the layer was cut"
    page = within(f"{serve(APP)}/training?{urlencode(MODEL)}")
    assert box(page.locator(".st-key-film-of-reverse-digits"))["y"] < box(drawing(page, "film"))["y"]


def test_labels_of_heads_lie_over_nothing(watched: Page, within: Within, serve: Serve) -> None:
    watched.set_viewport_size({"width": 1440, "height": 900})
    page = within(f"{serve(APP)}/survey?model=captions-lm&lang=de")
    labels = page.locator(".hl[data-drawing=dots] .label").filter(has_text="position")
    for width, height in ((1440, 900), (1024, 768), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        rest(page)
        expect(labels.first).to_be_visible()
        boxes = [box(label) for label in page.locator(".hl[data-drawing=dots] .label").all()]
        assert len(boxes) >= 4
        assert not [1 for one, other in combinations(boxes, 2) if overlap(one, other)], f"two labels lay over each other: {width}"
        choices = page.locator(".st-key-card-survey .stSelectbox, .st-key-card-survey-head .stSelectbox")
        expect(choices).to_have_count(5)
        assert [choice.evaluate(CUT_INSIDE) for choice in choices.all()] == [0] * 5, f"a choice was cut: {width}"
