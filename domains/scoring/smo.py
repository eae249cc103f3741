"""Solve the support vector machines of a grid of C by libsvm's steps, compiled by numba.

scikit-learn's `SVC` is libsvm: sequential minimal optimisation with second-order selection (Fan,
Chen and Lin 2005) and shrinking. This module takes the same steps in the same arithmetic, so its
coefficients are those of `SVC(kernel="precomputed")` to the last bit. It is faster for three
reasons: all C share one table of the kernel, loops are vectorised, and no input is checked again.

libsvm multiplies kernel and gradient by the signs of the classes. A product with a sign is exact,
so this module leaves the signs out: `slope` is minus the gradient times the sign.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core.types import float64
from numba.extending import intrinsic

Array = np.ndarray[Any, np.dtype[Any]]
Function = TypeVar("Function", bound=Callable[..., Any])
TOLERANCE = 1e-3  # libsvm's: the largest violation at which it stops
MIN_CURVATURE = 1e-12  # libsvm's curvature where a pair has none
PERIOD = 1000  # libsvm shrinks after so many steps
SCORE_BLOCK = 64  # places whose largest score is found at once


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


def maximum(context: Any, x: Any, y: Any) -> Any:
    """Return the larger number, in a way that LLVM turns into vectors."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        double = ir.DoubleType()
        kind = ir.FunctionType(double, [double, double])
        function = builder.module.declare_intrinsic("llvm.maxnum", [double], kind)
        return builder.call(function, args, fastmath=["nnan", "nsz"])

    return float64(float64, float64), generate


larger: Any = intrinsic(maximum)


# The state of a problem is two arrays with a column for each point, the active points first.
# Rows of `state`: SQUARE is the kernel's diagonal, SCORE is room to compare places, and BOUNDED is
# the part of minus the slope that comes from points whose alpha is C.
SLOPE, ALPHA, SIGN, SQUARE, BOUNDED, SCORE = range(6)
UP, LOW, FULL = range(3)  # rows of `can`: alpha times sign can grow, it can fall, alpha is C


@compiled
def initial_state(square: Array, sign: Array) -> tuple[Array, Array, Array]:
    """Return state, can and order where every alpha is 0."""
    n = len(sign)
    state, can = np.zeros((6, n)), np.zeros((3, n), np.bool_)
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
def last_largest(state: Array, n: int) -> int:
    """Return the last place of the largest score, as libsvm does; -1 where none is finite."""
    best, block, size, end = -np.inf, 0, np.uint64(SCORE_BLOCK), np.uint64(n)
    for first in range(np.uint64(0), end, size):  # unsigned: signed indices prevent vectors
        found = -np.inf
        for t in range(first, min(first + size, end)):
            found = larger(found, state[SCORE, t])
        if found >= best:
            best, block = found, int(first)
    if best > -np.inf:
        for t in range(min(block + SCORE_BLOCK, n) - 1, -1, -1):
            if state[SCORE, t] == best:
                return t
    return -1


@compiled
def steepest(state: Array, can: Array, n: int) -> int:
    """Return the place of the largest slope that can be followed up; -1 where none can."""
    for t in range(n):
        state[SCORE, t] = state[SLOPE, t] if can[UP, t] else -np.inf
    return last_largest(state, n)


@compiled
def partner(state: Array, can: Array, table: Array, own: int, i: int, n: int) -> int:
    """Return the place with which place i decreases the objective most; -1 where none does."""
    top, square = state[SLOPE, i], state[SQUARE, i]
    for t in range(n):
        difference = top - state[SLOPE, t]
        curvature = (square + state[SQUARE, t]) - 2.0 * table[own, t]
        gain = difference * difference / (curvature if curvature > 0 else MIN_CURVATURE)
        gain = gain if can[LOW, t] else -np.inf
        state[SCORE, t] = gain if difference > 0 else -np.inf
    return last_largest(state, n)


@compiled
def flattest(state: Array, can: Array, n: int) -> float:
    """Return the largest of minus the slopes that can be followed down."""
    best = -np.inf
    for t in range(n):
        if can[LOW, t] and -state[SLOPE, t] > best:
            best = -state[SLOPE, t]
    return best


@compiled
def move(
    state: Array, table: Array, one: int, two: int, by_one: float, by_two: float, n: int
) -> None:
    """Change the slopes by two steps."""
    for t in range(n):
        state[SLOPE, t] -= table[one, t] * by_one + table[two, t] * by_two


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
def exchange(x: Array, i: int, j: int) -> None:
    """Swap two columns of an array."""
    for k in range(len(x)):
        x[k, i], x[k, j] = x[k, j], x[k, i]


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
                exchange(state, t, active)
                exchange(can, t, active)
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
        one = filled_kernel_row(kernel, table, filled, order, i, active)
        j = partner(state, can, table, one, i, active)
        if j < 0:
            return taken
        top = state[SLOPE, i]
        difference = top - state[SLOPE, j]
        if difference < TOLERANCE and top + flattest(state, can, active) < TOLERANCE:
            return taken
        two = filled_kernel_row(kernel, table, filled, order, j, active)
        curvature = (state[SQUARE, i] + state[SQUARE, j]) - 2.0 * table[one, j]
        length = difference / (curvature if curvature > 0 else MIN_CURVATURE)
        a, b, plus, minus = state[ALPHA, i], state[ALPHA, j], state[SIGN, i], state[SIGN, j]
        to_a, to_b = clipped(a, b, a + plus * length, b - minus * length, plus == minus, c)
        move(state, table, one, two, (to_a - a) * plus, (to_b - b) * minus, active)
        change = set_alpha(state, can, i, to_a, c)
        if change != 0:
            filled_kernel_row(kernel, table, filled, order, i, len(order))
            add_row(state, BOUNDED, table, one, change * plus, 0)
        change = set_alpha(state, can, j, to_b, c)
        if change != 0:
            filled_kernel_row(kernel, table, filled, order, j, len(order))
            add_row(state, BOUNDED, table, two, change * minus, 0)
    return most


@cached_njit
def solve(kernel: Array, room: Array, square: Array, sign: Array, c: float) -> tuple[Array, float]:
    """Return the coefficients and the offset of a machine of two classes.

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
    return coefficients, offset(state, can)


@compiled
def offset(state: Array, can: Array) -> float:
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


@compiled
def decision_values(coefficients: Array, offset: float, kernel: Array, points: Array) -> Array:
    """Return the decision values of the columns of a kernel, summed point by point."""
    values = np.zeros(kernel.shape[1])
    for k in range(len(points)):
        if coefficients[k] != 0:
            for t in range(len(values)):
                values[t] += coefficients[k] * kernel[points[k], t]
    return values - offset


@compiled
def kernel_part(kernel: Array, points: Array) -> Array:
    """Return the kernel of some of the points."""
    found = np.empty((len(points), len(points)), kernel.dtype)
    for i in range(len(points)):
        for j in range(len(points)):
            found[i, j] = kernel[points[i], points[j]]
    return found


@cached_njit
def pair_values(kernel: Array, square: Array, test: Array, ends: Array, grid: Array) -> Array:
    """(grid, pairs, tests) decision values of a machine for each two classes, for each C.

    Args:
        kernel: (n, n) float32 of the points that fit, class after class.
        square: (n,) its diagonal in float64.
        test: (n, tests) float64, the kernel between them and the points to classify.
        ends: (classes + 1,) 0, and the place where each class ends.
        grid: the values of C.
    """
    classes, pair = len(ends) - 1, 0
    values = np.empty((len(grid), classes * (classes - 1) // 2, test.shape[1]))
    for a in range(classes):
        for b in range(a + 1, classes):
            points = np.concatenate(
                (np.arange(ends[a], ends[a + 1]), np.arange(ends[b], ends[b + 1]))
            )
            sign = np.where(points < ends[a + 1], 1.0, -1.0)
            own = kernel if classes == 2 else kernel_part(kernel, points)
            room, diagonal = np.empty_like(own), square[points]
            for g in range(len(grid)):
                coefficients, rho = solve(own, room, diagonal, sign, grid[g])
                values[g, pair] = decision_values(coefficients, rho, test, points)
            pair += 1
    return values
