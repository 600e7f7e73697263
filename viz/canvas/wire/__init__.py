"""How a scene reaches the browser: packed bytes, parts fetched by their hash, pooled overviews, and the texts of drawings.

May import: model.trace, viz.labels, viz.texts.
"""
