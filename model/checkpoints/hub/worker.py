"""The process that asks a Hub: `python -m model.checkpoints.hub.worker` reads one order, a JSON line, and answers with JSON lines.

It inherits HF_ENDPOINT, HF_HOME, HF_TOKEN and the login of the library's own command line; a token leaves it in requests alone. An
order {"plan": …} is answered with what the Hub says of a model, {"fetch": …} with the bytes so far and then nothing more. An error
is a line, too.

What is downloaded stays beside its place, under the hash that the Hub announced, until it is whole and has that hash: a download
that was broken or stopped goes on there. (The library's own downloads begin anew: their unfinished files have random names.)
"""

import errno
import hashlib
import json
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import httpx2
from filelock import FileLock
from huggingface_hub import HfApi, constants, get_session, hf_hub_url
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, http_stream_backoff  # type: ignore[attr-defined]

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

HASH = re.compile(r"[0-9a-zA-Z]{1,128}")
"""What names a content or a commit: the Hub's answers become names of files and folders, so nothing else may stand in them."""

SECONDS_BETWEEN_REPORTS = 0.2
"""Least time between two lines about progress."""


def send(**line: Any) -> None:
    """Writes one line of the answer."""
    print(json.dumps(line), flush=True)


def plan(repo: str, revision: str, texts: list[str], weights: list[str]) -> dict[str, Any]:
    """What the Hub says of a model: its name and commit, license, needed files, configuration, and parameters by number type.

    Args:
        repo, revision: the model; an empty revision is the main branch.
        texts: names of files with settings or a vocabulary.
        weights: names of files of weights, or of their index: the first that exists is taken.

    Raises:
        FetchFailed: the Hub's answer cannot be.
    """
    info = HfApi().model_info(repo, revision=revision or None, files_metadata=True)
    repo, commit = info.id, _checked_hash(repo, str(info.sha))
    # only files beside each other: no name leads to another folder
    listed = {entry.rfilename: entry for entry in info.siblings or () if re.fullmatch(r"\w[\w.-]*", entry.rfilename)}
    files, missing = list[dict[str, Any]](), 0
    for name in [text for text in texts if text in listed] + _weight_files(repo, commit, weights, listed):
        lfs, size, git_hash = listed[name].lfs, listed[name].size or 0, listed[name].blob_id or ""
        files.append({"name": name, "bytes": size, "sha256": lfs.sha256 if lfs else "", "blob": git_hash})
        blob = _blob(repo, files[-1])
        missing += 0 if blob.is_file() else size - _size(_part(blob))
    return {
        "repo": repo,
        "commit": commit,
        "license": next((tag.removeprefix("license:") for tag in info.tags or () if tag.startswith("license:")), ""),
        "files": files,
        "missing": missing,
        "config": _read_json(repo, CONFIG, commit) if CONFIG in listed else None,
        "listed": sorted(listed),
        "parameters": dict(info.safetensors.parameters) if info.safetensors else {},
        "folder": constants.HF_HUB_CACHE,
    }


def _checked_hash(repo: str, text: str) -> str:
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
    """Checks every request and answer of the library: a Hub may be hostile, or be reached through somebody who is.

    Raises:
        FetchFailed: later, from the request or answer that is refused.
    """
    hub = urlsplit(constants.ENDPOINT).hostname

    def refuse_inner_hosts(request: httpx2.Request) -> None:
        """A Hub stores files elsewhere and redirects to them. On this machine's own network others listen, who trust it."""
        if request.url.host != hub and not _is_public(request.url.host):
            reason = phrase("the Hub redirects to {host}, which is no public address", host=request.url.host)
            raise FetchFailed(model=repo, reason=reason)

    def bound_answer(response: httpx2.Response) -> None:
        if response.request.url.path.startswith("/api/"):
            response.stream = _Bounded(response.stream, repo)

    session = get_session()
    hooks = session.event_hooks
    session.event_hooks = {
        "request": [*hooks["request"], refuse_inner_hosts],
        "response": [*hooks["response"], bound_answer],
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
        # a name may have several addresses, and the connection may use any of them
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return True
    return all(ip_address(address.partition("%")[0]).is_global for address in addresses)


def _weight_files(repo: str, commit: str, wanted: list[str], listed: Collection[str]) -> list[str]:
    """The files of weights that are needed, an index with what it lists; empty: there are none."""
    name = next((name for name in wanted if name in listed), None)
    if name is None or not name.endswith(".json"):
        return [] if name is None else [name]
    shards = _read_json(repo, name, commit).get("weight_map")
    return [name, *sorted(set(map(str, shards.values())) & set(listed))] if isinstance(shards, dict) else [name]


def _read_json(repo: str, name: str, commit: str) -> dict[str, Any]:
    """A JSON file of the Hub, in memory."""
    content = bytearray()
    url = hf_hub_url(repo, name, revision=commit)
    with get_session().stream("GET", url, headers=build_hf_headers(), follow_redirects=True) as response:
        hf_raise_for_status(response)
        for piece in response.iter_bytes():
            content += piece
            if len(content) > LARGEST_JSON:
                reason = phrase("its {name} is larger than {most:,} bytes", name=name, most=LARGEST_JSON)
                raise FetchFailed(model=repo, reason=reason)
    try:
        value = json.loads(content)
        assert isinstance(value, dict)
    except (ValueError, RecursionError, AssertionError) as error:
        raise FetchFailed(model=repo, reason=phrase("its {name} holds no JSON object", name=name)) from error
    return value


def fetch(repo: str, commit: str, revision: str, files: list[dict[str, Any]]) -> None:
    """Brings the files of a commit into the cache, and sends how many bytes are there.

    Raises:
        FetchFailed: a file has another length or hash than its plan says.
    """
    progress = _Progress(sum(file["bytes"] for file in files))
    for file in files:
        _fetch_file(repo, commit, file, progress)
        progress.finish(file["bytes"])
    # as the library does, so that its other users find the commit by the branch or tag
    ref = _model_folder(repo) / "refs" / (revision or constants.DEFAULT_REVISION)
    if revision != commit:
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.write_text(commit, encoding="ascii")
    send(bytes=progress.total, of=progress.total)


def _fetch_file(repo: str, commit: str, file: Mapping[str, Any], progress: "_Progress") -> None:
    """One file: downloaded beside its place, compared with its size and hash, put in its place, and linked from its commit."""
    blob, link = _blob(repo, file), _model_folder(repo) / "snapshots" / commit / str(file["name"])
    part = _part(blob)
    for path in (blob, link):
        path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(part.with_suffix(".lock")):
        kept = next((path for path in (link, blob) if path.exists()), None)
        if kept is None:
            _download(hf_hub_url(repo, str(file["name"]), revision=commit), part, int(file["bytes"]), progress)
            if (received := _size(part)) != file["bytes"]:
                if received > file["bytes"]:
                    part.unlink()
                raise _other_length(repo, str(file["name"]), received, int(file["bytes"]))
        content = (kept or part).resolve()
        if not _has_hash(content, file):  # what another program left there is compared, too
            content.unlink()
            raise FetchFailed(
                model=repo, reason=phrase("{name} does not have the hash that the Hub announces", name=str(file["name"]))
            )
        if kept is None:
            part.replace(blob)
        if not link.exists():
            _link(blob, link)


def _link(blob: Path, link: Path) -> None:
    """Names a content in the folder of its commit, as the library does: by a link, or by moving it where there are no links."""
    link.unlink(missing_ok=True)  # one that leads nowhere
    try:
        link.symlink_to(os.path.relpath(blob, link.parent))
    except OSError:
        shutil.move(blob, link)


def _download(url: str, part: Path, size: int, progress: "_Progress") -> None:
    """Appends what a file lacks. A lost connection is taken up again at once, as long as each brings bytes."""
    with part.open("ab", buffering=0) as target:
        while (begun := target.tell()) < size:
            try:
                _append(url, target, size, progress)
                return
            except httpx2.TransportError:
                if target.tell() == begun:
                    raise


def _append(url: str, target: BinaryIO, size: int, progress: "_Progress") -> None:
    """Appends to a file what one answer brings; it ends where it brings more than announced."""
    begun = target.tell()
    headers = build_hf_headers() | {"Accept-Encoding": "identity"} | ({"Range": f"bytes={begun}-"} if begun else {})
    patience: dict[str, Any] = {"retry_on_exceptions": (), "retry_on_status_codes": (408, 429)}  # as for the library's downloads
    # the token goes along: httpx2 leaves it out where it is redirected to another host, which stores the content
    with http_stream_backoff(
        "GET", url, headers=headers, timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT, follow_redirects=True, **patience
    ) as response:
        hf_raise_for_status(response)
        if begun and response.status_code != httpx2.codes.PARTIAL_CONTENT:  # the whole file, although a part was asked for
            target.seek(0)
            target.truncate()
        for piece in response.iter_bytes():
            target.write(piece)
            progress.report(target.tell())
            if target.tell() > size:
                return


def _model_folder(repo: str) -> Path:
    """The folder of a model in the cache."""
    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type="model")


def _blob(repo: str, file: Mapping[str, Any]) -> Path:
    """Where the content of a file stands in the cache: under its hash."""
    return _model_folder(repo) / "blobs" / _checked_hash(repo, str(file["sha256"] or file["blob"]))


def _part(blob: Path) -> Path:
    """Where a content stands that is not whole yet."""
    return blob.with_name(f"{blob.name}.part")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _has_hash(path: Path, file: Mapping[str, Any]) -> bool:
    """Whether a file has the content whose hash was announced."""
    with path.open("rb") as content:
        if file["sha256"]:
            return hashlib.file_digest(content, "sha256").hexdigest() == str(file["sha256"])
        as_in_git = hashlib.sha1(f"blob {file['bytes']}\0".encode(), usedforsecurity=False)
        return hashlib.file_digest(content, lambda: as_in_git).hexdigest() == str(file["blob"])


def _other_length(repo: str, name: str, received: int, announced: int) -> FetchFailed:
    values = {"name": name, "found": received, "announced": announced}
    longer = phrase("{name} is longer than announced ({announced:,} bytes): {found:,} bytes were received", **values)
    shorter = phrase("{name} is shorter than announced ({announced:,} bytes): {found:,} bytes were received", **values)
    return FetchFailed(model=repo, reason=longer if received > announced else shorter)


class _Progress:
    """Sends now and then how many bytes of all files are there.

    Args:
        total: bytes of all files.
    """

    def __init__(self, total: int) -> None:
        self.total, self._finished, self._sent_at = total, 0, 0.0

    def report(self, received: int) -> None:
        """Hears the bytes that are there of the present file."""
        if time.monotonic() - self._sent_at >= SECONDS_BETWEEN_REPORTS:
            self._sent_at = time.monotonic()
            send(bytes=self._finished + received, of=self.total)

    def finish(self, size: int) -> None:
        """Ends a file."""
        self._finished += size
        self.report(0)


def sentence_about(error: Exception, repo: str, revision: str) -> HeadlightError:
    """The sentence about what went wrong. Nothing of the request is in it but the host."""
    host, status = urlsplit(constants.ENDPOINT).hostname or "", getattr(getattr(error, "response", None), "status_code", 0)
    match error:
        case HeadlightError():
            return error
        case GatedRepoError():
            hub = urlsplit(constants.ENDPOINT)  # without a name and a password that may stand in it
            return GatedModel(model=repo, address=f"{hub.scheme}://{host}{f':{hub.port}' if hub.port else ''}/{repo}")
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
    order = json.loads(sys.stdin.readline())
    arguments = order.get("plan") or order["fetch"]
    guard(arguments["repo"])
    try:
        if "plan" in order:
            send(plan=plan(**arguments))
        else:
            fetch(**arguments)
            send(done=True)
    except Exception as error:
        send(error=sentence_about(error, arguments["repo"], arguments["revision"]).to_json())


if __name__ == "__main__":
    main()
