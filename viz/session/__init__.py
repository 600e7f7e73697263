"""One visitor: the engine that does not block, calls in the background, the stored view, access, every answer."""
