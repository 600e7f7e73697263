"""Decides what runs next: a bounded queue with one place a session, and the scheduler that batches calls.

May import: model.errors, model.inference.
"""
