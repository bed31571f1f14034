"""A backbone's options with defaults, which depend on its architecture."""

from dpstudy.core.errors import StudyError
from dpstudy.models import names

_OF_SMALL_CNN = {"width": 32, "embedding": 256}
_EVERY = {
    "objective": "labels", "temperature": 0.5, "scaling": "unit", "size": None, "steps": None, "micro_batch": None,
    "warm_up": 0, "mixup": 0.0, "rand_augment": None, "area": 0.05, "clip_norm": None, "moving_average": None,
    "precision": "float32", "devices": 1, "workers": 0, "checkpoint_minutes": 10, "seed": 0,
}  # fmt: skip
SMALL = _EVERY | _OF_SMALL_CNN | {
    "architecture": "small_cnn", "epochs": 6, "batch_size": 128, "learning_rate": 0.002, "optimiser": "adamw",
    "weight_decay": 0.01, "schedule": "cosine", "warm_up": 50, "augmentation": "warp",
}  # fmt: skip
WIDE = _EVERY | {  # de2022 C.3, CIFAR-100; the epochs are ours
    "epochs": 30, "batch_size": 128, "learning_rate": 0.1, "optimiser": "momentum", "weight_decay": 5e-4,
    "schedule": "steps", "augmentation": "crop",
}  # fmt: skip
# mehta2023 C.2 and Table 5. The text's weight decay, 0.1 times the learning rate, is the table's 0.0001. It swaps the
# names of RandAugment's two numbers: Steiner et al. 2021, which it follows, have two layers of magnitude 15.
AUGREG = _EVERY | {
    "epochs": 300, "batch_size": 4096, "learning_rate": 1e-3, "optimiser": "adamw", "weight_decay": 0.1,
    "schedule": "linear", "warm_up": 10_000, "augmentation": "inception", "mixup": 0.2,
    "rand_augment": {"layers": 2, "magnitude": 15}, "clip_norm": 1.0, "scaling": "imagenet",
}  # fmt: skip
PATCHES = {  # nothing is trained
    "scaling": "unit", "size": None, "sizes": [6], "filters": 512, "grid": 2, "threshold": 1.0, "patches": 50_000,
    "floor": 0.01, "devices": 1, "seed": 0,
}  # fmt: skip
_NO_TRAINING = ("architecture", "public")  # what an entry has besides


def complete(options: dict) -> dict:
    """The config entry completed with defaults for every key that its architecture takes.

    Raises:
        StudyError: no such architecture, a key that it does not take, or keys that do not go together.
    """
    architecture = options.get("architecture", "small_cnn")
    defaults = _defaults(architecture)
    unknown = set(options) - set(defaults) - set(_NO_TRAINING)
    if unknown:
        raise StudyError(
            f"backbone: unknown key {min(unknown)!r} of architecture {architecture!r}; it has {', '.join(defaults)}"
        )
    of_contrast = {"augmentation": "contrast", "mixup": 0.0} if options.get("objective") == "contrast" else {}
    entry = defaults | {"architecture": architecture} | of_contrast | options
    if defaults is PATCHES:
        return entry
    if entry["augmentation"] != "inception" and "rand_augment" not in options:
        entry |= {"rand_augment": None}
    _check_together(entry)
    return entry


def _defaults(architecture: str) -> dict:
    if architecture == "small_cnn":
        return SMALL
    if architecture == "patches":
        return PATCHES
    if names.is_wide_resnet(architecture):
        return WIDE
    if names.is_timm_network(architecture):
        if "@" in architecture:
            raise StudyError(
                f"backbone: architecture {architecture!r}: a side is for private training; here `size` enlarges images"
            )
        return AUGREG
    raise StudyError(
        f"backbone: architecture {architecture!r} does not exist; there are small_cnn, patches, a Wide ResNet such as "
        "wrn-16-4, nf-resnet-50, nfnet-f3, and timm:NAME"
    )


def _check_together(options: dict) -> None:
    contrast = options["objective"] == "contrast"
    if contrast != (options["augmentation"] == "contrast"):
        raise StudyError("backbone: objective 'contrast' and augmentation 'contrast' go together; give both or neither")
    for key in ("mixup", "micro_batch"):
        if contrast and options[key]:
            raise StudyError(f"backbone: {key} does not go with objective 'contrast'; leave it out")
    if options["objective"] == "scattering":
        if not names.is_wide_resnet(options["architecture"]) or options["architecture"].endswith("-plain"):
            raise StudyError(
                "backbone: objective 'scattering' is for Wide ResNets with group normalisation; name one, wrn-16-4 say"
            )
        if options["mixup"]:
            raise StudyError(
                "backbone: mixup does not go with objective 'scattering', which reads no labels; leave it out"
            )
    if options["rand_augment"] and options["augmentation"] != "inception":
        raise StudyError("backbone: rand_augment goes with augmentation 'inception' alone; leave it out")
