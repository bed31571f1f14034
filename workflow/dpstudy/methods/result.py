"""The result of `dpstudy.fit`."""

from dataclasses import dataclass

from dpstudy.models import Model


@dataclass(frozen=True)
class Result:
    """A trained model, and the ledger of its privacy cost."""

    model: Model
    ledger: dict
