"""What the feature Circuit brings to the app: its page, why a score is what it is, and what a token is made of."""

from pathlib import Path

from viz.feature import CellPanel, Feature, FeaturePage, FoldedPart
from viz.features.circuit import cell_words, graph_library, page, panels, saved_sums, stream_parts, why, writes
from viz.features.circuit.claims import CLAIMS
from viz.features.circuit.texts import PANELS
from viz.features.circuit.view import CircuitView
from viz.i18n.translate import N_

_FILES = Path(__file__).parent / "frontend"

FEATURE = Feature(
    pages=(
        FeaturePage(
            path="circuit",
            title=N_("Circuit"),
            icon="account_tree",
            show=page.show,
            panels=panels.panels,
            parts=panels.PARTS,
            pictures=("graph", "composition", "paths", "kept"),
        ),
    ),
    folded=(
        FoldedPart(
            name="writes",
            title=N_("Why this token: its logit as a sum"),
            icon="functions",
            draw=writes.draw,
            link=stream_parts.link,
            panels=panels.of_token,
            parts=panels.PARTS_OF_TOKEN,
        ),
    ),
    cell_panels=(
        CellPanel(
            name="why",
            title=N_("Why this score"),
            draw=why.draw,
            reset={"minus": "", "trail": ""},
            panels=panels.of_score,
        ),
    ),
    cell_words=cell_words.asks,
    saved_sums=saved_sums.sums,
    parameters=CircuitView,
    claims=CLAIMS,
    help=PANELS,
    drawings={"Circuit": ((_FILES / "circuit.js",), ("common.css", _FILES / "circuit.css"))},
    routes=(graph_library.ROUTE,),
)
