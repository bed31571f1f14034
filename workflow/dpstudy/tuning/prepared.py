"""A cache of a method's prepared data, shared by settings that need the same."""

from dpstudy.cell.inputs import CellInputs, training_data
from dpstudy.methods.problem import Problem


class Prepared:
    """The prepared data of one cell; of several forms (`prepared_by`) the latest is cached.

    Args:
        method: a module of dpstudy.methods.
        inputs: what is learned from.
        rows: (features, labels) batches that take the place of the inputs' own; None: all records.

    Raises:
        StudyError: a file is missing or damaged.
    """

    def __init__(self, method, inputs: CellInputs, rows=None):
        self._method, self._inputs, self._rows = method, inputs, rows
        self._latest: tuple[object, object] | None = None

    def of(self, parameters, problem: Problem):
        """The data for the method's `fit`."""
        # a method that does not say has each setting prepared anew: sums clipped for another would not fit its noise
        key = asked(self._method, "prepared_by", parameters, parameters)
        if self._latest is None or self._latest[0] != key:
            self._latest = None  # freed first
            if self._rows is None:
                data = training_data(self._method, parameters, problem, self._inputs)
            else:
                data = self._method.prepare(self._rows, parameters, problem, **self._inputs.beside())
            self._latest = key, data
        return self._latest[1]


def asked(method, name: str, parameters, unsaid: object = None) -> object:
    """A method's answer to `prepared_by` or `released_by` (what its data or release depend on), else `unsaid`."""
    return getattr(method, name)(parameters) if hasattr(method, name) else unsaid
