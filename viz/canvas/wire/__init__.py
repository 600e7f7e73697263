"""Transport of scenes to the browser: packed bytes, parts fetched by hash, pooled overviews, and the texts of drawings.

May import: model.sharing, model.trace, viz.descriptions, viz.labels, viz.texts.
"""
