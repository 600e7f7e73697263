"""One request on its way through one network: inputs, decoding, interventions, recorder, batching; the result is a Trace.

May import: model.checkpoints, model.errors, model.huggingface, model.spec, model.tokenizers, model.trace, model.transformer.
"""
