"""An engine over HTTP: protocol, server, client, access limits, metrics and the OpenAPI description."""
