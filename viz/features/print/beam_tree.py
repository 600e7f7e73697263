"""The tree of a beam search for paper: a column for each step, kept hypotheses above, pruned ones below."""

from collections.abc import Iterator

from model.trace.beam_tree import Node, hypotheses, path
from model.trace.types import Trace
from viz.canvas.scenes.beam_tree import drawn as drawn_on_screen
from viz.canvas.scenes.beam_tree import layout
from viz.features.print import axes, fonts, legend
from viz.features.print.notes import TALLEST, without_font
from viz.features.print.options import SMALLEST_FONT, Options
from viz.features.print.plotly_marks import DrawContext
from viz.features.print.shapes import MM, Drawing, Line, Rect, Shape, Text
from viz.i18n.translate import _
from viz.labels import tokens

_EDGE, _GAP = 1.0, 1.8


def tree(trace: Trace, options: Options, title: str = "", description: str = "", hypothesis: int = 0) -> Drawing:
    """The tree of a run with beam search.

    Args:
        trace: the run.
        options: how the figure is drawn.
        title: its title.
        description: the figure in words.
        hypothesis: rank of the hypothesis whose path stands out.
    """
    pen = DrawContext.of(options)
    above, y = legend.title(title, pen, _EDGE)
    places, notes = _fitting(trace.tree, pen)
    rows = layout(trace.tree, places)
    plan = _Plan(trace.tree, rows, pen, y, set(path(trace.tree, hypotheses(trace.tree)[hypothesis])))
    drawn = [*above, *plan.steps(), *plan.edges(), *plan.nodes()]
    if plan.shortened:
        notes.append(_("Long tokens are shortened: a wider figure has more room for them."))
    if not plan.numbered:
        notes.append(_("The log-probabilities are omitted: make the figure wider, or generate fewer tokens, to see them."))
    notes += without_font(drawn)
    return Drawing(options.width, plan.bottom, pen.palette.scheme.background, tuple(drawn), title, description, tuple(notes))


def _fitting(tree: tuple[Node, ...], pen: DrawContext) -> tuple[list[int], list[str]]:
    """The nodes to draw: pruned ones are left out where they have no room on a page."""
    places = drawn_on_screen(tree)
    high = _Plan.pitch_of(pen)
    if (1 + max(layout(tree, places).values())) * high <= 0.85 * TALLEST:
        return places, []
    kept = [node for node in places if tree[node].fate != "pruned"]
    return kept, [_("The pruned continuations are omitted: they do not fit on the page.")]


class _Plan:
    """The places of the nodes."""

    def __init__(self, tree: tuple[Node, ...], rows: dict[int, int], pen: DrawContext, y: float, on_path: set[int]) -> None:
        self.tree, self.rows, self.pen, self.on_path = tree, rows, pen, on_path
        self.columns = 1 + max(tree[node].step for node in rows)
        self.pitch = (pen.options.width - 2 * _EDGE + _GAP) / self.columns
        self.wide, self.high = self.pitch - _GAP, self.pitch_of(pen)
        widest = max(fonts.width(tokens.plain(tree[node].text), 1.0) for node in rows)
        self.size = max(SMALLEST_FONT, min(pen.options.font_size, (self.wide - 0.6) / widest))
        self.small = SMALLEST_FONT
        self.top = y + axes.LINE * self.small * MM + 0.6
        self.shortened = widest * self.size > self.wide - 0.6
        self.numbered = max(fonts.width(_total(tree[node]), self.small) for node in rows) <= self.wide - 0.3

    @staticmethod
    def pitch_of(pen: DrawContext) -> float:
        """Millimeters from one row of nodes to the next: two lines of text and a gap."""
        return axes.LINE * MM * (pen.options.font_size + SMALLEST_FONT) + 1.6

    @property
    def bottom(self) -> float:
        """The lower end of the sheet."""
        return self.top + (1 + max(self.rows.values())) * self.high + _EDGE

    def left(self, node: int) -> float:
        """The left edge of a node."""
        return _EDGE + self.tree[node].step * self.pitch

    def middle(self, node: int) -> float:
        """The middle of a node's height."""
        return self.top + (self.rows[node] + 0.5) * self.high

    def steps(self) -> Iterator[Shape]:
        """The numbers of the steps."""
        for step in range(self.columns):
            x = _EDGE + step * self.pitch + self.wide / 2
            yield Text(x, self.top - 0.6, str(step + 1), self.small, self.pen.palette.scheme.faint, "middle")

    def edges(self) -> Iterator[Shape]:
        """Curves from each node to its continuations, the shown path last."""
        for node in sorted(self.rows, key=lambda node: node in self.on_path):
            parent = self.tree[node].parent
            if parent not in self.rows:
                continue
            start, end = self.left(parent) + self.wide, self.left(node)
            from_height, to_height = self.middle(parent), self.middle(node)
            points = ((start, from_height), (start + 0.6 * _GAP, from_height), (end - 0.6 * _GAP, to_height), (end, to_height))
            colour, wide, dash = self._look(node)
            yield Line(points, colour, wide, dash, curved=True)

    def _look(self, node: int) -> tuple[str, float, tuple[float, ...]]:
        scheme = self.pen.palette.scheme
        if node in self.on_path:
            return scheme.accent, 0.4, ()
        return (scheme.line, 0.2, (0.6, 0.6)) if self.tree[node].fate == "pruned" else (scheme.faint, 0.2, ())

    def nodes(self) -> Iterator[Shape]:
        """A box for each node, with its token, the log-probability of the whole so far, and the rank of a hypothesis."""
        scheme = self.pen.palette.scheme
        for index in self.rows:
            node, x, y = self.tree[index], self.left(index), self.middle(index) - self.high / 2 + 0.5
            colour, wide, _dash = self._look(index)
            yield Rect(x, y, self.wide, self.high - 1, scheme.card, colour, wide / 1.4)
            ink = scheme.faint if node.fate == "pruned" else scheme.text
            text = axes.shortened(tokens.plain(node.text), self.size, self.wide - 0.6)
            middle, line = x + self.wide / 2, y + axes.LINE * self.size * MM * 0.95
            if self.pen.options.labels:
                yield Text(middle, line, text, self.size, ink, "middle")
            if self.numbered:
                yield Text(middle, line + axes.LINE * self.small * MM, _total(node), self.small, ink, "middle")


def _total(node: Node) -> str:
    """Log-probability of all tokens written so far, and the rank of a hypothesis."""
    return tokens.number(node.total, ".2f") + (f" · {node.rank + 1}" if node.rank >= 0 else "")
