"""From a trace to the scene of one drawing: a JSON header and arrays."""
