"""What a study does outside its ledgers, told from where its features come from: sentences of `not_accounted`."""

from collections.abc import Sequence

from dpstudy.study.origins import UNMATCHED


def outside_ledger(config: dict, features: str, start: str | dict | None, publics: Sequence[str]) -> list[str]:
    """What cells on a feature set, trained from `start`, do outside their ledger; a sentence each.

    Args:
        publics: the public sets that made the features or the start.
    """
    options, sentences = config["features"][features], []
    if isinstance(start, dict) and start["trained_on"] == UNMATCHED:
        sentences.append(
            f"The weights {start['weights']!r} that training starts from were trained elsewhere: what they were "
            "trained on was not compared with the private records."
        )
    if options.get("weights", "random") != "random" and options["trained_on"] == UNMATCHED:
        sentences.append(
            f"The network {options['model']!r} that made the features was trained elsewhere: what it was trained "
            "on was not compared with the private records."
        )
    sentences += [
        f"That {what} was trained on {_listed(origin)} alone is the config's word."
        for what, origin in _told(options, start)
    ]
    if options["extractor"] == "precomputed":
        sentences.append("The features were brought: what they were made with is not known to this ledger.")
    if options["scaling"] == "cifar" or (options.get("model"), options["scaling"]) == ("resnext29-cifar", "model"):
        sentences.append(
            "Inputs are scaled by the printed channel means and deviations of CIFAR-10's training images, which depend "
            "on the private records where those are CIFAR-10's."
        )
    for public in publics:
        sentences += _of_public(public, config)
    return sentences


def _told(options: dict, start: str | dict | None) -> list[tuple[str, list[str]]]:
    """(what, public sets) of brought weights whose origin the config names."""
    found = []
    if isinstance(start, dict) and start["trained_on"] != UNMATCHED:
        found.append((f"the file of weights {start['weights']!r}", start["trained_on"]))
    if options.get("trained_on", UNMATCHED) != UNMATCHED:
        found.append((f"the network {options['model']!r}", options["trained_on"]))
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _of_public(public: str, config: dict) -> list[str]:
    made, options, sentences = "what made the features, or training starts from,", config["public"][public], []
    if not options["matched"]:
        sentences.append(
            f"W{made[1:]} was trained on {public!r}, which was not compared with the private records (matched: false)."
        )
    elif config["dedup"]["drop"] == "public":
        sentences.append(
            f"W{made[1:]} was trained on images of {public!r} that were chosen by comparing them with private records "
            "(de-duplication with drop: public)."
        )
    plant = options.get("plant")
    if plant and plant["split"] != "test":
        sentences.append(
            f"Copies of private records were planted in {public!r} for demonstration: {made} saw them, and which "
            "records were dropped depends on them."
        )
    return sentences
