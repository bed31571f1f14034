"""The names in a claims table's spec: the paper's methods, pre-trainings and roles, and the entries for each."""

import re
from collections.abc import Iterator, Mapping

from dpstudy.tables.selecting import listed

METHODS = ("DP-LS", "DP-Newton", "DP-FC", "DP-Adam")  # mehta2023
MODELS = ("linear", "scatter-cnn", "cnn")  # tramer2021: on ScatterNet features the first two, the last on pixels
CONVERGENCE = tuple(f"{model}-{rate}{clip}" for model in MODELS for rate in ("low", "high") for clip in ("", "-clip"))
# Of the papers' data sets. CheXpert's are findings, of which a study may learn others: a claim is about their number.
CLASSES = {"MNIST": 10, "Fashion-MNIST": 10, "CIFAR-10": 10, "CIFAR-100": 100, "ImageNet-1k": 1000, "Places-365": 365}
# Not certified at their target, yet compared at it.
CONTROLS = ("linear-shuffle", "cnn-shuffle", "iteration", "instance-smoothing")
# Lists run in the order that their comment names. "By" a setting: not their order matters but the cells' own settings.
ROLES = {
    "tramer2021": (
        *MODELS,  # private, at their best settings (Tables 1 and 13)
        "linear-printed",  # the same noise as the paper's
        *CONTROLS,  # shuffled batches (Table 19), privacy amplification by iteration (Figure 10)
        "cnn-smaller",  # Table 20
        "unnormalised",  # the three of Table 2
        "group-normalised",
        "data-normalised",
        *(f"nonprivate-{model}" for model in MODELS),  # Table 11
        *CONVERGENCE,  # Figures 3 and 11, Table 14; -clip: without noise
        "cnn-batches",  # Figure 7: entries from the smallest batch to the largest
        "transfer-cifar100",  # Figure 5
        "transfer-imagenet",
        "nonprivate-transfer-cifar100",
        "nonprivate-transfer-imagenet",
        "random-patches",  # appendix A: entries or feature sets from the fewest features to the most
    ),
    "de2022": (
        "wrn-16-4",  # private, from random weights, at their best settings (Table 3)
        "wrn-40-4",
        "unaveraged",  # as wrn-16-4, without parameter averaging (section 3.1)
        "momentum",  # as wrn-16-4, with momentum
        "decay",  # as wrn-16-4, with a learning rate that falls
        "regularised",  # as wrn-16-4, with weight decay
        "nonprivate-wrn",  # Wide ResNets without privacy, told apart by their `network` (section 3.1)
        "ablation",  # Table 2, in its order: baseline, + groups, + batch, + standardisation, + copies, + averaging
        # Of these two, entries whose `network` starts with wrn-40 belong to Figures 10 and 11, others to 2, 6 and 7.
        "batches",  # by batch_size, each tuned on validation records
        "noise",  # by noise_multiplier
        "iterations",  # by steps, at several epsilons (section 4.2)
        "multiplicity",  # Figure 3: by the multiplicity of the augmentation, or none
        "clipping",  # Figure 8: by clipping_norm and learning_rate
        "depths",  # Figure 9: networks from the shallowest to the deepest; by the multiplicity of the augmentation
        "all-layers",  # private fine-tuning of a WRN-28-10 from ImageNet-32 (Table 5)
        "classifier",
        "all-layers-smaller",  # of a WRN-40-4 (Table 10)
        "all-layers-cifar100",  # of a WRN-40-4 from CIFAR-100 (Table 11)
        "scratch-imagenet",  # Table 4
        "nf-resnets-all",  # Figure 4: from the shallowest to the deepest
        "nf-resnets-classifier",
        "image-sizes",  # appendix C.2: from the smallest images to the largest
        "jft-300m",  # the NF-ResNet-200 of Figure 5, by what it was pre-trained on
        "jft-4b",
        "nfnet",  # Table 6
        "nonprivate-nfnet",
        "audit",  # attacked by the loss of trained models (Table 9)
        "audit-copies",  # the same with augmentation multiplicity (appendix A.2)
        "places-all",  # Table 7
        "places-classifier",
        "nonprivate-places-all",
        "nonprivate-places-classifier",
    ),
    # Backbones (features) from the smallest to the largest.
    "anon_smoothing": (
        "instance-smoothing",  # as published: its guarantee is claimed, not proved
        "dp-sgd",
        "nonprivate",  # without privacy
        "kernel-mean",  # what the method is after, with a proof
    ),
}


def why_another(dataset: str, called: str, classes: int) -> str:
    """The reason why a data set is not the paper's of this name (its number of classes); "" if it may be.

    Args:
        classes: that its cells tell apart.

    >>> why_another("letters", "MNIST", 5)
    'Not judged by the cells of letters, which tell 5 classes apart: MNIST has 10'
    """
    known = next((count for name, count in CLASSES.items() if _plain(name) == _plain(called)), classes)
    if known == classes:
        return ""
    return f"Not judged by the cells of {dataset}, which tell {classes:,} classes apart: {called} has {known:,}"


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def entries_of(spec: Mapping) -> list[tuple[str, int, str]]:
    """(method, epochs, entry) triples in the spec's `methods`; without epochs an entry has one."""
    found = []
    for method, given in spec.get("methods", {}).items():
        by_epochs = given if isinstance(given, Mapping) else {1: given}
        found += [(method, int(epochs), entry) for epochs, entries in by_epochs.items() for entry in listed(entries)]
    return found


def roles_of(spec: Mapping) -> Iterator[tuple[str, str, str, str]]:
    """(data set, role, features, entry) tuples in the spec's `roles`, in order."""
    for dataset, roles in spec.get("roles", {}).items():
        for role, places in roles.items():
            for place in [places] if isinstance(places, Mapping) else places:
                yield dataset, role, place["features"], place["entry"]
