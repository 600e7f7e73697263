"""What lectures bring to the command line."""

from model.feature import Feature

FEATURE = Feature(commands={"lecture": "viz.features.lectures.command:lecture"})
