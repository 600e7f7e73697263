"""Checkpoint folders and files that cannot be used."""

from model.errors.base import HeadlightError, Phrase, Words, message


class CheckpointError(HeadlightError):
    """A checkpoint folder or file that cannot be used."""


# --- Files that are not there, or that are no network ---
class MissingFile(CheckpointError):
    """A file that a folder needs. Fields: path, needed."""

    template = message("{path} is missing. Needed: {needed}. Restore the file or choose another folder.")


class DamagedFile(CheckpointError):
    """Fields: path, detail."""

    template = message("{path} cannot be read: {detail}. Restore it from a backup or save the model again.")


class ShapeMismatch(CheckpointError):
    """The weights are not those that the spec describes. Fields: path, detail."""

    template = message("The weights in {path} do not match its spec.json: {detail}. Use files from the same training run.")


class NothingToOpen(CheckpointError):
    """A folder without anything that is opened. Fields: path."""

    template = message(
        "{path} holds nothing that can be opened. A folder needs config.json and weights, as the transformers library saves them; "
        "or spec.json, model.safetensors and tokenizer.json of Headlight; or one file of weights. Choose another folder."
    )


class FolderAbove(CheckpointError):
    """A folder with others inside that can be opened. Fields: path, there."""

    template = message("{path} holds no network itself, but folders with one: {there}. Open one of them.")


class OnlyAnAdapter(CheckpointError):
    """What was learned beside a network, without the network. Fields: path, base."""

    template = message(
        "{path} holds an adapter, a small change to the weights of another network, and not that network: {base}. Merge the two "
        "with the program that trained it, such as merge_and_unload() of the library peft, and save the result with "
        "save_pretrained."
    )


# --- Names of tensors: which network is it? ---
class UnknownLayout(CheckpointError):
    """Names of weights that no known layout has. Fields: path, names."""

    template = message(
        "The tensor names in {path} match no known layout, and none is close: {names}. Nothing was run, because the roles of these "
        "tensors are unknown. Choose another file, or add a layout (docs/add-a-layout.md)."
    )


class NearLayout(UnknownLayout):
    """Names of weights of which at least half have a place in a layout. Fields: path, nearest, reason."""

    template = message(
        "The tensor names in {path} match no known layout. The closest is {nearest}. What does not fit: {reason}. Nothing was "
        "run, because the role of a tensor without a place in the layout is unknown. Choose another file, or add a layout "
        "(docs/add-a-layout.md)."
    )


class LibraryWeights(UnknownLayout):
    """Weights of a network of the transformers library without its config.json. Fields: path, kinds."""

    template = message(
        "{path} holds tensors named as in a network of the transformers library ({kinds}), without the config.json that says how "
        'it computes. Save its folder with that library, model.save_pretrained("folder"), and open the folder.'
    )


class BadLayoutFile(CheckpointError):
    """A layout file that is none, or that does not fit the weights. Fields: path, detail."""

    template = "The layout {path} cannot be used: {detail}. Change it, or choose the roles of the tensors on the page Checkpoint."
    on_screen = message("The layout {path} cannot be used: {detail}.")

    @property
    def detail(self) -> Words:
        """What is wrong in it."""
        detail = self.fields["detail"]
        return detail if isinstance(detail, Phrase) else str(detail)


class SeveralLayouts(CheckpointError):
    """Weights that match several layouts. Fields: path, there, setting."""

    template = "Several layouts fit {path}: {there}. Choose one with --set {setting}=NAME."
    on_screen = message("Several layouts fit {path}: {there}. Choose one below.")


class SeveralTables(SeveralLayouts):
    """Several state dicts in one file. Fields: path, there, setting."""

    template = "{path} contains several tables of weights: {there}. Choose one with --set {setting}=NAME."
    on_screen = message("{path} contains several tables of weights: {there}. Choose one below.")


class SeveralFiles(CheckpointError):
    """A folder with several weight files and no hint which one to use. Fields: path, there."""

    template = message("{path} contains several weight files ({there}). Open one of them instead of the folder.")


# --- Weights and settings that do not fit together ---
class IncompleteWeights(CheckpointError):
    """Weights of a known layout, some missing or of wrong shapes. Fields: path, layout, detail."""

    template = message(
        "{path} matches the layout {layout}, but cannot be run: {detail}. Save the complete state_dict of one model, or check the "
        "answers you gave."
    )


class OtherWeights(IncompleteWeights):
    """Weights in a folder of the transformers library that do not fill its class. Fields: path, layout, detail."""

    template = message(
        "The weights in {path} are not those of the network that its config.json describes ({layout}): {detail}. Use the "
        "config.json and the weights that were saved together, or save both again with save_pretrained."
    )


class RefusedByLibrary(CheckpointError):
    """A folder that the transformers library does not open. Fields: path, version, error."""

    template = message(
        "{path} cannot be used: transformers {version}, which reads it here, says: {error}. If this names a setting, correct it in "
        "config.json; otherwise save the folder again with this version of the library."
    )


class UnsupportedModel(CheckpointError):
    """A folder of the transformers library whose network would not compute here what it was trained for. Fields: path, reason."""

    template = message(
        "{path} was not run: {reason}. Do not change its config.json: with other values, the weights would run in a "
        "network that they were not trained for. A program that knows this model can show its attention, such as "
        'transformers with attn_implementation="eager" and output_attentions=True.'
    )


class CannotRunHere(UnsupportedModel):
    """A folder of the transformers library in whose network a short input cannot be run. Fields: path, version, error."""

    template = message(
        "{path} was not run: a short input could not be run in it: transformers {version}, which computes here, says: {error}. If "
        "a program that uses the same version runs it, report this."
    )


class UnsupportedGguf(UnsupportedModel):
    """A GGUF file whose network does not run here. Fields: path, reason."""

    template = message("{path} was not run: {reason}. Choose another file, or open the network as a Hugging Face folder.")


class BadGguf(CheckpointError):
    """A GGUF file that contradicts itself or a limit. Fields: path, detail."""

    template = message("{path} is not a GGUF file that can be read: {detail}. Download or convert it again.")


class NotACheckpoint(CheckpointError):
    """A file of another kind. Fields: path, found."""

    template = message(
        "{path} holds no weights that can be read here. It is: {found}. Headlight opens safetensors files, GGUF files and files "
        "written by torch.save."
    )


class PathNotFound(NotACheckpoint):
    """Nothing is there. Fields: path."""

    template = message("{path} was not found. Check the path.")


class NotReadable(NotACheckpoint):
    """This program may not read it, or cannot. Fields: path, reason."""

    template = message("This program cannot read {path}: {reason}. Check the permissions of the file.")


class BadTrace(CheckpointError):
    """A file that claims to be a trace and is none that can be drawn. Fields: path, detail."""

    template = message(
        "{path} is not a trace that can be opened: {detail}. Nothing of it is shown. Save it again with the program that made it."
    )


class UnsafeFile(CheckpointError):
    """A pickle that calls something that weights do not need. Fields: path, called."""

    template = message(
        "Opening {path} would call a function: {called}. Nothing was called, and the file was not opened. Its author can save the "
        'weights alone: torch.save(model.state_dict(), "weights.pt")'
    )


class WholeObject(CheckpointError):
    """A pickled model instead of its weights. Fields: path, found."""

    template = message(
        "{path} contains a whole Python object ({found}), which only the program that saved it can load. Nothing was "
        'executed. Load it there and save the weights alone: torch.save(model.state_dict(), "weights.pt")'
    )


class UnsoundFile(CheckpointError):
    """Contents that contradict the file's size, or that no program writes into checkpoints. Fields: path, detail."""

    template = message(
        "{path} was not opened: {detail}. Files written by torch.save or safetensors are not like that. Save "
        'the weights again: torch.save(model.state_dict(), "weights.pt")'
    )


class UnreadableNumbers(CheckpointError):
    """An unsupported dtype or byte order. Fields: path, reason."""

    template = message(
        "{path} stores numbers that cannot be read here: {reason}. Save it as float32: torch.save({{name: "
        't.float() for name, t in model.state_dict().items()}}, "weights.pt")'
    )


class NoWeights(CheckpointError):
    """The file has no state dict. Fields: path, found."""

    template = message(
        "{path} contains no table of named tensors. Found: {found}. Save the weights as one: "
        'torch.save(model.state_dict(), "weights.pt")'
    )


class NumpyArrays(NoWeights):
    """The file's table holds NumPy arrays. Fields: path, names."""

    template = message(
        "{path} contains NumPy arrays instead of tensors: {names}. Nothing was executed. Save them as tensors, for example with "
        'safetensors.numpy.save_file(arrays, "weights.safetensors").'
    )


class BadImage(CheckpointError):
    """An image that is not read. Fields: path, reason."""

    template = message("The image {path} cannot be read: {reason}. Choose another one, or save it again as PNG or JPEG.")


class BadSound(CheckpointError):
    """A sound that is not read. Fields: path, reason."""

    template = message("The sound {path} cannot be read: {reason}. Choose another one, or save it again as WAV or FLAC.")


class OverLimit(CheckpointError):
    """Too large or too slow to open. Fields: path, reason."""

    template = message(
        "{path} exceeds a limit of this machine: {reason}. Save the weights alone "
        'with torch.save(model.state_dict(), "weights.pt"), or raise the limit in model/safe_loading/limits.py.'
    )


class OpeningEnded(CheckpointError):
    """The process that looks into files ended without an answer, but not by a limit of its own. Fields: path, how."""

    template = message(
        "{path} was not opened: the process that inspects files ended without an answer ({how}). It keeps "
        "within its own limits; the system may have ended it because this machine is short of memory. Try "
        "again, with fewer programs running."
    )


class CannotExport(CheckpointError):
    """A network that a native folder cannot store. Fields: path, reason."""

    template = message("{path} cannot be exported as a Headlight folder: {reason}. You can still explore it as it is.")
