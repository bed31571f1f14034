"""Whether a method does what its ledger says: python -m dpstudy.check_method NAME [KEY=VALUE ...]

NAME is a method that is shipped or installed, or package.module:name, a module of yours with its SCHEMA. KEY=VALUE sets
a hyper-parameter; what has no default is guessed. Exits with 1 where something is wrong, each thing a sentence.
"""

import argparse
import functools
import importlib
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import yaml

from dpstudy import methods
from dpstudy.auditing.checked_method import CheckedMethod, NonconformityError
from dpstudy.auditing.conformance import CHECKS, EXACT, secured
from dpstudy.config.new_methods import check_method
from dpstudy.config.public_points import reads_public
from dpstudy.core.entry_points import name_module
from dpstudy.core.errors import StudyError
from dpstudy.jobs.made_up import Layout
from dpstudy.jobs.replays import replay, shortened
from dpstudy.methods.averaging import weights_by_name
from dpstudy.methods.problem import Problem, check_plan
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import unproved
from dpstudy.schema.methods import hyperparameters, is_beyond_target, method_schema
from dpstudy.schema.reading import fill_defaults
from dpstudy.schema.spelling import as_numbers

N, CLASSES, EPSILON, DELTA = 2000, 4, "2", 1e-5
_GUESSED = {"batch_size": N // 20}  # for methods that require one; a few steps reveal as much as many
FLAT, PICTURES, MANY = (20,), (1, 28, 28), 2500
SETTINGS: dict[str, dict[str, Any]] = {  # what units and labels are, where a method takes them
    "one label": {"unit": "record", "positives": 1},
    "several labels": {"unit": "record", "positives": 3},
    "persons": {"unit": "subject", "positives": 1, "per_subject": 3},
    "persons, averaged": {"unit": "subject", "positives": 1, "per_subject": 3, "contributions": "average"},
    "classes, weighed": {"unit": "record", "positives": 1, "class_weights": {"c0": 0.25}},
}
_LEAVES = {"socket.connect", "subprocess.Popen", "os.system", "os.posix_spawn"}
_OURS = (os.path.join(tempfile.gettempdir(), "tmp"), "/dev/null")


def main(arguments: list[str] | None = None) -> int:
    """Check the method named on the command line; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m dpstudy.check_method", description=__doc__)
    parser.add_argument("name", metavar="NAME", help="a method, or package.module:name")
    parser.add_argument("values", nargs="*", metavar="KEY=VALUE", help="hyper-parameters, as a config has them")
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    wrong = 0
    try:
        name = _named(asked.name)
        for right, line in checked(name, dict(_given(asked.values))):
            wrong += not right
            print(f"{'ok  ' if right else 'FAIL'}  {line}", flush=True)
    except StudyError as error:
        print(f"FAIL  {error}")
        return 1
    print(f"{name}: {'nothing wrong was found, which proves nothing' if not wrong else f'{wrong} checks failed'}")
    return int(wrong > 0)


def _named(name: str) -> str:
    """The name of the method, whose module is known from here on.

    Raises:
        StudyError: there is no such module.
    """
    path, _, method = name.rpartition(":")
    if path:
        sys.path.insert(0, os.getcwd())
        try:
            importlib.import_module(path)
        except Exception as error:  # importing a user's module may raise anything
            raise StudyError(f"module {path!r} cannot be imported: {type(error).__name__}: {error}") from None
        name_module(method, path)
    return method


def _given(values: list[str]) -> Iterator[tuple[str, Any]]:
    for value in values:
        key, equals, text = value.partition("=")
        if not equals:
            raise StudyError(f"{value!r}: write KEY=VALUE, such as learning_rate=0.5")
        yield key, yaml.safe_load(text)


def checked(name: str, values: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    """(whether it passed, a sentence) of each check.

    Args:
        values: of hyper-parameters; those without a default that are missing are guessed.

    Raises:
        StudyError: there is no such method, or it takes none of the settings.
    """
    methods.module_name(name)
    check_method(name)
    yield True, "its schema and its files are as they must be"
    options = options_of(name, values)
    module = methods.load(name)
    shape = PICTURES if method_schema(name).get("x-reads-images") else FLAT
    for title, setting in SETTINGS.items():
        averaged, weighed = "contributions" in setting, setting.get("class_weights", {})
        if (averaged or weighed) and not method_schema(name).get("x-averages"):
            continue
        problem = Problem(
            N,
            shape,
            CLASSES,
            Budget(EPSILON, DELTA),
            setting["positives"],
            unit_records=setting.get("per_subject", 1),
            averaged=averaged,
            class_weights=weights_by_name(weighed, [f"c{number}" for number in range(CLASSES)], False),
        )
        try:
            short = shortened(options, problem.unit_records)
            parameters = methods.parameters(name, hyperparameters(short))
            plan = module.plan(parameters, problem)
            check_plan(plan, problem, name, is_beyond_target(short))
        except StudyError as error:
            yield title != "one label", f"{title}: not taken: {error}"
            continue
        if unproved(plan.events):
            yield True, f"{title}: its guarantee is claimed, and not proved: nothing to check"
            continue
        beside = {"public": np.random.default_rng(0).uniform(-1, 1, (40, problem.dim)).astype(np.float32)}
        method = CheckedMethod(name, module, parameters, problem, beside if reads_public(options) else {})
        for check in CHECKS:
            yield _outcome(f"{title}: {check.__name__}", functools.partial(check, method))
        for check in EXACT:
            yield _outcome(f"{title}: {check.__name__} of exact sums", functools.partial(check, secured(method)))
        facts, layout = setting | {"delta": str(DELTA)}, Layout(shape, CLASSES, setting["positives"] > 1)
        for noise in ("seeded", "secure"):
            made = functools.partial(_replayed, options, facts, noise, layout)
            yield _outcome(f"{title}: replay, {noise} noise", made)
        if not method_schema(name).get("x-per-seed"):
            made = functools.partial(_replayed, options, facts, "secure", layout, MANY)
            yield _outcome(f"{title}: replay of many records", made)


def options_of(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """An entry's options: those given, else defaults, else guesses for required ones."""
    rules = method_schema(name)
    options: dict[str, Any] = {"method": name} | as_numbers(dict(values), rules)
    needed = [*rules.get("required", ()), *(rules["oneOf"][0].get("required", ()) if "oneOf" in rules else ())]
    if "oneOf" in rules and "steps" in rules["properties"]:
        needed[-1:] = ["steps"]
    for key in needed:
        if key not in options:
            options[key] = _GUESSED.get(key) or _guess(rules["properties"][key])
    fill_defaults(options, rules, rules)
    return options | {"accounting": "certified"}


def _guess(rule: Mapping[str, Any]) -> Any:
    """Some value that a schema allows."""
    for part in (rule, *rule.get("anyOf", ())):
        if "enum" in part:
            return part["enum"][0]
        if part.get("type") == "integer":
            return max(part.get("minimum", 1), 3)
        if part.get("type") == "number":
            return max(part.get("minimum", 0), min(0.5, part.get("maximum", 0.5)))
    raise StudyError(f"give a value (KEY=VALUE) of the hyper-parameter {rule.get('description', rule)!r}")


def _outcome(told: str, check: Callable[[], str]) -> tuple[bool, str]:
    started = time.monotonic()
    try:
        with _Watch() as watch:
            result = check()
        if watch.seen:
            raise NonconformityError(f"while it ran it {watch.seen[0]}: records may leave by it")
    except (StudyError, RuntimeError) as error:
        return False, f"{told}: {error}"
    return True, f"{told}: {result} ({time.monotonic() - started:.1f} s)"


def _replayed(options, dataset, noise: str, layout: Layout, count: int | None = None) -> str:
    counts = replay(options, dataset, noise, layout, EPSILON, count)
    return f"on {counts['records']} records and {counts['pairs']} other sets of them it gives the same, byte for byte"


class _Watch:
    """What a process does meanwhile that leaves something outside of its temporary folders."""

    _hooked = False
    _watching: ClassVar[list["_Watch"]] = []

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __enter__(self) -> "_Watch":
        if not _Watch._hooked:
            sys.addaudithook(_Watch._hook)
            _Watch._hooked = True
        _Watch._watching.append(self)
        return self

    def __exit__(self, *_error) -> None:
        _Watch._watching.remove(self)

    @staticmethod
    def _hook(event: str, arguments: tuple) -> None:
        if not _Watch._watching:
            return
        if event in _LEAVES:
            _Watch._watching[-1].seen.append(f"used {event}")
        elif event == "open" and isinstance(arguments[0], str) and isinstance(arguments[2], int):
            written = arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND)
            if written and not _is_ours(arguments[0]):
                _Watch._watching[-1].seen.append(f"wrote into {arguments[0]}")


def _is_ours(path: str) -> bool:
    """Whether a path is in a temporary folder of the checks, of Python's own compiled files, or no file."""
    return os.path.abspath(path).startswith(_OURS) or "__pycache__" in path


if __name__ == "__main__":
    sys.exit(main())
