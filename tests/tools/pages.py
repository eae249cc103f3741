"""Checks of HTML pages that need no browser: size, links, ids, headings, tables and names."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from urllib.parse import unquote
from xml.etree.ElementTree import Element, TreeBuilder

LARGEST = 1_000_000  # bytes of a page
MAX_TITLE = 60  # characters
HEADING = re.compile(r"h[1-6]")
VOID = {"meta", "link", "input", "br", "img", "hr"}


class Tree(HTMLParser):
    """The elements of a page, and what is wrong with its tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.builder, self.open, self.wrong = TreeBuilder(), list[str](), list[str]()
        self.handle_data = self.builder.data  # type: ignore[method-assign]
        self.feed(text)
        self.wrong += [f"<{tag}> is never closed" for tag in self.open]
        for tag in reversed(self.open):
            self.builder.end(tag)
        self.root = self.builder.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        if tag in VOID:
            self.builder.end(tag)
        else:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        self.builder.end(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open[-1:] == [tag]:
            self.builder.end(self.open.pop())
        else:
            self.wrong.append(f"</{tag}> closes <{''.join(self.open[-1:])}>")


def words(element: Element) -> str:
    return "".join(element.itertext())


def problems(files: Mapping[str, str]) -> Iterator[str]:
    trees = {name: Tree(text) for name, text in files.items() if name.endswith(".html")}
    ids = {name: ids_of(tree) for name, tree in trees.items()}
    for name, tree in trees.items():
        found = [*tree.wrong, *size(files[name]), *twice(ids[name])]
        for check in (whole, headings, landmarks, tables, named):
            found += check(tree.root)
        found += links(name, tree.root, files, ids)
        yield from (f"{name}: {one}" for one in found)


def ids_of(tree: Tree) -> Counter[str]:
    return Counter(one.attrib["id"] for one in tree.root.iter() if "id" in one.attrib)


def size(text: str) -> Iterator[str]:
    if (length := len(text.encode())) >= LARGEST:
        yield f"{length} bytes"


def twice(ids: Counter[str]) -> Iterator[str]:
    yield from (f"the id {name} is there {n} times" for name, n in ids.items() if n > 1)


def whole(html: Element) -> Iterator[str]:
    """Yield which parts a page lacks, such as its title or its language."""
    if html.tag != "html" or html.get("lang") != "en":
        yield "no language"
    title = html.findtext(".//title", "").strip()
    if not 0 < len(title) <= MAX_TITLE:
        yield f"the title {title!r}"
    for name in ("viewport", "color-scheme"):
        if html.find(f".//meta[@name='{name}']") is None:
            yield f"no {name}"
    for tag in ("header", "main", "footer"):
        if html.find(f".//{tag}") is None:
            yield f"no <{tag}>"


def landmarks(root: Element) -> Iterator[str]:
    """Yield the names that several regions and sections have."""
    by_id = {one.get("id"): words(one) for one in root.iterfind(".//*[@id]")}
    names = [one.get("aria-label") for one in root.iterfind(".//*[@role='region']")]
    names += [by_id.get(one.get("aria-labelledby")) for one in root.iter("section")]
    ours = Counter(name for name in names if name)
    yield from (f"{n} regions named {name}" for name, n in ours.items() if n > 1)


def headings(root: Element) -> Iterator[str]:
    level = 0
    for one in root.iter():
        if HEADING.fullmatch(one.tag):
            if int(one.tag[1]) > level + 1:
                yield f"<{one.tag}> {words(one)} after level {level}"
            if not words(one).strip():
                yield f"an empty <{one.tag}>"
            level = int(one.tag[1])
    if level == 0:
        yield "no heading"


def tables(root: Element) -> Iterator[str]:
    """Yield the tables without headers, and the rows whose cells do not fit these."""
    for table in root.iter("table"):
        heads = table.findall(".//thead//th")
        if not heads or any(one.get("scope") != "col" for one in heads):
            yield "a table without headers of columns"
        if any(not words(one).strip() for one in heads):
            yield "a header without words"
        for row in table.iterfind(".//tbody//tr"):
            cells = [one for one in row if one.tag in ("th", "td")]
            if cells[0].get("scope") not in ("row", "rowgroup"):
                yield f"a row without a header: {words(row)[:40]!r}"
            if sum(int(one.get("colspan", 1)) for one in cells) != len(heads):
                yield f"{len(cells)} cells below {len(heads)} headers: {words(row)[:40]!r}"


def named(root: Element) -> Iterator[str]:
    """Yield the pictures, regions and inputs without a name, and links without words."""
    for one in root.iter("svg"):
        if one.get("role") != "img" or not one.get("aria-label"):
            yield "a picture without words"
    for one in root.iter("img"):
        if not one.get("alt"):
            yield "a picture without words"
    for one in root.iterfind(".//*[@role='region']"):
        if not one.get("aria-label"):
            yield "a region without a name"
    labelled = len(root.findall(".//label/input"))
    yield from ["an input without a label"] * (len([*root.iter("input")]) - labelled)
    yield from ("a link without words" for one in root.iter("a") if not words(one).strip())


def links(
    name: str, root: Element, files: Mapping[str, str], ids: Mapping[str, Counter[str]]
) -> Iterator[str]:
    """Yield the links to files and places that are not there; others go to papers alone."""
    for one in (each for tag in ("a", "link", "script") for each in root.iter(tag)):
        address = one.get("href") or one.get("src") or ""
        if (address.startswith("https://") and one.tag == "a") or address.startswith("data:"):
            continue
        path, _, anchor = unquote(address).partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
        if not (address or one.tag == "script") or (address and target not in files):
            yield f"a link to {address!r}"
        elif anchor and anchor not in ids[target]:
            yield f"a link to {address!r}, where no such place is"


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)
