"""Measures of heads: what each is, over which rows, and its number in one run.

Every page, survey, claim and command reads these.
"""
