"""The page Checkpoint: uploads, open questions, the diagnosis, weights, vocabulary, roles of tensors."""
