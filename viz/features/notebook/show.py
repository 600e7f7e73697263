"""`headlight.show` and `headlight.save`: attention of any library in one line."""

import tempfile
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from model.trace.serialization import to_bytes
from model.trace.types import Attention, Trace
from viz.canvas import standalone
from viz.canvas.wire.transport import PART_CACHE
from viz.features.notebook.given import Options, trace_of
from viz.i18n.translate import speaking

HEIGHT = 640
"""Height of the frame in pixels until its page has set another one; it stays where a notebook closes itself to its frames."""


@dataclass(frozen=True, eq=False)
class Picture:
    """The overview of a run: notebooks draw it below a cell; elsewhere it is written to a file, or opened in a browser.

    Attributes:
        trace: what is drawn.
        selected: the layer that is selected first.
        head: the head that is selected first, counted from 0.
    """

    trace: Trace
    selected: Attention
    head: int

    def html(self, in_notebook: bool = False) -> str:
        """The page, one file that asks no server for anything."""
        with speaking("en"):
            made = standalone.page(self.trace, self.selected.site, self.head, -1, in_notebook=in_notebook)
        # A notebook may show a hundred pictures in one process, and each is whole once it is made.
        PART_CACHE.clear()
        return made.decode("utf-8")

    def write(self, path: str | Path) -> Path:
        """Writes the page as an HTML file."""
        Path(path).write_text(self.html(), encoding="utf-8")
        return Path(path)

    def open(self) -> Path:
        """Opens the page in a browser, from a file that stays until the system clears its temporary ones."""
        with tempfile.NamedTemporaryFile("w", suffix=".html", prefix="headlight-", delete=False, encoding="utf-8") as file:
            file.write(self.html())
        webbrowser.open(Path(file.name).as_uri())
        return Path(file.name)

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {HEIGHT}px; border: 0; display: block"
        title, inside = escape(str(self.trace.model["title"]), quote=True), escape(self.html(in_notebook=True), quote=True)
        return f'<iframe title="{title}" style="{style}" srcdoc="{inside}"></iframe>'

    def __repr__(self) -> str:
        """The picture in words, where no HTML can be shown."""
        heads = sum(attention.heads for attention in self.trace.attention.values())
        return f"<{self.trace.model['title']}: {len(self.trace.attention)} layers of attention, {heads} heads; .open() shows them>"


def show(
    attention: Any,
    tokens: Any = None,
    target_tokens: Any = None,
    *,
    tokenizer: Any = None,
    example: int | None = None,
    layer: int | None = None,
    head: int = 0,
    site: str = "",
    words: bool | Sequence[int | None] = False,
    special: bool = True,
    sentences: str = "",
    sentence_b: int | None = None,
    axes: str = "",
    any_sums: bool = False,
    title: str = "",
) -> Picture:
    """Every head of every layer at a glance, to hover, select and enlarge: the last value of a notebook's cell.

    Outside a notebook, `show(…).open()` opens it in a browser and `show(…).write("page.html")` writes it.

    Args:
        attention: weights by layer, [batch, head, query, key] or [head, query, key], of torch, numpy, jax or tensorflow; one array
            [layer, head, query, key]; what a model of transformers or its `generate` returned with output_attentions=True; a
            TransformerLens cache; a dict of such arrays by name; a recording; a trace or the path of its file.
        tokens: of the input, or of the keys where queries have others: texts, bytes, ids, or what the tokenizer returned.
        target_tokens: of the decoder, or of the queries.
        tokenizer: makes texts of ids.
        example: which example of a batch, counted from 0.
        layer, head: what is selected first, counted from 0; of encoder-decoders in the cross-attention.
        site: what is selected first instead of a layer, as a trace names it: decoder.0.2.cross.
        words: True joins the pieces of a word: columns are summed, rows averaged. Or of each token the number of its word.
        special: False leaves special tokens out, and brings rows to the sum 1 again. Padding is always left out.
        sentences: "A>B" shows how words of BERT's sentence A attend to those of B; also "A>A", "B>A", "B>B".
        sentence_b: where B begins, if token_type_ids do not say it.
        axes: names of the axes of an array, if they are others: "batch query key head".
        any_sums: True shows rows that do not sum to 1, such as scores.
        title: a title.

    Raises:
        ValueError: something does not fit, or is not known; the sentence names the argument.
        UnknownSite: there is no such site.
        WireError: the file is no trace.
    """
    trace = trace_of(attention, _options(locals()))
    return picture_of(trace, layer, head, site)


def save(
    attention: Any,
    path: str | Path,
    tokens: Any = None,
    target_tokens: Any = None,
    *,
    tokenizer: Any = None,
    example: int | None = None,
    words: bool | Sequence[int | None] = False,
    special: bool = True,
    sentences: str = "",
    sentence_b: int | None = None,
    axes: str = "",
    any_sums: bool = False,
    title: str = "",
) -> Path:
    """Writes what `show` shows as a trace, `*.trace.safetensors`, which the app opens. Takes what `show` takes.

    Raises:
        ValueError: something does not fit, or is not known; the sentence names the argument.
        WireError: the file is no trace.
    """
    trace = trace_of(attention, _options(locals()))
    Path(path).write_bytes(to_bytes(trace))
    return Path(path)


def _options(arguments: dict[str, Any]) -> Options:
    """The options among the arguments of a function."""
    return Options(**{name: value for name, value in arguments.items() if name in Options.__dataclass_fields__})


def picture_of(trace: Trace, layer: int | None, head: int, site: str = "") -> Picture:
    """The picture of a trace.

    Args:
        layer: in the cross-attention, or in what there is; None: the last one.
        site: the text form of a site, in place of a layer.

    Raises:
        ValueError: there is no such layer or head.
        UnknownSite: there is no such site.
    """
    last = trace.at(site) if site else trace.last_cross()
    alike = [maps for site, maps in trace.attention.items() if (site.stack, site.kind) == (last.site.stack, last.site.kind)]
    if layer is not None and not 0 <= layer < len(alike):
        raise ValueError(f"layer={layer}: there are {len(alike)} layers, which count from 0.")
    selected = last if layer is None else alike[layer]
    if not 0 <= head < selected.heads:
        raise ValueError(f"head={head}: there are {selected.heads} heads, which count from 0.")
    return Picture(trace, selected, head)
