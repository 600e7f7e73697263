"""The commands that draw for print; how they draw is viz/features/print."""
