"""Checkpoint folders and files that cannot be used."""

from model.errors.root import HeadlightError


class CheckpointError(HeadlightError):
    """A checkpoint folder or file that cannot be used."""


class MissingFile(CheckpointError):
    """Fields: path, needed."""

    template = "{path} is not there; a checkpoint folder needs {needed}: restore the file or choose another folder."


class DamagedFile(CheckpointError):
    """Fields: path, detail."""

    template = "{path} cannot be read ({detail}): restore it from a copy or train it anew."


class ShapeMismatch(CheckpointError):
    """The weights are not those that the spec describes. Fields: path, detail."""

    template = "{path} does not hold the weights that its spec.json describes ({detail}): use the files of one training run."


class UnknownLayout(CheckpointError):
    """Names of weights that no known layout has. Fields: path, nearest, reason."""

    template = (
        "{path} names its weights as no layout known here; the nearest is {nearest}, but {reason}. What a tensor without a place "
        "does cannot be known, so nothing is run: choose another file, or teach Headlight these names (docs/add-a-layout.md)."
    )


class SeveralLayouts(CheckpointError):
    """Weights that match several layouts, or several state dicts in one file. Fields: path, what, there, setting."""

    template = "{path} can be read as several {what}: {there}. Choose one with --set {setting}=NAME."
    on_screen = "{path} can be read as several {what}: {there}. Choose one of these below."


class SeveralFiles(CheckpointError):
    """A folder with several weight files and no hint which one to use. Fields: path, there."""

    template = "{path} holds several files of weights ({there}): open one of them instead of the folder."


class IncompleteWeights(CheckpointError):
    """Weights of a known layout, some missing or of wrong shapes. Fields: path, layout, detail."""

    template = "{path} has the layout {layout}, but {detail}: save the whole state_dict of one model, or check what was told of it."


class UnsupportedModel(CheckpointError):
    """A folder of the transformers library whose network would not compute here what it was trained for. Fields: path, reason."""

    template = (
        "{path} is not run: {reason}. Its config.json describes what was trained, and with other values another network would run "
        "on its weights: leave it as it is. A program that knows this model can show its attention, such as transformers with "
        'attn_implementation="eager" and output_attentions=True.'
    )


class NotACheckpoint(CheckpointError):
    """A file of another kind. Fields: path, found."""

    template = "{path} is {found}; what can be opened is a safetensors file or a file that torch.save wrote: choose one of these."


class UnsafeFile(CheckpointError):
    """A pickle that calls something that weights do not need. Fields: path, called."""

    template = (
        "{path} asks for {called} to be called while it is opened; nothing was called, and the file stays closed. "
        'Whoever made it can save the weights alone: torch.save(model.state_dict(), "weights.pt")'
    )


class WholeObject(CheckpointError):
    """A pickled model instead of its weights. Fields: path, found."""

    template = (
        "{path} holds a whole Python object ({found}), which only its own program could bring back; nothing was run. "
        'Load it there and save the weights alone: torch.save(model.state_dict(), "weights.pt")'
    )


class UnsoundFile(CheckpointError):
    """Contents that contradict the file's size, or that no program writes into checkpoints. Fields: path, detail."""

    template = (
        "{path} stays closed because {detail}; files that torch.save or safetensors wrote are not like that. "
        'Save the weights anew: torch.save(model.state_dict(), "weights.pt")'
    )


class UnreadableNumbers(CheckpointError):
    """An unsupported dtype or byte order. Fields: path, what, found, allowed."""

    template = (
        "{path} stores {what} as {found}, but what is read here is {allowed}. Save it as float32: "
        'torch.save({{name: t.float() for name, t in model.state_dict().items()}}, "weights.pt")'
    )


class NoWeights(CheckpointError):
    """The file has no state dict. Fields: path, found."""

    template = (
        "{path} holds no table of named tensors, only {found}. "
        'Save the weights as one: torch.save(model.state_dict(), "weights.pt")'
    )


class OverLimit(CheckpointError):
    """Too large or too slow to open. Fields: path, what, found, allowed."""

    template = (
        "{path} is too much for this machine's limits: {what} is {found}, and at most {allowed} is allowed. "
        'Save the weights alone, torch.save(model.state_dict(), "weights.pt"), or raise the limit in model/safe_loading/limits.py.'
    )


class CannotExport(CheckpointError):
    """A network that a native folder cannot store. Fields: path, reason."""

    template = "{path} cannot become a folder of Headlight's own: {reason}. It can still be looked at as it is."
