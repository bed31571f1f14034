"""The claims of de2022 (workflow/published/claims.csv) and the function that judges each."""

from collections.abc import Callable

from dpstudy.tables.claims import (
    de2022_accounting,
    de2022_accuracy,
    de2022_audit,
    de2022_batches,
    de2022_context,
    de2022_depth,
    de2022_imagenet,
    de2022_schedule,
    de2022_techniques,
    de2022_transfer,
)
from dpstudy.tables.claims.finding import Finding
from dpstudy.tables.claims.role_evidence import Evidence

# (section, first words of the claim) -> function.
CLAIMS: dict[tuple[str, str], Callable[[Evidence], Finding]] = {
    **de2022_accuracy.CLAIMS,
    **de2022_techniques.CLAIMS,
    **de2022_batches.CLAIMS,
    **de2022_schedule.CLAIMS,
    **de2022_depth.CLAIMS,
    **de2022_transfer.CLAIMS,
    **de2022_imagenet.CLAIMS,
    **de2022_audit.CLAIMS,
    **de2022_accounting.CLAIMS,
    **de2022_context.CLAIMS,
}
