"""Tables of the Penn Machine Learning Benchmarks, pinned by commit and sha256."""

from contrastbench.domains.declaration import by_name
from contrastbench.domains.tabular.dataset import TabularDataset

URL = "https://github.com/EpistasisLab/pmlb/raw/aeb924dcdc2b74c31fb87c2013c839e9ad3e77db/datasets/classification/{0}/{0}.tsv.gz"
CITATION = (
    "Olson et al., PMLB: a large benchmark suite for machine learning evaluation and comparison, "
    "BioData Mining 10:36, 2017"
)
TABLES = {  # rows, features, classes, sha256 of the file
    "adult": (48842, 14, 2, "fb8bc76eafa39558b6044907f23416faf99099cefb8afd06a2cf5afbdae1b506"),
    "ann-thyroid": (
        7200,
        21,
        3,
        "3a4434a1f86ea83db795dd5acd7576c0e782287d9d32df74eef20e29bc1c45cd",
    ),
    "car": (1728, 6, 4, "32d94576f8622f22279a02099e5269511a8b14fee6a441e880730966763b79c9"),
    "churn": (5000, 20, 2, "7a8bf22bd4c0845187d4d6eb39b215181ba149834b851430a68052a7a3a86bcc"),
    "connect-4": (67557, 42, 3, "e283074e1123d23361332bd83414c172640d2596fc076d1e20e8f4a64a658137"),
    "krkopt": (28056, 6, 18, "0d05767a4c118752a25c4632aeea3b71ffa1bfe122b6a2401f85d20541be19a4"),
    "letter": (20000, 16, 26, "f8ffe4f9920dc63fb85b864cc1afffb66e45c6e302d175905fd7db04ba67b8c6"),
    "magic": (19020, 10, 2, "c823ea26d676538f9194d41f290798ff2f3fe59255c340418fd9439d8fc9c07f"),
    "mfeat-factors": (
        2000,
        216,
        10,
        "fece3ba48bd6fec6598a60377f0fbf8405e12273e369df96e55913e301f52c02",
    ),
    "nursery": (12958, 8, 4, "5e56c09fc2c6a983c031879fe7de5fc945c44db2ca65f10fc5f5b6fc770489ff"),
    "optdigits": (5620, 64, 10, "b70b7ac68a54d1ccd41bd24f11324c3af96b67541791fb9d8684cbdf151533c3"),
    "page-blocks": (
        5473,
        10,
        5,
        "ebd2c0505b95df7c3fbcd132fe97d35cf85dc6be9b939f26cb0962f8134a5198",
    ),
    "pendigits": (
        10992,
        16,
        10,
        "73294fc30c2c50bf737c954d04cca3a1be69508535d3d52e2512ec88fefaad3f",
    ),
    "phoneme": (5404, 5, 2, "2e1c31a2c560f3539be5bda1084939765c80ddd814bd6919fd8a3465f9b8aee6"),
    "satimage": (6435, 36, 6, "1ee8cf9693351db7afe68f6fc32942845caae3e1030c688efa6c5d0b24229f46"),
    "segmentation": (
        2310,
        19,
        7,
        "980ba4342d2fe489793cc3431678318f8d1467fe6bf6a687eb18bfc2267a049f",
    ),
    "spambase": (4601, 57, 2, "735e8d43f7ee78ac54ca17404510e95f4c8b364a721e4d9532a1b3221ed70961"),
    "splice": (3188, 60, 3, "30f7c126059de9f5962c41bbfbdee2926ea9432e4d620930ce6db79a43885510"),
    "waveform-40": (
        5000,
        40,
        3,
        "b095f9d384fbac256b5870d3ca01d687e776a81457351a8a6fa56e7f1d09c4b0",
    ),
    "wine-quality-white": (
        4893,
        11,
        6,
        "0cc1f1bc6dcebaade1c03ca474a40af8ca327b455384426277b54118fef439fd",
    ),
}

EQUAL = {  # percent of test rows that equal a training row, from 1 on
    **{"ann-thyroid": 1.2, "letter": 8.2, "page-blocks": 1.8, "phoneme": 1.3, "segmentation": 11.9},
    **{"spambase": 9.6, "splice": 11.1, "wine-quality-white": 23.8},
}


def pmlb(name: str, rows: int, features: int, classes: int, sha256: str) -> TabularDataset:
    """A table of the collection; categories are numbers there."""
    return TabularDataset(
        name,
        f"{rows:,} rows, {features} features, {classes} classes (PMLB)",
        URL.format(name),
        sha256,
        citation=CITATION,
        licence="MIT",
        sizes=(rows, features + 1),
        folder="pmlb",
        reader="data:read_pmlb",
        target="target",
        equal=EQUAL.get(name, 0.0),
    )


PMLB_DATASETS = by_name(*(pmlb(name, *about) for name, about in TABLES.items()))
