"""What a user did wrong, in one line that names the fix."""

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """A mistake of the user's: its message is one line and names the fix; the command line exits with 2."""


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> UserError:
    """The error for a name that is not among the known ones, with the closest of them.

    >>> unknown("loss", "adnc", ["adnce", "infonce"])
    UserError("unknown loss 'adnc': did you mean 'adnce'?")
    """
    known = sorted(known)
    folded = {k.casefold(): k for k in known}
    near = [folded[k] for k in difflib.get_close_matches(name.casefold(), folded, n=2, cutoff=0.6)]
    fix = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {', '.join(known) or 'none'}"
    return UserError(f"unknown {kind} {name!r}: {fix}{hint}")
