"""Readings: numbers derived from attention weights, each with its formula.

Everything here is a pure function of arrays that ran, in float64. Nothing that is derived here is a weight of the model.
docs/readings.md defines each reading, with its source.
"""
