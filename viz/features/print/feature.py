"""What print brings to the app: a button beside every picture, and the dialog “Export” of Explore."""

from viz.feature import Feature
from viz.features.print import exports, print_dialog

FEATURE = Feature(parts={"picture": print_dialog.button, "export": exports.button})
