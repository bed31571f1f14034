"""The claims of tramer2021 (workflow/published/claims.csv) and the function that judges each."""

from collections.abc import Callable

from dpstudy.tables.claims import (
    tramer2021_accuracy,
    tramer2021_data,
    tramer2021_searches,
    tramer2021_settings,
    tramer2021_training,
)
from dpstudy.tables.claims.finding import Finding
from dpstudy.tables.claims.role_evidence import Evidence

# (section, first words of the claim) -> function.
CLAIMS: dict[tuple[str, str], Callable[[Evidence], Finding]] = {
    **tramer2021_accuracy.CLAIMS,
    **tramer2021_searches.CLAIMS,
    **tramer2021_training.CLAIMS,
    **tramer2021_data.CLAIMS,
    **tramer2021_settings.CLAIMS,
}
