"""A tiny data set for each reader, as files: what tests/attack/test_raw_files.py damages.

Who adds a reader adds its set here; a test names the readers that have none.
"""

import faulthandler
import gzip
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.io import savemat

import hostile
import senteval
from contrastbench.domains import own
from contrastbench.domains.declaration import reader_of
from contrastbench.domains.graph import data as graphs
from contrastbench.domains.graph import own as own_graphs
from contrastbench.domains.image.data import digits, matlab, published, transfer_sets
from contrastbench.domains.image.data import own as own_images
from contrastbench.domains.image.data.datasets import DATASETS
from contrastbench.domains.own import read_unchanged
from contrastbench.domains.sentence import data as sentences
from contrastbench.domains.sentence import own as own_sentences
from contrastbench.domains.sentence.own import read_any
from contrastbench.domains.sentence.transfer import tasks
from contrastbench.domains.tabular import data as tables
from contrastbench.domains.tabular import frames
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


def anew(read: Callable[[str, Path], str], *kept: Any) -> Callable[[str], Callable[[Path], str]]:
    """Return what reads a set by its name in a folder, with nothing of what is kept in memory."""

    def of_name(name: str) -> Callable[[Path], str]:
        def of_folder(root: Path) -> str:
            for one in (read_unchanged, *kept):
                one.cache_clear()
            return read(name.format(root), root)

        return of_folder

    return of_name


graph = anew(lambda name, root: own_graphs.load_own_graphs(name, root)[1], graphs.load_graphs)
image = anew(
    lambda name, root: own_images.load_images(name, 16, root, CPU)[1], own_images.load_declared
)
table = anew(lambda name, root: tables.load_rows(name, None, root)[1], tables.load_declared)
own_table = anew(lambda name, root: tables.load_rows(name, "y", root)[1])
pairs = anew(lambda name, _: read_any(name, None).sha256)


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


def senteval_sets(place: str) -> Callable[[Path], str]:
    def read(root: Path) -> str:
        found = sentences.TextFiles(root / place)
        sentences.stsb_pairs(found, "dev")
        sentences.sts_sets(found)
        tasks(found)
        return found.sha256.hexdigest()

    return read


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
    "TU files": Raw(graphs.load_graphs, files(TOY), graph("TOY"), "TOY", whole=False),
    "a zip of TU files": Raw(graphs.load_graphs, zipped("TOY.zip", TOY), graph("TOY"), "TOY"),
    "own TU files": Raw(
        own_graphs.read_folder, files(TOY), graph("folder:{}/TOY"), "TOY", whole=False
    ),
    "GraphML": Raw(own_graphs.read_folder, files(LISTED), graph("folder:{}/g"), "/g"),
    "SMILES": Raw(own_graphs.read_smiles, files({"m.csv": SMILES}), graph("smiles:{}/m.csv")),
    "edge lists": Raw(own_graphs.read_folder, files(EDGES), graph("folder:{}/g"), "/g"),
    "CIFAR-10": Raw(
        published.load_cifar, tarred("cifar-10-binary.tar.gz", CIFAR_10), image("CIFAR-10"), "-10"
    ),
    "CIFAR-10 unpacked": Raw(published.load_cifar, files(CIFAR_10), image("CIFAR-10"), "-10"),
    "CIFAR-10-5k": Raw(published.load_cifar, files(CIFAR_10), image("CIFAR-10-5k"), "-10"),
    "FC100": Raw(published.load_few_shot, files(CIFAR_100), image("FC100"), "-100"),
    "STL-10": Raw(published.load_stl, files(STL), image("STL-10"), "stl10_binary"),
    "Tiny-ImageNet": Raw(
        published.load_tiny, files(TINY), image("Tiny-ImageNet"), "iny-", whole=False
    ),
    "Tiny-ImageNet-20": Raw(
        published.load_tenth, files(TENTH), image("Tiny-ImageNet-20"), "iny-", whole=False
    ),
    "DTD-10": Raw(published.load_tiles, files(TILES), image("DTD-10"), "DTD-10"),
    "declared arrays": Raw(
        own_images.load_declared_arrays, declared_arrays, image("Devanagari"), "devanagari.npz"
    ),
    "ImageNet": Raw(published.load_imagenet, files(IMAGENET), image("ImageNet"), "imagenet"),
    "CUB": Raw(published.load_disjoint, cub, image("CUB"), "CUB_200"),
    "CAR": Raw(published.load_disjoint, car, image("CAR"), "cars196", which="*.mat"),
    "SOP": Raw(published.load_disjoint, sop, image("SOP"), "Stanford"),
    "Food-101": Raw(transfer_sets.load_transfer, files(FOOD), image("Food-101"), "food-101"),
    "pictures": Raw(
        own_images.read_folder, files(under("p", PICTURES)), image("folder:{}/p"), "/p"
    ),
    "pictures of datasets": Raw(
        own_images.read_saved, saved_pictures, image("hf:{}/mine"), "mine", which="*.arrow"
    ),
    "arrays": Raw(own_images.READERS["npz"], arrays, image("npz:{}/mine.npz")),
    "SentEval": Raw(
        sentences.TextFiles, senteval_tar, senteval_sets("senteval.tar"), "senteval.tar"
    ),
    "a corpus": Raw(sentences.sentences_of, files({"corpus.txt": TEXT}), corpus),
    "a corpus of rows": Raw(sentences.rows_of, packed("rows.tsv.gz", ROWS), corpus_rows),
    "pairs": Raw(
        own_sentences.READERS["pairs"], files({"a.tsv": TSV.encode()}), pairs("pairs:{}/a.tsv")
    ),
    "pairs of datasets": Raw(
        own_sentences.read_saved,
        saved(columns(PAIRS, "sentence1", "sentence2", "score")),
        pairs("hf:{}/mine"),
        "mine",
    ),
    "CSV": Raw(own_tables.READERS["csv"], files({"t.csv": CSV}), own_table("csv:{}/t.csv")),
    "packed CSV": Raw(
        own_tables.READERS["csv"], packed("t.csv.gz", CSV), own_table("csv:{}/t.csv.gz")
    ),
    "Parquet": Raw(own_tables.READERS["parquet"], parquet, own_table("parquet:{}/t.parquet")),
    "a table of datasets": Raw(
        own_tables.read_saved,
        saved({"a": list(range(20)), "y": [0, 1] * 10}),
        own_table("hf:{}/mine"),
        "mine",
    ),
    "CoverType": Raw(
        frames.read_table, packed("covtype.data.gz", COVERTYPE.encode()), table("CoverType")
    ),
    "Higgs": Raw(frames.read_higgs, packed("HIGGS.csv.gz", HIGGS.encode()), table("Higgs-100K")),
    "PMLB": Raw(frames.read_table, packed("pmlb/churn.tsv.gz", PMLB.encode()), table("churn")),
}
NO_FILES = {  # readers of something else
    **dict.fromkeys(
        (digits.load_grey, tables.scikit_learn_table, tables.hidden_cluster_table), "is embedded"
    ),
    own_graphs.READERS[own.PYTHON]: "is the user's code",
    own_tables.read_openml: "is scikit-learn's",
    own_graphs.read_set: "is torch-geometric's",
}


def declared_readers() -> Iterator[dict[str, Any]]:
    """Yield the readers of declared images and tables by name."""
    for module, sets in ((own_images, DATASETS), (tables, tables.DATASETS)):
        yield {name: reader_of(str(module.__package__), about) for name, about in sets.items()}


def readers() -> set[object]:
    listed: list[dict[str, Any]] = [
        *(own_graphs.READERS, own_images.READERS, own_sentences.READERS, own_tables.READERS),
        *declared_readers(),
    ]
    known = {reader for table in listed for reader in table.values()}
    of_sentences = sentences.TextFiles, sentences.sentences_of, sentences.rows_of
    return known | {graphs.load_graphs, *of_sentences}


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
