"""Facts about a pairing that a recipe knows before any contrast is made. Brings no torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pairing:
    """Facts about a pairing: its denominator and the number of positives of an anchor."""

    positive_in_denominator: bool  # whether the pairing adds the positive to the denominator
    one_positive: bool = True  # whether each anchor has exactly one
    mean_over_negatives: bool = False  # whether the denominator has their mean, not their sum
    two_views: bool = True  # whether the contrast has two whole views, which losses of views need
    own_view: bool = False  # whether an anchor's negatives are rows of its own view alone


# by the function of `losses.contrast` that makes the contrast
BOTH_VIEWS = QUERY_KEY = Pairing(positive_in_denominator=True)
OTHER_VIEW = Pairing(positive_in_denominator=False, mean_over_negatives=True)
OWN_VIEW = Pairing(positive_in_denominator=True, own_view=True)
WHOLE_ROW = Pairing(positive_in_denominator=False)
WHOLE_OF = Pairing(positive_in_denominator=True, two_views=False)
SAME_CLASS = PART_OF = Pairing(positive_in_denominator=True, one_positive=False, two_views=False)
PAIRINGS = {  # by the key `pairing` of recipes
    **{"both_views": BOTH_VIEWS, "other_view": OTHER_VIEW, "own_view": OWN_VIEW},
    **dict.fromkeys(("query_key", "both_ways", "one_way"), QUERY_KEY),
    **{"whole_row": WHOLE_ROW, "part_of": PART_OF, "whole_of": WHOLE_OF},
    **dict.fromkeys(("supervised", "balanced"), SAME_CLASS),
}
