"""An engine over HTTP: protocol, server, client, access limits, metrics and the OpenAPI description.

May import: model.errors, model.inspection, model.requests, model.trace.
"""
