"""The viewer of the wheel needs numpy and safetensors alone, beside whatever packages a program calls `model` and `viz`."""

import subprocess
import sys
from pathlib import Path

from package.viewer import write

PROGRAM = """
import sys
for name in "babel cachetools model pandas plotly scipy starlette streamlit torch viz".split():
    sys.modules[name] = None  # importing it fails
import numpy as np
import headlight.viewer.viz.features.notebook.show as viewer
weights = np.random.default_rng(0).dirichlet(np.ones(5), (2, 3, 5))
picture = viewer.show(weights, list("abcde"), words=[0, 0, 1, 2, 3])
print(len(picture._repr_html_()), len(picture.html()))
viewer.save(weights, sys.argv[1])
print(viewer.show(sys.argv[1]))
"""


def test_it_shows_and_saves_without_any_other_package(tmp_path: Path) -> None:
    write(tmp_path / "headlight" / "viewer")
    (tmp_path / "headlight" / "__init__.py").touch()
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "mine.trace.safetensors")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == "<Attention: 2 layers of attention, 6 heads; .open() shows them>"
