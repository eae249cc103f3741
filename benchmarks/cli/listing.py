"""Print the other lists of `bench list`, from declarations alone and so without torch."""

import ast
import inspect
import json
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from contrastbench.domains import registry
from contrastbench.domains.declaration import Declaration, Source
from contrastbench.domains.download import whereabouts
from contrastbench.domains.recipe import Recipe
from contrastbench.errors import UserError


def domain_lines() -> Iterator[str]:
    for name, about in registry.declarations().items():
        if isinstance(about, UserError):
            yield f"{name:10} BROKEN: {about}"
        else:
            protocols = f"; protocols: {', '.join(about.protocols)}" if about.protocols else ""
            yield f"{name:10} {about.summary}; embedded: {about.default}{protocols}"


def dataset_lines(domain: str | None = None) -> Iterator[str]:
    for name, about in listed_declarations(domain).items():
        for dataset in about.datasets.values():
            yield f"{dataset.name:20} {name:9} {dataset.described}"
        for source in about.sources:
            yield own_kind_line(name, source)


def recipes(domain: str | None = None) -> Iterator[str]:
    for name, about in listed_declarations(domain).items():
        recipe, said = about.recipe, meanings(about.recipe)
        yield f"{name}: presets {', '.join(recipe.presets) or 'none'}"
        for key, field in recipe.model_fields.items():
            default = field.get_default(call_default_factory=True)
            meaning = "; ".join(filter(None, (kind_text(field.annotation), said[key])))
            yield f"    {key}={value_text(default)} ({meaning})"


def meanings(recipe: type[Recipe]) -> dict[str, str]:
    """Return what stands under the keys of a recipe, or what pydantic knows as their meaning."""
    said = {key: field.description or "" for key, field in recipe.model_fields.items()}
    for kind in reversed([kind for kind in recipe.__mro__ if issubclass(kind, Recipe)]):
        for node, below in pairwise(ast.walk(module_tree(inspect.getfile(kind)))):
            match node, below:
                case ast.AnnAssign(ast.Name(key)), ast.Expr(ast.Constant(str(text))):
                    said |= {key: " ".join(text.split())} if key in kind.__annotations__ else {}
    return said


@cache
def module_tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text("utf-8"))


def listed_declarations(domain: str | None) -> dict[str, Declaration]:
    return {domain: registry.declaration(domain)} if domain else registry.loaded_declarations()


def value_text(value: Any) -> str:
    """A value as --recipe takes it.

    >>> value_text((256, 64)), value_text(True), value_text(None)
    ('[256,64]', 'true', 'null')
    """
    return json.dumps(value, separators=(",", ":")) if not isinstance(value, str) else value


def kind_text(kind: Any) -> str:
    """A type for people.

    >>> kind_text(Literal["adam", "sgd"]), kind_text(int | None), kind_text(tuple[int, ...])
    ('adam|sgd', 'int|null', 'list of int')
    """
    origin, parts = get_origin(kind), get_args(kind)
    if kind is NoneType:
        return "null"
    if origin is Annotated:
        return kind_text(parts[0])
    if origin is Literal:
        return "|".join(map(value_text, parts))
    if origin in (Union, UnionType):
        return "|".join(map(kind_text, parts))
    if origin is tuple:
        return f"list of {kind_text(parts[0])}"
    return getattr(kind, "__name__", str(kind))


def data_lines(data_root: Path | None = None, name: str | None = None) -> Iterator[str]:
    for domain, about in registry.loaded_declarations().items():
        for dataset in {**about.datasets, **about.corpora}.values():
            if name in (None, dataset.name):
                there = whereabouts(dataset, data_root)
                yield f"{dataset.name:20} {domain:9} {there:12} {dataset.described}"
        for source in about.sources if name is None else ():
            yield own_kind_line(domain, source)


def own_kind_line(domain: str, source: Source) -> str:
    return f"{source.usage:20} {domain:9} your own: {source.summary}"
