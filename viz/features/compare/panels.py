"""The panels of the page Compare, and of What if: what each of two runs generated, and what is different between them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import pandas as pd

from model.requests.edits import AtSites
from model.trace import beam_tree as beam
from model.trace.beam_tree import Node
from model.trace.types import Site
from viz.canvas import standalone
from viz.canvas.scenes import attention as scene
from viz.canvas.wire import strings
from viz.canvas.wire.transport import changed, unpack
from viz.features.compare import probabilities
from viz.features.compare import runs as compare_runs
from viz.features.compare.notes import no_map_changed, unchanged_kinds
from viz.features.compare.part_panels import of_differences
from viz.features.compare.probabilities import Both
from viz.features.compare.run_difference import Change, changed_kinds, most_changed
from viz.features.compare.run_difference import changes as changes_of
from viz.features.compare.runs import Runs, fed
from viz.i18n.translate import _, join_sentences, number
from viz.labels import tokens
from viz.panels import NotDrawable, Panel, Scene, Table
from viz.session.state import Page, selected, with_trace
from viz.url.view_state import ViewState
from viz.views.explore import panels as explore
from viz.views.step import panels as step


def panels(page: Page, link: ViewState) -> list[Panel]:
    """The two sides of the link.

    Raises:
        NotDrawable: the second one cannot run.
    """
    both_runs = compare_runs.runs(page)
    if isinstance(both_runs, str):
        raise NotDrawable(_("Side B cannot be run: {reason}", reason=both_runs))
    return of_both(page, replace(compare_runs.second_view(page), site=link.site), both_runs, (_("Side A"), _("Side B")))


def of_both(page: Page, view: ViewState, runs: Runs, names: tuple[str, str]) -> list[Panel]:
    """The outputs of two runs, the sentence that both read, then what is different between them.

    Of one sentence that is the differences of the weights and of the tokens' probabilities, where both runs read what the first one
    wrote, so that every row is compared. Where no weight differs, it is the hypotheses of a beam search, or the second run's heads.
    Of two sentences no weight has a counterpart: then the selected head is shown as lines, that of the second run first.

    Args:
        page: the first run.
        view: of the second run, with the site that the link names.
        runs: both, as each of them writes.
        names: what they are called.
    """
    first, second = with_trace(page, runs.first), with_trace(page, runs.second)
    if "target" in runs.first.tokens and runs.first.tokens["source"].texts != runs.second.tokens["source"].texts:
        return _two_sentences(first, second, names)
    shared = "target" in runs.first.tokens and "target" in runs.second.tokens
    differences = _differences(first, second, view, runs, names)
    framed = next((panel.selected for panel in differences if "site" in panel.selected), {})
    outputs = [_output("first", names[0], first, shared, framed), _output("second", names[1], second, shared, framed)]
    source = Panel("source", "", Scene("Strips", _strips(first, lambda strip: strip == "source")), paper=tuple)
    return [*outputs, *([source] if shared else []), *differences]


def _output(name: str, heading: str, page: Page, shared: bool, framed: Mapping[str, Any]) -> Panel:
    """What a run wrote; what it read, too, unless both runs share it. Paper draws the head that the differences frame."""
    content = Scene("Strips", _strips(page, lambda strip: not shared or strip != "source"))
    on_paper = selected(page, replace(page.view, **{field: framed[field] for field in ("site", "head") if field in framed}))
    return Panel(name, heading, content, width="half", paper=lambda: (explore.printed(on_paper, "head"),))


def _differences(own: Page, other: Page, view: ViewState, runs: Runs, names: tuple[str, str]) -> list[Panel]:
    """What is different between two runs of one sentence."""
    reading = fed(own, view, runs)
    found, _left_out = changes_of(reading.first, reading.second)
    moved, unmoved = changed_kinds(found)
    likely, same = probabilities.both(reading.first, reading.second, reading.since), not moved and found
    table = [_likely(likely, names, no_map_changed(found) if same else "")] if any(token.change for token in likely) else []
    if moved:
        site, head = next((place for place in _named_heads(own, view) if _moves(moved, *place)), None) or most_changed(moved)
        note = join_sentences([*_reading_together(runs, reading), *([unchanged_kinds(unmoved)] if unmoved else [])])
        drawn = of_differences(reading.first, reading.second, _selected_first(moved, site), (site, head))
        return [replace(drawn, words=note, width="narrow", fills=True), *table]
    if tree := runs.second.tree or runs.first.tree:
        return [_tree(other if tree is runs.second.tree else own, runs, tree)]
    site, head = next(iter(_named_heads(other, view)), (other.attention.site, other.head))
    content = Scene("Atlas", *standalone.atlas_with_parts(runs.second, site, head, -1))
    framed = {"site": str(site), "head": head}
    return [*table, Panel("atlas", names[1], content, width="narrow", selected=framed, paper=tuple)]


def _reading_together(runs: Runs, reading: Runs) -> list[str]:
    """The sentence that the compared runs read the same tokens, or why they do not, where they would have written others."""
    written = [trace.tokens[tokens.written_strip(trace)].texts for trace in (runs.first, runs.second)]
    if written[0] == written[1]:
        return []
    return [_("Both runs read here what the first one wrote.")] if reading.fed else [reading.problem] if reading.problem else []


def _moves(changed: Mapping[Site, Change], site: Site, head: int) -> bool:
    """Whether a weight of the head changed."""
    return site in changed and head < changed[site].heads and bool(changed[site].difference(head).any())


def _named_heads(page: Page, view: ViewState) -> list[tuple[Site, int]]:
    """The heads that an edit or the link names, if the run has their site."""
    edited = [(edit.site, edit.head[0]) for edit in view.active_edits() if isinstance(edit, AtSites) and edit.site and edit.head]
    linked = [(view.site, view.head)] if view.site else []
    heads = [(Site.parse(site), head) for site, head in (*edited, *linked)]
    return [(site, head) for site, head in heads if site in page.trace.attention]


def _tree(page: Page, runs: Runs, tree: tuple[Node, ...]) -> Panel:
    """The tree of a beam search, opened where its best hypothesis leaves what the other run wrote."""
    other = runs.first if tree is runs.second.tree else runs.second
    best = beam.path(tree, beam.hypotheses(tree)[0])
    written = [step.chosen.text for step in other.steps]
    alike = takewhile(lambda pair: tree[pair[0]].text == pair[1], zip(best, written, strict=False))
    leaves = best[min(sum(1 for _pair in alike), len(best) - 1)]
    return replace(step.tree(replace(page, view=replace(page.view, hypothesis=0)), leaves), paper=tuple)


def _two_sentences(own: Page, other: Page, names: tuple[str, str]) -> list[Panel]:
    """The selected head of two runs as lines, that of the second run first; above it what the first one read and generated."""
    strips = Panel("strips", names[0], Scene("Strips", _strips(own, lambda name: True)), paper=tuple)
    return [strips, _whole_head("second", names[1], other), _whole_head("first", names[0], own)]


def _whole_head(name: str, heading: str, page: Page) -> Panel:
    """The selected head as lines; of a long text the overview."""
    site, head = page.attention.site, page.head
    if max(page.attention.mask.shape) > explore.LONGEST:
        content = Scene("Atlas", *standalone.atlas_with_parts(page.trace, site, head, -1))
    else:
        content = Scene("Lines", changed(scene.lines(page.trace, site, head, -1), strings.lines_alone()))
        heading = f"{heading} · {tokens.site(site, head)}"
    return Panel(name, heading, content, paper=lambda: (explore.printed(page, "head"),))


def _likely(words: Sequence[Both], names: tuple[str, str], note: str) -> Panel:
    """The table of each token's probability in both runs, the largest change first; above them the log-probability of all."""
    totals = [number(sum(getattr(word, run) for word in words), ".2f") for run in ("first", "second")]
    rows = [totals, *([number(math.exp(each), ".3f") for each in (word.first, word.second)] for word in words)]
    index = [_("log-probability of all"), *(tokens.word(word.text) for word in words)]
    frame = pd.DataFrame(rows, index=index, columns=list(names))
    return Panel("likely", _("How likely each token was"), Table(frame, 0), note, width="narrow")


def _selected_first(found: Mapping[Site, Change], selected: Site) -> dict[Site, Change]:
    """The changes with those of the selected site's kind of attention first."""
    chosen = selected.stack, selected.kind
    return dict(sorted(found.items(), key=lambda one: (one[0].stack, one[0].kind) != chosen))


def _strips(page: Page, wanted: Callable[[str], bool]) -> bytes:
    """The scene of those strips of a run whose name is wanted."""
    found = scene.strips(page.trace, page.attention.site, -1)
    strips = [strip for strip in unpack(found)[0]["strips"] if wanted(strip["name"])]
    return changed(found, {}, continues=None, strips=strips)
