"""What the feature brings to an engine."""

from model.feature import Feature
from model.features.modern_attention.costs import CacheRun, Measures, Sizes, TimeLengths, Times, WithoutCache
from model.features.what_if.results import endpoints
from model.requests.endpoints import JSON, as_json, endpoint

FEATURE = Feature(
    endpoints=(
        endpoint(Measures, JSON, "What the cost of a model's decoder follows from.", *as_json(Sizes, "sizes")),
        *endpoints({WithoutCache: CacheRun, TimeLengths: Times}),
    ),
    answers="model.features.modern_attention.answers",
)
