"""What this machine's Hub cache holds. Nothing is downloaded for it, and no network is loaded."""

import difflib
from dataclasses import dataclass, replace
from pathlib import Path

from model.checkpoints.hub.names import COMMIT, HubName, mode
from model.checkpoints.hub.plans import BYTES_OF, GB, RUNS_IN, Shape, needed_memory, shape_of
from model.errors import CannotRun, CheckpointError, FetchFailed, HubOff, NoMemoryFor, NotFetched, UnknownModel, phrase
from model.huggingface import folder
from model.huggingface.folder import CACHED, SNAPSHOTS
from model.huggingface.offline import cache_folder
from model.sharing.system_memory import machine_bytes

SHORTEST_COMMIT = 7
"""Fewest digits by which a commit of the cache is named."""

MAIN = "main"
"""The branch that is meant where none is named."""

MOST_NEAR = 3
"""Most names that are offered where one was not found, of each of two ways to compare."""


@dataclass(frozen=True)
class CachedModel:
    """A model in the cache that can run here.

    Attributes:
        name: the model with its commit.
        path: its folder.
        bytes: size of its weight files.
        shape: layers, heads, number type.
        refs: branches and tags that name this commit.
    """

    name: HubName
    path: Path
    bytes: int
    shape: Shape
    refs: tuple[str, ...] = ()


def root() -> Path:
    """The folder of the cache: HF_HUB_CACHE, or `hub` in HF_HOME; it may be missing."""
    return cache_folder()


def name_of(path: Path) -> HubName | None:
    """The model and the commit of a folder of a cache; None: it is no such folder."""
    model_folder = path.parent.parent.name
    if path.parent.name != SNAPSHOTS or not model_folder.startswith(CACHED) or not COMMIT.fullmatch(path.name):
        return None
    return HubName(model_folder.removeprefix(CACHED).replace("--", "/"), path.name)


def repos() -> list[str]:
    """Names of all models of which the cache holds anything, sorted."""
    folders = root().glob(f"{CACHED}*/{SNAPSHOTS}") if root().is_dir() else ()
    return sorted(path.parent.name.removeprefix(CACHED).replace("--", "/") for path in folders)


def near(repo: str) -> str:
    """The names of the cache that are most like one, as a list; a dash: there are none."""
    # compared with and without the organization: both a wrong one and a missing one are common
    names = {name.lower(): name for name in repos()}
    names |= {name.lower().rpartition("/")[2]: name for name in repos()}
    likely = difflib.get_close_matches(repo.lower(), names, MOST_NEAR)
    likely += difflib.get_close_matches(repo.lower().rpartition("/")[2], names, MOST_NEAR)
    return ", ".join(dict.fromkeys(names[match] for match in likely)) or "–"


def find(name: HubName) -> Path | None:
    """The folder of a model, whole and ready to be opened; None: the cache does not hold all of it.

    An old name without an organization is that of the only model called so.

    Raises:
        UnknownModel: several models are called so.
    """
    if "/" not in name.repo and name.repo not in repos():
        same = [repo for repo in repos() if repo.lower().rpartition("/")[2] == name.repo.lower()]
        if len(same) > 1:
            raise UnknownModel(asked=name.repo, there=", ".join(same))
        name = replace(name, repo=same[0] if same else name.repo)
    model_folder = root() / f"{CACHED}{name.repo.replace('/', '--')}"
    for commit in _commits(model_folder, name.revision or MAIN):
        path = model_folder / SNAPSHOTS / commit
        if is_whole(path):
            return path
    return None


def _commits(model_folder: Path, revision: str) -> list[str]:
    """The commits of the cache that a revision can mean: that of a branch or tag, or the only one that begins so."""
    ref = model_folder / "refs" / revision
    if ref.is_file():
        return [ref.read_text(encoding="ascii", errors="replace").strip()]
    snapshots = model_folder / SNAPSHOTS
    commits = [path.name for path in snapshots.iterdir()] if snapshots.is_dir() else []
    matches = [commit for commit in commits if len(revision) >= SHORTEST_COMMIT and commit.startswith(revision)]
    return matches if len(matches) == 1 else []


def locate(name: HubName) -> Path:
    """The folder of a model in the cache.

    Raises:
        HubOff: the owner does not allow names of the Hub.
        NotFetched: the cache does not hold it.
    """
    if mode() == "off":
        raise HubOff(model=name.typed)
    if (path := find(name)) is None:
        raise NotFetched(model=name.typed, near=near(name.repo))
    return path


def pinned(name: str, path: Path) -> str:
    """The name of a model that was found at `path`: of a folder of the cache with its commit, of any other place as it was."""
    return str(name_of(path) or name)


def is_whole(path: Path) -> bool:
    """Whether a folder has its settings and all of its weight files."""
    try:
        return (path / folder.CONFIG).is_file() and bool(folder.weight_files(path))
    except CheckpointError:
        return False


def check_runs(title: str, opened: folder.Folder) -> None:
    """Whether a folder's architecture is one that runs here.

    Raises:
        CannotRun: the transformers library does not know it.
    """
    if opened.family is None:
        from model.huggingface import library  # takes seconds: only for what has no row

        if not library.knows(opened.model_type):
            kind, version = opened.model_type, library.VERSION
            reason = phrase(
                "its architecture, {kind}, is not one of the transformers library {version}", kind=kind, version=version
            )
            raise CannotRun(model=title, reason=reason)


def shape(opened: folder.Folder) -> Shape:
    """Layers, heads and number type of a folder, and whether its network runs in float32 anyway.

    Raises:
        CheckpointError: its settings make no sense.
    """
    declared = shape_of(opened.config)
    if opened.family is not None or BYTES_OF.get(declared.dtype, RUNS_IN) >= RUNS_IN:
        return declared
    from model.huggingface import checks, library  # takes seconds: only for what has no row

    with checks.library_errors(opened):
        return replace(declared, in_float32=not library.may_change(opened.model_type, opened.safe_config))


def models() -> list[CachedModel]:
    """The models of the cache that can run here, sorted by name; of each commit its own."""
    if mode() == "off" or not root().is_dir():
        return []
    from huggingface_hub import scan_cache_dir

    entries = [
        _entry(HubName(repo.repo_id, commit.commit_hash), commit.snapshot_path, tuple(sorted(commit.refs)))
        for repo in scan_cache_dir(root()).repos
        for commit in (repo.revisions if repo.repo_type == "model" else ())
    ]
    runnable = [entry for entry in entries if entry is not None]
    return sorted(runnable, key=lambda entry: (entry.name.repo.lower(), not entry.refs, entry.name.revision))


def _entry(name: HubName, path: Path, refs: tuple[str, ...]) -> CachedModel | None:
    """A model of the cache; None: it is not whole, or does not run here."""
    try:
        opened = folder.open_folder(path)
        check_runs(name.repo, opened)
        check_memory(opened)
        return CachedModel(name, path, weight_bytes(path), shape(opened), refs)
    except (CheckpointError, FetchFailed):
        return None


def check_memory(opened: folder.Folder) -> None:
    """Whether the weights of a folder fit this machine's memory.

    Raises:
        NoMemoryFor: they do not.
    """
    needed, available = needed_memory(weight_bytes(opened.path), shape(opened)), machine_bytes()
    if needed > available:
        raise NoMemoryFor(model=folder.name_of(opened.path), needed=needed / GB, there=available / GB)


def weight_bytes(path: Path) -> int:
    """Size of a folder's weight files."""
    return sum(file.stat().st_size for file in folder.weight_files(path))
