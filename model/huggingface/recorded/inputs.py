"""Inputs of a network of the transformers library: token ids, or float features that are arranged as its own input."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal, TypeAlias

from torch import Tensor, nn

from model.errors import DamagedFile, Words, phrase
from model.huggingface import images, sounds
from model.huggingface.folder import Folder
from model.requests.external import ForeignImage, ForeignSound

Form: TypeAlias = Literal["ids", "patches", "frames", "samples"]

_FORMS: Mapping[str, Form] = {"input_ids": "ids", "pixel_values": "patches", "input_features": "frames", "input_values": "samples"}
"""By the name of the library's argument."""

FRAMES = ("whisper",)
"""Architectures whose `input_features` are [batch, band, frame]."""

JOINED = 2
"""Frames that they join to one position of the encoder: the stride of their second convolution."""

FEWEST_SAMPLES = 10
"""Positions of the example for a network that reads samples of sound."""

MOST_JOINED = 2**16
"""Most samples of sound that a network joins to one position: more than a second of it."""


@dataclass(frozen=True)
class Reads:
    """The input of a network.

    Attributes:
        form: token ids; patches of an image, from left to right and top to bottom, each with all numbers of its first channel, then
            of its second …; frames of a spectrogram, a row for those that become one position; or samples of a sound, one number
            each.
        argument: the library's name of the input.
        rows: how many rows of features it reads; 0: any number, or ids.
        width: numbers in a row; 0: ids.
        image: the image that patches are cut from; None: it reads something else.
        named: whether it is known what the network puts before the patches.
        sound: the same of a sound that frames are cut from.
        example: rows of an example.
    """

    form: Form
    argument: str
    rows: int = 0
    width: int = 0
    image: ForeignImage | None = None
    named: bool = False
    sound: ForeignSound | None = None
    example: int = 0

    def arranged(self, source: Tensor) -> Tensor:
        """Ids [batch, position] as they are; features [batch, row, number] as the library's own input."""
        if self.image is not None:
            return images.arranged(source, self.image)
        if self.sound is not None:
            return sounds.arranged(source, self.sound)
        return source.squeeze(-1) if self.form == "samples" else source

    @property
    def positions(self) -> int:
        """How many positions it makes of an input; 0: any number, or ids."""
        return len(self.image.names) if self.image is not None and self.named else self.rows

    @property
    def note(self) -> Words:
        """Sentence for viewers; empty for ids."""
        high, wide = (self.image.rows, self.image.columns) if self.image else (0, 0)
        bands, joined = (self.sound.bands, self.sound.joined) if self.sound else (0, 0)
        words: dict[Form, Words] = {
            "ids": "",
            "patches": phrase(
                "Its input is an image of {high} × {wide} patches, read row by row, {width} numbers each. Positions are "
                "counted from 1. Those that the network adds, such as a class token, count, too.",
                high=high,
                wide=wide,
                width=self.width,
            ),
            "frames": phrase(
                "Its input is a sound as {frames:,} frames of {bands} frequency bands each. The network joins {joined} frames "
                "into one position.",
                frames=self.rows * joined,
                bands=bands,
                joined=joined,
            ),
            "samples": phrase(
                "Its input is samples of a sound, one number each. Positions are counted from 1; the network joins samples."
            ),
        }
        return words[self.form]


TOKEN_IDS = Reads("ids", "input_ids")
"""What most networks read."""


def reads(folder: Folder, network: nn.Module, config: Any) -> Reads:
    """The input of a network.

    Raises:
        UnsupportedModel: more than one kind of input, or one whose arrangement is not known.
        DamagedFile: it joins more samples to one position than any network does.
    """
    argument = str(getattr(network, "main_input_name", "input_ids"))
    form = _FORMS.get(argument)
    # its images would be tokens among those of the text, which no page can type
    if argument == "input_ids" and folder.config.get("vision_config"):
        raise folder.unsupported(phrase("it reads images and text together, but a run here reads only one of them"))
    if form == "ids":
        return Reads(form, argument)
    vision = images.of_vision(config)
    if form == "patches" and hasattr(vision, "image_size") and hasattr(vision, "patch_size"):
        size, (side, other) = _two(vision.image_size), _two(vision.patch_size)
        if vision.model_type in images.RESIZED and (prepared := images.image_reader(folder).size) is not None:
            size = prepared
        # square patches that fill the image: the only arrangement that is drawn
        if side == other and not size[0] % side and not size[1] % side:
            before, channels = images.added(vision), getattr(vision, "num_channels", 3)
            image = ForeignImage(size[0] // side, size[1] // side, side, channels, before or ())
            return Reads(form, argument, image.patches, image.width, image, before is not None, example=image.patches)
    if form == "frames" and folder.model_type in FRAMES:
        sound = ForeignSound(config.max_source_positions, config.num_mel_bins, JOINED)
        if (extractor := sounds.sound_reader(folder, sound).extractor) is not None:
            sound = replace(sound, hop=extractor.hop_length, rate=extractor.sampling_rate)
        return Reads(form, argument, sound.positions, sound.width, sound=sound, example=sound.positions)
    if form == "samples" and hasattr(config, "conv_stride"):
        if (joined := prod(config.conv_stride)) > MOST_JOINED:
            detail = phrase(
                "its conv_stride joins {joined:,} samples into one position; at most {most:,} are possible",
                joined=joined,
                most=MOST_JOINED,
            )
            raise DamagedFile(path=folder.settings, detail=detail)
        return Reads(form, argument, 0, 1, example=FEWEST_SAMPLES * joined)
    raise folder.unsupported(phrase("it reads {argument}, and their arrangement is not known here", argument=argument))


def _two(size: Any) -> tuple[int, int]:
    high, wide = size if isinstance(size, list | tuple) else (size, size)
    return int(high), int(wide)
