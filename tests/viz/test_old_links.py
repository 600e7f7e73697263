"""Links that were copied before URL parameters became fields of ViewState open the views that they opened then.

Each view, each sentence and each written link was computed by the version before; nothing here is to be computed anew.
"""

from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.app.visiting import EVERY_PAGE
from viz.url import links, view_state

DEFAULT: dict[str, Any] = (
    {"model": "", "text": None, "target": "", "method": "greedy", "max_length": 60}
    | {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "seed": 0, "beam_size": 5, "hypothesis": 0}
    | {"site": "", "head": 0, "query": -1, "key": -1, "step": -1, "clock": "token", "stage": "", "pad_to": 0}
    | {
        "silence": "",
        "edits": "",
        "reading": "head",
        "settings": "",
        "hide": "",
        "against": "",
        "snapshot": -1,
        "measure": "entropy",
        "precision": "",
    }
)
"""Every field of a view that says nothing."""

ORDER = """
model set text target decode max temperature top_k top_p seed beam hypothesis precision site head query key clock stage step pad
silence edit reading snapshot measure hide against
""".split()
"""In which the address bar says parameters."""

OLD: list[tuple[str, dict[str, Any]]] = [
    ("/compare?against=silence%3Ddecoder.0.2.cross:4", {"against": "silence=decoder.0.2.cross:4"}),
    ("/compare?text=Ein+Hund.&against=decode%3Dbeam", {"text": "Ein Hund.", "against": "decode=beam"}),
    (
        "/compare?max=6&against=decode%3Dsample%26temperature%3D5.0%26seed%3D3",
        {"max_length": 6, "against": "decode=sample&temperature=5.0&seed=3"},
    ),
    (
        "/compare?model=tiny&against=seed%3D3%26text%3D100+%2525+%253D+a%2526b%26model%3Dother%26set%3Dn_heads%3D4",
        {"model": "tiny", "against": "model=other&set=n_heads=4&text=100 %25 = a%26b&seed=3"},
    ),
    ("/explore", {}),
    ("/explore?model=reverse-digits@000128", {"model": "reverse-digits@000128"}),
    (
        "/explore?text=Ein+Hund.&site=decoder.0.2.cross&head=4&query=2",
        {"text": "Ein Hund.", "site": "decoder.0.2.cross", "head": 4, "query": 2},
    ),
    (
        "/explore?text=w5&target=w6+w7&decode=beam&beam=31&site=decoder.0.0.self&model=tiny",
        {"model": "tiny", "text": "w5", "target": "w6 w7", "method": "beam", "beam_size": 31, "site": "decoder.0.0.self"},
    ),
    ("/explore?text=&reading=mean&hide=special", {"text": "", "reading": "mean", "hide": "special"}),
    (
        "/explore?text=ein+hund&decode=sample&temperature=5.5&top_k=5000&top_p=0.02&seed=9007199254740991&max=7&precision=bfloat16",
        {
            "text": "ein hund",
            "method": "sample",
            "max_length": 7,
            "temperature": 5.5,
            "top_k": 5000,
            "top_p": 0.02,
            "seed": 9007199254740991,
            "precision": "bfloat16",
        },
    ),
    ("/explore?text=w4&beam=two&colour=blue&site=decoder.0.cross", {"text": "w4"}),
    (
        "/step?clock=computation&stage=decoder.0.2.cross%2Fweights&head=4&query=2&key=1",
        {"head": 4, "query": 2, "key": 1, "clock": "computation", "stage": "decoder.0.2.cross/weights"},
    ),
    (
        "/step?clock=computation&max=4&stage=decoder.0.1.self/weights&head=1&query=3&key=2",
        {"max_length": 4, "head": 1, "query": 3, "key": 2, "clock": "computation", "stage": "decoder.0.1.self/weights"},
    ),
    (
        "/step?text=w4+w5&decode=beam&beam=2&max=3&hypothesis=2&step=1",
        {"text": "w4 w5", "method": "beam", "max_length": 3, "beam_size": 2, "hypothesis": 2, "step": 1},
    ),
    (
        "/masks?text=w4+w5&site=decoder.0.0.self&pad=9&model=tiny",
        {"model": "tiny", "text": "w4 w5", "site": "decoder.0.0.self", "pad_to": 9},
    ),
    (
        "/positions?model=tatoeba-en-zh&text=%E4%BD%A0%E5%A5%BD&silence=decoder.0.2.cross:4+encoder.0.0.self:0",
        {"model": "tatoeba-en-zh", "text": "你好", "silence": "decoder.0.2.cross:4 encoder.0.0.self:0"},
    ),
    (
        "/training?model=reverse-digits&snapshot=128&measure=antidiagonal",
        {"model": "reverse-digits", "snapshot": 128, "measure": "antidiagonal"},
    ),
    (
        "/checkpoint?model=opened-x&set=n_heads%3D2+decoder_passes%3D1",
        {"model": "opened-x", "settings": "decoder_passes=1 n_heads=2"},
    ),
    ("/checkpoint?set=pad_id%3D1+n_heads%3D8&model=tut6", {"model": "tut6", "settings": "n_heads=8 pad_id=1"}),
]
"""A full link, and the fields in which its view was no default."""

SAID = {
    ("beam", "two"): "The link sets beam to “two”. Allowed: a whole number from 1 to 32. The default is used.",
    ("colour", "blue"): "This link contains an unknown parameter “colour”, which was ignored.",
    (
        "site",
        "decoder.0.cross",
    ): "The link sets site to “decoder.0.cross”. Allowed: an attention layer such as decoder.0.2.cross. The default is used.",
}
"""What was said of a parameter of one of these links, which was then left out."""

WRITTEN = {
    "/compare?model=tiny&against=seed%3D3%26text%3D100+%2525+%253D+a%2526b%26model%3Dother%26set%3Dn_heads%3D4": {
        "against": "model=other&set=n_heads=4&text=100 %25 = a%26b&seed=3"
    },
    "/checkpoint?model=opened-x&set=n_heads%3D2+decoder_passes%3D1": {"set": "decoder_passes=1 n_heads=2"},
    "/checkpoint?set=pad_id%3D1+n_heads%3D8&model=tut6": {"set": "n_heads=8 pad_id=1"},
}
"""Parameters that were written otherwise than in the link."""


def test_there_are_links_of_every_page() -> None:
    later = {"whatif"}  # a page that the version before did not have
    assert {urlsplit(link).path.strip("/") for link, _differs in OLD} == set(EVERY_PAGE) - later


@pytest.mark.parametrize(("link", "differs"), OLD)
def test_an_old_link_opens_the_view_that_it_opened_before(link: str, differs: dict[str, Any]) -> None:
    query = dict(parse_qsl(urlsplit(link).query, keep_blank_values=True))
    view, problems = links.read(query)
    assert {name: value for name, value in asdict(view).items() if name in DEFAULT} == DEFAULT | differs
    assert view == view_state.ViewState(**differs)
    assert problems == [SAID[given] for given in query.items() if given in SAID]
    kept = [given for given in (query | WRITTEN.get(link, {})).items() if given not in SAID]
    assert list(links.write(view).items()) == sorted(kept, key=lambda given: ORDER.index(given[0])), (
        "the address bar says it in the order of before"
    )
