"""A Hub for tests, on loopback: it speaks as much of the API as a download needs, and fails in each way that a Hub can."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.hosts import listening

COMMIT = "607a30d783dfa663caf39e06633721c8d4cfcd7e"
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz0123456789"
LFS = (".safetensors", ".bin")


@dataclass
class Repo:
    """A model of the Hub.

    Attributes:
        files: contents by name.
        refs: branches and tags, and the commits that they name.
        gated: whether only TOKEN may read it.
        announced: other contents, by name: what is announced is their size and hash.
        etags: the hashes that the headers of a file hold, by name, where they are no true ones.
        elsewhere: where the content of a file is, by name.
        second: other contents, by name, from the second time on that they are asked for.
    """

    files: dict[str, bytes]
    refs: dict[str, str] = field(default_factory=lambda: {"main": COMMIT})
    gated: bool = False
    announced: dict[str, bytes] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)
    second: dict[str, bytes] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    parameters: dict[str, int] = field(default_factory=dict)
    huge: dict[str, int] = field(default_factory=dict)


@dataclass
class Hub:
    """Models by name, old names of some, and what the server does.

    Attributes:
        repos: models by name.
        old: new names by old ones.
        fails: status by beginning of a path, for every request of it.
        breaks: after so many bytes of each weight file the connection is closed; 0: it is not.
        asked: what was asked: method, path, whether with a token, and the range.
    """

    repos: dict[str, Repo]
    old: dict[str, str] = field(default_factory=dict)
    fails: dict[str, int] = field(default_factory=dict)
    breaks: int = 0
    holds: bool = False
    endless: bool = False
    asked: list[tuple[str, str, bool, str]] = field(default_factory=list)
    url: str = ""

    def app(self) -> Starlette:
        """The server."""
        return Starlette(
            routes=[
                Route("/api/models/{repo:path}", self.info),
                Route("/{repo:path}/resolve/{revision}/{name}", self.file, methods=["GET", "HEAD"]),
            ]
        )

    def _refused(self, request: Request, repo: str) -> Response | None:
        given = request.headers.get("authorization", "")
        self.asked.append((request.method, request.url.path, bool(given), request.headers.get("range", "")))
        for start, status in self.fails.items():
            if request.url.path.startswith(start):
                headers = {"x-error-message": "Invalid credentials in Authorization header"} if status == 401 else {}
                return Response(status_code=status, headers=headers)
        if repo not in self.repos:
            return JSONResponse({}, 401, headers={"x-error-code": "RepoNotFound"})
        if self.repos[repo].gated and given != f"Bearer {TOKEN}":
            return JSONResponse({}, 401 if not given else 403, headers={"x-error-code": "GatedRepo"})
        return None

    async def info(self, request: Request) -> Response:
        """What a model is: files with sizes and hashes, if they are asked for."""
        if self.endless:

            async def blanks() -> AsyncIterator[bytes]:
                for _ in range(96):  # more than anybody reads; a thread that never ends would hold the tests up
                    yield b" " * 2**20

            return StreamingResponse(blanks(), media_type="application/json")
        repo, _, revision = request.path_params["repo"].partition("/revision/")
        repo, revision = self.old.get(repo, repo), revision or "main"
        if (refused := self._refused(request, repo)) is not None:
            return refused
        found = self.repos[repo]
        commit = found.refs.get(revision, revision if revision in found.refs.values() else "")
        if not commit:
            return JSONResponse({}, 404, headers={"x-error-code": "RevisionNotFound"})
        siblings = []
        for name, content in found.files.items():
            due = found.announced.get(name, content)
            size = found.huge.get(name, len(due))
            lfs = {"lfs": {"sha256": hashlib.sha256(due).hexdigest(), "size": size, "pointerSize": 134}}
            siblings.append({"rfilename": name, "size": size, "blobId": git_hash(due)} | (lfs if name.endswith(LFS) else {}))
        more = (
            {"safetensors": {"parameters": found.parameters, "total": sum(found.parameters.values())}} if found.parameters else {}
        )
        return JSONResponse({"id": repo, "sha": commit, "siblings": siblings, "tags": ["license:mit", "gpt2"], **more})

    async def file(self, request: Request) -> Response:
        """A file of a commit, or a part of it."""
        repo = self.old.get(request.path_params["repo"], request.path_params["repo"])
        if (refused := self._refused(request, repo)) is not None:
            return refused
        found, name = self.repos[repo], request.path_params["name"]
        if name not in found.files:
            return Response(status_code=404, headers={"x-error-code": "EntryNotFound"})
        found.answers[name] = found.answers.get(name, 0) + 1
        if name in found.second and found.answers[name] > 1:
            found.files[name] = found.second[name]
        content, told = found.files[name], found.announced.get(name, found.files[name])
        etag = found.etags.get(name) or (hashlib.sha256(told).hexdigest() if name.endswith(LFS) else git_hash(told))
        linked = {"x-linked-size": str(len(told)), "x-linked-etag": f'"{etag}"'} if name.endswith(LFS) else {}
        headers = {"etag": f'"{etag}"', "x-repo-commit": request.path_params["revision"], "accept-ranges": "bytes"} | linked
        if name in found.elsewhere:
            return Response(status_code=302, headers=headers | {"location": found.elsewhere[name], "content-length": "0"})
        if request.method == "HEAD":
            return Response(headers=headers | {"content-length": str(len(told))})
        first = int(request.headers.get("range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        status = 206 if "range" in request.headers else 200
        if status == 206:
            headers["content-range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"

        async def pieces() -> AsyncIterator[bytes]:
            yield content[first : first + self.breaks]
            if self.holds:
                await asyncio.sleep(3600)
            raise ConnectionResetError

        if self.breaks and name.endswith(LFS):
            headers["content-length"] = str(len(content) - first)
            return StreamingResponse(pieces(), status, headers)
        return Response(content[first:], status, headers)


def git_hash(content: bytes) -> str:
    """The name of a content in git."""
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The Hub on a free port of loopback, as long as the context lasts."""
    with listening(hub.app()) as port:
        hub.url = f"http://127.0.0.1:{port}"
        yield hub
