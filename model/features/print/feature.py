"""What print brings to the command line."""

from model.feature import Feature

FEATURE = Feature(commands={name: f"viz.features.print.command:{name}" for name in ("archive", "figure")})
