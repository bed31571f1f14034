"""Privacy costs outside a study's ledgers, as sentences for `not_accounted`."""

from collections.abc import Iterator, Sequence

from dpstudy.config.origins import UNMATCHED, weights_name
from dpstudy.data.names import LABELS, may_be_numbered
from dpstudy.data.own import own_data, own_sources, test_is_public
from dpstudy.dedup.rule import SQUARES_THRESHOLD, Rule
from dpstudy.features import parts_of
from dpstudy.plan.sources import numbered
from dpstudy.pretraining.options import complete
from dpstudy.privacy.ledger import FEATURES_BROUGHT
from dpstudy.schema.methods import BENCHMARKS, method_schema

KEPT_NUMBERS = (
    "Records without names of their own keep row numbers as ids, since earlier trainings with secure noise knew them "
    "so: where a row is deleted and the others are numbered anew, these may change splits, and others of their records "
    "and labels may be kept."
)
RECORD_BY_RECORD = (
    "The unit is one record: a person with k records is protected by k times epsilon, and a larger delta, and how many "
    "records anybody has was not bounded."
)
TEST_CUT = (
    "The test records are called public (test_split), but are cut at random from the private ones: what is said of "
    "them, and what is calibrated on them, is not accounted for."
)
FLOOR_CHOSEN = (
    "The least variance that the data normalisation divides by is the default, the standard deviation of its noise, "
    "which was settled on with accuracies on CIFAR-10 in sight: the best of three on its test images, and again on "
    "5,000 of its training images. Where the private records are CIFAR-10's, that choice was not paid for."
)
IMAGENET_SCALED = (
    "Inputs are scaled by the printed channel means and deviations of ImageNet's training images, which depend on the "
    "private records."
)
DEFAULTS_CHOSEN = (
    "The default constants of {} were chosen with accuracies on {} in sight; where the private records are of such a "
    "set, that choice was not paid for."
)
# How a sentence begins about weights, goes on, and calls them in the middle.
_WEIGHTS = "The weights {!r} that training starts from were", "they were", "the file of weights {!r}"
_NETWORK = "The network {!r} that made the features was", "it was", "the network {!r}"


def outside_ledger(config: dict, features: str, start: str | dict | None, publics: Sequence[str]) -> list[str]:
    """Sentences on what cells with these features and this `start` do outside their ledger.

    Args:
        publics: the public sets that made the features or the start.
    """
    options, sentences, words = config["features"][features], [], []
    parts = parts_of(options)
    for (what, they, called), name, origin in _brought(parts, start):
        if origin == UNMATCHED:
            sentences.append(
                f"{what.format(name)} trained elsewhere: what {they} trained on was not compared with the private "
                "records."
            )
        elif isinstance(origin, str):
            sentences.append(
                f"{what.format(name)} trained on {origin}, a public set that was not compared with the private records."
            )
        else:
            listed = ", ".join(map(repr, origin))
            words.append(f"That {called.format(name)} was trained on {listed} alone is the config's word.")
    sentences += words
    if options["extractor"] == "precomputed":
        sentences.append(FEATURES_BROUGHT)
    scaled = _scalings(config, features)
    if any(scaling == "cifar" or (model, scaling) == ("resnext29-cifar", "model") for model, scaling in scaled):
        sentences.append(
            "Inputs are scaled by the printed channel means and deviations of CIFAR-10's training images, which depend "
            "on the private records where those are CIFAR-10's."
        )
    for public in publics:
        sentences += _of_public(public, config)
    return list(dict.fromkeys(sentences))


def _scalings(config: dict, features: str) -> list[tuple[str | None, str]]:
    """(model, scaling) of each part of a feature set; a backbone's images are scaled as those it was trained on."""
    return [
        (part.get("model"), complete(config["backbones"][part["backbone"]])["scaling"])
        if "backbone" in part
        else (part.get("model"), part["scaling"])
        for part in parts_of(config["features"][features])
    ]


def scaled_by_own(config: dict, dataset: str, features: str) -> list[str]:
    """The ledger's sentence on inputs of a private ImageNet, as its readers bring it, scaled by its own constants."""
    scalings = _scalings(config, features)
    own = any(scaling in ("imagenet", "model") and model != "resnext29-cifar" for model, scaling in scalings)
    return [IMAGENET_SCALED] if own and config["datasets"][dataset]["reader"] in ("imagenet", "imagenet32") else []


def cut_test_records(dataset: dict) -> list[str]:
    """The ledger's sentence on test records that are called public, but are cut from a user's own private ones."""
    cut = (
        own_data(dataset["reader"]) and dataset.get("test_split") == "public" and dataset.get("splits", {}).get("test")
    )
    return [TEST_CUT] if cut else []


def kept_numbers(study: dict, dataset: str) -> list[str]:
    """The ledger's sentence on a data set whose own records are named by row numbers, if it applies."""
    sources = own_sources(study["datasets"][dataset])
    unnamed = any(may_be_numbered(source) and source["reader"] != LABELS for source in sources)
    return [KEPT_NUMBERS] if unnamed and numbered(study, dataset) else []


def several_records(dataset: dict) -> list[str]:
    """The ledger's sentence on a user's own records that are protected one by one although their persons are known."""
    known = own_data(dataset["reader"]) and "subject_column" in dataset and dataset.get("unit") != "subject"
    return [RECORD_BY_RECORD] if known else []


def inherited_choices(dataset: dict, entry: dict) -> list[str]:
    """Sentences on defaults of this library that were chosen by looking at the very records trained on.

    A benchmark is known by the reader of its own format alone, so each sentence says whose records it is about, and
    copies in another format are not recognised.

    Args:
        dataset: the config of the private data set.
        entry: all options of the entry in the cell.
    """
    if entry["sanitise"] != "full":
        return []
    takes_defaults = entry.get("variant") != "published"
    chosen_on = method_schema(entry["method"]).get("x-chosen-on", []) if takes_defaults else []
    here = [name for name in chosen_on if name in BENCHMARKS.get(dataset["reader"], ())]
    choices = [DEFAULTS_CHOSEN.format(entry["method"], " and ".join(here))] if here else []
    floor_is_default = "variance_floor" not in entry.get("normalisation", {"variance_floor": None})
    return choices + [FLOOR_CHOSEN] * (dataset["reader"] == "cifar" and floor_is_default)


def _brought(parts: Sequence[dict], start: str | dict | None) -> Iterator[tuple[tuple, str, str | list[str]]]:
    """(how sentences call it, its name, what it was trained on: public sets of the study, or a word) of weights that
    were brought."""
    if isinstance(start, dict):
        yield _WEIGHTS, weights_name(start), start["trained_on"]
    for part in parts:
        if part.get("weights", "random") != "random":
            yield _NETWORK, part["model"], part["trained_on"]


def _of_public(public: str, config: dict) -> list[str]:
    made, options, sentences = "what made the features, or training starts from,", config["public"][public], []
    if not options["matched"]:
        sentences.append(
            f"W{made[1:]} was trained on {public!r}, which was not compared with the private records (matched: false)."
        )
    elif is_chosen(public, config):
        sentences.append(
            f"W{made[1:]} was trained on images of {public!r} that were chosen by comparing them with private records "
            "(de-duplication with drop: public)."
        )
    if options["matched"] and (weaker := weaker_rule(config["dedup"])):
        sentences.append(
            f"{public!r} was compared with the private records by a rule that finds less than the default's "
            f"({weaker}): copies of them may be among its images."
        )
    if is_planted(public, config):
        sentences.append(
            f"Copies of private records were planted in {public!r} for demonstration: {made} saw them, and which "
            "records were dropped depends on them."
        )
    return sentences


def weaker_rule(dedup: dict) -> str:
    """The thresholds of de-duplication beyond which less is found than by their defaults; "" for none."""
    default = Rule()
    if dedup.get("method", "aligned") != "aligned":
        beyond = {"threshold": dedup.get("threshold", SQUARES_THRESHOLD) > SQUARES_THRESHOLD}
    else:
        beyond = {name: dedup.get(name, 0.0) > getattr(default, name) for name in ("threshold", "possible")}
        beyond["margin"] = dedup.get("margin", default.margin) < default.margin
    return ", ".join(f"{name} {dedup[name]:g}" for name, is_so in beyond.items() if is_so)


def is_chosen(public: str, config: dict) -> bool:
    """Whether public images that match private ones are left out, so that the public set depends on private records."""
    return config["public"][public]["matched"] and config["dedup"]["drop"] == "public"


def is_planted(public: str, config: dict) -> bool:
    """Whether a public set holds planted copies of private records, other than of a public test split."""
    plant = config["public"][public].get("plant")
    return bool(plant) and (plant["split"] != "test" or not test_is_public(config["datasets"][plant["dataset"]]))
