"""Figures for print: SVG, PDF and PNG of any picture, in millimeters and points; archives of a run; pictures in notebooks.

Pure functions from what is drawn to a sheet of shapes (`plotly_chart`, `atlas`, `line_plot`, `beam_tree`, `token_strips`,
`candidates`, `network_map`), and from a sheet to a file (`svg`, `writers`). docs/figures.md describes them.
"""
