"""Servers are tested on the engines of tests/model/engine."""

from tests.model.engine.conftest import folder, local, scheduler

__all__ = ["folder", "local", "scheduler"]
