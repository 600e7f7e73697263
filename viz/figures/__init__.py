"""Pure functions from a trace to a Plotly figure."""
