"""What the feature Compare brings to the app."""

from viz.feature import Feature, FeaturePage
from viz.features.compare import page, panels
from viz.features.compare.part_panels import PARTS
from viz.features.compare.texts import PANELS
from viz.features.compare.view import CompareView, second_side
from viz.i18n.translate import N_

FEATURE = Feature(
    pages=(
        FeaturePage(
            path="compare",
            title=N_("Compare"),
            icon="compare",
            show=page.show,
            panels=panels.panels,
            parts=PARTS,
            pictures=("changes", "head", "difference"),
        ),
    ),
    second_view=second_side,
    parameters=CompareView,
    help=PANELS,
)
