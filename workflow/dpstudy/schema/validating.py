"""Validation of configs against schemas, reporting all mistakes."""

import functools
import math
from typing import TYPE_CHECKING

from dpstudy.core.errors import Mistakes, StudyError
from dpstudy.schema.messages import UNKNOWN, explain, within_shape
from dpstudy.schema.methods import method_names, method_schema

if TYPE_CHECKING:
    from jsonschema import ValidationError


def validate(content: dict, rules: dict, prefix: str = "") -> None:
    """Validate a config, or its part at `prefix`, against the schema `rules`.

    Raises:
        StudyError: each mistake, the outermost first: the key, what is wrong with it, what is allowed.
    """
    from jsonschema.exceptions import best_match

    mistakes = Mistakes()
    errors = list(validator()(rules).iter_errors(content))
    unknown = [violation.absolute_path for violation in errors if violation.validator in UNKNOWN]
    for error in sorted(errors, key=_outermost_first):
        if error.validator == "required" and error.absolute_path in unknown:
            continue  # most often the same mistake: a key that is spelled otherwise
        with mistakes.kept():
            error = within_shape(error)
            if error.validator not in ("anyOf", "enum"):
                error = best_match([error])
            raise StudyError(explain(error, prefix))
    mistakes.tell()


def _outermost_first(error: "ValidationError") -> tuple[int, list[str]]:
    return len(error.absolute_path), [str(part) for part in error.absolute_path]


@functools.cache
def validator() -> type:
    """The validator of JSON schema, except that 1.0 is no integer, and .inf and .nan are no numbers.

    A seed of 1.0 would name folders that nobody looks for, and no key has a meaning for .inf and .nan.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    def whole(_, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    def finite(_, value: object) -> bool:
        return whole(_, value) or (isinstance(value, float) and math.isfinite(value))

    types = Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": whole, "number": finite})
    return extend(Draft202012Validator, type_checker=types)


def check_hyperparameters(method: str, options: dict) -> None:
    """Validate a method's hyper-parameters against its schema, as in a config.

    Raises:
        StudyError: the method has no schema, or the first mistake.
    """
    if method not in method_names():
        raise StudyError(
            f"method {method!r} has no schema, so no config could use it: write "
            f"workflow/dpstudy/schemas/methods/{method}.schema.yaml, by `make schemas` (docs/add-a-method.md)"
        )
    validate({"method": method} | options, method_schema(method), method)
