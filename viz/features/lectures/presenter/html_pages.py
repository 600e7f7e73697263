"""The HTML pages of a lecture: lecturer, student, speaker, join, and the file to take home."""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from viz.canvas.assets import drawings
from viz.canvas.standalone import schemes
from viz.canvas.typeface import carried_face, served_face
from viz.canvas.wire import transport
from viz.features.lectures.classroom import routes as class_routes
from viz.features.lectures.classroom.deck import Deck
from viz.features.lectures.presenter import strings, view_store
from viz.features.lectures.presenter.deck import LectureDeck, deck_event, slide_json
from viz.i18n.translate import _, current, speaking

FOLDER = Path(__file__).parent / "frontend"
_DRAWN = ("picture.js", "tables.js", "sheet.js", "stage.js", "question.js", "words.js")
SCRIPTS: Mapping[str, tuple[str, ...]] = {
    "lecturer": (*_DRAWN, "talk.js", "lecturer.js"),
    "student": (*_DRAWN, "student.js"),
    "speaker": ("tables.js", "question.js", "words.js", "talk.js", "speaker.js"),
    "file": (*_DRAWN, "talk.js", "file.js"),
    "making": ("making.js",),
}
"""Files of each page's script, after those of the drawings where it draws."""

_OPTION = "--server.address=0.0.0.0"
"""In a sentence; no line breaks inside it."""

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; media-src blob:; font-src 'self'; base-uri 'none'; form-action 'self'",
    "Cache-Control": "no-cache",
}


def lecturer(deck: LectureDeck, path: str) -> Response:
    """The lecturer's page.

    Args:
        path: URL path of the lecture's data.
    """
    with speaking(deck.language):
        keys = strings.listed_keys()
    listed = "".join(f"<dt>{escape(key)}</dt><dd>{escape(does)}</dd>" for key, does in keys)
    data = {"name": deck.name, "slides": [slide_json(slide) for slide in deck.slides], "deck": path}
    data |= {"views": view_store.address(), "classes": class_routes.base()}
    return _served("lecturer", deck.title, deck.language, data, listed=listed)


def student(deck: Deck) -> Response:
    """The page of a student."""
    return _served("student", deck.title, deck.language, {"views": view_store.address()})


def speaker(deck: Deck) -> Response:
    """The speaker's window."""
    return _served("speaker", deck.title, deck.language, {"minutes": deck.minutes})


def join(problem: str, status: int = 200) -> Response:
    """The page on which a student types the code of a class."""
    sentences = {name: escape(text) for name, text in strings.page().items()}
    body = Template(_read("join.html")).substitute(sentences, problem=escape(problem), hidden="" if problem else " hidden")
    html = _html("join", sentences["join"], current(), body, {}, policy="", more="", source="", script="")
    return Response(html, status, _HEADERS, "text/html")


def refused(problem: str, status: int, lectures: str) -> Response:
    """The page in the place of a lecture that cannot be shown.

    Args:
        problem: why, as a sentence.
        status: of the response.
        lectures: URL path of the list of lectures.
    """
    title, listed = escape(_("Lecture")), escape(_("Lectures"))
    body = Template(_read("refused.html")).substitute(title=title, problem=escape(problem), list=escape(lectures), lectures=listed)
    html = _html("join", title, current(), body, {}, policy="", more="", source="", script="")
    return Response(html, status, _HEADERS, "text/html")


def making(deck: LectureDeck, lectures: str) -> Response:
    """The page in the place of a download that is still being made: shows how far it is, then starts the download.

    Args:
        lectures: URL path of the list of lectures.
    """
    fields = {"heading": escape(deck.title), "steps": str(len(deck.slides)), "prepared": str(deck.prepared)}
    fields |= {"list": escape(lectures), "lectures": escape(_("Lectures"))}
    response = _spoken("making", deck.title, current(), {"texts": strings.making()}, **fields)
    response.status_code = 202
    response.headers.update({"Cache-Control": "no-store", "Vary": "Accept", "Retry-After": "1"})
    return response


def file(deck: LectureDeck) -> bytes:
    """The whole lecture as one HTML file, which a browser opens from a disk and which asks no network for anything.

    Args:
        deck: with all steps prepared.
    """
    with speaking(deck.language):
        return _file(deck).encode("utf-8", "replace")


def _file(deck: LectureDeck) -> str:
    steps = range(len(deck.slides))
    views = {view.name: view for step in steps if (view := deck.packed(step)) is not None}
    data = {
        "texts": strings.scripts(),
        "slides": [slide_json(slide) for slide in deck.slides],
        "prepared": _packed(deck_event(deck)),
    }
    script = _script("file")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'unsafe-inline'; font-src data:; media-src blob:; script-src 'sha256-{digest}'"
    more = "".join(
        f'<script type="application/octet-stream" id="view-{name}">{base64.b64encode(view.data).decode("ascii")}</script>\n'
        for name, view in views.items()
    )
    body = _body("file")
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    return _html("file", escape(deck.title), deck.language, body, data, policy=meta, more=more, source="", script=script)


def _packed(data: Mapping[str, Any]) -> str:
    """JSON values as base64 of gzip: whoever looks into the page does not read the answers before the questions."""
    return base64.b64encode(gzip.compress(json.dumps(data, ensure_ascii=False).encode(), 9, mtime=0)).decode("ascii")


def script_address(kind: str) -> str:
    """URL path of a page's script; it holds the hash of its content."""
    return f"{transport.address()}/script/{kind}-{transport.content_hash(_script(kind).encode())}.js"


async def _serve_script(request: Request) -> Response:
    """A page's script. Content behind a hash never changes."""
    kind = request.path_params["name"].partition("-")[0]
    if kind not in SCRIPTS or not script_address(kind).endswith(request.path_params["name"]):
        return Response(status_code=404, headers={"Cache-Control": "no-store"})
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Content-Encoding": "gzip"}
    return Response(_compressed_script(kind), headers=headers, media_type="text/javascript")


ROUTE = Route(f"{transport.address()}/script/{{name}}", _serve_script)
"""For `st.App(routes=…)`; must come before the route of parts."""


def _served(kind: str, title: str, language: str, data: Mapping[str, Any], **fields: str) -> Response:
    with speaking(language):
        return _spoken(kind, title, language, data, **fields)


def _spoken(kind: str, title: str, language: str, data: Mapping[str, Any], **fields: str) -> Response:
    source = f' src="{script_address(kind)}"'
    page = {"texts": strings.scripts(), **data}
    html = _html(kind, escape(title), language, _body(kind, **fields), page, policy="", more="", source=source, script="")
    return Response(html, headers=_HEADERS, media_type="text/html")


def _html(kind: str, title: str, language: str, body: str, page: Mapping[str, Any], **parts: str) -> str:
    data = json.dumps(page, ensure_ascii=False).replace("<", "\\u003c")
    style = (carried_face() if kind == "file" else served_face()) + schemes() + _read("presenting.css")
    fields = {"kind": kind, "title": title, "language": escape(language), "body": body, "page": data, "style": style}
    return Template(_read("page.html")).substitute(fields, **parts)


def _body(kind: str, **fields: str) -> str:
    sentences = {name: escape(text).replace(_OPTION, f"<code>{_OPTION}</code>") for name, text in strings.page().items()}
    return Template(_read(f"{kind}.html")).substitute(sentences, **fields)


@cache
def _script(kind: str) -> str:
    drawn = () if kind == "making" else (drawings(),)
    return "\n".join((*drawn, *map(_read, SCRIPTS[kind])))


@cache
def _compressed_script(kind: str) -> bytes:
    return gzip.compress(_script(kind).encode(), 9, mtime=0)


@cache
def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
