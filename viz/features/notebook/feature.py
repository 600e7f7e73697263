"""What the notebook brings to the app: nothing. It is here so that the app can do without it."""

from viz.feature import Feature

FEATURE = Feature()
