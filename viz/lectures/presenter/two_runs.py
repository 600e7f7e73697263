"""Pictures of two runs: what each generated, and what is different between them."""

import math
from collections.abc import Callable, Mapping, Sequence

from model.trace.types import Site, Trace
from viz.canvas import standalone
from viz.canvas.scenes import attention as scene
from viz.canvas.scenes import beam_tree, difference
from viz.canvas.wire import strings
from viz.canvas.wire.transport import unpack
from viz.i18n.translate import _, number
from viz.labels import tokens
from viz.lectures.presenter import panels, tables
from viz.lectures.presenter.headless_page import with_trace
from viz.lectures.presenter.panels import Panel, Picture
from viz.metrics import probabilities
from viz.metrics.probabilities import Both
from viz.metrics.run_difference import Change, changed_kinds
from viz.metrics.run_difference import changes as changes_of
from viz.session.state import Page
from viz.views.compare.notes import no_map_changed, unchanged_kinds


def both(page: Page, first: Trace, second: Trace, names: tuple[str, str]) -> Picture:
    """The outputs of two runs, then what is different between them.

    Of one sentence that is the differences of the weights; where none differs, the hypotheses of a beam search, or the tokens'
    probabilities and the second run's heads. Of two sentences no weight has a counterpart: then the selected head is shown as
    lines, that of the second run first.
    """
    own, other = with_trace(page, first), with_trace(page, second)
    if "target" in first.tokens and first.tokens["source"].texts != second.tokens["source"].texts:
        return _two_sentences(own, other, names)
    shared = "target" in first.tokens and "target" in second.tokens
    scenes = {
        "first": _strips(own, lambda name: not shared or name != "source"),
        "second": _strips(other, lambda name: not shared or name != "source"),
    }
    shown = [Panel("Strips", "first", names[0], half=True), Panel("Strips", "second", names[1], half=True)]
    found, _left_out = changes_of(first, second)
    changed, unmoved = changed_kinds(found)
    changed = _selected_first(changed, own.attention.site)
    site = own.attention.site if own.attention.site in changed else next(iter(changed), None)
    pieces: Mapping[str, bytes] = {}
    if site is not None:
        head = own.head if own.head < changed[site].heads else 0
        scenes["changes"] = difference.scene(first, second, changed, site, head)
        note = unchanged_kinds(unmoved) if unmoved else ""
        shown.append(Panel("Atlas", "changes", _("Changes of the weights"), note))
    elif tree := second.tree or first.tree:
        scenes["tree"] = beam_tree.scene(second if second.tree is tree else first, 0)
        shown.append(Panel("Tree", "tree"))
    else:
        likely = probabilities.both(first, second)
        if found and any(token.change for token in likely):
            scenes["likely"] = _likely(likely, names)
            shown.append(Panel("Table", "likely", _("How likely each token was"), no_map_changed(found)))
        scenes["atlas"], pieces = standalone.atlas_with_parts(second, other.attention.site, other.head, -1)
        shown.append(Panel("Atlas", "atlas", names[1]))
    if shared:  # the sentence that both read, below what differs
        scenes["source"] = _strips(own, lambda name: name == "source")
        shown.append(Panel("Strips", "source"))
    return Picture(shown, scenes, pieces, {"large": False})


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


def _likely(found: Sequence[Both], names: tuple[str, str]) -> bytes:
    """The table of each token's probability in both runs, the largest change first."""
    rows = [[tokens.word(one.text), *(number(math.exp(each), ".3f") for each in (one.first, one.second))] for one in found]
    return tables.table(("", *names), rows)


def _selected_first(found: Mapping[Site, Change], selected: Site) -> dict[Site, Change]:
    """The changes with those of the selected site's kind of attention first."""
    chosen = selected.stack, selected.kind
    return dict(sorted(found.items(), key=lambda one: (one[0].stack, one[0].kind) != chosen))


def _strips(page: Page, wanted: Callable[[str], bool]) -> bytes:
    """The scene of those strips of a run whose name is wanted."""
    found = scene.strips(page.trace, page.attention.site, -1)
    strips = [strip for strip in unpack(found)[0]["strips"] if wanted(strip["name"])]
    return panels.changed(found, {}, continues=None, strips=strips)
