"""Files of one graph each: GraphML, and lists of edges."""

import re
from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from contrastbench.domains.reading import check_kind, contents, reading, refuse

LABELS_FILE = "labels.csv"  # beside graph files: the name of each with its class
GRAPH_FILES = (".graphml", ".csv", ".tsv", ".edges", ".txt")
ENDS = (  # names of an edge's two columns
    "source|src|from|u|node_?1|node_?a|head|start|sender|i",
    "target|dst|dest|destination|to|v|node_?2|node_?b|tail|end|receiver|j",
)
END_NAMES = [re.compile(rf"(?i)(?:node[_ ]?)?(?:{e})(?:[_ ]?(?:id|node|idx|index))?") for e in ENDS]
MOST_COLUMNS = 4  # of an edge list without names: both nodes, a weight and a time


class FileGraph(NamedTuple):
    """A graph as a file has it."""

    labels: list[str]  # of its nodes; empty where there is none
    edges: list[tuple[int, int]]
    further: Collection[str] = ()  # names of what edges and nodes have besides, and nobody reads


def read_file(path: Path) -> FileGraph:
    import networkx as nx

    with reading(path, "repair or replace it", "cannot be read"):
        if path.suffix.lower() == ".graphml":
            graph = nx.read_graphml(path)  # the first one, and nothing that is within a node
            count = len(re.findall(rb"<(?:\w+:)?graph[\s>]", contents(path)))
            refuse(
                path, (count > 1, f" holds {count} graphs: give each a file, and none in a node")
            )
            labels = [label for _, label in graph.nodes(data="label", default="")]
            place = {node: k for k, node in enumerate(graph)}
            edges = [(place[a], place[b]) for a, b in graph.edges()]
            known = [data for *_, data in (*graph.nodes(data=True), *graph.edges(data=True))]
            return FileGraph([*map(str, labels)], edges, {*chain(*known)} - {"label"})
        check_kind(path, "a list of edges", "give two columns of nodes")
        pairs, further = node_pairs(contents(path).decode("utf-8-sig"))
    fix = f"add one, or take it out of {LABELS_FILE}"
    refuse(path, (not pairs, f" has no edge, and so no node: {fix}"))
    place = {node: k for k, node in enumerate(dict.fromkeys(chain.from_iterable(pairs)))}
    return FileGraph([""] * len(place), [(place[a], place[b]) for a, b in pairs], further)


def node_pairs(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    r"""Return the nodes of each line of a list of edges, and the names of further columns.

    Tabs, commas, semicolons or blanks stand between columns. Those named source and target, or the
    like, hold the nodes, otherwise the first two do. What follows # or % is left out.

    >>> node_pairs("id, source, target\n7, 0, 1\n8, 1, 2"), node_pairs("0 1\n1 2")
    (([('0', '1'), ('1', '2')], ['id']), ([('0', '1'), ('1', '2')], []))
    """
    lines = [*filter(None, (re.split("[#%{]", line)[0].strip() for line in text.splitlines()))]
    sign = next((sign for sign in "\t,;" if lines and sign in lines[0]), None)
    rows = [[word.strip(" \"'") for word in line.split(sign)] for line in lines]
    first, second, header = end_columns(rows)
    pairs = [two_nodes(row, (first, second)) for row in rows[header:]]
    low, high = (pick(map(len, rows), default=2) for pick in (min, max))
    if low < high or (high > MOST_COLUMNS and not header):
        raise ValueError(f"lines have {low} to {high} columns: give two, or name source and target")
    if rows and not header:
        check_nameless(rows, {*chain.from_iterable(pairs[1:])})
    columns = [*zip(*rows[header:], strict=True)]
    names = rows[0] if header else [f"column {k + 1}" for k in range(high)]
    nulls = [" (0 of some edges)" * (column.count("0") > 1) for column in columns]
    named = [*map("".join, zip(names, nulls, strict=False))]
    others = [name for k, name in enumerate(named) if k not in (first, second)]
    return pairs, others + ["data in brackets"] * ("{" in text)


def two_nodes(row: Sequence[str], columns: Sequence[int]) -> tuple[str, str]:
    ends = [row[k] for k in columns if row[k:] and re.match(r"(?!nan$).*\w", row[k])]
    if len(ends) < 2:
        raise ValueError(f"{' '.join(row)!r} does not name two nodes")
    return ends[0], ends[1]


def check_nameless(rows: Sequence[Sequence[str]], known: Collection[str]) -> None:
    """Raise if lines without names are probably not of two nodes and more of their edge."""
    many, count = rows[0][0], rows[0][-1]
    counted = many.isdecimal() and many not in known and int(many) >= len(known) > 0
    if counted and count == str(len(rows) - 1):
        raise ValueError(f"{' '.join(rows[0])!r} counts nodes and edges: remove it")
    first, *others = zip(*rows, strict=True)
    if len(others) < 2:
        return
    if all(word.count(".") for word in first) and not any("." in word for word in others[0]):
        raise ValueError(f"{first[0]!r} may be a weight: name the columns source and target")
    around = {*chain.from_iterable(zip(first, other, strict=True) for other in others)}
    if len({*first}) == len(first) > 3 and all((b, a) in around for a, b in around):
        raise ValueError("each line may be a node and its neighbours: give each edge a line")


def end_columns(rows: Sequence[Sequence[str]]) -> tuple[int, int, bool]:
    """Return the places of the two nodes of an edge, and whether the first line names columns.

    >>> end_columns([("source", "target"), ("a", "b")]), end_columns([("a", "b"), ("b", "c")])
    ((0, 1, True), (0, 1, False))
    """
    first, rest = rows[0] if rows else (), rows[1:]
    places = [[k for k, word in enumerate(first) if name.fullmatch(word)] for name in END_NAMES]
    if all(places) and not {*first} & {*chain.from_iterable(rest)}:
        return places[0][0], places[1][0], True
    header = bool(rest) and not all(word.isdecimal() for word in first[:2])
    header &= all(word.isdecimal() for row in rest for word in row[:2])
    if header and len(first) > 2:
        raise ValueError(f"{', '.join(first)!r} does not say which are source and target")
    return 0, 1, header
