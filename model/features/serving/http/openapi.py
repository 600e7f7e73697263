"""OpenAPI 3.1 description of the engine server, derived from the types that validate its requests."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from model.features.serving.http.progress_stream import MEDIA
from model.features.serving.http.protocol import ENDPOINTS, RECEIVE, SESSION_HEADER
from model.requests.endpoints import JSON, VERSION

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def describe() -> dict[str, Any]:
    """The description as JSON values."""
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS.values():
        body = {"required": True, "content": {JSON: {"schema": schema(endpoint.body)}}} if endpoint.body else None
        streams = (MEDIA,) if endpoint.runs else ()
        paths[endpoint.path] = {"post": _operation(endpoint.summary, body, endpoint.media, *streams)}
    file = {"required": True, "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
    taken = _operation("Takes a file; replies with the name that it has from now on.", file, JSON)
    taken["parameters"].append({"name": "name", "in": "query", "required": True, "schema": {"type": "string", "minLength": 1}})
    paths[RECEIVE] = {"post": taken}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headlight engine", "version": str(VERSION)},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def schema(kind: Any) -> dict[str, Any]:
    """JSON Schema of a type that `model.requests.validation.read` validates."""
    origin, choices = get_origin(kind), get_args(kind)
    if kind is Any:
        return {}
    if hasattr(kind, "from_text"):
        return {"type": "string"}
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        needed = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
        properties = {name: schema(hint) for name, hint in hints.items()}
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
    if origin in (Union, UnionType):
        return {"anyOf": [schema(choice) for choice in choices]}
    if origin is Literal:
        return {"enum": list(choices)}
    if origin is tuple and choices[1:] == (...,):
        return {"type": "array", "items": schema(choices[0])}
    if origin is tuple:
        return {"type": "array", "prefixItems": [schema(c) for c in choices], "minItems": len(choices), "maxItems": len(choices)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema(choices[1])}
    return {"type": _PLAIN[kind]}


def _operation(summary: str, body: dict[str, Any] | None, *medias: str) -> dict[str, Any]:
    error = {"type": "object", "properties": {"error": {"type": "string"}, "fields": {"type": "object"}}, "required": ["error"]}
    refused = {"description": "An error in words.", "content": {JSON: {"schema": error}}}
    binary = {"type": "string", "format": "binary"}
    content = {media: {"schema": {} if media == JSON else binary} for media in medias}
    replies = {"200": {"description": "The answer.", "content": content}}
    replies |= dict.fromkeys(("400", "401", "403", "404", "408", "413", "422", "429", "503", "507"), refused)
    headers = [{"name": name, "in": "header", "required": False, "schema": {"type": "string"}} for name in (SESSION_HEADER,)]
    entry: dict[str, Any] = {"summary": summary, "security": [{"token": []}, {}], "parameters": headers, "responses": replies}
    return entry | ({"requestBody": body} if body else {})
