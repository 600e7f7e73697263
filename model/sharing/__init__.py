"""Work that several threads ask for at once is done once. Without torch.

May import: nothing of this project.
"""
