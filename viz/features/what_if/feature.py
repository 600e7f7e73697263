"""What the feature What if brings to the app."""

from viz.feature import Feature, FeaturePage
from viz.features.what_if import page, panels
from viz.features.what_if.claims import CLAIMS
from viz.features.what_if.texts import PANELS
from viz.i18n.translate import N_

FEATURE = Feature(
    pages=(
        FeaturePage(
            path="whatif",
            title=N_("What if"),
            icon="science",
            show=page.show,
            panels=panels.panels,
            unedited=True,
            parts=panels.PARTS,
            pictures=("heads", "changes"),
        ),
    ),
    claims=CLAIMS,
    help=PANELS,
)
