"""What the feature brings to an engine."""

from model.feature import Feature

FEATURE = Feature(
    commands={"serve": "model.features.serving.serve_command:serve"}, remote="model.features.serving.http.client:RemoteEngine"
)
