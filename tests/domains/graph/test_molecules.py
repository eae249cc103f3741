"""Molecules: codes as OGB gives them, what is read of a file, scaffolds, and fingerprints."""

import gzip
import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from contrastbench.domains.graph import DATASETS, molecules
from contrastbench.domains.graph.exports import open_encoder
from contrastbench.domains.graph.own import load_own_graphs
from contrastbench.domains.graph.tasks import task_part
from contrastbench.losses import UserError
from opened import opened

CPU = torch.device("cpu")
# of ogb 1.3.6's smiles2graph with rdkit 2026.9.1: charges, radicals, stereo, rare kinds
GOLDEN = json.loads(Path(__file__).with_name("molecules.json").read_text())
RINGS = {"c1ccccc1": 12, "c1ccncc1": 4, "C1CCCC1": 2, "": 2}  # scaffolds of `family`


def family() -> list[str]:
    """Twenty molecules: chains of growing length at rings, those of rare scaffolds first."""
    return ["C" * (k + 1) + ring for ring, count in reversed(RINGS.items()) for k in range(count)]


def written(folder: Path, *lines: str, header: str = "smiles,toxic,active") -> str:
    """Write a file of the family, its answers a rule of their place, and further lines."""
    rows = [
        f"{text},{k % 2},{'' if k % 3 == 0 else int(k % 4 > 1)}" for k, text in enumerate(family())
    ]
    (folder / "mine.csv").write_text("\n".join((header, *rows, *lines)))
    return f"smiles:{folder / 'mine.csv'}"


domain = partial(opened, "graph", folds=2)


@pytest.mark.parametrize("case", GOLDEN, ids=[case["smiles"] for case in GOLDEN])
def test_atoms_and_bonds_are_coded_as_ogb_does(case: dict[str, list[list[int]]]) -> None:
    mols = molecules.parsed([case["smiles"]])
    assert molecules.coded(mols[0].GetAtoms(), molecules.ATOM) == case["atoms"]
    assert molecules.coded(mols[0].GetBonds(), molecules.BOND) == case["bonds"]
    graphs = molecules.of_molecules(mols, torch.zeros(1))
    ends = np.cumsum([0, *map(len, molecules.ATOM.values())])
    ones = [[end + code for end, code in zip(ends, row, strict=False)] for row in case["atoms"]]
    assert [row.nonzero().flatten().tolist() for row in graphs.x] == ones
    both = [*map(tuple, case["ends"]), *(tuple(reversed(pair)) for pair in case["ends"])]
    kinds = dict(zip(both, case["bonds"] * 2, strict=True))
    assert [*map(tuple, graphs.edge_index.T.tolist())] == sorted(kinds)
    bonds = graphs.edge_attr.split([*map(len, molecules.BOND.values())], dim=1)
    found = torch.stack([hot.argmax(dim=1) for hot in bonds], dim=1) if both else torch.zeros(0)
    assert found.tolist() == [kinds[pair] for pair in sorted(kinds)]


def test_a_file_is_its_molecules_and_answers(tmp_path: Path) -> None:
    name = written(tmp_path, "", "c1ccc,1,0", ",0,0", "[NH4][Pt],0,1")
    graphs, digest, notes = load_own_graphs(name, None, edges=True)
    assert (len(graphs), graphs.tasks, graphs.edge_attr.shape[1]) == (20, 2, 13)
    assert graphs.y[:, 0].tolist() == [0, 1] * 10
    assert graphs.y[:, 1].isnan().tolist() == [k % 3 == 0 for k in range(20)]
    assert graphs.smiles == tuple(family())
    ((note, count),) = notes.items()
    assert (note, count, count.first) == (
        "SMILES that rdkit cannot read, left out",
        3,
        "'c1ccc'",
    )
    again = load_own_graphs(written(tmp_path), None, edges=True)
    assert again[1] == digest, "what is not read changes nothing"
    assert load_own_graphs(name, None)[1] != digest, "nor do bonds that nothing reads"


def test_columns_of_answers_are_told_from_others(tmp_path: Path) -> None:
    name = written(tmp_path, header="Mol,id,weight")
    assert load_own_graphs(name, None)[0].classes == ("id", "weight")
    (tmp_path / "mine.csv").write_text("smiles,weight,name,toxic\nCC,30.1,a,0\nCCC,44.1,b,1\n")
    graphs, _, notes = load_own_graphs(name, None, target="toxic, toxic")
    assert graphs.y.tolist() == [[0], [1]]
    assert notes == {"columns that are no answers, left out": ["weight", "name"]}


def test_fewer_molecules_than_folds_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("smiles,toxic\nCCO,1\nCCC,0\n")
    with pytest.raises(UserError, match="has 2 graphs, fewer than 10 folds; use more data or fewe"):
        opened("graph", f"smiles:{tmp_path / 'mine.csv'}")


def test_rare_scaffolds_are_tested() -> None:
    train, validation, test = molecules.scaffold_parts(tuple(family()))
    rings = list(reversed(RINGS))
    of = np.repeat(rings, [RINGS[ring] for ring in rings])
    found = [{*of[part]} for part in (train, validation, test)]
    assert found == [{"c1ccccc1", "c1ccncc1"}, {"C1CCCC1"}, {""}]
    # of equal groups the one that begins last comes first; chirality makes scaffolds others
    pairs = ("C1CC[C@H]2CC[C@@H]2C1", "C1CC[C@@H]2CC[C@@H]2C1", "CC", "C1CC1")
    parts = [part.tolist() for part in molecules.scaffold_parts((*pairs, "CCC"))]
    assert parts == [[2, 4, 3, 1], [], [0]]


def test_scaffold_parts_are_trained_chosen_by_and_scored_apart(tmp_path: Path) -> None:
    name = written(tmp_path)
    found = domain(name, parts="scaffold", encoder="gine")
    assert found.parts == {"train": 16, "validation": 2, "test": 2}
    assert found.sample_count == len(found.training) == 16
    assert found.graphs.smiles[16:] == ("CC1CCCC1", "CCC1CCCC1", "C", "CC")
    other = domain(name, seed=1, parts="scaffold", encoder="gine")
    assert other.graphs.smiles[16:] == found.graphs.smiles[16:]
    assert other.graphs.smiles[:16] != found.graphs.smiles[:16]
    assert sum(len(batch.graphs) for batch in found.batches(0)) == 16
    evaluation = found.evaluate(found.model())
    assert (evaluation.main, evaluation.test_part) == ("auroc", "fixed")
    assert evaluation.samples == found.parts


def test_a_part_is_scored_by_regressions_of_the_first() -> None:
    x = np.array([*[-1.0, -2, 1, 2] * 2, 0.5, -0.5, 3, -3, 1])[:, None]
    held = [[0, 0], [1, 1], [1, math.nan], [0, 1], [0, 0]]
    y = np.array([*[[0, 1.0], [0, 1], [1, 0], [1, 0]] * 2, *held])
    found = task_part(x, y, {"train": 8, "validation": 2, "test": 3})
    assert found.details["auroc_of_tasks"] == [100, 100]
    assert (found.metrics, found.validation) == ({"auroc": 100}, 50)  # 0 by the first task
    y[-3:, 1] = 1
    found = task_part(x, y, {"train": 8, "validation": 2, "test": 3})
    assert found.details["auroc_of_tasks"] == [100, None]
    with pytest.raises(UserError, match="a part has no task with both answers"):
        task_part(x, y[:, :1] * 0, {"train": 8, "validation": 2, "test": 3})


def test_fingerprints_are_of_substructures(tmp_path: Path) -> None:
    found = domain(written(tmp_path), encoder="ecfp")
    x = found.embeddings(found.model()).x
    assert (x.shape, x.unique().tolist()) == ((20, 2048), [0, 1])
    graphs, _, _ = load_own_graphs(found.dataset, None)
    bits = molecules.fingerprints(graphs).x
    assert sorted(x.tolist()) == sorted(bits.tolist())
    row = {text: k for k, text in enumerate(graphs.smiles)}
    near, ring, chain = (bits[row[text]] for text in ("CCCCCc1ccccc1", "CCCCCCc1ccccc1", "CC"))
    assert (near * ring).sum() > (near * chain).sum() + 5


def test_new_molecules_are_embedded_without_answers(tmp_path: Path) -> None:
    trained = domain(written(tmp_path), encoder="gine")
    trained.export(trained.model(), tmp_path / "export")
    (tmp_path / "new.csv").write_text("name,smiles\na,CCO\nb,[Na+]\n")
    opened = open_encoder(str(tmp_path / "export"), None, CPU)
    data, names = opened.read(f"smiles:{tmp_path / 'new.csv'}", None)
    assert (opened.embed(data).shape, names) == ((2, 96), ["CCO", "[Na+]"])


def test_a_declared_set_has_its_sizes_and_published_parts(
    tmp_path: Path, shared: Callable[..., Path]
) -> None:
    packed = shared("data", "molecules", "BBBP.csv.gz").read_bytes()
    (tmp_path / "BBBP.csv").write_bytes(gzip.decompress(packed))
    graphs, _, notes = load_own_graphs("BBBP", tmp_path)
    found = (len(graphs), len(graphs.x), graphs.edge_index.shape[1])
    assert (found, [*notes.values()]) == (DATASETS["BBBP"].sizes, [11])
    parts = [len(part) for part in molecules.scaffold_parts(graphs.smiles)]
    assert parts == [1631, 204, 204]  # of Hu et al.'s own code
