"""The claims of anon_smoothing (workflow/published/claims.csv) and the function that judges each."""

from collections.abc import Callable

from dpstudy.tables.claims import (
    anon_smoothing_accuracy,
    anon_smoothing_bounds,
    anon_smoothing_groups,
    anon_smoothing_privacy,
    anon_smoothing_settings,
)
from dpstudy.tables.claims.finding import Finding
from dpstudy.tables.claims.role_evidence import Evidence

# (section, first words of the claim) -> function.
CLAIMS: dict[tuple[str, str], Callable[[Evidence], Finding]] = {
    **anon_smoothing_accuracy.CLAIMS,
    **anon_smoothing_privacy.CLAIMS,
    **anon_smoothing_bounds.CLAIMS,
    **anon_smoothing_groups.CLAIMS,
    **anon_smoothing_settings.CLAIMS,
}
