"""What a page shows, as data: its panels, each with a title, words, and a drawing, a chart, a table or sentences.

A part of a page is a function to panels. It knows neither Streamlit nor lectures nor paper. Three renderers draw panels: a page
(viz/widgets/drawn_panels.py) with its controls around them, a lecture (viz/features/lectures/presenter/pictures.py), and paper
(viz/features/print/panel_figures.py).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from model.trace.types import Array, Site, Trace
from viz.figures import costs
from viz.figures.costs import Line
from viz.i18n.translate import _, join_sentences, number
from viz.labels import tokens


def _text(value: object, decimals: int) -> str:
    """The text of a cell: numbers in the language of the page, what is true as a tick."""
    if isinstance(value, bool) or not isinstance(value, float | int):
        return "✓" if value is True else "" if value is False else str(value)
    if isinstance(value, int):
        return number(value, "d")
    return "–" if math.isnan(value) else "−∞" if value == -math.inf else number(value, f"z.{decimals}f")


class NotDrawable(Exception):
    """A view that has no picture; the text says why."""


def needs_network() -> str:
    """What is said where a page, or a part of it, shows nothing of a recorded run."""
    return _("This needs a network, but a recorded run comes without one. Choose a model, or open the run’s checkpoint.")


@dataclass(frozen=True, eq=False)
class Scene:
    """A drawing of viz.canvas.

    Attributes:
        kind: a key of `viz.canvas.assets.KINDS`.
        data: its bytes.
        pieces: its parts by path, where the part cache does not hold them.
        follows: whether it shows what is selected in other drawings.
    """

    kind: str
    data: bytes
    pieces: Mapping[str, bytes] = field(default_factory=dict)
    follows: bool = False


@dataclass(frozen=True, eq=False)
class Table:
    """A table.

    Attributes:
        frame: its index names the rows; numbers, and texts that are shown as they are.
        chosen: index of the row to emphasize; -1: none.
        decimals: of its numbers.
        shades: [row, column] of numbers from 0 to 1 that shade the cells; None: none is shaded.
        titles: of columns by their names in the frame; another column's title is its name.
        named: whether the index names the rows; otherwise the first column does, and the index is not shown.
    """

    frame: pd.DataFrame
    chosen: int = -1
    decimals: int = 3
    shades: Array | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    named: bool = True

    @property
    def columns(self) -> list[str]:
        """Titles of the columns, that of the names of rows first."""
        index = [str(self.frame.index.name or "")] if self.named else []
        return [*index, *(self.titles.get(name, name) for name in map(str, self.frame.columns))]

    @property
    def rows(self) -> list[list[str]]:
        """The texts of the rows, their names first."""
        index = [[str(name) for name in self.frame.index]] if self.named else []
        columns = ([_text(value, self.decimals) for value in column.tolist()] for _name, column in self.frame.items())
        return [list(texts) for texts in zip(*index, *columns, strict=True)]


@dataclass(frozen=True, eq=False)
class Bars:
    """Numbers with names.

    Attributes:
        names: of the numbers.
        values: the numbers.
        chosen: index of the one to emphasize; -1: none.
    """

    names: Sequence[str]
    values: Sequence[float]
    chosen: int = -1

    @property
    def table(self) -> Table:
        """The same as a table without titles, whose shades are the sizes of the numbers."""
        sizes = np.abs(np.array(self.values, float))
        frame = pd.DataFrame({"": list(self.values)}, index=pd.Index(list(self.names), name=""))
        return Table(frame, self.chosen, decimals=2, shades=(sizes / (sizes.max(initial=0.0) or 1.0))[:, None])


@dataclass(frozen=True)
class TextLine:
    """One line of a text.

    Attributes:
        text: a sentence, or LaTeX.
        formula: whether it is LaTeX.
    """

    text: str
    formula: bool = False


@dataclass(frozen=True, eq=False)
class Text:
    """Sentences and formulas, one below the other."""

    lines: Sequence[TextLine]

    @property
    def markdown(self) -> str:
        """The lines in Markdown."""
        return "\n\n".join(f"$${line.text}$$" if line.formula else tokens.markdown(line.text) for line in self.lines)


@dataclass(frozen=True, eq=False)
class Aligned:
    """Two rows of tokens: each token stands above its counterpart, or above a gap. What only one row has is marked.

    Attributes:
        title: above them; may be empty.
        names: of the rows.
        columns: the token of each row; None: a gap.
    """

    title: str
    names: tuple[str, str]
    columns: Sequence[tuple[str | None, str | None]]

    @property
    def html(self) -> str:
        """The rows as HTML, whose looks are in viz/canvas/frontend/aligned.css."""
        names = "".join(f'<span title="{escape(name)}">{escape(name)}</span>' for name in self.names)
        columns = "".join(
            f"<div>{_aligned(first, first == second, 'del')}{_aligned(second, first == second, 'strong')}</div>"
            for first, second in self.columns
        )
        rows = f'<div class="aligned"><div class="names">{names}</div><div class="tokens">{columns}</div></div>'
        return f'<p class="small">{escape(self.title)}</p>{rows}'

    @property
    def table(self) -> Table:
        """The same as a table with a line for each column."""
        texts = [["·" if text is None else tokens.plain(text) for text in column] for column in self.columns]
        return Table(pd.DataFrame(texts, columns=list(self.names)), named=False)


def _aligned(text: str | None, same: bool, mark: str) -> str:
    """A token of two rows; where they differ, within an element that marks it."""
    if text is None:
        return '<span class="gap">·</span>'
    token = f"<bdi>{escape(tokens.plain(text))}</bdi>"
    return f"<span>{token}</span>" if same else f"<span><{mark}>{token}</{mark}></span>"


@dataclass(frozen=True, eq=False)
class Markup:
    """HTML that a page draws with its own style (viz/widgets/page.css).

    Attributes:
        html: without the title and words of its panel.
        instead: the same for a lecture and for paper, which have other styles.
    """

    html: str
    instead: Table | Aligned


@dataclass(frozen=True, eq=False)
class Chart:
    """Lines over any numbers.

    Attributes:
        across: numbers on the horizontal axis, ascending.
        lines: the lines.
        axes: titles of the horizontal and the vertical axis.
        logarithmic: whether each axis is.
        mark: a place with a dot; None: there is none.
        level: height of a dashed line across; None: there is none.
        alt: the chart in words; empty: its title says enough.
        plot: makes it with Plotly, given whether its surroundings are dark, where that says more; None: `costs.lines`.
    """

    across: Sequence[float]
    lines: Sequence[Line]
    axes: tuple[str, str]
    logarithmic: tuple[bool, bool] = (False, False)
    mark: tuple[float, float] | None = None
    level: float | None = None
    alt: str = ""
    plot: Callable[[bool], go.Figure] | None = None

    def figure(self, dark: bool) -> go.Figure:
        """The chart as a Plotly figure."""
        if self.plot is not None:
            return self.plot(dark)
        return costs.lines(self.across, self.lines, self.axes, dark, self.logarithmic, mark=self.mark, level=self.level)


@dataclass(frozen=True, eq=False)
class Curves:
    """Numbers over the steps of a training.

    Attributes:
        steps: ascending.
        lines: [line, step]; NaN where there is no number.
        names: of the lines.
        chosen: index of the line to emphasize.
        plot: makes them with Plotly, given whether its surroundings are dark; a page and paper draw that, which says more.
        alt: them in words.
    """

    steps: Sequence[int]
    lines: Array
    names: Sequence[str]
    chosen: int
    plot: Callable[[bool], go.Figure]
    alt: str = ""


@dataclass(frozen=True, eq=False)
class Arrows:
    """Pairs of numbers in planes of their own, before and after they are turned.

    Attributes:
        names: of the pairs.
        before, after: [pair, 2].
        figure: makes them with Plotly, given whether its surroundings are dark.
        alt: the arrows in words; empty: their title says enough.
    """

    names: Sequence[str]
    before: Array
    after: Array
    figure: Callable[[bool], go.Figure]
    alt: str = ""

    @property
    def unit(self) -> tuple[Array, Array]:
        """Before and after, all of length 1: both in the length that the pair had before."""
        sizes = np.maximum(np.linalg.norm(self.before, axis=1, keepdims=True), 1e-9)
        return self.before / sizes, self.after / sizes


@dataclass(frozen=True, eq=False)
class Plot:
    """A Plotly figure.

    Attributes:
        draw: makes it, given whether its surroundings are dark.
        alt: the figure in words.
        name: of its file; empty: that of its panel.
        title: of the file; empty: that of its panel.
        instead: the same for a lecture and its hand-out; None: they have the figure, too.
    """

    draw: Callable[[bool], go.Figure]
    alt: str = ""
    name: str = ""
    title: str = ""
    instead: Table | Bars | None = None


Content: TypeAlias = Scene | Table | Bars | Text | Aligned | Markup | Chart | Curves | Arrows | Plot


@dataclass(frozen=True, eq=False)
class OfRun:
    """A figure that paper draws from a run itself (`viz.features.print.catalogue.standard_figures`).

    Attributes:
        figure: its name; empty: all of them.
        trace: the run.
        site, head, query, key: what is selected; -1: no query, no key.
        hypothesis, overlay: as in a link.
        before: a sentence before its title; empty: none.
    """

    figure: str
    trace: Trace
    site: Site
    head: int
    query: int = -1
    key: int = -1
    hypothesis: int = 0
    overlay: str = ""
    before: str = ""


Printed: TypeAlias = OfRun | Plot
"""What paper draws in the place of a panel."""


@dataclass(frozen=True, eq=False)
class Panel:
    """One part of a page.

    Attributes:
        name: its name among the panels of its page.
        title: above it; may be empty.
        content: what is drawn.
        words: below the title; may be empty. A line each where they are several: a page draws them one below the other.
        about: explains it on its page and in print, below the words; a lecture leaves that to its own words. May be empty.
        width: `half`: two such panels stand side by side where there is room; `narrow`: even where there is little.
        fills: whether it takes what the others leave of a screen.
        selected: what it selects: fields of `viz.url.view_state.ViewState`, and `large`, whether the selected head opens large.
        on_page: makes what a page draws in the place of the content, where people point, sort and scroll; None: the content.
        paper: makes what paper draws in its place; None: its content.
    """

    name: str
    title: str
    content: Content
    words: str = ""
    about: str = ""
    width: Literal["whole", "half", "narrow"] = "whole"
    fills: bool = False
    selected: Mapping[str, Any] = field(default_factory=dict)
    on_page: Callable[[], Content] | None = None
    paper: Callable[[], Sequence[Printed]] | None = None

    @property
    def note(self) -> str:
        """The words in one line."""
        return join_sentences(self.words.splitlines())


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture on a page, as what features add beside it (the place `picture` of `viz.feature.Feature.parts`) gets it.

    Attributes:
        key: its stable name on the page.
        trace: the run that it shows.
        printed: makes what paper draws of it: panels, what stands for one, or sheets that a feature draws for print itself.
        first: the name of the figure that is chosen first; empty: the first.
    """

    key: str
    trace: Trace
    printed: Callable[[], Sequence[Any]]
    first: str = ""
