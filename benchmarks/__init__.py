"""Benchmarks, as ratios that hold on any machine. `python -m benchmarks` runs them; docs/benchmarks.md explains the results."""
