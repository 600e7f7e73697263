"""How a command asks an engine of this process: it opens what the command names, and tells how far the answer is."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from model.checkpoints import loader
from model.checkpoints.hub.cache import name_of
from model.cli.progress import progress_of, still_working
from model.engine.environment import best_device
from model.engine.local import CHECKPOINTS, LocalEngine
from model.requests.request import RunRequest
from model.requests.snapshots import at_step, without_step
from model.trace.progress import LISTENER, Progress


def name_in(engine: LocalEngine, checkpoint: str) -> str:
    """The engine's name of a model, or of one that lies at a path of this machine.

    Raises:
        CheckpointError: there is none.
    """
    if (in_cache := name_of(loader.locate(checkpoint, CHECKPOINTS))) is not None:
        return str(in_cache)  # with its commit
    name, step = (checkpoint, None) if Path(checkpoint).exists() else without_step(checkpoint)
    is_bundled = not Path(name).is_absolute() and (CHECKPOINTS / name).exists()
    if Path(name).exists() and not is_bundled:
        name = engine.open_path(loader.locate(name, CHECKPOINTS))
    return name if step is None else at_step(name, step)


@contextmanager
def engine_for(request: RunRequest, device: str, counted: str) -> Iterator[tuple[LocalEngine, RunRequest]]:
    """An engine for questions about one run, and the request of that run with the engine's name of its model.

    Args:
        request: the run, as the options of a command describe it.
        device: where to compute.
        counted: what a question measures, in the plural: "edited copies of the run".
    """
    engine = LocalEngine(CHECKPOINTS, best_device(device))
    with still_working(f"Opening {request.model}"):
        request = replace(request, model=name_in(engine, request.model))
        engine.checkpoint(request.model, request.settings, request.precision)
    with (
        progress_of(counted) as count_measured,
        ExitStack() as decoding,
        still_working(f"Running {request.model}") as stop_saying_so,
    ):
        count_tokens = decoding.enter_context(progress_of("tokens that it may write"))

        def listen(progress: Progress) -> None:  # in the thread that computes
            if progress.measured is not None:
                decoding.close()
                count_measured(progress.done, progress.most)
            elif progress.done:
                count_tokens(progress.done, progress.most)
            else:
                return  # the prompt is read: no count tells how far that is
            stop_saying_so()

        earlier_listener = LISTENER.set(listen)
        try:
            yield engine, request
        finally:
            LISTENER.reset(earlier_listener)
