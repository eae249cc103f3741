"""Solve the support vector machines of a grid of C by libsvm's steps, compiled by numba.

scikit-learn's `SVC` is libsvm: sequential minimal optimisation with second-order selection (Fan,
Chen and Lin 2005) and shrinking. This module takes the same steps in the same arithmetic, so its
coefficients are those of `SVC(kernel="precomputed")` to the last bit. It is faster since all C
share one table of the kernel, and no input is checked again.

libsvm multiplies kernel and gradient by the signs of the classes. A product with a sign is exact,
so this module leaves the signs out: `slope` is minus the gradient times the sign.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

Array = np.ndarray[Any, np.dtype[Any]]
Function = TypeVar("Function", bound=Callable[..., Any])
TOLERANCE = 1e-3  # libsvm's: the largest violation at which it stops
MIN_CURVATURE = 1e-12  # libsvm's curvature where a pair has none
PERIOD = 1000  # libsvm shrinks after so many steps


def compiled(function: Function, keep: bool = False) -> Function:
    """Compile a function when it is called first; keep the result on disk if asked to."""
    decorate: Any = njit
    return decorate(nogil=True, error_model="numpy", cache=keep)(function)


def cached_njit(function: Function) -> Function:
    """Compile a function, and keep the result where there is a folder for it."""
    try:
        return compiled(function, keep=True)
    except RuntimeError:
        return compiled(function)


# The state of a problem is two arrays with a column for each point, the active points first.
# Rows of `state`: SQUARE is the kernel's diagonal, and BOUNDED is the part of minus the slope that
# comes from points whose alpha is C.
SLOPE, ALPHA, SIGN, SQUARE, BOUNDED = range(5)
# Rows of `can`: alpha times sign can grow, it can fall, alpha is C, alpha has been C.
UP, LOW, FULL, TOUCHED = range(4)


@compiled
def initial_state(square: Array, sign: Array) -> tuple[Array, Array, Array]:
    """Return state, can and order where every alpha is 0."""
    n = len(sign)
    state, can = np.zeros((5, n)), np.zeros((4, n), np.bool_)
    for t in range(n):
        state[SLOPE, t] = state[SIGN, t] = sign[t]
        state[SQUARE, t] = square[t]
        can[UP, t], can[LOW, t] = sign[t] > 0, sign[t] < 0
    return state, can, np.arange(n)


@compiled
def filled_kernel_row(
    kernel: Array, table: Array, filled: Array, order: Array, i: int, n: int
) -> int:
    """Return the row of the table for the point at place i, whose first n entries are there.

    The table is the kernel itself as long as no two places were exchanged: its rows are filled.
    """
    own = order[i]
    for t in range(filled[own], n):
        table[own, t] = kernel[own, order[t]]
    filled[own] = max(filled[own], n)
    return own


@compiled
def steepest(state: Array, can: Array, n: int) -> int:
    """Return the last place of the largest slope that can be followed up; -1 where none can."""
    best, place = -np.inf, -1
    for t in range(n):
        if can[UP, t] and state[SLOPE, t] >= best:
            best, place = state[SLOPE, t], t
    return place


@compiled
def partner(state: Array, can: Array, table: Array, own: int, i: int, n: int) -> int:
    """Return the place with which place i decreases the objective most; -1 where none does."""
    top, square, best, place = state[SLOPE, i], state[SQUARE, i], -np.inf, -1
    for t in range(n):
        difference = top - state[SLOPE, t]
        if can[LOW, t] and difference > 0:
            curvature = (square + state[SQUARE, t]) - 2.0 * table[own, t]
            gain = difference * difference / (curvature if curvature > 0 else MIN_CURVATURE)
            if gain >= best:
                best, place = gain, t
    return place


@compiled
def flattest(state: Array, can: Array, n: int) -> float:
    """Return the largest of minus the slopes that can be followed down."""
    best = -np.inf
    for t in range(n):
        if can[LOW, t] and -state[SLOPE, t] > best:
            best = -state[SLOPE, t]
    return best


@compiled
def add_row(state: Array, kind: int, table: Array, own: int, factor: float, first: int) -> None:
    """Add a multiple of a row to a row of the state, from a place on."""
    for t in range(first, state.shape[1]):
        state[kind, t] += table[own, t] * factor


@compiled
def restore(
    state: Array, can: Array, order: Array, kernel: Array, table: Array, filled: Array, active: int
) -> None:
    """Compute the slopes of points that are not active."""
    n = len(order)
    for t in range(active, n):
        state[SLOPE, t] = state[SIGN, t] - state[BOUNDED, t]
    for t in range(active if active < n else 0):
        if can[UP, t] and can[LOW, t]:
            own = filled_kernel_row(kernel, table, filled, order, t, n)
            add_row(state, SLOPE, table, own, -state[ALPHA, t] * state[SIGN, t], active)


@compiled
def is_idle(state: Array, can: Array, t: int, up: float, down: float) -> bool:
    """Return whether a point is at its bound and will probably stay there."""
    if can[UP, t] and can[LOW, t]:
        return False
    return -state[SLOPE, t] > down if can[UP, t] else state[SLOPE, t] > up


@compiled
def shrink(
    state: Array, can: Array, order: Array, up: float, down: float, active: int
) -> tuple[int, bool]:
    """Put idle points behind the active ones; return how many are active, and whether any moved."""
    t, moved = 0, False
    while t < active:
        if is_idle(state, can, t, up, down):
            active -= 1
            while active > t and is_idle(state, can, active, up, down):
                active -= 1
            if active > t:
                for k in range(len(state)):
                    state[k, t], state[k, active] = state[k, active], state[k, t]
                for k in range(len(can)):
                    can[k, t], can[k, active] = can[k, active], can[k, t]
                order[t], order[active] = order[active], order[t]
                moved = True
        t += 1
    return active, moved


@compiled
def clipped(
    a: float, b: float, to_a: float, to_b: float, same: bool, c: float
) -> tuple[float, float]:
    """Return the new alphas of a pair, moved into the box along their line."""
    if same:
        total = a + b
        if total > c:
            if to_a > c:
                to_a, to_b = c, total - c
            if to_b > c:
                to_a, to_b = total - c, c
        else:
            if to_b < 0:
                to_a, to_b = total, 0.0
            if to_a < 0:
                to_a, to_b = 0.0, total
        return to_a, to_b
    difference = a - b
    if difference > 0:
        if to_b < 0:
            to_a, to_b = difference, 0.0
        if to_a > c:
            to_a, to_b = c, c - difference
    else:
        if to_a < 0:
            to_a, to_b = 0.0, -difference
        if to_b > c:
            to_a, to_b = c + difference, c
    return to_a, to_b


@compiled
def set_alpha(state: Array, can: Array, t: int, alpha: float, c: float) -> float:
    """Give the point at place t its alpha; return C if it has come there, -C if it has left."""
    was, full, empty = can[FULL, t], alpha >= c, alpha <= 0 and not alpha >= c
    state[ALPHA, t], can[FULL, t] = alpha, full
    can[TOUCHED, t] |= full
    can[UP, t] = not full if state[SIGN, t] > 0 else not empty
    can[LOW, t] = not empty if state[SIGN, t] > 0 else not full
    return 0.0 if was == full else c if full else -c


@compiled
def smo_steps(
    state: Array,
    can: Array,
    order: Array,
    kernel: Array,
    table: Array,
    filled: Array,
    active: int,
    c: float,
    most: int,
) -> int:
    """Take libsvm's next steps until the active points are solved; return their number."""
    for taken in range(most):
        i = steepest(state, can, active)
        if i < 0:
            return taken
        first = filled_kernel_row(kernel, table, filled, order, i, active)
        j = partner(state, can, table, first, i, active)
        if j < 0:
            return taken
        top = state[SLOPE, i]
        difference = top - state[SLOPE, j]
        if difference < TOLERANCE and top + flattest(state, can, active) < TOLERANCE:
            return taken
        second = filled_kernel_row(kernel, table, filled, order, j, active)
        curvature = (state[SQUARE, i] + state[SQUARE, j]) - 2.0 * table[first, j]
        length = difference / (curvature if curvature > 0 else MIN_CURVATURE)
        a, b, plus, minus = state[ALPHA, i], state[ALPHA, j], state[SIGN, i], state[SIGN, j]
        to_a, to_b = clipped(a, b, a + plus * length, b - minus * length, plus == minus, c)
        by_first, by_second = (to_a - a) * plus, (to_b - b) * minus
        for t in range(active):
            state[SLOPE, t] -= table[first, t] * by_first + table[second, t] * by_second
        for place, own, alpha, sign in ((i, first, to_a, plus), (j, second, to_b, minus)):
            change = set_alpha(state, can, place, alpha, c)
            if change != 0:
                filled_kernel_row(kernel, table, filled, order, place, len(order))
                add_row(state, BOUNDED, table, own, change * sign, 0)
    return most


@cached_njit
def solve(
    kernel: Array, room: Array, square: Array, sign: Array, c: float
) -> tuple[Array, float, bool]:
    """Return the coefficients and the offset of a machine of two classes, and whether C was met.

    Where no alpha ever was C, the steps of a larger C are the same.

    Args:
        kernel: (n, n) float32.
        room: (n, n) float32, to work in.
        square: (n,) the kernel's diagonal in float64.
        sign: (n,) 1 for the first class, -1 for the second.
        c: the largest alpha.
    """
    n, near = len(sign), False
    state, can, order = initial_state(square, sign)
    table, filled, active, most = kernel, np.full(n, n), n, min(n, PERIOD)
    while True:
        if smo_steps(state, can, order, kernel, table, filled, active, c, most) < most:
            restore(state, can, order, kernel, table, filled, active)
            active = n
            if smo_steps(state, can, order, kernel, table, filled, active, c, 1) < 1:
                break
        up, down = steepest(state, can, active), flattest(state, can, active)
        top = state[SLOPE, up] if up >= 0 else -np.inf
        if not near and top + down <= TOLERANCE * 10:
            restore(state, can, order, kernel, table, filled, active)
            active, near = n, True
        active, moved = shrink(state, can, order, top, down, active)
        if moved:
            table, filled = room, np.zeros(n, np.int64)
    coefficients = np.empty(n)
    for t in range(n):
        coefficients[order[t]] = state[ALPHA, t] * state[SIGN, t]
    return coefficients, offset_of(state, can), can[TOUCHED].any()


@cached_njit
def decision_values(tests: Array, coefficients: Array, offset: float) -> Array:
    """Return a machine's values at test points, summed point by point as libsvm does.

    Args:
        tests: (n, tests) the kernel in float64.
        coefficients: (n,) of the points.
        offset: of the machine.
    """
    values = np.zeros(tests.shape[1])
    for i in np.flatnonzero(coefficients):
        for t in range(len(values)):
            values[t] += coefficients[i] * tests[i, t]
    return values - offset


@compiled
def offset_of(state: Array, can: Array) -> float:
    """Return minus the mean slope of free points, or the middle of what the others allow."""
    free, total, above, below = 0, 0.0, np.inf, -np.inf
    for t in range(state.shape[1]):
        if can[UP, t] and can[LOW, t]:
            free += 1
            total -= state[SLOPE, t]
        elif can[UP, t]:
            above = min(above, -state[SLOPE, t])
        else:
            below = max(below, -state[SLOPE, t])
    return total / free if free else (above + below) / 2
