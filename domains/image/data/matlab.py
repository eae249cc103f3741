"""MATLAB's files, which scipy reads by trusting their lengths: a damaged one ends its process.

So it is read in a process of its own, this module's. Brings no torch, which takes seconds.
"""

import json
import subprocess
import sys
from io import BytesIO
from typing import Any


def annotations(raw: bytes) -> list[tuple[int, str]]:
    """Class and file of each image of Cars196's `cars_annos.mat`."""
    done = subprocess.run([sys.executable, "-P", "-m", __name__], input=raw, capture_output=True)
    if done.returncode:
        raise ValueError("it cannot be read")
    return [(number, file) for number, file in json.loads(done.stdout)]


def read_annotations(raw: bytes) -> list[tuple[int, str]]:
    from scipy.io import loadmat

    images: Any = loadmat(BytesIO(raw), squeeze_me=True)["annotations"]
    numbers, files = images["class"].tolist(), images["relative_im_path"].tolist()
    return [(int(number), str(file)) for number, file in zip(numbers, files, strict=True)]


if __name__ == "__main__":
    print(json.dumps(read_annotations(sys.stdin.buffer.read())))
