"""What attention as it is built today brings to the app: parts of Step through and of Masks."""

from viz.feature import Feature
from viz.features.modern_attention import masks, steps, tiles
from viz.features.modern_attention.texts import PANELS

FEATURE = Feature(
    parts={"steps": steps.draw, "stage": tiles.draw, "masks": masks.draw},
    opens=(*steps.OF_CACHE, *steps.OF_LENGTH, "latents", "tiles", "mask-kinds", "sinks"),
    help=PANELS,
)
