"""The files of somebody's loss, as a record or a bundle brings them: a reader sees what runs."""

import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from unicodedata import name as name_of
from unicodedata import normalize

from pydantic import Field

from contrastbench.domains import strict_yaml
from contrastbench.domains.reading import doubles
from contrastbench.domains.strict import Strict
from contrastbench.errors import UserError

MAX_LINE = 500  # letters: what stands far to the right is not seen
MAX_NAME_BYTES = 200  # bytes of a file's path; file systems take 255 of each part
UNSEEN = re.compile(  # in the names of letters and marks that are drawn as nothing
    r"FILLER|VARIATION SELECTOR|JOINER|VOWEL INHERENT|BLANK|NULL NOTEHEAD"
)


class LossDeclaration(Strict):
    """What an author says of a loss, in a YAML file beside it."""

    licence: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 .+()-]{1,99}$")  # of SPDX names
    paper: str = Field(pattern=r"^https://[^\s<>\"|]{4,300}$")


def read_declaration(path: Path) -> LossDeclaration:
    if not path.is_file():
        raise UserError(f"{path} is missing: write two lines, licence: MIT and paper: https://...")
    return strict_yaml.read_yaml(path).as_model(LossDeclaration)


def check_loss_files(files: Mapping[str, str]) -> None:
    """Raise unless a reader sees what would run, and each file gets a place of its own.

    Args:
        files: texts by their paths within the folder of the loss.
    """
    names = {name: normalize("NFKC", name).casefold() for name in files}
    if double := next(iter(doubles(names.values())), ""):
        raise UserError(f"some systems take two files of the loss for one, {double}: rename one")
    for name, text in files.items():
        check_name(name)
        if {str(folder) for folder in PurePosixPath(names[name]).parents} & {*names.values()}:
            raise UserError(f"{name} lies in a folder that is a file of the loss too: rename one")
        check_text(name, text)


def check_name(name: str) -> None:
    """Raise unless it is a plain path within a folder, and no longer than systems take."""
    path = PurePosixPath(name)
    if len(name.encode()) > MAX_NAME_BYTES:
        fault = f"a name of more than {MAX_NAME_BYTES} bytes"
        raise UserError(f"the loss has {fault}: shorten {name[:40]}...")
    if path.is_absolute() or {".."} & {*path.parts} or not path.parts or str(path) != name:
        raise UserError(f"the loss has a file outside its folder: {name}")


def check_text(name: str, text: str) -> None:
    """Raise if a character of a file cannot be seen, or the file is read by another code."""
    if hidden := re.search(r"\r(?!\n)", text):
        unseen = hidden[0]
    else:
        unseen = next(filter(is_unseen, sorted({*name} | ({*text} - {*"\n\r\t"}))), "")
    if unseen:
        raise UserError(f"{name} has {unseen!a}, which hides code from readers: remove it")
    if (longest := max(map(len, text.expandtabs().splitlines()), default=0)) > MAX_LINE:
        fault = f"a line of {longest} letters, which hides code"
        raise UserError(f"{name} has {fault}: give each at most {MAX_LINE}")
    for word, read in disguised(text):
        raise UserError(f"{name} has {word!a}, which hides code as Python reads {read}: write that")
    try:
        code = tokenize.detect_encoding(io.BytesIO(text.encode()).readline)[0]
    except SyntaxError as error:
        code = str(error)
    if code != "utf-8":
        raise UserError(f"{name} is not read as UTF-8 ({code}): remove its line of coding")


def disguised(text: str) -> Iterator[tuple[str, str]]:
    """Yield words of code that Python reads as others, which a search for these does not find."""
    with suppress(tokenize.TokenError, SyntaxError):  # no Python, or none that runs
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            formatted = re.match("[rR]?[fF]", token.string) and token.string[-1] in "'\""
            if token.type == tokenize.NAME or formatted:
                for word in re.findall(r"\w+", token.string):
                    if (read := normalize("NFKC", word)) != word and read.isascii():
                        yield word, read


def is_unseen(letter: str) -> bool:
    r"""Return whether nothing is drawn in its place, or nobody knows what.

    Those are all that Unicode has for controls, formats, blanks other than a space, private use
    and later versions; and letters and marks that are ignorable by default, or drawn as a blank.

    >>> [is_unseen(letter) for letter in ("a", " ", "\u03c4", "\u00ad", "\u3164", "\ufe0f")]
    [False, False, False, True, True, True]
    """
    return not letter.isprintable() or bool(UNSEEN.search(name_of(letter, "")))


def write_loss_files(files: Mapping[str, str], folder: Path) -> None:
    """Write the files of somebody's loss into a folder, which has none of their names yet."""
    check_loss_files(files)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("xb") as file:
            file.write(text.encode())
