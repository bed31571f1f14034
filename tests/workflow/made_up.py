"""Images and weights that nobody took or trained, in the layouts of the data sets that studies name."""

import gzip
import struct
from pathlib import Path

import numpy as np
from PIL import Image
from safetensors.torch import save_file

TRAIN, TEST = 60, 20
_CLASSES, _SIDE = 6, 90  # of folders of images


def made_up(folder: Path) -> None:
    """MNIST and Fashion-MNIST as IDX files, CIFAR-10 and -100 as mosaics, ImageNet at 32 x 32, others as arrays."""
    random = np.random.default_rng(0)
    for name in ("mnist", "fashion-mnist"):
        (folder / name).mkdir(parents=True)
        for pool, rows in (("train", TRAIN), ("t10k", TEST)):
            images = random.integers(0, 256, (rows, 28, 28), np.uint8)
            labels = (np.arange(rows) % 10).astype(np.uint8)
            for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
                head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
                with gzip.open(folder / name / f"{pool}-{kind}-ubyte.gz", "wb") as file:
                    file.write(head + array.tobytes())
    for name, classes in (("cifar10", 10), ("cifar100", 100), ("cifar-100-python", 100), ("cifar100-subset", 100)):
        (folder / name).mkdir()
        for pool, rows in (("train", TRAIN), ("test", TEST)):
            tiles = random.integers(0, 256, (32 * rows // 10, 320, 3), np.uint8)
            Image.fromarray(tiles).save(folder / name / f"{pool}_00.png")
            np.save(folder / name / f"{pool}_labels.npy", np.arange(rows) % classes)
        (folder / name / "classes.txt").write_text("".join(f"class {label}\n" for label in range(classes)))
    (folder / "imagenet32").mkdir()
    for name in ("train_data_batch_1", "val_data"):
        images = random.integers(0, 256, (TRAIN, 3 * 32 * 32), np.uint8)
        np.savez(folder / "imagenet32" / f"{name}.npz", data=images, labels=np.arange(1, TRAIN + 1))
    (folder / "tiny-images-500k").mkdir()
    np.save(folder / "tiny-images-500k" / "all_images.npy", random.integers(0, 256, (50, 32, 32, 3), np.uint8))
    np.save(folder / "tiny-images-500k" / "all_labels.npy", np.arange(50) % 10)


def folders_of_images(folder: Path, datasets: dict) -> None:
    """What readers `imagenet` and `places365` expect, where a study has them."""
    readers, random = {dataset["reader"] for dataset in datasets.values()}, np.random.default_rng(1)

    def draw(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (_SIDE, _SIDE + 10, 3), np.uint8)).save(path)

    if "imagenet" in readers:
        for pool, rows in (("train", TRAIN), ("val", TEST)):
            for row in range(rows):
                draw(folder / "imagenet" / pool / f"n{row % _CLASSES}" / f"{row}.JPEG")
    if "places365" in readers:
        places = folder / "places365"
        for pool, images, rows in (("train_standard", "data_256", TRAIN), ("val", "val_256", TEST)):
            for row in range(rows):
                draw(places / images / f"{row}.jpg")
            lines = [f"/{row}.jpg {row % _CLASSES}\n" for row in range(rows)]
            (places / f"places365_{pool}.txt").write_text("".join(lines))
        lines = [f"/p/place{label} {label}\n" for label in range(_CLASSES)]
        (places / "categories_places365.txt").write_text("".join(lines))


def untrained(folder: Path, config: dict) -> None:
    """Networks that learned nothing, in the files of weights that features of timm's networks and trainings name."""
    files = {
        features["weights"]: features["model"]
        for features in config["features"].values()
        if features.get("weights", "").startswith("weights/")
    }
    for file, model in files.items():
        (folder / file).parent.mkdir(exist_ok=True)
        save_file(_network(model).state_dict(), folder / file)


def _network(model: str):
    import timm

    from dpstudy.models import timm_network

    if model.startswith("nf-resnet-"):
        return timm_network.build(model, (3, 64, 64), _CLASSES)
    return timm.create_model(model, pretrained=False, num_classes=_CLASSES)
