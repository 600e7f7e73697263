"""Layouts: how training programs name their weights, as tables of roles or in files of their own; `detect` lists and tries them.

May import: model.errors, model.inspection, model.safe_loading, model.spec, model.tokenizers, model.transformer.
"""
