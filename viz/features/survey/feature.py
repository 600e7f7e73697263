"""What the feature Survey brings to the app."""

from pathlib import Path

from viz.feature import Feature, FeaturePage
from viz.features.survey import page, panels
from viz.features.survey.claims import CLAIMS
from viz.features.survey.texts import SURVEY
from viz.features.survey.view import SurveyView
from viz.i18n.translate import N_

_FILES = Path(__file__).parent / "frontend"

FEATURE = Feature(
    pages=(
        FeaturePage(
            path="survey",
            title=N_("Survey"),
            icon="query_stats",
            show=page.show,
            panels=panels.panels,
            parts=panels.PARTS,
            pictures=("heads", "grid", "spread", "head", "plane", "alike", "film", "two"),
            about_heads=panels.over_texts,
        ),
    ),
    parameters=SurveyView,
    claims=CLAIMS,
    help=SURVEY,
    drawings={"Dots": ((_FILES / "dots.js",), ("common.css", _FILES / "dots.css"))},
)
