"""What live pictures bring to the app: a switch beside the sentence box of Explore, and the route that answers it."""

from viz.feature import Feature
from viz.features.live import route, sessions

FEATURE = Feature(
    parts={"sentence": sessions.switch, "run": sessions.attend},
    routes=(route.ROUTE,),
    settings=(sessions.pause_ms,),
)
