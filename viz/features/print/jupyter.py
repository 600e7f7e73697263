"""The overview of a run in a notebook: JupyterLab, Notebook 7, VS Code, Colab. No server, no network, no widgets.

    from viz import notebook
    notebook.show("run.trace.safetensors", site="decoder.0.2.cross", head=4)

The output of the cell is one frame whose document is the standalone page (docs/page.md). A frame keeps the page's style and script
apart from the notebook's, several of them do not disturb each other, and the page's content security policy forbids network
requests. The frame is in the saved notebook, which shows it again without a kernel.
"""

from dataclasses import dataclass
from html import escape
from pathlib import Path

from model.trace.trace_files import read_path
from model.trace.types import Site, Trace
from viz.canvas import standalone
from viz.labels import tokens

HEIGHT = 640
"""Height of the frame in pixels until its page has set another one; it stays where a notebook closes itself to its frames."""


@dataclass(frozen=True)
class Shown:
    """The overview of a run as the last value of a cell: notebooks draw its HTML.

    Attributes:
        html: the frame with the page inside.
        words: what other programs print instead.
    """

    html: str
    words: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        """The picture in words, where no HTML can be shown."""
        return self.words


def show(trace: Trace | str | Path, site: str = "", head: int = 0, query: int = -1) -> Shown:
    """The overview of all heads of a run, for the output of a notebook's cell.

    Args:
        trace: the run, or the path of its file or archive.
        site: text form of the selected Site; empty: the last cross-attention, or the last site.
        head: the selected head, counted from 0.
        query: the selected query row, counted from 0; -1: none.

    Raises:
        UnknownSite, UnknownHead: the run has no such site or head.
        BadTrace: the file is no trace.
    """
    run = trace if isinstance(trace, Trace) else read_path(Path(trace))
    chosen = run.at(site).site if site else run.last_cross().site
    run.at(chosen).head(head)
    return Shown(frame(run, chosen, head, query), f"<overview of {len(run.attention)} attention sites: {tokens.model(run)}>")


def frame(trace: Trace, site: Site, head: int, query: int = -1) -> str:
    """HTML of the frame.

    Args:
        site, head, query: as for `standalone.page`.
    """
    inside = standalone.page(trace, site, head, query, in_notebook=True).decode("utf-8")
    style = f"width: 100%; height: {HEIGHT}px; border: 0; display: block"
    title = escape(tokens.model(trace) or "Headlight", quote=True)
    return f'<iframe title="{title}" style="{style}" srcdoc="{escape(inside, quote=True)}"></iframe>'
