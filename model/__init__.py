"""Makes traces: runs networks and records what they compute. Knows nothing of screens.

From the bottom up: sharing, errors, requests, feature, safe_loading, trace, measures, tokenizers, transformer, known_models,
inspection, huggingface, checkpoints, inference, engine, cli, features. A room imports only rooms that come before it;
tests/test_house.py holds every room to its list.
"""
