"""What the feature Compare brings to the app."""

from viz.feature import Feature, FeaturePage
from viz.features.compare import page, panels
from viz.features.compare.texts import PANELS
from viz.features.compare.view import CompareView
from viz.i18n.translate import N_

FEATURE = Feature(
    pages=(FeaturePage(path="compare", title=N_("Compare"), icon="compare", show=page.show, panels=panels.panels),),
    parameters=CompareView,
    help=PANELS,
)
