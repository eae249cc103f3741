"""A small set of graphs as TU files: a path of three nodes, two lone nodes, and a triangle."""

from pathlib import Path

TU = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n6, 7\n7, 6\n7, 8\n8, 7\n6, 8\n8, 6\n",
    "graph_indicator": "1\n1\n1\n2\n2\n3\n3\n3\n",
    "graph_labels": "1\n-1\n1\n",
    "node_labels": "0\n2\n0\n0\n0\n2\n2\n1\n",
}


def write(folder: Path, name: str = "TOY", **changes: str | None) -> Path:
    """The files of the set, with changes; None leaves a file out."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, text in {**TU, **changes}.items():
        if text is not None:
            (folder / f"{name}_{suffix}.txt").write_text(text)
    return folder
