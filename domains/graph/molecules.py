"""Molecules as graphs by rdkit: a CSV file of SMILES, whose other columns are answers to tasks.

Atoms and bonds are coded as the Open Graph Benchmark does (Hu et al. 2020, appendix), one-hot.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from contrastbench.domains import own
from contrastbench.domains.graph.data import Array, Graphs, pointers, union
from contrastbench.domains.graph.tasks import ANSWERS, UNKNOWN, answers
from contrastbench.domains.reading import check_kind, contents, reading
from contrastbench.domains.report import Counted
from contrastbench.errors import UserError, unknown

if TYPE_CHECKING:
    from rdkit.Chem import Mol

SMILES = ("smiles", "canonical_smiles", "mol", "structure")  # names of their column, the first wins
Columns = Mapping[str, Sequence[str]]
FEW = 3  # names that an error has
BITS, RADIUS = 2048, 2  # of a fingerprint
SHARES = 0.8, 0.9  # of the molecules, where the training and the validation part end
Coding = dict[str, Sequence[object]]  # methods of rdkit, and what each column stands for
OTHER = ("other",)  # the last column, where there is one
CHIRALITIES = ("UNSPECIFIED", "TETRAHEDRAL_CW", "TETRAHEDRAL_CCW", "OTHER")
ATOM: Coding = {
    "GetAtomicNum": (*range(1, 119), *OTHER),
    "GetChiralTag": (*(f"CHI_{tag}" for tag in CHIRALITIES), *OTHER),
    "GetTotalDegree": (*range(11), *OTHER),
    "GetFormalCharge": (*range(-5, 6), *OTHER),
    "GetTotalNumHs": (*range(9), *OTHER),
    "GetNumRadicalElectrons": (*range(5), *OTHER),
    "GetHybridization": ("SP", "SP2", "SP3", "SP3D", "SP3D2", *OTHER),
    "GetIsAromatic": (False, True),
    "IsInRing": (False, True),
}
BOND: Coding = {
    "GetBondType": ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC", *OTHER),
    "GetStereo": tuple(f"STEREO{kind}" for kind in ("NONE", "Z", "E", "CIS", "TRANS", "ANY")),
    "GetIsConjugated": (False, True),
}


def coded(items: Iterable[Any], coding: Coding) -> list[list[int]]:
    """Return a row for each atom or bond: of each property the column, the last of what is new."""
    columns = [(key, {str(v): k for k, v in enumerate(vs)}) for key, vs in coding.items()]
    return [
        [places.get(str(getattr(item, key)()), len(places) - 1) for key, places in columns]
        for item in items
    ]


def one_hots(rows: Sequence[Sequence[int]], coding: Coding) -> Tensor:
    """(n, columns) rows of `coded` one-hot."""
    ends = np.cumsum([len(values) for values in coding.values()])
    hot = torch.zeros(len(rows), int(ends[-1]))
    codes = torch.tensor(rows, dtype=torch.long).reshape(-1, len(coding))
    return hot.scatter_(1, codes + torch.tensor([0, *ends[:-1]]), 1)


def parsed(smiles: Iterable[str]) -> list["Mol | None"]:
    """Return molecules, None for what rdkit cannot read or what has no atom."""
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():  # it says of each fault where it is
        found = (Chem.MolFromSmiles(text) for text in smiles)
        return [mol if mol and mol.GetNumAtoms() else None for mol in found]


def of_molecules(mols: Sequence["Mol"], y: Tensor) -> Graphs:
    """Return molecules as graphs with features of atoms and bonds, and edges both ways."""
    ptr = pointers(torch.tensor([mol.GetNumAtoms() for mol in mols]))
    starts = zip(ptr.tolist(), mols, strict=False)
    bonds = [(start, bond) for start, mol in starts for bond in mol.GetBonds()]
    ends = [(start + b.GetBeginAtomIdx(), start + b.GetEndAtomIdx()) for start, b in bonds]
    x = one_hots(coded((atom for mol in mols for atom in mol.GetAtoms()), ATOM), ATOM)
    attr = one_hots(coded((bond for _, bond in bonds), BOND), BOND).repeat(2, 1)
    one_way = torch.tensor(ends, dtype=torch.long).reshape(-1, 2).T
    return union(x, torch.cat([one_way, one_way.flip(0)], dim=1), ptr, y, attr)


def read_smiles(
    what: str, data_root: Path | None, target: str | None = None
) -> tuple[Graphs, dict[str, Any]]:
    """Read a CSV file with a column of SMILES and answers of 0, 1 or nothing.

    Args:
        what: its name.
        data_root: a folder that may hold it.
        target: the columns of answers, between commas; None: all columns but words; "": none.

    Raises:
        UserError: it has no such columns, or fewer than two molecules.
    """
    path = own.find_path(what, data_root)
    with reading(path, "save it as UTF-8", "cannot be read"):
        check_kind(path, "a CSV file", "give a header and rows")
        text = contents(path).decode("utf-8-sig")
        header, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if any(row)]
    if wrong := next((row for row in rows if len(row) != len(header)), None):
        fix = f"give {len(header)}, as its header has"
        raise UserError(f"{path}: {','.join(wrong)!r} has {len(wrong)} columns: {fix}")
    columns = dict(zip(header, zip(*rows, strict=True), strict=False))
    names = {name.strip().lower(): name for name in columns}
    place = next((names[name] for name in SMILES if name in names), None)
    if place is None:
        raise UserError(f"{path} has no column smiles (it has {listed(header)}): name it so")
    texts = columns.pop(place)
    tasks = task_columns(path, columns, target)
    mols = {k: mol for k, mol in enumerate(parsed(texts)) if mol}
    if len(mols) < 2:
        raise UserError(f"{path} has {len(mols)} molecules that rdkit reads: give at least two")
    y = torch.tensor([answers(str(path), [columns[task][k] for task in tasks]) for k in mols])
    graphs = of_molecules([*mols.values()], y if tasks else torch.zeros(len(mols)).long())
    bad = [text for k, text in enumerate(texts) if k not in mols]
    notes = {
        "columns that are no answers, left out": [c for c in columns if c not in tasks],
        "SMILES that rdkit cannot read, left out": Counted(len(bad), repr((*bad, "")[0])),
    }
    known = replace(graphs, smiles=tuple(texts[k] for k in mols), classes=tuple(tasks))
    return known, {note: found for note, found in notes.items() if found}


def task_columns(path: Path, columns: Columns, target: str | None) -> list[str]:
    """Return the names of the columns of answers, as `read_smiles` says.

    Raises:
        UserError: it does not have them, or they are not told from other numbers.
    """
    if target is not None:
        asked = [name.strip() for name in target.split(",")] if target else []
        if missing := [name for name in asked if name not in columns]:
            raise unknown(f"column of {path}", missing[0], columns)
        return asked
    values = {name: {word.strip().lower() for word in words} for name, words in columns.items()}
    tasks = [name for name, seen in values.items() if seen <= ANSWERS.keys() and seen - {*UNKNOWN}]
    others = [name for name in columns if name not in tasks and any(map(is_number, values[name]))]
    if others or not tasks:
        found = f"other numbers ({listed(others)})" if others else "no column of 0, 1 or nothing"
        raise UserError(f"{path} has {found}: name the columns of answers by --target A,B")
    return tasks


def listed(names: Sequence[str]) -> str:
    """Return some names in words."""
    return ", ".join(names[:FEW]) + f" and {len(names) - FEW} more" * (len(names) > FEW)


def is_number(word: str) -> bool:
    """Return whether a word is a number."""
    try:
        return isfinite(float(word))
    except ValueError:
        return False


@lru_cache(maxsize=1)
def scaffold_parts(smiles: tuple[str, ...]) -> tuple[Array, Array, Array]:
    """Return the numbers of the training, validation and test molecules by Bemis-Murcko scaffolds.

    Eight tenths are of the most frequent scaffolds, then a tenth each, as OGB's sets and Hu et al.
    (2020) are split: scaffolds with chirality, the largest group first, of equals the one that
    begins last; a group that does not fit goes to the next part whole.
    """
    from rdkit import rdBase
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    groups: dict[str, list[int]] = {}
    with rdBase.BlockLogs():
        for k, text in enumerate(smiles):
            scaffold = MurckoScaffoldSmiles(smiles=text, includeChirality=True)
            groups.setdefault(scaffold, []).append(k)
    train: list[int] = []
    validation: list[int] = []
    test: list[int] = []
    for group in sorted(groups.values(), key=lambda group: (len(group), group[0]), reverse=True):
        if len(train) + len(group) <= SHARES[0] * len(smiles):
            train += group
        elif len(train) + len(validation) + len(group) <= SHARES[1] * len(smiles):
            validation += group
        else:
            test += group
    return np.array(train), np.array(validation, dtype=int), np.array(test, dtype=int)


def fingerprints(graphs: Graphs) -> Graphs:
    """Return each molecule as one node with its extended-connectivity fingerprint: ECFP4's bits."""
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    made = GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    bits = np.stack([made.GetFingerprintAsNumPy(mol) for mol in parsed(graphs.smiles)])
    none = graphs.edge_index[:, :0]
    single = union(torch.from_numpy(bits).float(), none, torch.arange(len(bits) + 1), graphs.y)
    return replace(single, smiles=graphs.smiles, classes=graphs.classes)
