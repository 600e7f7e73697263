"""The class of a lecture: its state, its followers, their answers, and the routes through which browsers reach it."""
