"""Makes traces: runs networks and records what they compute. Knows nothing of screens."""
