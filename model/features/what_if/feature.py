"""What the feature brings to an engine."""

from model.feature import Feature
from model.features.what_if.questions import QUESTIONS
from model.features.what_if.results import endpoints

FEATURE = Feature(
    endpoints=endpoints(QUESTIONS),
    answers="model.features.what_if.answers",
    edits="model.features.what_if.edits.edited_run:edited_run",
    commands={"matters": "model.features.what_if.matters_command:matters"},
)
