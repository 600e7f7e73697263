"""Reports about a checkpoint that is not run: its tensors and their statistics, signs of training, and unusual heads."""
