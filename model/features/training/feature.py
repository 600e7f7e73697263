"""What the feature brings to the command line."""

from model.feature import Feature

FEATURE = Feature(
    commands={"evaluate": "model.features.training.commands:evaluate", "train": "model.features.training.commands:train"}
)
