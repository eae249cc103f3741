"""Molecules as graphs by rdkit: a CSV file of SMILES, whose other columns are answers to tasks.

Atoms and bonds are coded as the Open Graph Benchmark does (Hu et al. 2020, appendix), one-hot.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from contrastbench.domains import own
from contrastbench.domains.graph.data import Array, Graphs, pointers, union
from contrastbench.domains.graph.tasks import ANSWERS, UNKNOWN, answers
from contrastbench.domains.reading import check_doubles, check_kind, contents, reading, refuse
from contrastbench.domains.report import noted
from contrastbench.domains.samples import Counted, chosen
from contrastbench.errors import unknown

if TYPE_CHECKING:
    from rdkit.Chem import Mol

SMILES = ("smiles", "canonical_smiles", "mol", "structure")  # names of their column, the first wins
Columns = Mapping[str, Sequence[str]]
NUMBER = re.compile(r"[-+]?\.?\d[\d.]*(e[-+]?\d+)?").fullmatch
BITS, RADIUS = 2048, 2  # of a fingerprint
SHARES = 0.8, 0.9  # of the molecules, where the training and the validation part end
# methods of rdkit for an atom or a bond, and what columns stand for; the last one takes the rest
CODES = [*csv.DictReader(Path(__file__).with_name("codes.csv").read_text("utf-8").splitlines())]
ATOM, BOND = (
    {row["method"]: row["columns"].split() for row in CODES if row["of"] == part}
    for part in ("atom", "bond")
)
Coding = Mapping[str, Sequence[str]]


def coded(items: Iterable[Any], coding: Coding) -> list[list[int]]:
    """Return a row for each atom or bond: of each property the column, the last of what is new."""
    columns = [(key, {v: k for k, v in enumerate(values)}) for key, values in coding.items()]
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
    ptr = pointers(torch.tensor([mol.GetNumAtoms() for mol in mols]))
    starts = zip(ptr.tolist(), mols, strict=False)
    bonds = [(start, bond) for start, mol in starts for bond in mol.GetBonds()]
    ends = [(start + b.GetBeginAtomIdx(), start + b.GetEndAtomIdx()) for start, b in bonds]
    x = one_hots(coded((atom for mol in mols for atom in mol.GetAtoms()), ATOM), ATOM)
    attr = one_hots(coded((bond for _, bond in bonds), BOND), BOND).repeat(2, 1)
    one_way = torch.tensor(ends, dtype=torch.long).reshape(-1, 2).T
    return union(x, torch.cat([one_way, one_way.flip(0)], dim=1), ptr, y, attr)


def read_smiles(
    what: str, data_root: Path | None, groups: str | None = None, target: str | None = None
) -> tuple[Graphs, dict[str, Any]]:
    """Read a CSV file with a column of SMILES and answers of 0, 1 or nothing.

    The target names the columns of answers, between commas: by default all columns but words, and
    none if it is empty.
    """
    path = own.find_path(what, data_root)
    columns = read_columns(path)
    names = {name.lower(): name for name in columns}
    found = [names[name] for name in SMILES if name in names]
    others = noted("others", [*columns])
    refuse(path, (not found, f" has no column smiles, but {others}: name it so"))
    texts = columns.pop(found[0])
    named = columns.pop(known_column(path, groups, columns)) if groups else []
    tasks = task_columns(path, columns, target)
    mols = {k: mol for k, mol in enumerate(parsed(texts)) if mol}
    refuse(path, (len(mols) < 2, f" has {len(mols)} molecules that rdkit reads: give at least two"))
    y = torch.tensor([answers(str(path), [columns[task][k] for task in tasks]) for k in mols])
    graphs = of_molecules([*mols.values()], y if tasks else torch.zeros(len(mols)).long())
    bad = [repr(text) for k, text in enumerate(texts) if k not in mols]
    notes = {
        "columns that are no answers, left out": [name for name in columns if name not in tasks],
        "SMILES that rdkit cannot read, left out": Counted.of(bad),
    }
    smiles, kept = (chosen(tuple(words), mols) for words in (texts, named))
    graphs = replace(graphs, smiles=smiles, classes=tuple(tasks), groups=kept)
    return graphs, {note: found for note, found in notes.items() if found}


def read_columns(path: Path) -> dict[str, list[str]]:
    with reading(path, "save it as UTF-8", "cannot be read"):
        check_kind(path, "a CSV file", "give a header and rows")
        text = io.StringIO(contents(path).decode("utf-8-sig"), newline="")
        header, *rows = [row for row in csv.reader(text) if any(row)] or [[]]
    refuse(path, (not rows, " has no rows: give a header and a molecule in each row"))
    header = [name.strip() or f"column {k}" for k, name in enumerate(header, 1)]
    check_doubles(path, header)
    wrong = [(repr(",".join(row)), len(row)) for row in rows if len(row) != len(header)]
    refuse(path, (wrong, f": {{}} has {{}} columns: give {len(header)}, as its header has"))
    return {name: [row[k] for row in rows] for k, name in enumerate(header)}


def known_column(path: Path, name: str, columns: Iterable[str]) -> str:
    if name not in columns:
        raise unknown(f"column of {path}", name, columns)
    return name


def task_columns(path: Path, columns: Columns, target: str | None) -> list[str]:
    if target is not None:
        asked = dict.fromkeys(map(str.strip, target.split(","))) if target else ()
        return [known_column(path, name, columns) for name in asked]
    values = {name: {word.strip().lower() for word in words} for name, words in columns.items()}
    tasks = [name for name, seen in values.items() if seen <= ANSWERS.keys() and seen - {*UNKNOWN}]
    others = [name for name in columns if name not in tasks and any(map(NUMBER, values[name]))]
    found = noted("other numbers", others) if others else "no column of 0, 1 or nothing"
    fault = f" has {found}: name the columns of answers by --target A,B"
    refuse(path, (others or not tasks, fault))
    return tasks


@lru_cache(maxsize=1)
def scaffold_parts(smiles: tuple[str, ...]) -> tuple[Array, ...]:
    """Return the numbers of the training, validation and test molecules by Bemis-Murcko scaffolds.

    Eight tenths are of the most frequent scaffolds, then a tenth each, as OGB's sets and Hu et al.
    (2020) are split: scaffolds with chirality, the largest group first, of equals the one that
    begins last; a group that does not fit goes to the next part whole.
    """
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    groups: dict[str, list[int]] = {}
    for k, mol in enumerate(parsed(smiles)):
        groups.setdefault(MurckoScaffoldSmiles(mol=mol, includeChirality=True), []).append(k)
    parts: list[list[int]] = [[], [], []]
    for group in sorted(groups.values(), key=lambda group: (len(group), group[0]), reverse=True):
        ends = np.cumsum([len(part) for part in parts]) + len(group)
        fits = [*(ends[:2] <= np.array(SHARES) * len(smiles)), True]
        parts[fits.index(True)] += group
    return tuple(np.array(part, dtype=np.int64) for part in parts)


def fingerprints(graphs: Graphs) -> Graphs:
    """Return each molecule as one node with its extended-connectivity fingerprint: ECFP4's bits."""
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    generator = GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    bits = np.stack([generator.GetFingerprintAsNumPy(mol) for mol in parsed(graphs.smiles)])
    ends = torch.arange(len(bits) + 1)
    made = union(torch.from_numpy(bits).float(), graphs.edge_index[:, :0], ends, graphs.y)
    return replace(made, groups=graphs.groups)
