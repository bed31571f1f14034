"""Configs held against schemas, of which the first mistake is said."""

import functools

from dpstudy.core.errors import StudyError
from dpstudy.schema.messages import explain, within_mapping
from dpstudy.schema.methods import method_names, method_schema


def validate(content: dict, rules: dict, prefix: str = "") -> None:
    """Hold a config, or a part of it that stands at `prefix`, against the schema `rules`.

    Raises:
        StudyError: the first mistake: the key, what is wrong with it, what is allowed.
    """
    from jsonschema.exceptions import best_match

    errors = list(_validator()(rules).iter_errors(content))
    if not errors:
        return
    error = min(errors, key=lambda found: (len(found.absolute_path), [str(part) for part in found.absolute_path]))
    error = within_mapping(error)
    if error.validator not in ("anyOf", "enum"):
        error = best_match([error])
    raise StudyError(explain(error, prefix))


@functools.cache
def _validator() -> type:
    """JSON schema, but 1.0 is no integer: a seed of 1.0 would name folders that nobody looks for."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    def whole(_, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", whole)
    return extend(Draft202012Validator, type_checker=types)


def check_hyperparameters(method: str, options: dict) -> None:
    """Hold a method's hyper-parameters against its schema, as a config's are.

    Raises:
        StudyError: the method has no schema, or the first mistake.
    """
    if method not in method_names():
        raise StudyError(
            f"method {method!r} has no schema, so no config could use it: write "
            f"workflow/schemas/methods/{method}.schema.yaml (docs/add-a-method.md)"
        )
    validate({"method": method} | options, method_schema(method), method)
