"""What the feature brings to an engine."""

from model.feature import Feature
from model.features.survey.questions import MeasuredTexts, MeasureTexts, StoredSurvey
from model.features.survey.reading import HeadRead, ReadHead
from model.requests.endpoints import ARRAYS, PARQUET, endpoint

FEATURE = Feature(
    endpoints=(
        endpoint(MeasureTexts, ARRAYS, "What each head does in some texts.", MeasuredTexts.to_bytes, MeasuredTexts.from_bytes),
        endpoint(ReadHead, ARRAYS, "What one head does in some texts.", HeadRead.to_bytes, HeadRead.from_bytes),
        endpoint(StoredSurvey, PARQUET, "The survey in a model's folder, as Parquet.", bytes, bytes),
    ),
    answers="model.features.survey.engine_answers",
    commands={"head": "model.features.survey.head_command:one_head", "survey": "model.features.survey.survey_command:survey"},
)
