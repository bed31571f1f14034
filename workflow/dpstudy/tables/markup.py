"""Common LaTeX markup of tables."""

from collections.abc import Iterable, Sequence

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "{}$&#_%"},
    **{"ε": r"$\varepsilon$", "δ": r"$\delta$", "σ": r"$\sigma$", "μ": r"$\mu$", "λ": r"$\lambda$", "ρ": r"$\rho$"},
    **{"α": r"$\alpha$", "η": r"$\eta$", "β": r"$\beta$", "γ": r"$\gamma$", "π": r"$\pi$"},
    **{"τ": r"$\tau$", "Δ": r"$\Delta$", "≈": r"$\approx$", "≠": r"$\neq$", "→": r"$\rightarrow$"},
    **{"∞": r"$\infty$", "≤": r"$\leq$", "≥": r"$\geq$", "±": r"$\pm$", "×": r"$\times$", "−": "$-$", "–": "--"},
    **{"†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$"},
}


def escape(text: str) -> str:
    """The text escaped for LaTeX; the usual Greek letters and relations become mathematics."""
    return "".join(_ESCAPES.get(character, character) for character in text)


def line(cells: list[str]) -> str:
    """One row of a LaTeX tabular."""
    return " & ".join(cells) + r" \\"


def float_of(
    name: str, caption: str, opening: Sequence[str], columns: str, rows: Iterable[str], notes: list[str], centred: bool
) -> str:
    """A LaTeX float with a booktabs table and notes below it.

    Args:
        opening: how it is set.
        columns: LaTeX column letters.
        rows: LaTeX lines.
        notes: LaTeX sentences.
        centred: a table wider than the text is centred on it.
    """
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    if centred:
        begin, end = rf"\makebox[\linewidth][c]{{{begin}", rf"{end}}}"
    labelled = rf"\caption{{{escape(caption)}}}", rf"\label{{tab:{name}}}"
    lines = [r"\begin{table}", *opening, *labelled, begin, r"\toprule", *rows, r"\bottomrule", end, *minipage(notes)]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def minipage(sentences: list[str]) -> list[str]:
    """The LaTeX lines of notes below a tabular, as wide as the text; none without sentences."""
    if not sentences:
        return []
    return [r"\par\smallskip", rf"\begin{{minipage}}{{\linewidth}}\footnotesize {' '.join(sentences)}\end{{minipage}}"]
