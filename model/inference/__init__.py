"""Runs one request through one network and returns a Trace: inputs, decoding, interventions, recorder, batching."""
