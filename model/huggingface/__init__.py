"""Hugging Face folders: networks of the transformers library are run by the library's own code and recorded.

`folder` reads the files without executing anything, `config` makes the spec, `families` maps each architecture's module names,
`sizes` refuses absurd settings before anything is built, `library` wraps the transformers library, `fidelity` refuses foreign
settings, `loading` builds the network, `network` runs it, `attention` and `hooks` record it, `tokenizer` and `slow_tokenizers`
(without tokenizer.json) split texts, `parts` counts parameters, `checks` are those of every folder, `places` says where the parts
of a network are, `finding` finds them in an architecture without a row, `recorded` opens such folders.

May import: model.errors, model.inspection, model.safe_loading, model.sharing, model.spec, model.tokenizers, model.trace,
model.transformer.
"""
