"""Pictures of two runs: what each generated, and what is different between them."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, TypeAlias

from model.spec.edits import AtSites
from model.trace import beam_tree as beam
from model.trace.beam_tree import Node
from model.trace.types import Site
from viz.canvas import standalone
from viz.canvas.scenes import attention as scene
from viz.canvas.scenes import beam_tree
from viz.canvas.wire import strings
from viz.canvas.wire.transport import unpack
from viz.features.compare import difference_scene as difference
from viz.features.compare import probabilities
from viz.features.compare.notes import no_map_changed, unchanged_kinds
from viz.features.compare.probabilities import Both
from viz.features.compare.run_difference import Change, changed_kinds, most_changed
from viz.features.compare.run_difference import changes as changes_of
from viz.features.compare.runs import Runs, fed
from viz.i18n.translate import _, join_sentences, number
from viz.labels import tokens
from viz.lectures.presenter import panels, tables
from viz.lectures.presenter.explore_panels import PanelWithScene
from viz.lectures.presenter.headless_page import with_trace
from viz.lectures.presenter.panels import Panel, Picture
from viz.session.state import Page
from viz.url.view_state import ViewState


def both(page: Page, view: ViewState, runs: Runs, names: tuple[str, str]) -> Picture:
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
    first, second = runs.first, runs.second
    own, other = with_trace(page, first), with_trace(page, second)
    if "target" in first.tokens and first.tokens["source"].texts != second.tokens["source"].texts:
        return _two_sentences(own, other, names)
    shared = "target" in first.tokens and "target" in second.tokens
    parts = [
        _outputs("first", names[0], own, shared),
        _outputs("second", names[1], other, shared),
        *([(Panel("Strips", "source"), _strips(own, lambda name: name == "source"))] if shared else []),
    ]
    found, pieces, choice = _difference(own, other, view, runs, names)
    shown = [*parts, *found]
    return Picture([panel for panel, _scene in shown], {panel.scene: scene for panel, scene in shown}, pieces, choice)


def _outputs(name: str, heading: str, page: Page, shared: bool) -> PanelWithScene:
    """What a run wrote; what it read, too, unless both runs share it."""
    return Panel("Strips", name, heading, half=True), _strips(page, lambda strip: not shared or strip != "source")


Difference: TypeAlias = tuple[list[PanelWithScene], Mapping[str, bytes], Mapping[str, Any]]
"""Panels, parts and choice of a picture."""


def _difference(own: Page, other: Page, view: ViewState, runs: Runs, names: tuple[str, str]) -> Difference:
    """What is different between two runs of one sentence."""
    reading = fed(own, view, runs)
    found, _left_out = changes_of(reading.first, reading.second)
    changed, unmoved = changed_kinds(found)
    likely, same = probabilities.both(reading.first, reading.second, reading.since), not changed and found
    table = [_likely(likely, names, no_map_changed(found) if same else "")] if any(token.change for token in likely) else []
    if changed:
        site, head = next((place for place in _named_heads(own, view) if _moves(changed, *place)), None) or most_changed(changed)
        note = join_sentences([*_reading_together(runs, reading), *([unchanged_kinds(unmoved)] if unmoved else [])])
        scene = difference.scene(reading.first, reading.second, _selected_first(changed, site), site, head)
        atlas = Panel("Atlas", "changes", _("Changes of the weights"), note, half=True), scene
        return [atlas, *table], {}, {"large": False, "site": str(site), "head": head}
    if tree := runs.second.tree or runs.first.tree:
        return [(Panel("Tree", "tree"), _tree(runs, tree))], {}, {"large": False}
    site, head = next(iter(_named_heads(other, view)), (other.attention.site, other.head))
    scene, pieces = standalone.atlas_with_parts(runs.second, site, head, -1)
    return (
        [*table, (Panel("Atlas", "atlas", names[1], half=True), scene)],
        pieces,
        {"large": False, "site": str(site), "head": head},
    )


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


def _tree(runs: Runs, tree: tuple[Node, ...]) -> bytes:
    """The tree of a beam search, opened where its best hypothesis leaves what the other run wrote."""
    trace, other = (runs.second, runs.first) if tree is runs.second.tree else (runs.first, runs.second)
    best = beam.path(tree, beam.hypotheses(tree)[0])
    written = [step.chosen.text for step in other.steps]
    alike = takewhile(lambda pair: tree[pair[0]].text == pair[1], zip(best, written, strict=False))
    leaves = best[min(sum(1 for _pair in alike), len(best) - 1)]
    return panels.changed(beam_tree.scene(trace, 0), {}, opens=leaves)


def _two_sentences(own: Page, other: Page, names: tuple[str, str]) -> Picture:
    """The selected head of two runs as lines, that of the second run first; above it what the first one read and generated."""
    scenes = {"strips": _strips(own, lambda name: True)}
    shown, pieces = [Panel("Strips", "strips", names[0])], dict[str, bytes]()
    for name, page, heading in (("second", other, names[1]), ("first", own, names[0])):
        site, head = page.attention.site, page.head
        if max(page.attention.mask.shape) > panels.LONGEST:
            scenes[name], more = standalone.atlas_with_parts(page.trace, site, head, -1)
            pieces |= more
            shown.append(Panel("Atlas", name, heading))
        else:
            scenes[name] = panels.changed(scene.lines(page.trace, site, head, -1), strings.lines_alone())
            shown.append(Panel("Lines", name, f"{heading} · {tokens.site(site, head)}"))
    return Picture(shown, scenes, pieces, {"large": False})


def _likely(found: Sequence[Both], names: tuple[str, str], note: str) -> PanelWithScene:
    """The table of each token's probability in both runs, the largest change first; above them the log-probability of all."""
    totals = (sum(one.first for one in found), sum(one.second for one in found))
    rows = [[_("log-probability of all"), *(number(total, ".2f") for total in totals)]]
    rows += [[tokens.word(one.text), *(number(math.exp(each), ".3f") for each in (one.first, one.second))] for one in found]
    return Panel("Table", "likely", _("How likely each token was"), note, half=True), tables.table(("", *names), rows, 0)


def _selected_first(found: Mapping[Site, Change], selected: Site) -> dict[Site, Change]:
    """The changes with those of the selected site's kind of attention first."""
    chosen = selected.stack, selected.kind
    return dict(sorted(found.items(), key=lambda one: (one[0].stack, one[0].kind) != chosen))


def _strips(page: Page, wanted: Callable[[str], bool]) -> bytes:
    """The scene of those strips of a run whose name is wanted."""
    found = scene.strips(page.trace, page.attention.site, -1)
    strips = [strip for strip in unpack(found)[0]["strips"] if wanted(strip["name"])]
    return panels.changed(found, {}, continues=None, strips=strips)
