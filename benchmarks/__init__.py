"""What things cost, as ratios that hold on any machine. `python -m benchmarks`; docs/benchmarks.md explains the lines."""
