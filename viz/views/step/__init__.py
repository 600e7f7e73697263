"""Stages of the computation for the page Step through: formulas, numbers, and how one weight was calculated."""
