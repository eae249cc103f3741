"""The declaration of a table of numbers."""

from dataclasses import dataclass

from contrastbench.domains.declaration import Dataset


@dataclass(frozen=True)
class TabularDataset(Dataset):
    """A table: besides its source, how it is read. Its `sizes` are rows and columns."""

    layout: str = ""  # the name of scikit-learn's loader
    target: int | str = ""  # the column of the classes
    parts: tuple[int, int, int] | None = None  # rows to train, to validate, to test; None: drawn

    @property
    def starts(self) -> tuple[int, int] | None:
        """Return the first rows of the validation and of the test part."""
        return self.parts and (self.parts[0], self.parts[0] + self.parts[1])
