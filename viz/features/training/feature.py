"""What the feature Training brings to the app."""

from pathlib import Path

from viz.canvas.assets import OF_AN_ATLAS
from viz.feature import Feature, FeaturePage
from viz.features.training import page, panels
from viz.features.training.texts import PANELS
from viz.features.training.view import TrainingView
from viz.i18n.translate import N_

_FILES = Path(__file__).parent / "frontend"

FEATURE = Feature(
    pages=(
        FeaturePage(
            path="training",
            title=N_("Training"),
            icon="movie",
            show=page.show,
            panels=panels.panels,
            parts=panels.PARTS,
            pictures=("film", "curves", "losses"),
        ),
    ),
    parameters=TrainingView,
    help=PANELS,
    drawings={
        "Film": (
            (*OF_AN_ATLAS, "chips.js", "transport.js", _FILES / "film.js"),
            ("common.css", "atlas.css", "chips.css", "player.css", _FILES / "film.css"),
        )
    },
)
