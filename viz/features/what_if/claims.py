"""A claim about which heads a run needs."""

from dataclasses import replace

import numpy as np

from model.features.what_if.questions import Prune
from viz.claims.kinds import ClaimKind, alone
from viz.claims.runs import StepRuns
from viz.claims.subjects import Scope, Subject


def _breaks_at(runs: StepRuns, _subject: Subject, scope: Scope) -> float:
    """Number of heads that can be silenced before a written token is no longer the likeliest; all of them: infinity."""
    pruned = runs.engine.ask(Prune(replace(runs.request(scope), keep=())))
    return np.inf if pruned.breaks_at is None else pruned.breaks_at


CLAIMS = {"breaks-at": ClaimKind(alone, _breaks_at)}
"""As `viz.feature.Feature.claims`."""
