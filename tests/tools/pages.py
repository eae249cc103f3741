"""Checks of HTML pages that need no browser: size, links, ids, headings, tables and names."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from urllib.parse import unquote

LARGEST = 1_000_000  # bytes of a page
MAX_TITLE = 60  # characters
HEADING = re.compile(r"h[1-6]")
VOID = {"meta", "link", "input", "br", "img", "hr"}
Attributes = dict[str, str | None]


class Element:
    def __init__(self, tag: str, attributes: Attributes, within: "Element | None") -> None:
        self.tag, self.attributes, self.within = tag, attributes, within
        self.children: list[Element] = []
        self.text = ""

    def all(self, *tags: str) -> Iterator["Element"]:
        for child in self.children:
            if not tags or child.tag in tags:
                yield child
            yield from child.all(*tags)

    def words(self) -> str:
        return self.text + "".join(child.words() for child in self.children)


class Tree(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.root = self.here = Element("", {}, None)
        self.wrong: list[str] = []
        self.feed(text)
        self.wrong += [f"<{self.here.tag}> is never closed"] * (self.here is not self.root)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, dict(attrs), self.here)
        self.here.children.append(made)
        if tag not in VOID:
            self.here = made

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.here.children.append(Element(tag, dict(attrs), self.here))

    def handle_endtag(self, tag: str) -> None:
        if self.here.tag != tag or self.here.within is None:
            self.wrong.append(f"</{tag}> closes <{self.here.tag}>")
        else:
            self.here = self.here.within

    def handle_data(self, data: str) -> None:
        self.here.text += data


def problems(files: Mapping[str, str]) -> Iterator[str]:
    trees = {name: Tree(text) for name, text in files.items() if name.endswith(".html")}
    ids = {name: ids_of(tree) for name, tree in trees.items()}
    for name, tree in trees.items():
        found = [*tree.wrong, *size(files[name]), *twice(ids[name]), *whole(tree.root)]
        found += [
            *headings(tree.root),
            *landmarks(tree.root),
            *tables(tree.root),
            *named(tree.root),
        ]
        found += links(name, tree.root, files, ids)
        yield from (f"{name}: {one}" for one in found)


def ids_of(tree: Tree) -> Counter[str]:
    return Counter(str(one.attributes["id"]) for one in tree.root.all() if "id" in one.attributes)


def size(text: str) -> Iterator[str]:
    if (length := len(text.encode())) >= LARGEST:
        yield f"{length} bytes"


def twice(ids: Counter[str]) -> Iterator[str]:
    yield from (f"the id {name} is there {n} times" for name, n in ids.items() if n > 1)


def whole(root: Element) -> Iterator[str]:
    """Yield which parts a page lacks, such as its title or its language."""
    (html,) = root.all("html")
    if html.attributes.get("lang") != "en":
        yield "no language"
    title = next(root.all("title")).words().strip()
    if not 0 < len(title) <= MAX_TITLE:
        yield f"the title {title!r}"
    names = {one.attributes.get("name") for one in root.all("meta")}
    yield from (f"no {name}" for name in ("viewport", "color-scheme") if name not in names)
    yield from (f"no <{tag}>" for tag in ("header", "main", "footer") if not any(root.all(tag)))


def landmarks(root: Element) -> Iterator[str]:
    """Yield the names that several regions and sections have."""
    by_id = {one.attributes["id"]: one.words() for one in root.all() if "id" in one.attributes}
    names = [
        one.attributes.get("aria-label")
        for one in root.all()
        if one.attributes.get("role") == "region"
    ]
    names += [by_id.get(one.attributes.get("aria-labelledby")) for one in root.all("section")]
    ours = Counter(name for name in names if name)
    yield from (f"{n} regions named {name}" for name, n in ours.items() if n > 1)


def headings(root: Element) -> Iterator[str]:
    level = 0
    for one in root.all():
        if HEADING.fullmatch(one.tag):
            if int(one.tag[1]) > level + 1:
                yield f"<{one.tag}> {one.words()} after level {level}"
            if not one.words().strip():
                yield f"an empty <{one.tag}>"
            level = int(one.tag[1])
    if level == 0:
        yield "no heading"


def tables(root: Element) -> Iterator[str]:
    """Yield the tables without headers, and the rows whose cells do not fit these."""
    for table in root.all("table"):
        heads = [one for part in table.all("thead") for one in part.all("th")]
        if not heads or any(one.attributes.get("scope") != "col" for one in heads):
            yield "a table without headers of columns"
        if any(not one.words().strip() for one in heads):
            yield "a header without words"
        for row in (row for part in table.all("tbody") for row in part.all("tr")):
            cells = [one for one in row.children if one.tag in ("th", "td")]
            if cells[0].attributes.get("scope") not in ("row", "rowgroup"):
                yield f"a row without a header: {row.words()[:40]!r}"
            if sum(int(one.attributes.get("colspan") or 1) for one in cells) != len(heads):
                yield f"{len(cells)} cells below {len(heads)} headers: {row.words()[:40]!r}"


def named(root: Element) -> Iterator[str]:
    """Yield the pictures, regions and inputs without a name, and links without words."""
    for one in root.all("svg"):
        if one.attributes.get("role") != "img" or not one.attributes.get("aria-label"):
            yield "a picture without words"
    for one in root.all("img"):
        if not one.attributes.get("alt"):
            yield "a picture without words"
    for one in root.all():
        if one.attributes.get("role") == "region" and not one.attributes.get("aria-label"):
            yield "a region without a name"
    for one in root.all("input"):
        if one.within is None or one.within.tag != "label":
            yield "an input without a label"
    yield from ("a link without words" for one in root.all("a") if not one.words().strip())


def links(
    name: str, root: Element, files: Mapping[str, str], ids: Mapping[str, Counter[str]]
) -> Iterator[str]:
    """Yield the links to files and places that are not there; others go to papers alone."""
    for one in root.all("a", "link", "script"):
        address = one.attributes.get("href") or one.attributes.get("src") or ""
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
