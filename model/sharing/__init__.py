"""What the threads of a process share: work that several ask for at once, and memory: caches under one budget. Without torch."""
