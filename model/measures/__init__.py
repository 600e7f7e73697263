"""Measures of heads: what each is, over which rows, and its number in one run.

`catalogue` names, defines and computes them, `maps` is what they need of a site besides its weights, `rows` has the numbers of
single rows and of two rows, `of_run` those of the heads of a run; `words` and `word_alignment` are about alignments of words that
somebody typed. Every page, survey, claim and command reads these. Numpy alone.
"""
