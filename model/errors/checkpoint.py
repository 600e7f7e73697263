"""Checkpoint folders and files that cannot be used."""

from model.errors.root import HeadlightError


class CheckpointError(HeadlightError):
    """A checkpoint folder or file that cannot be used."""


class MissingFile(CheckpointError):
    """Fields: path, needed."""

    template = "{path} is missing. A checkpoint folder needs {needed}. Restore the file or choose another folder."


class DamagedFile(CheckpointError):
    """Fields: path, detail."""

    template = "{path} cannot be read ({detail}). Restore it from a backup or train the model again."


class ShapeMismatch(CheckpointError):
    """The weights are not those that the spec describes. Fields: path, detail."""

    template = "The weights in {path} do not match its spec.json ({detail}). Use files from the same training run."


class UnknownLayout(CheckpointError):
    """Names of weights that no known layout has. Fields: path, nearest, reason."""

    template = (
        "The tensor names in {path} match no known layout. The closest is {nearest}, but {reason}. Nothing was run, "
        "because the role of a tensor without a place in the layout is unknown. Choose another file, or add a layout "
        "(docs/add-a-layout.md)."
    )


class BadLayoutFile(CheckpointError):
    """A layout file that is none, or that does not fit the weights. Fields: path, detail."""

    template = "The layout {path} cannot be used: {detail}. Change it, or choose the roles of the tensors on the page Checkpoint."
    on_screen = "The layout {path} cannot be used: {detail}."


class SeveralLayouts(CheckpointError):
    """Weights that match several layouts, or several state dicts in one file. Fields: path, what, there, setting."""

    template = "There are several {what} for {path}: {there}. Choose one with --set {setting}=NAME."
    on_screen = "There are several {what} for {path}: {there}. Choose one below."


class SeveralFiles(CheckpointError):
    """A folder with several weight files and no hint which one to use. Fields: path, there."""

    template = "{path} contains several weight files ({there}). Open one of them instead of the folder."


class IncompleteWeights(CheckpointError):
    """Weights of a known layout, some missing or of wrong shapes. Fields: path, layout, detail."""

    template = (
        "{path} matches the layout {layout}, but {detail}. Save the complete state_dict of one model, or check the answers "
        "you gave."
    )


class UnsupportedModel(CheckpointError):
    """A folder of the transformers library whose network would not compute here what it was trained for. Fields: path, reason."""

    template = (
        "{path} was not run: {reason}. Do not change its config.json: with other values, the weights would run in a "
        "network that they were not trained for. A program that knows this model can show its attention, such as "
        'transformers with attn_implementation="eager" and output_attentions=True.'
    )


class NotACheckpoint(CheckpointError):
    """A file of another kind. Fields: path, found."""

    template = "{path} is {found}. Headlight opens safetensors files and files written by torch.save."


class BadTrace(CheckpointError):
    """A file that claims to be a trace and is none that can be drawn. Fields: path, detail."""

    template = (
        "{path} is not a trace that can be opened: {detail}. Nothing of it is shown. Save it again with the program that made it."
    )


class UnsafeFile(CheckpointError):
    """A pickle that calls something that weights do not need. Fields: path, called."""

    template = (
        "Opening {path} would call {called}. Nothing was called, and the file was not opened. Its author can save the "
        'weights alone: torch.save(model.state_dict(), "weights.pt")'
    )


class WholeObject(CheckpointError):
    """A pickled model instead of its weights. Fields: path, found."""

    template = (
        "{path} contains a whole Python object ({found}), which only the program that saved it can load. Nothing was "
        'executed. Load it there and save the weights alone: torch.save(model.state_dict(), "weights.pt")'
    )


class UnsoundFile(CheckpointError):
    """Contents that contradict the file's size, or that no program writes into checkpoints. Fields: path, detail."""

    template = (
        "{path} was not opened because {detail}. Files written by torch.save or safetensors are not like that. Save "
        'the weights again: torch.save(model.state_dict(), "weights.pt")'
    )


class UnreadableNumbers(CheckpointError):
    """An unsupported dtype or byte order. Fields: path, what, found, allowed."""

    template = (
        "{path} stores {what} as {found}; Headlight reads only {allowed}. Save it as float32: torch.save({{name: "
        't.float() for name, t in model.state_dict().items()}}, "weights.pt")'
    )


class NoWeights(CheckpointError):
    """The file has no state dict. Fields: path, found."""

    template = (
        "{path} contains no table of named tensors, only {found}. Save the weights as one: "
        'torch.save(model.state_dict(), "weights.pt")'
    )


class OverLimit(CheckpointError):
    """Too large or too slow to open. Fields: path, what, found, allowed."""

    template = (
        "{path} exceeds a limit of this machine: {what} is {found}, and the limit is {allowed}. Save the weights alone "
        'with torch.save(model.state_dict(), "weights.pt"), or raise the limit in model/safe_loading/limits.py.'
    )


class OpeningEnded(CheckpointError):
    """The process that looks into files ended without an answer, but not by a limit of its own. Fields: path, how."""

    template = (
        "{path} was not opened: the process that looks into files ended without an answer ({how}). It keeps within its own limits; "
        "the system may have ended it because this machine is short of memory. Try again, with fewer programs running."
    )


class CannotExport(CheckpointError):
    """A network that a native folder cannot store. Fields: path, reason."""

    template = "{path} cannot be exported as a Headlight folder: {reason}. You can still explore it as it is."
