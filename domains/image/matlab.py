"""MATLAB's files, which scipy reads by trusting their lengths: a damaged one ends its process.

So it is read in a process of its own. Brings no torch, which that process has no need of.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from io import BytesIO
from typing import Any

START = "spawn"


def annotations(raw: bytes) -> list[tuple[int, str]]:
    """Class and file of each image of Cars196's `cars_annos.mat`.

    Raises:
        Exception: any there is, BrokenProcessPool where the reader's process ended.
    """
    context = multiprocessing.get_context(START)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(pairs, raw).result()


def pairs(raw: bytes) -> list[tuple[int, str]]:
    """The same, in this process."""
    from scipy.io import loadmat

    found: Any = loadmat(BytesIO(raw), squeeze_me=True)["annotations"]
    numbers, files = found["class"].tolist(), found["relative_im_path"].tolist()
    return [(int(number), str(file)) for number, file in zip(numbers, files, strict=True)]
