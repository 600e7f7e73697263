"""Tokenizers that harm whoever cuts a text with them in place, and a sound one beside them."""

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers


def words() -> Tokenizer:
    made = Tokenizer(models.WordLevel({"[UNK]": 0, "x": 1, "a": 2}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return made


def panics() -> Tokenizer:
    """Cutting by this pattern panics at a row of x."""
    made = words()
    made.pre_tokenizer = pre_tokenizers.Split(Regex("(x+x+)+y"), "isolated")
    return made


def hangs() -> Tokenizer:
    """Cutting by this pattern takes a time that grows as the square of a row of x."""
    made = words()
    made.pre_tokenizer = pre_tokenizers.Split(Regex("x+?y"), "isolated")
    return made


def swells() -> Tokenizer:
    """Each a becomes 100 five times: 10,000,000,000."""
    made = words()
    made.normalizer = normalizers.Sequence([normalizers.Replace("a", "a" * 100)] * 5)
    return made
