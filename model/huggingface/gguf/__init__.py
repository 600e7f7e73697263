"""GGUF files as folders of the transformers library: the same networks, stored by llama.cpp's names, in its blocks.

`architectures` says for each architecture how its tensors are called and what was changed in them, `settings` checks each setting,
`config` makes of them what config.json would say, `vocabulary` writes the tokenizer.json that the metadata stand for, and `folder`
opens the whole. Everything after that is done as for a folder.
"""
