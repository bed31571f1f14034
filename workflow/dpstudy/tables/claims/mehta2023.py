"""The claims of mehta2023 (workflow/published/claims.csv) and the function that judges each."""

from collections.abc import Callable

from dpstudy.tables.claims import mehta2023_methods, mehta2023_pretraining, mehta2023_settings, mehta2023_tables
from dpstudy.tables.claims.finding import Evidence, Finding

# (section, first words of the claim) -> function.
CLAIMS: dict[tuple[str, str], Callable[[Evidence], Finding]] = {
    **mehta2023_methods.CLAIMS,
    **mehta2023_pretraining.CLAIMS,
    **mehta2023_tables.CLAIMS,
    **mehta2023_settings.CLAIMS,
}
