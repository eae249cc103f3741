"""A step of each domain takes operations that CUDA has, chosen as on a card."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import cuda_kernels
from warm import python

TOOLS = Path(__file__).parents[2] / "tools"
CODE = "import json, sys, fake_card; print(json.dumps(fake_card.operations({!r})))"
CHOSEN = {  # an operation that the CPU takes another one for
    "image": "aten::cudnn_batch_norm",
    "sentence": "aten::native_dropout",
    "tabular": "aten::native_batch_norm",
}


@pytest.mark.skipif(not cuda_kernels.built(), reason="this build of torch holds no kernels of CUDA")
@pytest.mark.parametrize("domain", CHOSEN)
def test_a_step_takes_operations_that_cuda_has(domain: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(TOOLS)}
    words = [python(), "-c", CODE.format(domain)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) > 20
    assert CHOSEN[domain] in found
