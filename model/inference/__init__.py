"""Runs one request through one network and returns a Trace: inputs, decoding, interventions, recorder, batching.

May import: model.checkpoints, model.errors, model.feature, model.safe_loading, model.sharing, model.requests, model.tokenizers,
model.trace, model.transformer.
"""
