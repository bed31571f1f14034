"""Checks of where a study's networks come from: its own public pre-training, or weights that the user brings."""

from dpstudy.config.space import values_of
from dpstudy.core.errors import StudyError
from dpstudy.features.packaged import Package, package
from dpstudy.models.names import TIMM, is_wide_resnet, wide_resnet
from dpstudy.pretraining.options import complete
from dpstudy.schema.messages import check_known

UNMATCHED = "unmatched"


def check_backbones(config: dict) -> None:
    """Check the config's `backbones`.

    Raises:
        StudyError: a backbone's public set or a key does not exist, or keys do not go together.
    """
    for name, backbone in config["backbones"].items():
        check_known(f"backbones.{name}.public", backbone["public"], config["public"], "public data set")
        try:
            complete(backbone)
        except StudyError as error:
            raise StudyError(f"backbones.{name}: {error}") from None


def check_backbone(place: str, options: dict, config: dict) -> None:
    """Check that a feature set or a fit names a backbone if its extractor takes one, and only then.

    Raises:
        StudyError: it does not, or there is no such backbone.
    """
    if options["extractor"] == "backbone":
        if "backbone" not in options:
            raise StudyError(f"{place}: the extractor 'backbone' needs the key 'backbone'")
        check_known(f"{place}.backbone", options["backbone"], config["backbones"], "backbone")
    elif "backbone" in options:
        raise StudyError(f"{place}.backbone: the extractor {options['extractor']!r} does not take this key")


def packaged(place: str, weights: dict) -> Package:
    """The reviewed package that a config's `weights` name.

    Raises:
        StudyError: there is none, or its file has another hash than they say.
    """
    try:
        known = package(weights["package"])
    except StudyError as error:
        raise StudyError(f"{place}.weights.package: {error}") from None
    if weights.get("sha256", known.sha256) != known.sha256:
        raise StudyError(f"{place}.weights.sha256: the file of {weights['package']} has {known.sha256}")
    return known


def note_origin(place: str, options: dict, known: Package) -> None:
    """Say in `trained_on` what a package's weights were trained on.

    Raises:
        StudyError: something else stands there.
    """
    if options.setdefault("trained_on", known.trained_on) != known.trained_on:
        name = options["weights"]["package"]
        raise StudyError(f"{place}.trained_on: {name} was trained on {known.trained_on}; leave it out")


def complete_start(place: str, options: dict) -> None:
    """Say of a start from a package's weights, in an entry or in what an override sets, what they were trained on.

    What is not as the schema has it is left to the schema.

    Raises:
        StudyError: no such package, or something else is said of it.
    """
    if known := _package_of_start(place, options):
        start = options["start"]
        if "sha256" in start:
            raise StudyError(f"{place}.start.sha256: of a package it is known; leave it out")
        note_origin(f"{place}.start", start, known)


def _package_of_start(place: str, options: dict) -> Package | None:
    start = options.get("start")
    weights = start.get("weights") if isinstance(start, dict) else None
    return packaged(f"{place}.start", weights) if isinstance(weights, dict) and "package" in weights else None


def weights_name(start: dict) -> str:
    """What a start's weights are called: their file, or their package."""
    weights = start["weights"]
    return weights["package"] if isinstance(weights, dict) else weights


def check_start(place: str, options: dict, config: dict) -> None:
    """Check the pre-trained weights that an entry's training starts from.

    Raises:
        StudyError: no such backbone, or one of another architecture; or weights of unsaid origin; or a search over the
            weights, or beside them over the network that they are of.
    """
    start, searched = options.get("start"), options.get("tuning", {}).get("space", {})
    for name in ("start", "network"):
        if name in searched and (start is not None or name == "start"):
            raise StudyError(
                f"{place.removesuffix('start')}tuning.space.{name}: the weights of `start` are of one network, and are "
                f"made before a search begins; give {name} a value instead, or an entry for each"
            )
    if isinstance(start, str):
        check_known(place, start, config["backbones"], "backbone")
        trained = config["backbones"][start]["architecture"]
        if trained != options["network"]:
            raise StudyError(f"{place}: the backbone {start!r} is a {trained}, not a {options['network']}")
    elif start is not None:
        check_origin(place, start, config)
        entry = place.removesuffix(".start")
        known, match = _package_of_start(entry, options), TIMM.fullmatch(options["network"])
        if known and (match is None or match[1] != known.model or match[3] == "+gn"):
            raise StudyError(
                f"{entry}.network: {weights_name(start)} has the weights of {known.model!r}; write "
                f"timm:{known.model} or timm:{known.model}+frozen"
            )


def check_network(place: str, options: dict) -> None:
    """Check the numbers in the name of a Wide ResNet that an entry trains, or may choose.

    Raises:
        StudyError: there is none of that depth or width.
    """
    for network in values_of(options, "network", ""):
        if is_wide_resnet(str(network)):
            try:
                wide_resnet(network)
            except StudyError as error:
                raise StudyError(f"{place}: {error}") from None


def check_origin(place: str, options: dict, config: dict) -> None:
    """Refuse user-supplied weights unless the config says what they were trained on.

    Raises:
        StudyError: it does not, or names no public set of the study.
    """
    sources = options.get("trained_on")
    if sources is None:
        raise StudyError(
            f"{place}: what its weights were trained on was never compared with the private records; list the public "
            f"sets in `trained_on`, so that they are, or write `trained_on: {UNMATCHED}`, which every ledger then says"
        )
    if isinstance(sources, str):
        return
    if config["dedup"]["drop"] == "public":
        raise StudyError(
            f"{place}.trained_on: with `dedup.drop: public` no private record is dropped, and weights that were "
            f"brought have seen the public ones that match; use `drop: private`, or write `trained_on: {UNMATCHED}`"
        )
    for name in sources:
        check_known(f"{place}.trained_on", name, config["public"], "public data set")


def publics_trained_on(options: dict | None) -> list[str]:
    """The study's public sets that user-supplied weights were trained on."""
    sources = (options or {}).get("trained_on", UNMATCHED)
    return [] if isinstance(sources, str) else list(sources)
