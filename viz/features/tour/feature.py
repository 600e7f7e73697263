"""What the first picture and the tour bring to the app."""

from viz.feature import Feature
from viz.features.tour import tour
from viz.features.tour.instead import instead

FEATURE = Feature(parts={"help": tour.help_button}, instead=instead)
