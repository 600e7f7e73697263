"""Tokenizers, from text to ids and back: words, byte pair encoding, vocabularies and tokenizers of other programs."""
