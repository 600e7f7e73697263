"""Scene of the likeliest next tokens, whose bars follow temperature, top k and top p in the browser, without another run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from model.trace.types import Array, Trace
from viz.canvas.scenes.attention import base, continues
from viz.canvas.wire import parts, strings
from viz.canvas.wire.transport import PART_CACHE, Blob, pack
from viz.i18n.translate import _

COUNT = 10
"""Most tokens that have a bar."""


@dataclass(frozen=True, eq=False)
class Row:
    """What a language model predicted after its prompt and the tokens that were chosen by hand.

    Attributes:
        logits: [vocab], those of tokens that are never written as -inf.
        place: the position that the prediction was made at.
        begun: the ids that were written before it.
        chosen: the id that the run wrote there.
    """

    logits: Array
    place: int
    begun: tuple[int, ...]
    chosen: int

    def likeliest(self) -> tuple[int, ...]:
        """The ids of the largest logits, the largest one first: at most COUNT."""
        return tuple(np.argsort(-self.logits, kind="stable")[:COUNT].tolist())


def after(trace: Trace, suppressed: Sequence[int]) -> Row | None:
    """The row of a language model's run; None: it wrote nothing there, or has no finite logits.

    Args:
        suppressed: ids that are never written.
    """
    begun = len(trace.request.get("begin") or ())
    if continues(trace) is None or trace.logits is None or begun >= len(trace.steps):
        return None
    step = trace.steps[begun]
    position = step.computed[1] - 1
    logits = trace.logits[position].astype(np.float32)  # a copy
    logits[list(suppressed)] = -np.inf
    written = tuple(earlier.chosen.id for earlier in trace.steps[:begun])
    return Row(logits, position, written, step.chosen.id) if np.isfinite(logits.max()) else None


def texts() -> dict[str, str]:
    """Texts of the bars: those of the candidates of a step."""
    chips = strings.strips()
    return {name: chips[name] for name in ("others", "continue")}


def scene(trace: Trace, row: Row, names: Mapping[int, str], start: tuple[float, int, float], turned: bool = True) -> bytes:
    """The bars of a row: part `logits`, blob `logits` float32 [vocab], from the largest to the smallest.

    Args:
        names: the texts of the likeliest tokens by id, the likeliest first.
        start: temperature, top k (0: all) and top p (1: all) where the knobs stand first.
        turned: whether the knobs are drawn; False: they stand elsewhere.
    """

    def knob(name: str, label: str, value: float, least: float, most: float, step: float) -> dict[str, object]:
        bounds = {"least": min(least, value), "most": max(most, value), "step": step, "digits": 0 if step == 1 else 2}
        return {"name": name, "label": label, "value": value, **bounds}

    header = {
        **base(trace),
        "texts": texts(),
        "tokens": [{"id": id_, "text": text, "chosen": id_ == row.chosen} for id_, text in names.items()],
        "begun": list(row.begun),
        "turned": turned,
        "knobs": [
            knob("temperature", _("Temperature"), start[0], 0.05, 3, 0.05),
            knob("topK", _("Top k (0 = all)"), start[1], 0, 50, 1),
            knob("topP", _("Top p"), start[2], 0.05, 1, 0.05),
        ],
    }
    key = f"{parts.run_key(trace)}/next/{row.place}"
    logits = PART_CACHE.get_or_make(key, lambda: Blob(pack({}, {"logits": -np.sort(-row.logits)})))
    return parts.scene(header, {"logits": logits})
