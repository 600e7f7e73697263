"""Figures for print: SVG, PDF and PNG of any picture, in millimeters and points. Pure functions from what is drawn to a sheet of
shapes (`charts`, `atlas`, `lines`, `tree`, `strips`, `candidates`, `network`, `film`), and from a sheet to a file (`svg`, `files`).
docs/figures.md describes them.
"""
