"""Scheduling of runs: a bounded queue with one place per session, and the scheduler, which batches network calls."""
