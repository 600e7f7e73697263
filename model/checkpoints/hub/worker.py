"""The process that asks a Hub: `python -m model.checkpoints.hub.worker` reads one order, a JSON line, and answers with JSON lines.

It inherits HF_ENDPOINT, HF_HOME, HF_TOKEN and the login of the library's own command line; a token leaves it in requests alone. An
order {"plan": …} is answered with what the Hub says of a model, {"fetch": …} with the bytes so far and then nothing more. An error
is a line, too.

What is downloaded stays beside its place, under the hash that the Hub announced, until it is whole and has that hash: a download
that was broken or stopped goes on there.
"""

import errno
import hashlib
import json
import re
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import httpx2
from filelock import FileLock
from huggingface_hub import HfApi, constants, get_session, hf_hub_download, hf_hub_url
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import get_hf_file_metadata, http_get, repo_folder_name
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # type: ignore[attr-defined]
from tqdm import tqdm

from model.errors import (
    FetchFailed,
    GatedModel,
    HeadlightError,
    HubAway,
    HubRefused,
    NoSuchHubModel,
    NoSuchRevision,
    Words,
    phrase,
)

CONFIG = "config.json"
LARGEST_JSON = 2**26
"""Most bytes of an answer of the Hub that is read as JSON."""

PIECE = 2**16
"""Bytes that are written at once: at most so many are lost where a download ends."""

HASH = re.compile(r"[0-9a-zA-Z]{1,128}")
"""What names a content or a commit: the Hub's answers become names of files and folders, so nothing else may stand in them."""

HASHES = ("etag", "x-linked-etag", "x-repo-commit")
"""Headers of an answer that hold one."""

TELLS_S = 0.2
"""Seconds between two lines about progress."""


def tell(**line: Any) -> None:
    """Writes one line of the answer."""
    print(json.dumps(line), flush=True)


def plan(repo: str, revision: str, texts: list[str], weights: list[str]) -> dict[str, Any]:
    """What the Hub says of a model: its name and commit, license, needed files, configuration, and parameters by number type.

    Args:
        texts: names of files with settings or a vocabulary.
        weights: names of files of weights, or of their index: the first that exists is taken.
    """
    info = HfApi().model_info(repo, revision=revision or None, files_metadata=True)
    repo, commit = info.id, _hash(repo, str(info.sha))
    there = {each.rfilename: each for each in info.siblings or () if re.fullmatch(r"\w[\w.-]*", each.rfilename)}
    blobs, files, missing = _store(repo) / "blobs", list[dict[str, Any]](), 0
    for name in [each for each in texts if each in there] + _weights(repo, commit, weights, there):
        lfs, size, blob = there[name].lfs, there[name].size or 0, there[name].blob_id or ""
        files.append({"name": name, "bytes": size, "sha256": lfs.sha256 if lfs else "", "blob": blob})
        place = blobs / _hash(repo, lfs.sha256 if lfs else blob)
        missing += 0 if place.is_file() else size - _size(_partial(place))
    return {
        "repo": repo,
        "commit": commit,
        "license": next((tag.removeprefix("license:") for tag in info.tags or () if tag.startswith("license:")), ""),
        "files": files,
        "missing": missing,
        "config": _json(repo, CONFIG, commit) if CONFIG in there else None,
        "found": sorted(there),
        "parameters": dict(info.safetensors.parameters) if info.safetensors else {},
        "folder": constants.HF_HUB_CACHE,
    }


def _hash(repo: str, text: str) -> str:
    """The same text, if it can be a hash.

    Raises:
        FetchFailed: it is none.
    """
    if not HASH.fullmatch(text):
        raise FetchFailed(
            model=repo, reason=phrase("the Hub names a file or a commit by “{hash}”, which is no hash", hash=text[:40])
        )
    return text


def guard(repo: str) -> None:
    """Checks every request and answer of the library: a Hub may be hostile, or be reached through somebody who is."""
    hub = urlsplit(constants.ENDPOINT).hostname

    def refuse_inner_hosts(request: httpx2.Request) -> None:
        """A Hub stores files elsewhere and redirects to them. On this machine's own network others listen, who trust it."""
        if request.url.host != hub and not _is_public(request.url.host):
            reason = phrase("the Hub redirects to {host}, which is no public address", host=request.url.host)
            raise FetchFailed(model=repo, reason=reason)

    def check_answer(response: httpx2.Response) -> None:
        if response.request.url.path.startswith("/api/"):
            response.stream = _Bounded(response.stream, repo)
        for name in HASHES:
            if text := response.headers.get(name):
                _hash(repo, text.removeprefix("W/").strip('"'))

    session = get_session()
    hooks = session.event_hooks
    session.event_hooks = {
        "request": [*hooks["request"], refuse_inner_hosts],
        "response": [*hooks["response"], check_answer],
    }


class _Bounded(httpx2.SyncByteStream):
    """An answer that is read into memory, which ends after LARGEST_JSON bytes.

    Args:
        content: the answer.
        repo: names the model in the error.
    """

    def __init__(self, content: Any, repo: str) -> None:
        self._content, self._repo = content, repo

    def __iter__(self) -> Iterator[bytes]:
        """The pieces of the answer.

        Raises:
            FetchFailed: it is longer than allowed.
        """
        count = 0
        for piece in self._content:
            count += len(piece)
            if count > LARGEST_JSON:
                reason = phrase("the Hub’s answer about it is larger than {most:,} bytes", most=LARGEST_JSON)
                raise FetchFailed(model=self._repo, reason=reason)
            yield piece

    def close(self) -> None:
        """Ends the connection."""
        self._content.close()


def _is_public(host: str) -> bool:
    """Whether a host is outside of this machine's network; True where only a proxy knows it."""
    try:
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return True
    return all(ip_address(address.partition("%")[0]).is_global for address in addresses)


def _store(repo: str) -> Path:
    """The folder of a model in the cache."""
    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type="model")


def _weights(repo: str, commit: str, wanted: list[str], there: Mapping[str, Any]) -> list[str]:
    """The files of weights that are needed, an index with what it lists; empty: there are none."""
    name = next((each for each in wanted if each in there), None)
    if name is None or not name.endswith(".json"):
        return [] if name is None else [name]
    listed = _json(repo, name, commit).get("weight_map")
    return [name, *sorted(set(map(str, listed.values())) & there.keys())] if isinstance(listed, dict) else [name]


def _json(repo: str, name: str, commit: str) -> dict[str, Any]:
    """A JSON file of the Hub, in memory."""
    with get_session().stream(
        "GET", hf_hub_url(repo, name, revision=commit), headers=build_hf_headers(), follow_redirects=True
    ) as response:
        hf_raise_for_status(response)
        read = bytearray()
        for piece in response.iter_bytes():
            read += piece
            if len(read) > LARGEST_JSON:
                raise FetchFailed(
                    model=repo, reason=phrase("its {name} is larger than {most:,} bytes", name=name, most=LARGEST_JSON)
                )
    try:
        found = json.loads(read)
        assert isinstance(found, dict)
    except (ValueError, RecursionError, AssertionError) as error:
        raise FetchFailed(model=repo, reason=phrase("its {name} holds no JSON object", name=name)) from error
    return found


def fetch(repo: str, commit: str, revision: str, files: list[dict[str, Any]]) -> None:
    """Brings the files of a commit into the cache, and tells how many bytes are there."""
    store = _store(repo)
    bar = _Told(sum(file["bytes"] for file in files))
    for file in files:
        _fetch_file(repo, commit, file, store, bar)
    ref = store / "refs" / (revision or constants.DEFAULT_REVISION)
    if revision != commit:
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.write_text(commit, encoding="ascii")
    tell(bytes=bar.of, of=bar.of)


def _fetch_file(repo: str, commit: str, file: Mapping[str, Any], store: Path, bar: "_Told") -> None:
    """One file: downloaded beside its place, compared with its size and hash, and given to the library, which links it."""
    name, size = str(file["name"]), int(file["bytes"])
    url, headers = hf_hub_url(repo, name, revision=commit), build_hf_headers()
    told = get_hf_file_metadata(url, headers=headers, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    if told.etag is None or (told.size is not None and told.size != size):
        raise _other_length(repo, name, told.size or 0, size)
    place = store / "blobs" / told.etag
    place.parent.mkdir(parents=True, exist_ok=True)
    part = _partial(place)
    with FileLock(part.with_suffix(".lock")):
        if not place.exists():
            if urlsplit(told.location).netloc not in ("", urlsplit(url).netloc):
                headers.pop("authorization", None)  # it is not for another host, which stores the content
            bar.begin(_size(part))
            with part.open("ab", buffering=0) as target:
                try:
                    _go_on(told.location, target, headers, size, bar)
                except OSError as error:
                    if error.errno is not None:
                        raise
                    found = _size(part)
                    if found > size:
                        part.unlink()
                    raise _other_length(repo, name, found, size) from error
            if not _is(part, file):
                part.unlink()
                raise _other_content(repo, name)
            part.replace(place)
    bar.end(size)
    linked = ""
    with suppress(httpx2.RemoteProtocolError):  # the library reuses a connection that the other side has closed
        linked = hf_hub_download(repo, name, revision=commit)
    linked = linked or hf_hub_download(repo, name, revision=commit)
    if not _is(Path(linked), file):  # the library asks the Hub again, which may answer with another file this time
        Path(linked).unlink()
        raise _other_content(repo, name)


def _go_on(url: str, target: BinaryIO, headers: Mapping[str, str], size: int, bar: "_Told") -> None:
    """Downloads what a file lacks. The library takes up a lost connection by itself, but not one that the other side has reset."""
    while True:
        begun = target.tell()
        try:
            http_get(url, target, resume_size=begun, headers=dict(headers), expected_size=size, tqdm_class=bar.piece())
            return
        except httpx2.ReadError:
            if target.tell() == begun:
                raise


def _partial(place: Path) -> Path:
    return place.with_name(f"{place.name}.part")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _is(path: Path, file: Mapping[str, Any]) -> bool:
    """Whether a file has the content whose hash was announced."""
    with path.open("rb") as content:
        if file["sha256"]:
            return hashlib.file_digest(content, "sha256").hexdigest() == str(file["sha256"])
        if not file["blob"]:
            return True
        begun = hashlib.sha1(f"blob {file['bytes']}\0".encode(), usedforsecurity=False)
        return hashlib.file_digest(content, lambda: begun).hexdigest() == str(file["blob"])


def _other_content(repo: str, name: str) -> FetchFailed:
    return FetchFailed(model=repo, reason=phrase("{name} does not have the hash that the Hub announces", name=name))


def _other_length(repo: str, name: str, found: int, announced: int) -> FetchFailed:
    gaps = {"name": name, "found": found, "announced": announced}
    longer = phrase("{name} is longer than announced ({announced:,} bytes): {found:,} bytes were received", **gaps)
    shorter = phrase("{name} is shorter than announced ({announced:,} bytes): {found:,} bytes were received", **gaps)
    return FetchFailed(model=repo, reason=longer if found > announced else shorter)


class _Told:
    """Counts the bytes of all files and tells of them now and then.

    Args:
        of: bytes of all files.
    """

    def __init__(self, of: int) -> None:
        self.of, self._done, self._now, self._told = of, 0, 0, 0.0

    def begin(self, there: int) -> None:
        """Begins a file, of which a part is there."""
        self._now = there
        self._tell()

    def end(self, size: int) -> None:
        """Ends a file."""
        self._done, self._now = self._done + size, 0
        self._tell()

    def _tell(self) -> None:
        if time.monotonic() - self._told >= TELLS_S:
            self._told = time.monotonic()
            tell(bytes=self._done + self._now, of=self.of)

    def piece(self) -> type[tqdm]:
        """The class of a progress bar that counts here and draws nothing."""
        count = self

        class Bar(tqdm):  # type: ignore[misc]  # untyped library
            def __init__(self, *given: Any, **options: Any) -> None:
                super().__init__(*given, **{**options, "disable": True})

            def update(self, n: float | None = 1) -> None:
                count._now += int(n or 0)
                count._tell()

        return Bar


def said(error: Exception, repo: str, revision: str) -> HeadlightError:
    """The sentence about what went wrong. Nothing of the request is in it but the host."""
    host, status = urlsplit(constants.ENDPOINT).hostname or "", getattr(getattr(error, "response", None), "status_code", 0)
    match error:
        case HeadlightError():
            return error
        case GatedRepoError():
            port = urlsplit(constants.ENDPOINT)
            return GatedModel(model=repo, address=f"{port.scheme}://{host}{f':{port.port}' if port.port else ''}/{repo}")
        case RevisionNotFoundError():
            return NoSuchRevision(model=repo, revision=revision)
        case RepositoryNotFoundError() | HFValidationError():
            return NoSuchHubModel(model=repo, near="")
        case RemoteEntryNotFoundError():
            return FetchFailed(model=repo, reason=phrase("a file that the Hub lists is not there"))
        case HfHubHTTPError():
            return HubRefused(host=host, model=repo, status=status, advice=_advice(status))
        case OfflineModeIsEnabled():
            return FetchFailed(model=repo, reason=phrase("HF_HUB_OFFLINE is set, so the network may not be used"))
        case httpx2.TransportError():
            return HubAway(host=host, model=repo)
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            full = error.strerror or ""
            reason = phrase("the disk is full ({error}); free some space, and the download continues where it stopped", error=full)
            return FetchFailed(model=repo, reason=reason)
        case OSError():
            return FetchFailed(
                model=repo, reason=phrase("{folder}: {error}", folder=constants.HF_HUB_CACHE, error=error.strerror or "")
            )
    return FetchFailed(model=repo, reason=type(error).__name__)


def _advice(status: int) -> Words:
    if status == 401:
        return phrase("it rejects the login of this machine; log in again with hf auth login, or correct HF_TOKEN")
    if status == 403:
        return phrase("the login of this machine may not read this model; use one that may, or choose another model")
    if status == 429:
        return phrase("it received too many requests; try again in a few minutes, or log in with hf auth login")
    if status >= 500:
        return phrase("it has an internal error; try again later, and the download continues where it stopped")
    return phrase("check the name, or try again later")


def main() -> None:
    """Does what the order on standard input says."""
    constants.DOWNLOAD_CHUNK_SIZE = PIECE
    order = json.loads(sys.stdin.readline())
    asked = order.get("plan") or order["fetch"]
    guard(asked["repo"])
    try:
        if "plan" in order:
            tell(plan=plan(**asked))
        else:
            fetch(**asked)
            tell(done=True)
    except Exception as error:
        tell(error=said(error, asked["repo"], asked["revision"]).to_json())


if __name__ == "__main__":
    main()
