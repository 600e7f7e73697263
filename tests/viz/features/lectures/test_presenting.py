"""Lectures that are held: pictures of every page, what a file may contain, the pages and their routes, the file to take home."""

import base64
import gzip
import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.applications import Starlette
from starlette.testclient import TestClient

from model.engine.api import Run
from model.engine.local import LocalEngine
from model.requests.request import RunRequest
from tests.app.conftest import tiny  # noqa: F401
from viz.canvas.assets import kinds as drawing_kinds
from viz.canvas.wire.transport import unpack
from viz.claims.runs import StepRuns
from viz.features.lectures.classroom.deck import Deck
from viz.features.lectures.presenter import handout, html_pages, lobby, markdown, open_lectures, routes, strings
from viz.features.lectures.presenter.deck import LectureDeck, deck_event
from viz.features.lectures.presenter.formulas import mathml
from viz.features.lectures.presenter.html_pages import FOLDER
from viz.features.lectures.presenter.questions import given, right_options, unanswered
from viz.features.lectures.presenter.view_store import PackedView
from viz.features.lectures.script import answers, parser
from viz.features.lectures.script.lecture import Lecture
from viz.i18n.translate import LANGUAGES, speaking

TEXT = """---
title: A <b>title</b>
language: en
minutes: 15
models: tiny
---

# First

## Look

Words <script>alert(1)</script> and ![picture](http://other.example/x.png) and [link](javascript:alert(1)).

view: /explore?text=w4+w5+w6&head=1&query=1
point: row decoder.0.1.cross head 1 0 — the *first* row
note: Say this.

---

## Which word?

Look below.

view: /explore?text=w4+w5+w6&query=0
question: Which word does the first row look at?
answer: key decoder.0.1.cross head 0 0

---

## Player

view: /step?text=w4+w5+w6

---

# Second

## Stage

view: /step?text=w4+w5&clock=computation&stage=encoder.0.0.self%2Fqueries
point: stage encoder.0.0.self/keys

---

## Masks

view: /masks?text=w4+w5&pad=8

---

## Positions

view: /positions?text=w4+w5

---

## Beams

view: /compare?text=w4+w5&against=decode%3Dbeam

---

## Without

view: /whatif?text=w4+w5&edit=silence+site%3Dencoder.0.0.self+head%3D0

---

## Another model

view: /explore?model=absent&text=w4

---

## No film

view: /training?text=w4

---

## How much?

view: /explore?text=w4+w5&site=decoder.0.1.cross&head=0
question: How much?
answer: number weight 0 → 0

---

## All heads

view: /explore?text=w4+w5
"""
ASKED = {"prompt", "layout", "options", "given", "unit", "counted"}
"""What a page knows of an open question."""

NO_PICTURE = {8, 9}
"""Steps of the lecture that have no picture: a model that is not here, and one without snapshots."""


def lecture(text: str = TEXT) -> Lecture:
    return parser.read(text, "mine.en")


@pytest.fixture(scope="module")
def deck(tiny: Path) -> LectureDeck:  # noqa: F811
    found = LectureDeck(lecture(), LocalEngine(tiny.parent, torch.device("cpu")))
    found.wait()
    return found


@pytest.fixture(scope="module")
def client(deck: LectureDeck) -> Iterator[TestClient]:
    with pytest.MonkeyPatch.context() as patch:

        def opened(name: str) -> LectureDeck:
            if name != "mine.en":
                raise LookupError(name)
            return deck

        patch.setattr(routes.LECTURES, "deck", opened)
        patch.setattr(routes.REGISTRY, "_open_deck", opened)
        patch.setattr(routes.REGISTRY._files, "save", lambda code, content: None)
        with TestClient(Starlette(routes=routes.ROUTES), follow_redirects=False) as found:
            yield found


def told_to(page: str) -> dict[str, Any]:
    """The data inside a page."""
    found = re.search(r'<script type="application/json" id="page">(.*?)</script>', page, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def picture_of(view: PackedView | None) -> tuple[dict[str, Any], set[str]]:
    """The header of a picture, and the names of its blobs."""
    assert view is not None
    header, blobs = unpack(gzip.decompress(view.data))
    return header, set(blobs)


def test_every_page_that_draws_a_run_has_a_picture_with_all_its_scenes(deck: LectureDeck) -> None:
    kinds = []
    for step in range(len(deck.slides)):
        if step in NO_PICTURE:
            continue
        header, names = picture_of(deck.packed(step))
        kinds.append([panel["kind"] for panel in header["panels"]])
        assert {panel["scene"] for panel in header["panels"]} <= names, deck.slides[step].title
        assert set(kinds[-1]) <= drawing_kinds().keys() | {"Bars", "Table"}
    assert kinds[0] == ["Strips", "Atlas", "Lines"]
    assert [kind[0] for kind in kinds[2:6]] == ["Player", "Cells", "Cells", "Cells"]
    assert kinds[6][:2] == kinds[7][:2] == ["Strips", "Strips"]


def test_a_picture_holds_every_head_of_a_short_run_exactly(deck: LectureDeck) -> None:
    header, names = picture_of(deck.packed(0))
    assert header["choice"]["head"] == 1
    assert header["choice"]["large"]
    view = deck.packed(0)
    assert view is not None
    _header, blobs = unpack(gzip.decompress(view.data))
    atlas, _blobs = unpack(blobs["atlas"].tobytes())
    assert {f"{place['name']}/whole" for place in atlas["places"].values()} <= names
    assert len(atlas["places"]) == 12, "2 heads of 6 sites"


def test_a_link_that_names_a_site_opens_its_head_large_even_the_first_head(deck: LectureDeck) -> None:
    assert picture_of(deck.packed(10))[0]["choice"]["large"]
    assert not picture_of(deck.packed(11))[0]["choice"]["large"]


def test_a_step_that_cannot_be_shown_says_why_and_the_others_go_on(deck: LectureDeck) -> None:
    assert all((deck.view(step) is None) == (step in NO_PICTURE) for step in range(len(deck.slides)))
    assert "absent" in deck.problem(8)
    assert "No snapshots" in deck.problem(9)


def test_the_lecturers_page_and_the_file_hold_no_words_of_a_step_that_asks(deck: LectureDeck, client: TestClient) -> None:
    for page in (client.get("/hold/mine.en").text, html_pages.file(deck).decode()):
        slides = told_to(page)["slides"]
        assert "Words" in slides[0]["words"]
        assert (slides[1]["words"], slides[1]["points"], slides[1]["question"].keys()) == ("", [], ASKED)
        assert "Look below." not in page, "only the compressed event has it"
    assert "Look below." in deck_event(deck)["words"][1]


def test_the_picture_of_an_open_question_is_the_tokens_that_it_is_about(deck: LectureDeck) -> None:
    asked, number = deck.slides[1].question, deck.slides[10].question
    assert asked is not None
    assert number is not None
    (written,) = asked.given
    assert (written.tokens[0], written.outlined) == ("<sos>", (0, 1)), "the first row reads <sos> and generates the next token"
    read, written = number.given
    assert (read.tokens, read.outlined) == (("<sos>", "w4", "w5", "<eos>"), (0,))
    assert written.outlined == (0, 1)


def test_what_is_generated_is_no_part_of_the_picture_of_a_question_that_asks_for_it(tiny: Path) -> None:  # noqa: F811
    engine = LocalEngine(tiny.parent, torch.device("cpu"))
    trace = engine.ask(Run(RunRequest(model="tiny", source="w4 w5")))
    written = [step.chosen.text for step in trace.steps]
    text = TEXT.partition("# First")[0] + "view: /explore?text=w4+w5\nquestion: What?\nanswer: {answer}\n{options}"
    output = " ".join(word for word in written if word != "<eos>")
    for answer, options, shown in (
        ("output", f"option: {output}\noption: other", []),
        ("token at 1", "", [["<sos>", written[0]]]),
        ("number log-probability", "", [["<sos>", *written]]),
    ):
        step = lecture(text.format(answer=answer, options=options)).steps[0]
        assert step.question is not None
        assert [list(strip.tokens) for strip in given(StepRuns(engine, step), step.question)[1:]] == shown, answer


def test_the_view_of_a_question_has_the_row_that_it_asks_for_selected(deck: LectureDeck) -> None:
    header, _names = picture_of(deck.packed(10))
    assert [header["choice"][name] for name in ("site", "head", "query")] == ["decoder.0.1.cross", 0, 0]


def test_the_run_gives_the_options_and_the_answer(deck: LectureDeck) -> None:
    question, answer = deck.slides[1].question, deck.answer(1)
    assert question is not None
    assert answer is not None
    assert question.layout == "tokens"
    assert question.options[:2] == ("<sos>", "w4")
    assert answer.right == (max(range(len(answer.shares)), key=answer.shares.__getitem__),)
    assert sum(answer.shares) == pytest.approx(1, abs=1e-5)
    number = deck.answer(10)
    assert number is not None
    assert number.number is not None


def test_an_option_close_to_the_largest_weight_is_right_too() -> None:
    found = answers.Answer(("1", "2", "3", "4"), right=1, shares=(0.95, 0.96, 0.87, 0.86))
    assert right_options("head", found) == (0, 1, 2), "as a number is right within 10 %"
    assert right_options("token", found) == (1,), "one token was generated"
    assert right_options("number", answers.Answer(number=0.5)) == ()


@pytest.mark.parametrize(
    ("asked", "unit", "counted"),
    [
        ("kept 13", "bytes", True),
        ("breaks-at", "heads", True),
        ("share induction decoder.0.1.self head 1", "%", False),
        ("loss", "", False),
    ],
)
def test_a_number_is_asked_for_with_its_unit(asked: str, unit: str, counted: bool) -> None:
    link = "/explore?model=induction"
    head = "---\ntitle: T\nlanguage: en\nminutes: 1\nmodels: induction\n---\n"
    text = f"{head}view: {link}\nquestion: How many?\nanswer: number {asked}"
    step = parser.read(text, "t.en").steps[0]
    assert step.question is not None
    question = unanswered(step.question)
    assert (question.layout, question.unit, question.counted) == ("number", unit, counted)


@pytest.mark.parametrize("spoken", LANGUAGES)
def test_the_list_begins_with_the_lectures_in_the_language_of_the_page(spoken: str) -> None:
    with speaking(spoken):
        languages = [one.language for one in lobby._lectures()]
    assert languages[0] == spoken
    assert languages == sorted(languages, key=lambda each: each != spoken), "the others follow"


def test_a_point_is_placed_in_the_run(deck: LectureDeck) -> None:
    (found,) = deck.slides[0].points
    assert (found["site"], found["head"], found["query"]) == ("decoder.0.1.cross", 1, 0)
    assert found["note"] == "the <em>first</em> row"


def test_a_stage_is_named_as_on_its_page(deck: LectureDeck) -> None:
    [point] = deck.slides[3].points
    assert point["label"].startswith("Keys · Encoder self-attention, layer 1"), point


def test_no_markup_of_an_author_becomes_markup_of_the_page(deck: LectureDeck) -> None:
    words = deck.slides[0].words
    assert "<script" not in words
    assert "<img" not in words
    assert 'href="javascript' not in words
    assert markdown.html("**a** `b` <i>c</i>") == "<p><strong>a</strong> <code>b</code> &lt;i&gt;c&lt;/i&gt;</p>\n"


@pytest.mark.parametrize(
    "formula",
    [r"\text{<script>alert(1)</script>}", r"\text{</mtext><img src=x onerror=alert(1)>}", r"\frac{", "{" * 3000, "x" * 2001],
)
def test_a_formula_that_is_none_stays_text(formula: str) -> None:
    shown = mathml(formula)
    assert shown == f"<code>{escape(formula)}</code>"


def test_a_formula_is_drawn_by_the_browser_and_links_nowhere() -> None:
    drawn = '<math display="inline"><mrow><msqrt><mrow><mi>d</mi></mrow></msqrt></mrow></math>'
    assert markdown.inline(r"a $\sqrt{d}$ for $5 or $6") == f'a <span class="math inline">{drawn}</span> for $5 or $6'
    assert 'display="block"' in markdown.html("$$q$$")
    assert '<mrow><mi>a</mi><mo lspace="0" rspace="0">′</mo></mrow>' in mathml("a' = b^2"), "a prime was raised twice"
    primed = '<msub><mrow><mi>S</mi><mo lspace="0" rspace="0">′</mo></mrow><mi>k</mi></msub>'
    assert primed in mathml(r"\frac{1}{\exp S'_k}"), "beside an index it was, too"
    shown = mathml(r"\href{javascript:alert(1)}{x} \style{color:red}{y} \class{z}{w} 1 < 2")
    assert not re.search(r"href|style|class|javascript|<[^/m]", shown)
    assert "<mi>x</mi>" in shown
    assert "&lt;" in shown


def test_the_present_step_is_prepared_first(tiny: Path) -> None:  # noqa: F811
    found = LectureDeck(lecture(), LocalEngine(tiny.parent, torch.device("cpu")))
    order: list[int] = []
    found.listen(lambda: order.append(max(set(found._prepared) - set(order))))
    found._first = 5
    assert found._next() == 5
    found._prepared[5] = found._prepare(5)
    assert found._next() == 6


def test_the_lecturers_page_holds_the_slides_but_not_the_notes(client: TestClient) -> None:
    page = client.get("/hold/mine.en")
    data = told_to(page.text)
    assert [slide["title"] for slide in data["slides"]][:2] == ["Look", "Which word?"]
    assert "Say this." not in page.text
    assert "<title>A &lt;b&gt;title&lt;/b&gt;</title>" in page.text
    assert "<code>--server.address=0.0.0.0</code>" in page.text, "a line would break after its hyphens"
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert client.get(f"/hold/{'x' * 300}").status_code == 404
    assert client.get("/hold/..%2f..%2fetc").status_code == 404


@pytest.mark.parametrize("link", ["", "/file", "/handout"])
def test_a_link_to_a_lecture_that_is_not_here_opens_a_page_that_says_so(client: TestClient, link: str) -> None:
    with pytest.raises(LookupError, match=r"^There is no such lecture here\.$"):
        open_lectures.Lectures(routes._engine_for).deck("other.en")
    answer = client.get(f"/hold/<b>{link}", headers={"Accept-Language": "de"})
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert '<p class="message">&lt;b&gt;</p>' in answer.text
    assert '<a href="/lecture">Vorlesungen</a>' in answer.text


def test_the_script_and_the_pictures_are_served_by_their_hash(client: TestClient, deck: LectureDeck) -> None:
    page = client.get("/hold/mine.en").text
    source = re.search(r'<script type="module" src="([^"]+)"', page)
    assert source
    script = client.get(source[1])
    assert "immutable" in script.headers["cache-control"]
    assert "class Talk" in script.text
    assert client.get(source[1].replace(".js", "0.js")).status_code == 404
    view = client.get(f"/headlight/view/{deck.view(0)}")
    assert unpack(view.content)[0]["panels"]
    assert client.get("/headlight/view/00").status_code == 404


def test_another_sentence_is_run_off_the_path(client: TestClient, deck: LectureDeck, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes.LECTURES, "_engine_for", lambda name, address: deck.engine)
    found = client.post("/hold/mine.en/view", json={"step": 0, "text": "w6 w7"}).json()
    assert client.get(f"/headlight/view/{found['view']}").status_code == 200
    for wrong in ({"step": 99, "text": "w4"}, {"step": 0, "text": " "}, {"step": 0, "text": 3}, {"text": "w4"}):
        assert client.post("/hold/mine.en/view", json=wrong).status_code == 400
    refused = client.post("/hold/mine.en/view", json={"step": 0, "text": "w4 " * 500})
    assert refused.status_code == 409
    assert "tokens" in refused.json()["sentence"]


def test_a_student_finds_the_class_by_its_code(client: TestClient) -> None:
    code = client.post("/class", json={"lecture": "mine.en", "step": 1}).json()["code"]
    joining = client.get("/class", params={"code": f" {code[:4].lower()}-{code[4:]} "})
    assert (joining.status_code, joining.headers["location"]) == (303, f"/class/{code}")
    assert client.get(f"/class/{code.lower()}").headers["location"] == f"/class/{code}"
    page = client.get(f"/class/{code}")
    assert "slides" not in told_to(page.text), "students get one step at a time"
    assert client.get("/class", params={"code": "hello"}).text.count("There is no class") == 1
    assert client.get("/class/00000000").status_code == 404
    assert client.get(f"/class/{code}/speaker").status_code == 200, "this client opened the class"
    client.cookies.clear()
    assert client.get(f"/class/{code}/speaker").status_code == 403


def test_the_file_holds_everything_and_asks_no_network_for_anything(deck: LectureDeck) -> None:
    page = html_pages.file(deck).decode()
    data = told_to(page)
    prepared = json.loads(gzip.decompress(base64.b64decode(data["prepared"])))
    assert prepared["answers"]["1"]["right"] == list(deck.answer(1).right)  # type: ignore[union-attr]  # there is one
    for name in filter(None, prepared["views"]):
        held = re.search(rf'id="view-{name}">([^<]+)</script>', page)
        assert held
        assert unpack(gzip.decompress(base64.b64decode(held[1])))[0]["panels"]
    assert "default-src 'none'" in page
    assert "Say this." not in page
    assert not re.search(r'(src|href)="', page)
    linked = "www\\.w3\\.org/2000/svg|other\\.example"  # the second is a link of the lecture, which only a person follows
    assert not re.search(rf"https?://(?!{linked})", page)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.js")), ids=lambda path: path.name)
def test_scripts_use_only_sentences_that_are_there_and_make_no_markup_of_their_own(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    there = strings.making() if path.name == "making.js" else strings.scripts()
    assert set(re.findall(r"\btexts\.(\w+)", text)) <= there.keys()
    allowed = {"words.js": ["box.innerHTML = html;"]}.get(path.name, [])
    for line in allowed:
        assert text.count(line) == 1
        text = text.replace(line, "")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|https?://", text)


def test_every_sentence_of_the_pages_is_used() -> None:
    written = " ".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.*"))
    assert [name for name in (*strings.scripts(), *strings.making()) if f"texts.{name}" not in written] == []
    assert [name for name in strings.page() if f"${name}" not in written] == []


def test_what_is_told_to_the_lecturer_is_json(deck: LectureDeck) -> None:
    found = json.loads(json.dumps(deck_event(deck)))
    assert len(found["views"]) == len(deck.slides)
    assert found["questions"]["1"]["options"][0] == "<sos>"


def test_a_lecture_is_a_deck(deck: LectureDeck) -> None:
    held: Deck = deck
    assert (held.name, held.title, held.language, held.minutes) == ("mine.en", "A <b>title</b>", "en", 15)


def test_the_handout_is_a_pdf_with_every_step(deck: LectureDeck) -> None:
    steps = [handout._step(deck, number) for number in range(len(deck.slides))]
    assert [bool(step["rows"]) for step in steps] == [step not in NO_PICTURE for step in range(len(steps))]
    assert [sum(map(len, steps[number]["rows"])) for number in (6, 7)] == [2, 3], "of What if the probabilities, too"
    assert steps[1]["question"]["answer"].startswith("The run gives ")
    assert handout.pdf(deck).startswith(b"%PDF-")


def test_the_words_of_a_handout_keep_their_emphasis() -> None:
    (first, item) = handout.blocks("A *b **c*** `d`\n\n- e")
    assert [(part["text"], part["em"], part["strong"], part["code"]) for part in first["parts"]] == [
        ("A ", False, False, False),
        ("b ", True, False, False),
        ("c", True, True, False),
        (" ", False, False, False),
        ("d", False, False, True),
    ]
    assert item["item"]
