"""Numbers of a comparison as text."""


def number(value: float | None, decimals: int) -> str:
    """A number or a dash."""
    return "-" if value is None else f"{value:.{decimals}f}"


def signed(value: float, decimals: int) -> str:
    """Format a number with its sign, unless it rounds to zero.

    >>> signed(2.25, 2), signed(-0.71, 1), signed(-0.01, 1)
    ('+2.25', '-0.7', '0.0')
    """
    text = f"{value:+.{decimals}f}"
    return text if float(text) else text[1:]


def p_text(p: float | None) -> str:
    """A p-value as papers print it.

    >>> p_text(1.0), p_text(0.05), p_text(1e-9), p_text(None)
    ('> 0.99', '0.0500', '< 0.0001', '-')
    """
    if p is None:
        return "-"
    return "< 0.0001" if p < 0.0001 else "> 0.99" if p > 0.99 else f"{p:.4f}"
