"""What attention as it is built today brings to the app: parts of Step through and of Masks."""

from viz.feature import Feature
from viz.features.modern_attention import cost_panels, masks, panels, steps, tiles
from viz.features.modern_attention.claims import CLAIMS
from viz.features.modern_attention.texts import PANELS

FEATURE = Feature(
    parts={"steps": steps.draw, "stage": tiles.draw, "masks": masks.draw},
    opens=(*steps.OF_CACHE, *steps.OF_LENGTH, "latents", "tiles", "mask-kinds", "sinks"),
    panels={
        "steps": {
            "cache": cost_panels.of_cache,
            "ways": cost_panels.of_ways,
            "operations": cost_panels.of_operations,
            "length": cost_panels.of_length,
            "bytes": cost_panels.of_bytes,
            "linear": panels.of_linear,
            "latents": panels.of_latents,
            "tiles": panels.of_tiles,
        },
        "masks": {"mask-kinds": panels.of_kinds, "sinks": panels.of_sinks},
    },
    claims=CLAIMS,
    help=PANELS,
)
