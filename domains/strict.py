"""The base of all that files and options say: unknown keys and wrong types are errors."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Unknown keys and wrong types are errors."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True
    )

    def but(self, **values: Any) -> Self:
        """Return the model with some other values; no type is checked, but the names are."""
        # pydantic alone would let pass what is no field
        if unknown := values.keys() - type(self).model_fields.keys():
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        return self.model_copy(update=values)

    def __copy__(self) -> Self:
        """Copy the fields alone: what was worked out from them is worked out anew."""
        made = super().__copy__()
        for name in made.__dict__.keys() - type(self).model_fields.keys():
            del made.__dict__[name]
        return made
