"""Live pictures: without a script run, Explore's drawings follow the sentence box while somebody types, and a run while it writes.

`sessions.py` describes what a browser session may ask for and mounts the scripts, `route.py` answers it. `live.js` listens to the
sentence box, and its first lines list the others.
"""
