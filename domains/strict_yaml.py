"""Read YAML strictly: each mistake is one line that names the file and the line in it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml
from yaml.constructor import ConstructorError

from contrastbench.errors import UserError, unknown

if TYPE_CHECKING:  # lists read files without it
    from pydantic import BaseModel

ParsedModel = TypeVar("ParsedModel", bound="BaseModel")
Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's loader is ten times faster
PLAIN_TAGS = {
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "seq", "map")
}
KINDS = {  # pydantic's errors of a wrong kind, and what is asked for
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "keys with values",
    "model_type": "keys with values",
}
# of Unicode, but line breaks and tabs; the last two ranges turn the text beside them around
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
MAX_VALUES = 10**6  # of a file: nine aliases of nine, nine times over, fill all memory
MERGE, TEXT = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:str"


class SafeLoader(Base):  # type: ignore[misc]  # of types-PyYAML, which knows no libyaml
    """Plain values, each written in one way; 1e-3 is a number as it is on the command line."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.sizes: dict[
            yaml.Node, int
        ] = {}  # values of lists and keys, wherever an anchor is named

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node; raise for what YAML takes without a word.

        Keys given twice, dates, 12:30 for 750, a list inside itself.
        """
        if node in self.constructed_objects:  # an anchor's content, however often it is named
            return self.constructed_objects[node]
        if node in self.recursive_objects:
            raise refused(node, "the alias contains itself: remove it")
        kind = node.tag.rpartition(":")[2]
        if node.tag not in PLAIN_TAGS:
            raise refused(node, f"a {kind} is no plain value: quote it")
        if isinstance(node, yaml.ScalarNode):
            check_notation(node)
        elif isinstance(node, yaml.MappingNode):
            check_keys(node)
        try:
            value = super().construct_object(node, deep=True)
        except (ValueError, LookupError):
            raise refused(node, f"{node.value!r} is no {kind}: leave the tag out") from None
        if isinstance(value, int) and value.bit_length() > 64:  # Python prints no very long one
            raise refused(node, "a whole number has more than 64 bits: write a smaller one")
        if isinstance(node, yaml.CollectionNode):
            self.check_size(node)
        return value

    def check_size(self, node: yaml.CollectionNode) -> None:
        parts = chain(*node.value) if isinstance(node, yaml.MappingNode) else node.value
        self.sizes[node] = 1 + sum(self.sizes.get(part, 1) for part in parts)
        if self.sizes[node] > MAX_VALUES:
            raise refused(node, f"its aliases make more than {MAX_VALUES:,} values: write fewer")


SafeLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+[eE][-+]?\d+$"), list("-+0123456789")
)


@dataclass(frozen=True)
class Document:
    """A YAML file, read once: its value, and where each part of it stands."""

    path: Path | None = None  # None: the value is ours, and no file is to blame
    node: yaml.Node | None = None
    value: Any = None

    def as_model(self, model: type[ParsedModel]) -> ParsedModel:
        if not isinstance(self.value, dict):
            what = "is empty" if self.value is None else "has no keys at its top"
            raise self.wrong_at([], f"the file {what}: write KEY: VALUE lines")
        from pydantic import ValidationError

        try:
            return model.model_validate(self.value)
        except ValidationError as error:
            # a missing key may be one that is misspelt, which is the better thing to name
            faults = sorted(error.errors(), key=lambda each: each["type"] == "missing")
            places = [place_of(each, self.value) for each in faults]
            first = len(places[0])
            # of a value that may be a list or a text, what is wrong within the list
            where = max((place for place in places if place[:first] == places[0]), key=len)
            same = [each for each, place in zip(faults, places, strict=True) if place == where]
            raise self.wrong_at(where, validation_message(same, where, model)) from None

    def wrong_at(self, where: list[int | str], what: object) -> UserError:
        return UserError(f"{self.path}:{place_in(self.node, where)[1]}: {what}")

    def text(self, where: list[int | str]) -> str:
        node, _ = place_in(self.node, where)
        return str(node and node.value)

    @contextmanager
    def at(self, *where: int | str) -> Iterator[None]:
        """Name this part of the file in mistakes that are found within the block."""
        try:
            yield
        except UserError as error:
            if self.path is None:
                raise
            raise self.wrong_at(list(where), error) from None


def read_yaml(path: Path) -> Document:
    try:
        loader = SafeLoader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        return Document(path, node, loader.construct_document(node) if node else None)
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror}): name a YAML file") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text: save it as UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise UserError(f"{path}:{line}: {error.problem or error.context}") from None
    except RecursionError:
        fault = "its lists are too deep within each other: flatten them"
        raise UserError(f"{path}:1: {fault}") from None
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise UserError(f"{path}: {' '.join(str(error).split())}") from None


def place_of(error: Any, value: Any) -> list[int | str]:
    """Return where an error is in the file, without pydantic's names of kinds and of unions."""
    where: list[int | str] = []
    for part in error["loc"]:
        keyed = isinstance(value, dict) and part in value
        if keyed or (isinstance(value, list) and isinstance(part, int)):
            where, value = [*where, part], value[part]
    lacks = error["type"] == "missing"
    return [*where, error["loc"][-1]] if lacks else where


def validation_message(errors: list[Any], where: list[int | str], model: "type[BaseModel]") -> str:
    """Return pydantic's errors at one place in words: several, if it may be of several kinds."""
    first = errors[0]
    if first["type"] == "extra_forbidden":
        return str(unknown("key", str(where[-1]), keys_beside(model, where)))
    if first["type"] == "missing":
        return f"the key {where[-1]!r} is missing"
    value = "" if isinstance(first["input"], (dict, list)) else f"={first['input']!r}"
    kinds = dict.fromkeys(KINDS[error["type"]] for error in errors if error["type"] in KINDS)
    fix = f"give {' or '.join(kinds)}" if kinds else first["msg"][:1].lower() + first["msg"][1:]
    return f"{'.'.join(map(str, where))}{value}: {fix}"


def check_keys(node: yaml.MappingNode) -> None:
    lines: dict[str, int] = {}
    for key, _ in node.value:
        if key.tag not in (MERGE, TEXT):
            shown = key.value if isinstance(key.value, str) else "?"
            raise refused(key, f"the key {shown} is no text: quote it")
        if first := lines.get(key.value):
            fault = f"the key {key.value!r} was given in line {first} already: remove one"
            raise refused(key, fault)
        lines[key.value] = key.start_mark.line + 1


def check_notation(node: yaml.ScalarNode) -> None:
    """Raise for ambiguous notations of YAML 1.1.

    Control characters would break pages and plots.
    """
    if not node.value.isprintable() and CONTROL.search(node.value):
        raise refused(node, f"{node.value!r} has a control character: remove it")
    if node.tag.endswith((":int", ":float")) and re.search(r"[:_]|^[-+]?0\d", node.value):
        fix = "quote it, or write the number plainly"
        raise refused(node, f"{node.value} is an ambiguous number in YAML: {fix}")


def refused(node: yaml.Node, fault: str) -> yaml.MarkedYAMLError:
    return ConstructorError(problem=fault, problem_mark=node.start_mark)


def place_in(node: yaml.Node | None, where: list[int | str]) -> tuple[yaml.Node | None, int]:
    """Return the node of a part of a file and its line; of what lacks, what should hold it."""
    line = node.start_mark.line + 1 if node else 1
    for part in where:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        elif isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == part), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
    return node, line


def keys_beside(model: "type[BaseModel]", where: list[int | str]) -> list[str]:
    schema = here = model.model_json_schema()
    for part in where[:-1]:
        inner = here["items"] if isinstance(part, int) else here.get("properties", {}).get(part)
        here = inner or here["additionalProperties"]
        here = next((kind for kind in here.get("anyOf", ()) if "$ref" in kind), here)  # or null
        here = schema["$defs"][here["$ref"].rpartition("/")[2]] if "$ref" in here else here
    return list(here["properties"])
