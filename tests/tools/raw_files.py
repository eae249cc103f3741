"""A tiny data set for each reader, as files: what tests/attack/test_raw_files.py damages.

Who adds a reader adds its set here; a test names the readers that have none.
"""

import faulthandler
import gzip
import io
import json
import tarfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.io import savemat

import hostile
import senteval
from contrastbench.domains import own
from contrastbench.domains.declaration import Dataset, reader_of
from contrastbench.domains.graph import data as graphs
from contrastbench.domains.graph import own as own_graphs
from contrastbench.domains.image.data import digits, matlab, published
from contrastbench.domains.image.data import own as own_images
from contrastbench.domains.image.data.datasets import DATASETS
from contrastbench.domains.own import read_unchanged
from contrastbench.domains.sentence import data as sentences
from contrastbench.domains.sentence import own as own_sentences
from contrastbench.domains.sentence.own import read_any
from contrastbench.domains.sentence.transfer import tasks
from contrastbench.domains.tabular import data as tables
from contrastbench.domains.tabular import own as own_tables
from made_images import CPU, as_folder, jpeg, noise
from tu_files import TU

Files = dict[str, bytes]


@dataclass(frozen=True)
class Raw:
    """Files that one reader reads.

    Args:
        read: their content's hash, of the folder, read anew.
        named: what a refusal has; the damaged file's name where it is empty.
        whole: a file that is missing is missed.
        which: the files that are damaged; the pictures of the others are read as these are.
    """

    of: object
    make: Callable[[Path], Any]
    read: Callable[[Path], str]
    named: str = ""
    whole: bool = True
    which: str = "*"


def declared(module: ModuleType, sets: Mapping[str, Dataset]) -> dict[str, Any]:
    """Return the readers of declared sets by name."""
    return {name: reader_of(str(module.__package__), about) for name, about in sets.items()}


GRAPHS = {**own_graphs.READERS, "TOY": graphs.load_graphs}
IMAGES = {**own_images.READERS, **declared(own_images, DATASETS)}
TABLES = {**own_tables.READERS, **declared(tables, tables.DATASETS)}


def sets_of(
    readers: Mapping[str, Any], read: Callable[[str, Path], str], *kept: Any
) -> Callable[..., Raw]:
    """Return what makes a set of its name, whose kind or name says who reads it.

    It is read in a folder, with nothing of what is kept in memory.
    """

    def of_name(name: str, make: Callable[[Path], Any], named: str = "", **about: Any) -> Raw:
        def of_folder(root: Path) -> str:
            for one in (read_unchanged, *kept):
                one.cache_clear()
            return read(name.format(root), root)

        return Raw(readers[name.partition(":")[0]], make, of_folder, named, **about)

    return of_name


graph = sets_of(
    GRAPHS, lambda name, root: own_graphs.load_own_graphs(name, root)[1], graphs.load_graphs
)
image = sets_of(
    IMAGES,
    lambda name, root: own_images.load_images(name, 16, root, CPU)[1],
    own_images.load_declared,
)
table = sets_of(
    TABLES,
    lambda name, root: tables.load_rows(name, "y" if ":" in name else None, root)[1],
    tables.load_declared,
)
pairs = sets_of(own_sentences.READERS, lambda name, _: read_any(name, None).sha256)


def files(made: Files) -> Callable[[Path], Any]:
    return lambda root: as_folder(root, made)


def under(folder: str, made: Files) -> Files:
    return {f"{folder}/{name}": content for name, content in made.items()}


def packed(name: str, content: bytes) -> Callable[[Path], Any]:
    return files({name: gzip.compress(content)})


def zipped(name: str, made: Files) -> Callable[[Path], Any]:
    return files({name: hostile.zipped(made)})


def tarred(name: str, made: Files) -> Callable[[Path], Any]:
    return packed(name, hostile.tarred(made))


def saved(columns: dict[str, list[Any]]) -> Callable[[Path], Any]:
    def make(root: Path) -> None:
        import datasets

        datasets.Dataset.from_dict(columns).save_to_disk(root / "mine")

    return make


def saved_pictures(root: Path) -> None:
    """Write pictures as a folder of the `datasets` library."""
    import datasets

    kinds = {"image": datasets.Image(), "label": datasets.ClassLabel(names=[*KINDS])}
    rows = {
        "image": [{"bytes": data, "path": None} for data in PICTURES.values()],
        "label": [KINDS.index(name.split("/")[0]) for name in PICTURES],
    }
    features = datasets.Features(kinds)
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(root / "mine")


TOY = {f"TOY/TOY_{suffix}.txt": text.encode() for suffix, text in TU.items()}
GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="label" attr.type="string"/><graph edgedefault="undirected">
<node id="a"><data key="d0">C</data></node><node id="b"><data key="d0">N</data></node>
<edge source="a" target="b"/></graph></graphml>"""
LISTED = {
    "g/labels.csv": b"file,class\none.graphml,0\ntwo.graphml,1\n",
    "g/one.graphml": GRAPHML.encode(),
    "g/two.graphml": GRAPHML.replace(">N<", ">O<").encode(),
}
EDGES = {
    "g/labels.csv": b"file,class\none.csv,0\ntwo.edges,1\n",
    "g/one.csv": b"a,b\nb,c\n",
    "g/two.edges": b"a b\nb c\nc a\n",
}
KINDS = ("crow", "wren")
PICTURES = {f"{kind}/{k}.jpg": jpeg(9 * i + k, 16) for i, kind in enumerate(KINDS) for k in (0, 1)}
TINY = under(
    "tiny-imagenet-200",
    {
        "wnids.txt": b"wren\ncrow\n",
        "val/val_annotations.txt": b"0.JPEG\tcrow\t0\n1.JPEG\twren\t0\n",
        **{f"train/{kind}/images/{kind}.JPEG": jpeg(k, 16) for k, kind in enumerate(KINDS)},
        **{f"val/images/{k}.JPEG": jpeg(5 + k, 16) for k in (0, 1)},
    },
)
TENTH = TINY | {"tiny-imagenet-200/train/crow/images/crow1.JPEG": jpeg(7, 16)}
TILES = {f"dtd/images/banded/banded_000{k}.jpg": jpeg(20 + k, 24) for k in (1, 2)}
STL = {
    "stl10_binary/train_X.bin": noise(5, 3, 96, 96, seed=5).tobytes(),
    "stl10_binary/train_y.bin": bytes([1, 10, 3, 4, 5]),
    "stl10_binary/test_X.bin": noise(8, 3, 96, 96).tobytes(),
    "stl10_binary/test_y.bin": bytes([2] * 8),
    "stl10_binary/unlabeled_X.bin": noise(2, 3, 96, 96, seed=2).tobytes(),
    "stl10_binary/class_names.txt": b"airplane\nbird\n",
}
IMAGENET = {
    f"imagenet/{part}/{name}/x.JPEG": jpeg(k, 16)
    for part in ("train", "val")
    for k, name in enumerate(published.IMAGENET_100[:2])
}
FOOD = {
    **{f"food-101/images/{kind}/{k}.jpg": jpeg(k, 16) for k in (0, 1) for kind in KINDS},
    **{
        f"food-101/meta/{part}.json": json.dumps({kind: [f"{kind}/{k}"] for kind in KINDS}).encode()
        for k, part in enumerate(("train", "test"))
    },
}
COLOURS = "".join(f"{k},{('red', 'blue')[k % 2]},{('no', 'yes')[k % 2]}\n" for k in range(40))
CSV = ("a,colour,y\n" + COLOURS).encode()
PAIRS = [(f"sentence {k}", f"other {k // 2}", float(k % 5)) for k in range(20)]
TSV = "".join("\t".join(map(str, row)) + "\n" for row in PAIRS)
TEXT = "\n".join(senteval.sentence(k) for k in range(20)).encode()
ROWS = "".join(f"one {k}\tanother {k}\n" for k in range(20)).encode()


def cifar_files(hundred: bool) -> Files:
    """Records of seeded noise whose class is the record's number modulo the classes."""

    def part(count: int, seed: int) -> bytes:
        rows = np.concatenate(
            [np.zeros((count, 1 + hundred), dtype=np.uint8), noise(count, 3072, seed=seed)], axis=1
        )
        rows[:, hundred * 1] = np.arange(count) % (100 if hundred else 10)
        rows[:, 0] = 7 if hundred else rows[:, 0]  # the coarse class, which is not read
        return rows.tobytes()

    if hundred:
        words = "\n".join(f"w{k}" for k in range(100)).encode()
        whole = {"train.bin": part(500, 0), "test.bin": part(100, 1), "fine_label_names.txt": words}
        return {f"cifar-100-binary/{name}": content for name, content in whole.items()}
    batches = {f"data_batch_{k}.bin": part(100, k) for k in range(1, 6)}
    whole = {**batches, "test_batch.bin": part(100, 6), "batches.meta.txt": b"plane\ncar\n\n"}
    return {f"cifar-10-batches-bin/{name}": content for name, content in whole.items()}


def four_classes(*counts: int) -> Files:
    """So many pictures of each class."""
    numbered = enumerate(counts or (1, 1, 1, 1), start=1)
    return {f"{c:03}.Kind/{k}.jpg": jpeg(10 * c + k, 16) for c, n in numbered for k in range(n)}


def cub(root: Path, *counts: int) -> None:
    as_folder(root / "CUB_200_2011/images", four_classes(*counts))


def car(root: Path, *counts: int) -> None:
    made = four_classes(*counts)
    as_folder(root / "cars196" / "car_ims", made)
    rows = np.array(
        [(f"car_ims/{name}", int(name[:3])) for name in reversed(made)],
        dtype=[("relative_im_path", object), ("class", object)],
    )
    savemat(root / "cars196" / "cars_annos.mat", {"annotations": rows})


def sop(root: Path, *counts: int) -> None:
    made = four_classes(*counts)
    for part, classes in (("train", (1, 2)), ("test", (3, 4))):
        there = [name for name in made if name[:3] in [f"{c:03}" for c in classes]]
        lines = [f"{k} {int(name[:3])} 1 {name}\n" for k, name in enumerate(there)]
        made[f"Ebay_{part}.txt"] = "".join(["image_id class_id super path\n", *lines]).encode()
    as_folder(root / "Stanford_Online_Products", made)


def arrays(root: Path) -> None:
    np.savez(root / "mine.npz", images=noise(8, 16, 16), labels=np.arange(8) % 2)


def declared_arrays(root: Path) -> None:
    images, labels = noise(8, 16, 16), np.arange(8) % 2
    parts = {"images": images[:4], "labels": labels[:4]}
    tested = {"test_images": images[4:], "test_labels": labels[4:]}
    np.savez(root / "devanagari.npz", **parts, **tested)


def senteval_sets(root: Path) -> str:
    found = sentences.TextFiles(root / "senteval.tar")
    sentences.stsb_pairs(found, "dev")
    sentences.sts_sets(found)
    tasks(found)
    return found.sha256.hexdigest()


def senteval_tar(root: Path) -> None:
    senteval.make(root, [])
    with tarfile.open(root / "senteval.tar", "w") as archive:
        archive.add(root / "senteval", "senteval")
    for path in sorted((root / "senteval").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def corpus(root: Path) -> str:
    return sentences.read_corpus("corpus.txt", root).sha256


def corpus_rows(root: Path) -> str:
    return sentences.read_corpus("pairs:rows.tsv.gz", root).sha256


def parquet(root: Path) -> None:
    pd.read_csv(io.BytesIO(CSV)).to_parquet(root / "t.parquet")


def columns(rows: list[tuple[Any, ...]], *names: str) -> dict[str, list[Any]]:
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}


SMILES = b"smiles,toxic,active\nCCO,1,\nc1ccccc1N,0,1\nC[C@H](O)Cl,1,0\nCC=O,0,1\n"
COVERTYPE = "".join(",".join(["1"] * 54) + f",{k % 7}\n" for k in range(15_200))
HIGGS = "".join(f"{k % 2}," + ",".join(["0.5"] * 28) + "\n" for k in range(200))
PMLB = "a\tb\ttarget\n" + "".join(f"{k}\t{k % 5}\t{k % 2}\n" for k in range(12))
CIFAR_10, CIFAR_100 = (cifar_files(hundred) for hundred in (False, True))
RAW: dict[str, Raw] = {
    "TU files": graph("TOY", files(TOY), "TOY", whole=False),
    "a zip of TU files": graph("TOY", zipped("TOY.zip", TOY), "TOY"),
    "own TU files": graph("folder:{}/TOY", files(TOY), "TOY", whole=False),
    "GraphML": graph("folder:{}/g", files(LISTED), "/g"),
    "SMILES": graph("smiles:{}/m.csv", files({"m.csv": SMILES})),
    "edge lists": graph("folder:{}/g", files(EDGES), "/g"),
    "CIFAR-10": image("CIFAR-10", tarred("cifar-10-binary.tar.gz", CIFAR_10), "-10"),
    "CIFAR-10 unpacked": image("CIFAR-10", files(CIFAR_10), "-10"),
    "CIFAR-10-5k": image("CIFAR-10-5k", files(CIFAR_10), "-10"),
    "FC100": image("FC100", files(CIFAR_100), "-100"),
    "STL-10": image("STL-10", files(STL), "stl10_binary"),
    "Tiny-ImageNet": image("Tiny-ImageNet", files(TINY), "iny-", whole=False),
    "Tiny-ImageNet-20": image("Tiny-ImageNet-20", files(TENTH), "iny-", whole=False),
    "DTD-10": image("DTD-10", files(TILES), "DTD-10"),
    "declared arrays": image("Devanagari", declared_arrays, "devanagari.npz"),
    "ImageNet": image("ImageNet", files(IMAGENET), "imagenet"),
    "CUB": image("CUB", cub, "CUB_200"),
    "CAR": image("CAR", car, "cars196", which="*.mat"),
    "SOP": image("SOP", sop, "Stanford"),
    "Food-101": image("Food-101", files(FOOD), "food-101"),
    "pictures": image("folder:{}/p", files(under("p", PICTURES)), "/p"),
    "pictures of datasets": image("hf:{}/mine", saved_pictures, "mine", which="*.arrow"),
    "arrays": image("npz:{}/mine.npz", arrays),
    "SentEval": Raw(sentences.TextFiles, senteval_tar, senteval_sets, "senteval.tar"),
    "a corpus": Raw(sentences.sentences_of, files({"corpus.txt": TEXT}), corpus),
    "a corpus of rows": Raw(sentences.rows_of, packed("rows.tsv.gz", ROWS), corpus_rows),
    "pairs": pairs("pairs:{}/a.tsv", files({"a.tsv": TSV.encode()})),
    "pairs of datasets": pairs(
        "hf:{}/mine", saved(columns(PAIRS, "sentence1", "sentence2", "score")), "mine"
    ),
    "CSV": table("csv:{}/t.csv", files({"t.csv": CSV})),
    "packed CSV": table("csv:{}/t.csv.gz", packed("t.csv.gz", CSV)),
    "Parquet": table("parquet:{}/t.parquet", parquet),
    "a table of datasets": table(
        "hf:{}/mine", saved({"a": list(range(20)), "y": [0, 1] * 10}), "mine"
    ),
    "CoverType": table("CoverType", packed("covtype.data.gz", COVERTYPE.encode())),
    "Higgs": table("Higgs-100K", packed("HIGGS.csv.gz", HIGGS.encode())),
    "PMLB": table("churn", packed("pmlb/churn.tsv.gz", PMLB.encode())),
}
NO_FILES = {  # readers of something else
    **dict.fromkeys(
        (digits.load_grey, tables.scikit_learn_table, tables.hidden_cluster_table), "is embedded"
    ),
    own_graphs.READERS[own.PYTHON]: "is the user's code",
    own_tables.read_openml: "is scikit-learn's",
    own_graphs.read_set: "is torch-geometric's",
}


def readers() -> set[object]:
    listed = *GRAPHS.values(), *IMAGES.values(), *own_sentences.READERS.values(), *TABLES.values()
    return {*listed, sentences.TextFiles, sentences.sentences_of, sentences.rows_of}


def in_a_fork(raw: bytes) -> list[tuple[int, str]]:
    """Read annotations like `matlab.annotations`, in a forked process."""
    quiet = faulthandler.disable  # pytest would print the death that is awaited
    with ProcessPoolExecutor(1, mp_context=get_context("fork"), initializer=quiet) as pool:
        return pool.submit(matlab.read_annotations, raw).result()


@contextmanager
def small() -> Iterator[None]:
    """Sets may be as small as they are here."""
    records = published.binary_records

    def few_records(raw: bytes, count: int, labels: int) -> Any:
        return records(raw, count // 100, labels)

    sizes = {
        **dict.fromkeys(("CUB", "CAR", "SOP"), (4, 2, 2)),
        **{"Tiny-ImageNet-20": (1, 1, 1), "DTD-10": (1, 9, 9), "Devanagari": (2, 4, 4)},
        **dict.fromkeys(("Tiny-ImageNet", "ImageNet", "Food-101"), (2, 2, 2)),
        **{"CIFAR-10": DATASETS["CIFAR-10"].sizes, "STL-10": (10, 5, 8)},
        "CIFAR-10-5k": (10, 50, 10),
    }
    few_images = {
        name: replace(DATASETS[name], sizes=size, content="") for name, size in sizes.items()
    }
    few_images["STL-10"] = replace(few_images["STL-10"], unlabelled=2)
    few_images["DTD-10"] = replace(few_images["DTD-10"], classes=("banded",))
    few_images["Devanagari"] = replace(few_images["Devanagari"], shipped=None)
    few_images["FC100"] = replace(DATASETS["FC100"], classes=("w3", "w70"))
    declared = {"CoverType": (15_200, 55), "Higgs-100K": (200, 29), "churn": (12, 3)}
    few_tables = {
        name: replace(tables.DATASETS[name], sizes=size) for name, size in declared.items()
    }
    few_tables["Higgs-100K"] = replace(few_tables["Higgs-100K"], parts=(40, 10, 20))

    with (
        patch.object(published, "binary_records", few_records),
        patch.object(matlab, "annotations", in_a_fork),
        patch.object(sentences, "DECLARED_ROWS", {}),
        patch.dict(DATASETS, few_images),
        patch.dict(tables.DATASETS, few_tables),
    ):
        yield
