"""HTTP protocol between client and engine server: versions, headers, the endpoints of the core and of all features. No torch."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from model.engine.endpoints import ENDPOINTS as CORE
from model.feature import features
from model.requests.endpoints import VERSION, Endpoint
from model.requests.questions import Question
from model.trace.types import SCHEMA

WIRE_VERSION = f"{VERSION}.{SCHEMA}"
"""Versions of protocol and trace schema, on which client and server must agree; the header `headlight-speaks` of every reply.
Whatever changes a body raises VERSION."""

WIRE_VERSION_HEADER, SESSION_HEADER = "headlight-speaks", "x-session-id"
"""Headers with the version that an answer is written in, and with the session of a question."""

ENDPOINTS: Mapping[type[Question[Any]], Endpoint] = {
    endpoint.question: endpoint for endpoint in chain(CORE, *(feature.endpoints for feature in features()))
}
"""Endpoints by the class of their questions; other questions are not asked over HTTP. Uploads go to POST /v1/receive?name=NAME,
which replies with a name."""

RECEIVE = f"/v{VERSION}/receive"
