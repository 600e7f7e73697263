"""Help of every panel: what it shows, in two sentences, with a link to a page of docs/, which a route of the app serves."""

import re
from functools import cache
from html import escape
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from viz.feature import features
from viz.i18n.translate import _, translated
from viz.widgets.panel_texts import HELP

CLOSES = (Path(__file__).parent / "panel_help.js").read_text(encoding="utf-8")
"""Script of a page with panels: closes a help when something else is pressed."""

DOCS = Path(__file__).parents[2] / "docs"
ADDRESS = "/headlight/docs"


@cache
def texts() -> dict[str, tuple[str, str, str]]:
    """By panel of the core or of a feature: its title, two sentences, and a page of docs/; in English, for `translated`."""
    found = dict(HELP)
    for feature in features():
        found |= feature.help
    return found


def html(name: str) -> str:
    """A button "?" that unfolds the help of a panel, as HTML; empty for a panel without help."""
    if name not in texts():
        return ""
    *words, page = texts()[name]
    title, sentences = map(translated, words)
    more = escape(_("More in the documentation"))
    link = f'<a href="{ADDRESS}/{page}" target="_blank">{more}</a>'
    label = escape(_("What does “{panel}” show?", panel=title))
    return f'<details class="help"><summary aria-label="?: {label}">?</summary><div>{escape(sentences)} {link}</div></details>'


def pages() -> frozenset[str]:
    """The pages of docs/ that panels link to; a link may lead to a heading of one."""
    return frozenset(page.partition("#")[0] for _title, _sentences, page in texts().values())


def _serve(request: Request) -> Response:
    """One page of the documentation, as text."""
    name = request.path_params["name"]
    path = DOCS / name
    if not re.fullmatch(r"[a-z-]+\.md", name) or not path.is_file():
        return Response(status_code=404)
    return Response(path.read_text(encoding="utf-8"), media_type="text/plain")


ROUTE = Route(f"{ADDRESS}/{{name}}", _serve)
"""For `st.App(routes=…)`."""
