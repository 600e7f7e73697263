"""What one run recorded, as a frozen value of numpy arrays, and the same as bytes. No torch.

May import: model.errors, model.spec.
"""
