"""One visitor: the engine that does not block, calls in the background, the stored view, access, and the answer to every request.

May import: model.engine, model.errors, model.sharing, model.requests, model.trace, viz.canvas, viz.feature, viz.i18n, viz.labels,
viz.url.
"""
