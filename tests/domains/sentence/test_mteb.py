"""An exported encoder under mteb: a task of generated pairs, without a network."""

from pathlib import Path
from typing import Any

import pytest
import torch

from contrastbench.domains.registry import make_recipe
from contrastbench.domains.sentence.domain import SentenceDomain

mteb = pytest.importorskip("mteb", reason="the optional mteb is not installed")
datasets = pytest.importorskip("datasets")
library = pytest.importorskip("sentence_transformers")
FIRST = ["babace kaba ban", "gugu dida ban ban ban", "cekaba", "kaba ban"]
SECOND = ["babace kaba", "dida ban", "ban ban", "gugu"]
GRADES = [5.0, 3.0, 1.0, 0.0]


def task() -> Any:
    """A local task of graded pairs, as a user of mteb writes one."""
    from mteb.abstasks.sts import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata

    class Local(AbsTaskSTS):
        metadata = TaskMetadata(
            name="LocalPairs",
            description="generated pairs with grades",
            dataset={"path": "local/pairs", "revision": "1"},
            type="STS",
            category="t2t",
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="cosine_spearman",
        )
        min_score, max_score = 0, 5

        def load_data(self, **_: Any) -> None:
            rows = {"sentence1": FIRST, "sentence2": SECOND, "score": GRADES}
            self.dataset = {"default": {"test": datasets.Dataset.from_dict(rows)}}
            self.data_loaded = True

    return Local()


@pytest.mark.filterwarnings("default")  # of mteb's own
def test_an_exported_encoder_runs_a_local_task(tmp_path: Path) -> None:
    recipe = make_recipe("sentence", {"epochs": 1, "limit": 32, "batch_size": 16})
    domain = SentenceDomain("graded", recipe, 0, None, torch.device("cpu"))
    model = domain.model()
    domain.export(model, tmp_path / "out")
    encoder = library.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    cache = mteb.ResultCache(tmp_path / "cache")
    (found,) = mteb.evaluate(encoder, [task()], cache=cache).task_results
    ours = [torch.nn.functional.normalize(domain.encode(model, s).of(s)) for s in (FIRST, SECOND)]
    cosines = (ours[0] * ours[1]).sum(dim=1)
    from scipy.stats import spearmanr

    assert found.get_score() == pytest.approx(spearmanr(cosines, GRADES).statistic, abs=1e-6)
