"""From a view to its picture: the drawings of each page of the app, without its controls."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from model.engine.api import Engine, Run, Tensors
from model.spec.network import TABLELESS
from model.spec.request import KEEP
from model.trace import stages
from model.trace.stages import OF_CELLS, Stage
from model.trace.types import Trace
from viz.canvas import standalone
from viz.canvas.scenes import attention as scene
from viz.canvas.scenes import beam_tree, matrix, network, overlay, sound
from viz.canvas.scenes import player as player_scene
from viz.canvas.scenes.attention import ReadingScene
from viz.canvas.wire import overviews, parts, strings
from viz.canvas.wire.transport import unpack
from viz.features.compare import runs as compare_runs
from viz.features.training import film_scene as film
from viz.features.training import runs as training_runs
from viz.features.training.metrics import course, fed
from viz.features.training.view import TrainingView
from viz.figures.positions import alike
from viz.i18n.translate import _, join_sentences
from viz.labels import tokens
from viz.labels.sounds import hearing
from viz.lectures.presenter import cost_panels, curve_panels, explore_panels, mask_panels, panels, sum_panels, survey_panels, tables
from viz.lectures.presenter.explore_panels import PanelWithScene
from viz.lectures.presenter.headless_page import NotDrawable, headless_page, with_trace
from viz.lectures.presenter.panels import Panel, Picture
from viz.lectures.presenter.two_runs import both
from viz.metrics.aggregation import without_first
from viz.session.state import Page
from viz.url.view_state import WITHOUT_EDITS, ViewState
from viz.views import masks
from viz.views.step import numbers, titles

MOST_COLUMNS = 128
"""Most columns of a table of numbers, such as dimensions of a vector."""

MOST_POSITIONS = 64
"""Most positions of a table of positions."""


BESIDE = 14
"""Most tokens per side of a mask that stands beside another one: the cells of a longer one would have no room for 0 and −∞."""


def picture(engine: Engine, page: str, view: ViewState) -> Picture:
    """The picture of a view.

    Args:
        page: URL path of the page.
        view: the state in its link.

    Raises:
        HeadlightError: the run is not possible.
        NotDrawable: this page, or this run, has no picture.
    """
    if page not in _PAGES:
        raise NotDrawable(_("The {page} page cannot be shown inside a lecture.", page=page or "?"))
    return _PAGES[page](engine, view)


def _explore(engine: Engine, view: ViewState) -> Picture:
    """The heads of the run; first what else the link opens: a reading, the calculation of a cell, statistics, the logit lens."""
    page = headless_page(engine, view)
    found, own = _run(page), [*explore_panels.of_reading(page), *explore_panels.of_parts(page)]
    if "writes" in page.view.opened.split():
        own.append(sum_panels.of_token(page))
    if min(page.view.query, page.view.key) >= 0:
        own += _of_cell(page)
    on_image = any(panel.kind in ("Overlay", "Sound") for panel in found.panels)
    large = bool(found.choice["large"] or view.site) and not own and not on_image  # its link names a head
    shown = [replace(panel, half=False) if large and panel.kind == "Atlas" else panel for panel in found.panels]
    return with_panels(replace(found, panels=shown, choice={**found.choice, "large": large}), own, 0)


def _of_cell(page: Page) -> Iterable[PanelWithScene]:
    """What the panel of the link's cell shows: how it was calculated, or why."""
    if page.view.cell == "why":
        return [sum_panels.of_score(page, page.view.query, page.view.key)]
    return explore_panels.of_cell(page, page.view.query, page.view.key)


def with_panels(found: Picture, own: Sequence[PanelWithScene], at: int) -> Picture:
    """The picture with more panels, before the one at this place."""
    shown = [panel for panel, _scene in own]
    scenes = {**found.scenes, **{panel.scene: scene for panel, scene in own}}
    return replace(found, panels=[*found.panels[:at], *shown, *found.panels[at:]], scenes=scenes)


def _run(page: Page, heading: str = "") -> Picture:
    """Strips, atlas and lines of a run; a click on a head or a row changes all of them."""
    trace, site, head, query = page.trace, page.attention.site, page.head, page.view.query
    rest = overviews.leaves_out(page.view.hide, trace) == "first"
    atlas, pieces = standalone.atlas_with_parts(trace, site, head, query, rest)
    if first := unpack(atlas)[0].get("first"):
        atlas = panels.changed(atlas, {}, first={**first, "button": ""})  # the step's link decides
    if hearing(trace) is not None:
        heard = sound.scene(trace, site, head, query)
        shown = [Panel("Sound", "sound", heading or _("The sound")), Panel("Atlas", "atlas", half=True, follows=True)]
        return Picture(shown, {"sound": heard, "atlas": atlas}, pieces, _choice(page))
    if overlay.fits(trace, site):
        image = overlay.scene(trace, site, head, query, page.view.overlay)
        shown = [Panel("Overlay", "overlay", heading, half=True, follows=True), Panel("Atlas", "atlas", half=True, follows=True)]
        return Picture(shown, {"overlay": image, "atlas": atlas}, pieces, _choice(page))
    scenes = {"strips": scene.strips(trace, site, query), "atlas": atlas}
    shown = [Panel("Strips", "strips", heading, follows=True), Panel("Atlas", "atlas", half=True, follows=True)]
    if max(page.attention.mask.shape) <= panels.LONGEST:
        weights = without_first(parts.allowed(page.attention.head(head), page.attention.mask)) if rest else None
        read = None if weights is None else ReadingScene("without-first", tokens.head_name(trace, site, head), weights)
        scenes["lines"] = panels.changed(scene.lines(trace, site, head, query, read), strings.lines_alone())
        shown.append(Panel("Lines", "lines", half=True, follows=True))
    return Picture(shown, scenes, pieces, _choice(page))


def _choice(page: Page) -> dict[str, Any]:
    view = page.view
    large = bool(view.query >= 0 or view.head > 0)
    return {"site": str(page.attention.site), "head": page.head, "query": view.query, "key": view.key, "large": large}


def _step(engine: Engine, view: ViewState) -> Picture:
    if view.clock == "computation":
        return _stage(engine, view)
    page = headless_page(engine, view)
    if own := [panel for name, panels_of in _OF_STEP.items() if name in view.opened.split() for panel in panels_of(page)]:
        return with_panels(Picture([], {}, {}, _choice(page)), own, 0)
    if page.attention.heads * page.attention.mask.size > parts.INLINE * 16:
        return _run(page)
    player = player_scene.scene(page.trace, page.attention.site, page.head, view.step)
    scenes = {"player": panels.changed(player, {}, continues=None)}
    shown = [Panel("Player", "player")]
    if page.trace.tree:
        scenes["tree"] = beam_tree.scene(page.trace, view.hypothesis)
        shown.insert(0, Panel("Tree", "tree"))
    return Picture(shown, scenes, {}, _choice(page) | {"step": view.step})


_OF_STEP: Mapping[str, Callable[[Page], Iterable[PanelWithScene]]] = {
    "cache": cost_panels.of_cache,
    "ways": cost_panels.of_ways,
    "operations": cost_panels.of_operations,
    "length": cost_panels.of_length,
    "bytes": cost_panels.of_bytes,
    "linear": cost_panels.of_linear,
    "latents": cost_panels.of_latents,
    "tiles": cost_panels.of_tiles,
}
_OF_MASKS: Mapping[str, Callable[[Page], Iterable[PanelWithScene]]] = {
    "mask-kinds": mask_panels.of_kinds,
    "sinks": mask_panels.of_sinks,
}
"""By the name of a part that a link opens, its panels, which stand alone."""


def _stage(engine: Engine, view: ViewState) -> Picture:
    """One stage of the computation: its numbers beside the map of the network."""
    page = headless_page(engine, view)
    trace = engine.ask(Run(page.view.request(keep=KEEP)))
    walk = stages.walk(trace)
    stage = stages.find(trace, view.stage) if view.stage else walk[0]
    if stage.site is not None:
        page = replace(page, view=replace(page.view, site=stage.place))
    page = with_trace(page, trace)
    heading = f"{titles.titles()[stage.name]} · {titles.place(trace, stage, page.head)}"
    kind, data = _numbers_of(page, trace, stage)
    plan = network.scene(trace, walk, titles.titles(), stage)
    shown = [Panel(kind, "numbers", heading, half=True), Panel("Network", "network", half=True)]
    found = Picture(shown, {"numbers": data, "network": plan}, {}, _choice(page))
    if stage.name != "weights" or min(page.view.query, page.view.key) < 0:
        return found
    calculation, whole_row = explore_panels.of_cell(page, page.view.query, page.view.key)
    return with_panels(with_panels(found, [whole_row], 1), [calculation], 0)


def _numbers_of(page: Page, trace: Trace, stage: Stage) -> tuple[str, bytes]:
    """The kind and the scene of the drawing of a stage."""
    if stage.name == "tokens":
        return "Strips", panels.changed(scene.strips(trace, page.attention.site, -1), {}, continues=None)
    if stage.name == "ids":
        strip = trace.tokens["source" if stage.place == "encoder" or "target" not in trace.tokens else "target"]
        rows = [[tokens.token(strip, at), str(number)] for at, number in enumerate(strip.ids)]
        return "Table", tables.table((_("token"), _("id")), rows)
    if stage.name in OF_CELLS:
        return "Cells", panels.changed(
            scene.cells(trace, stage, page.head, page.view.query, page.view.key), {"hint": "", "hintTouch": ""}
        )
    if stage.name in ("logits", "probabilities", "chosen"):
        return "Bars", _of_vocabulary(page, trace)
    array = stages.tensor(trace, stage, page.head)
    if array is None:
        raise NotDrawable(_("No numbers for this stage: this run did not record them."))
    array = array[:, :MOST_COLUMNS]
    columns = [str(number + 1) for number in range(array.shape[1])]
    axes = titles.down(trace, stage), titles.across(stages.AXES[stage.name][1])
    return "Cells", matrix.numbers(array, numbers.row_labels(trace, stage, len(array)), columns, axes)


def _of_vocabulary(page: Page, trace: Trace) -> bytes:
    """The most likely tokens of the selected row, or of the first one that generated a token."""
    if not trace.steps:
        raise NotDrawable(_("This run generated nothing."))
    step = next((one for one in trace.steps if one.computed[1] - 1 == page.view.query), trace.steps[0])
    listed = [*step.candidates, *([] if any(one.id == step.chosen.id for one in step.candidates) else [step.chosen])]
    chosen = next(place for place, one in enumerate(listed) if one.id == step.chosen.id)
    return tables.bars([tokens.plain(one.text) for one in listed], [math.exp(one.log_probability) for one in listed], chosen)


def _masks(engine: Engine, view: ViewState) -> Picture:
    page = headless_page(engine, view, masks.opens_on)
    if own := [panel for name, panels_of in _OF_MASKS.items() if name in view.opened.split() for panel in panels_of(page)]:
        return with_panels(Picture([], {}, {}, _choice(page)), own, 0)
    length = len(page.trace.tokens["source"])
    trace = engine.ask(Run(page.view.request(pad_to=view.pad_to))) if view.pad_to > length else page.trace
    attention = trace.at(page.attention.site)
    reads = [one for one in trace.attention.values() if one.key_tokens == "source"]
    padded = attention if attention.key_tokens == "source" or not reads else reads[-1]
    named = {
        "causal": (_("Causal mask"), attention, attention.mask_causal),
        "padding": (_("Padding mask"), padded, padded.mask_padding),
        "combined": (_("Both combined: the mask of this layer"), attention, attention.mask),
    }
    order = [view.picture] if view.picture in named else ["padding", "causal", "combined"] if view.pad_to else list(named)
    shown, scenes = list[Panel](), dict[str, bytes]()
    for name in order:
        title, read, allowed = named[name]
        if allowed is not None:
            rows, keys = tokens.queries(trace, read), tokens.keys(trace, read)
            scenes[name] = matrix.mask(allowed, rows, keys, strings.cells("mask"))
            half = len(order) > 1 and max(allowed.shape) <= BESIDE
            shown.append(Panel("Cells", name, f"{title} · {tokens.site(read.site)}", half=half))
    return Picture(shown, scenes, {}, _choice(page))


def _positions(engine: Engine, view: ViewState) -> Picture:
    page = headless_page(engine, view)
    stacks = [stack for stack in ("encoder", "decoder") if page.info.spec[stack] is not None]
    tables = [stack for stack in stacks if page.info.spec[stack]["positions"] not in TABLELESS]
    if not tables:
        return with_panels(Picture([], {}, {}, _choice(page)), list(mask_panels.of_rotation(page)), 0)
    name = f"positions/{tables[0]}"
    table = engine.ask(Tensors(page.info.name, names=(name,), settings=page.view.parsed_settings()))[name][:MOST_POSITIONS]
    places = [str(place + 1) for place in range(len(table))]
    wide = table[:, :MOST_COLUMNS]
    dimensions = [str(place + 1) for place in range(wide.shape[1])]
    scenes = {
        "table": matrix.numbers(wide, places, dimensions, (_("position"), _("dimension"))),
        "alike": matrix.numbers(alike(table), places, places, (_("position"), _("position"))),
    }
    shown = [
        Panel("Cells", "table", _("All values"), _("One row per position, one column per dimension."), half=True),
        Panel(
            "Cells",
            "alike",
            _("Similarity between positions"),
            _("The dot products of the vectors of all pairs of positions."),
            half=True,
        ),
    ]
    return Picture(shown, scenes, {}, _choice(page))


def _compare(engine: Engine, view: ViewState) -> Picture:
    page = headless_page(engine, view)
    found = compare_runs.runs(page)
    if isinstance(found, str):
        raise NotDrawable(_("Side B cannot be run: {reason}", reason=found))
    second = replace(compare_runs.second_view(page), site=view.site)
    return both(page, second, found, (_("Side A"), _("Side B")))


def _what_if(engine: Engine, view: ViewState) -> Picture:
    page = headless_page(engine, view, unedited=True)
    if "prune" in view.opened.split():
        return with_panels(Picture([], {}, {}, _choice(page)), [sum_panels.of_prune(page)], 0)
    if not view.active_edits():
        return _run(page)
    plain = replace(page, view=replace(page.view, **WITHOUT_EDITS))
    found = compare_runs.Runs(page.trace, engine.ask(Run(page.view.request())), compare_runs.since(page.trace))
    return both(plain, replace(page.view, site=view.site), found, (_("Without the edits"), _("With the edits")))


def _training(engine: Engine, view: ViewState) -> Picture:
    page = headless_page(engine, view)
    if not page.info.snapshots:
        raise NotDrawable(_("No snapshots were saved while “{title}” was trained.", title=page.info.title))
    if problem := training_runs.too_long(page):
        raise NotDrawable(problem)
    frames, problems = training_runs.frames(page)
    if not frames:
        raise NotDrawable(join_sentences(problems))
    measured = course(frames, fed(page.trace).ids)
    steps = [frame.step for frame in frames]
    at = steps.index(asked) if (asked := view.of(TrainingView).snapshot) in steps else 0
    data = film.scene(frames, page.trace, measured, page.attention.site, page.head, page.view.query, at)
    found = Picture([Panel("Film", "film")], {"film": data}, {}, _choice(page) | {"snapshot": steps[at], "large": bool(view.site)})
    return with_panels(found, list(curve_panels.of_training(page, measured)), 1)


def _survey(engine: Engine, view: ViewState) -> Picture:
    page = headless_page(engine, view, unedited=True)
    own = list(survey_panels.of_survey(page, survey_panels.stored(page)))
    return with_panels(Picture([], {}, {}, _choice(page)), own, 0)


def _circuit(engine: Engine, view: ViewState) -> Picture:
    page = headless_page(engine, view)
    return with_panels(_run(page), [sum_panels.of_circuit(page)], 0)


_PAGES: Mapping[str, Callable[[Engine, ViewState], Picture]] = {
    "": _explore,
    "explore": _explore,
    "step": _step,
    "masks": _masks,
    "positions": _positions,
    "compare": _compare,
    "whatif": _what_if,
    "training": _training,
    "survey": _survey,
    "circuit": _circuit,
}
