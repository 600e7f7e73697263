"""The typeface of the app, Source Sans, which Streamlit brings: for pages of our own, and inside files that ask no server.

It is under the SIL Open Font License, which allows it inside documents. Without the file, pages use the fonts of the system.
"""

import base64
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from viz.canvas.wire.transport import address, content_hash

_PATTERN = "SourceSansVF-Upright*.woff2"
MEDIA = "font/woff2"


@cache
def font() -> bytes:
    """The font file, with all its weights (woff2, 170 kB)."""
    streamlit = find_spec("streamlit")  # without importing it, which takes a second
    if streamlit is None or streamlit.origin is None:
        return b""
    media = Path(streamlit.origin).parent / "static" / "static" / "media"
    return next((path.read_bytes() for path in sorted(media.glob(_PATTERN))), b"")


@cache
def _hash() -> str:
    return content_hash(font())


def font_address() -> str:
    """URL path of the font, which holds the hash of its content."""
    return f"{address()}/font/{_hash()}.woff2"


def served_face() -> str:
    """CSS of a page that the app serves."""
    return _face(font_address())


def carried_face() -> str:
    """CSS of a file that carries the font; empty without the font."""
    return _face(f"data:{MEDIA};base64,{base64.b64encode(font()).decode('ascii')}") if font() else ""


def _face(source: str) -> str:
    described = f'font-family: "Source Sans"; font-weight: 200 900; font-display: swap; src: url("{source}") format("woff2");'
    return f"@font-face {{ {described} }}\n"
