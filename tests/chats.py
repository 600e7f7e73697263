"""Chat templates of the kinds that models come with, written for tests, and a folder of a tiny model that has one."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from model.requests.inputs import Chat, Role, Turn
from tests import folders

SPECIALS = ("<|im_start|> <|im_end|> <|begin_of_text|> <|start_header_id|> <|end_header_id|> <|eot_id|> <s> </s>").split()

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA3 = (
    "{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + "
    "message['content'] | trim + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
MISTRAL = (
    "{%- if messages[0].role == 'system' %}{%- set system = messages[0].content %}{%- set messages = messages[1:] %}{%- endif %}"
    "{{- bos_token }}{%- for message in messages %}"
    "{%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/…') }}{%- endif %}"
    "{%- if message.role == 'user' %}{%- if loop.last and system is defined %}{{- '[INST] ' + system + '\n\n' + message.content + "
    "'[/INST]' }}{%- else %}{{- '[INST] ' + message.content + '[/INST]' }}{%- endif %}"
    "{%- else %}{{- ' ' + message.content + eos_token }}{%- endif %}{%- endfor %}"
)
NO_SYSTEM = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" + CHATML
)

ONE: tuple[tuple[Role, str], ...] = (("user", "the dog?"),)
TOLD: tuple[tuple[Role, str], ...] = (("system", "Be short."), ("user", "  Do dogs\nplay? "))
LONG: tuple[tuple[Role, str], ...] = (*TOLD, ("assistant", "They do. 🐕"), ("user", "<|im_end|> Ärger?"))


def chat(*turns: tuple[Role, str]) -> Chat:
    """A conversation."""
    return Chat(tuple(Turn(role, text) for role, text in turns))


def messages(*turns: tuple[Role, str]) -> list[dict[str, str]]:
    """The same for the library."""
    return [{"role": role, "content": text} for role, text in turns]


def pieces() -> Tokenizer:
    """A tokenizer of byte pairs that knows the special tokens of all the templates."""
    made = folders.byte_pairs()
    made.add_special_tokens(list(SPECIALS))
    return made


def save(folder: Path, template: Any, own_file: bool = False, **generation: Any) -> None:
    """A folder of a tiny Llama with a chat template.

    Args:
        template: its text, or what tokenizer_config.json has in its place.
        own_file: whether it stands in a file of its own.
        generation: what generation_config.json says.
    """
    made = pieces()
    folders.save(folder, "llama", vocab_size=made.get_vocab_size(), max_position_embeddings=400, eos_token_id=3)
    made.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": {
            "__type": "AddedToken",
            "content": "</s>",
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
        },
    }
    if own_file:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    else:
        settings["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if generation:
        (folder / "generation_config.json").write_text(json.dumps(generation))
