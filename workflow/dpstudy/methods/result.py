"""What `dpstudy.fit` gives."""

from dataclasses import dataclass

from dpstudy.models import Model


@dataclass(frozen=True)
class Result:
    """A trained model with the ledger that says what it cost."""

    model: Model
    ledger: dict
