"""Features of public networks against a slow computation, and every way in which weights can be the wrong ones."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from timm.models.vision_transformer import checkpoint_filter_fn

from dpstudy.core.errors import StudyError
from dpstudy.core.files import sha256
from dpstudy.features import backends, open_extractor, shards
from dpstudy.features.extract import extract_shard, prepare_manifest

TINY = "test_resnet"  # one of timm's networks for tests: 96 features, mean and deviation 0.5, 160 x 160
RANDOM = {"extractor": "timm", "model": TINY, "weights": "random", "scaling": "model", "size": "native"}
RANDOM |= {"backend": "torch"}  # what others make of a network is compared in test_backends.py and test_alone.py
FILE = RANDOM | {"weights": "tiny.safetensors"}


def random_images(n, shape=(24, 24, 3), seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape)).astype(np.uint8)


def trained(classes=7, seed=3):
    """A network whose batch normalisation and classifier are not as they were initialised."""
    import timm

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = timm.create_model(TINY, pretrained=False, num_classes=classes)
        for name, value in network.state_dict().items():
            if value.is_floating_point():
                value.add_(0.1 * torch.rand_like(value) * (1 if "var" in name else value.abs().mean() + 0.1))
    return network.eval()


@pytest.fixture
def weights(tmp_path):
    """The folder of tiny.safetensors: all tensors of a network with a classifier."""
    save_file(trained().state_dict(), tmp_path / "tiny.safetensors")
    return tmp_path


def changed(folder, change):
    state = dict(trained().state_dict())
    change(state)
    save_file(state, folder / "tiny.safetensors")


def test_features_are_what_the_classifier_sees_image_by_image(weights):
    images = random_images(5)
    extractor = open_extractor(FILE, data_root=weights)
    features = extractor(images)
    assert extractor.shape((24, 24, 3)) == (96,) and features.shape == (5, 96) and features.dtype == np.float32
    network = trained().double()
    for row, image in enumerate(images):
        planes = (torch.from_numpy(image).double().permute(2, 0, 1)[None] / 255 - 0.5) / 0.5
        with torch.no_grad():
            maps = network.forward_features(planes)
            slow = maps.mean((2, 3))
            assert torch.allclose(network.fc(slow), network(planes))  # this is what the classifier sees
        np.testing.assert_allclose(features[row], slow[0].numpy(), rtol=1e-4, atol=1e-5)


def test_each_record_has_the_features_it_has_alone_and_a_second_run_the_same_bytes(weights, monkeypatch):
    images = random_images(9)
    extractor = open_extractor(FILE, data_root=weights)
    features = extractor(images)
    alone = np.concatenate([extractor(images[row : row + 1]) for row in range(9)])
    np.testing.assert_allclose(features, alone, rtol=1e-4, atol=1e-5)
    assert (open_extractor(FILE, data_root=weights)(images) == features).all()
    monkeypatch.setattr("dpstudy.features.network_input._PIXELS", {"cpu": 2 * 24 * 24, "cuda": 2 * 24 * 24})
    np.testing.assert_allclose(extractor(images), features, rtol=1e-4, atol=1e-5)


def test_a_mirrored_image_has_the_same_features_where_both_are_averaged(weights):
    images = random_images(5)
    plain, mirrored = (
        open_extractor(FILE, data_root=weights),
        open_extractor(FILE | {"mirror": True}, data_root=weights),
    )
    both = (plain(images) + plain(images[:, :, ::-1].copy())) / 2
    np.testing.assert_allclose(mirrored(images), both, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mirrored(images[:, :, ::-1].copy()), both, rtol=1e-5, atol=1e-6)
    assert np.abs(plain(images) - both).max() > 1e-2


def test_five_crops_are_averaged_with_their_mirror_images(weights):
    images = random_images(3, (24, 28, 3))
    plain, five = (
        open_extractor(FILE | more, data_root=weights)
        for more in ({}, {"crop": [16, 20], "crops": "five", "mirror": True})
    )
    parts = [images[:, top : top + 16, left : left + 20] for top, left in ((4, 4), (0, 0), (0, 8), (8, 0), (8, 8))]
    slow = [plain(np.ascontiguousarray(seen)) for part in parts for seen in (part, part[:, :, ::-1])]
    np.testing.assert_allclose(five(images), np.mean(slow, 0), rtol=1e-4, atol=1e-5)
    assert len({each.tobytes() for each in slow}) == 10
    with pytest.raises(StudyError, match="crops: five needs the key `crop`"):
        open_extractor(FILE | {"crops": "five"}, data_root=weights)


def test_layers_are_means_of_what_stages_within_give(weights):
    images, seen = random_images(3), {}
    network = trained()
    for number, name in enumerate(("act1", "layer1", "layer2", "layer3", "layer4")):  # its stages
        network.get_submodule(name).register_forward_hook(lambda _, __, out, number=number: seen.update({number: out}))
    extractor = open_extractor(FILE | {"layers": [3, 1]}, data_root=weights)
    with torch.inference_mode():
        network(extractor.views(images)[0])
    slow = torch.cat([seen[number].mean((2, 3)) for number in (1, 3)], 1)[:3].numpy()
    assert extractor.shape((24, 24, 3)) == slow.shape[1:] == (32 + 192,)
    np.testing.assert_allclose(extractor(images), slow, rtol=1e-4, atol=1e-5)
    with pytest.raises(StudyError, match="has the stages 0 to 4; mend `layers`"):
        open_extractor(FILE | {"layers": [5]}, data_root=weights)
    with pytest.raises(StudyError, match="does not tell what its stages give"):
        open_extractor(RANDOM | {"model": "resnext29-cifar", "layers": [0]})


def test_precision_is_of_the_passes_alone(weights, monkeypatch):
    images = random_images(4)
    exact, short, tf32 = (
        open_extractor(FILE | {"precision": precision}, data_root=weights)
        for precision in ("float32", "bfloat16", "tf32")
    )
    features, rounded = exact(images), short(images)
    assert rounded.dtype == np.float32 and (features != rounded).any()
    np.testing.assert_allclose(rounded, features, rtol=0, atol=0.03 * np.abs(features).max())
    seen = []
    monkeypatch.setattr(tf32, "_features", lambda images: seen.append(torch.backends.cudnn.allow_tf32) or images)
    monkeypatch.setattr(exact, "_features", tf32._features)
    tf32(images), exact(images)
    assert seen == [True, False] and not torch.backends.cuda.matmul.allow_tf32
    with pytest.raises(StudyError, match="precision: bfloat16 is for backend torch or compile"):
        open_extractor(FILE | {"precision": "bfloat16", "backend": "openvino"}, data_root=weights)


def test_random_weights_follow_their_seed_and_leave_the_callers_random_numbers_alone():
    images = random_images(2)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first, again, other = (open_extractor(RANDOM | seed)(images) for seed in ({}, {"seed": 0}, {"seed": 1}))
    assert torch.equal(torch.get_rng_state(), state)
    assert (first == again).all() and not np.allclose(first, other)


def test_images_are_resized_as_pillow_does_and_scaled_as_told(weights):
    """The network is taken out, so that its inputs are seen; Pillow rounds to whole grey levels."""
    image = 64 + random_images(1, (24, 20, 3)) // 2  # no black and white, at which Pillow clips in between
    for size in ((48, 40), (12, 16)):
        resized = np.asarray(Image.fromarray(image[0]).resize(size[::-1], Image.BICUBIC)) / 255
        for scaling, mean, std in (("model", 0.5, 0.5), ("imagenet", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))):
            extractor = open_extractor(FILE | {"size": list(size), "scaling": scaling}, data_root=weights)
            extractor.network = torch.nn.Flatten()
            expected = ((resized - mean) / std).transpose(2, 0, 1).reshape(1, -1)
            np.testing.assert_allclose(extractor(image), expected, atol=1.5 / 255 / 0.224)
    extractor = open_extractor(FILE | {"size": [48, 40], "scaling": "unit"}, data_root=weights)
    extractor.network = torch.nn.Flatten()
    overshot = extractor(np.where(random_images(1, (24, 20, 3)) > 127, 255, 0).astype(np.uint8))
    assert overshot.min() == 0 and overshot.max() == 1
    own = open_extractor({key: value for key, value in FILE.items() if key != "size"}, data_root=weights)
    exact = open_extractor(FILE | {"size": [160, 160]}, data_root=weights)
    assert (own(image) == exact(image)).all()


def test_grey_images_are_taken_as_three_equal_planes(weights):
    grey = random_images(3, (24, 24, 1))
    extractor = open_extractor(FILE | {"scaling": "imagenet"}, data_root=weights)
    assert (extractor(grey) == extractor(np.repeat(grey, 3, axis=3))).all()
    with pytest.raises(StudyError, match="1 or 3 channels, not 2"):
        extractor.shape((24, 24, 2))


def test_a_size_that_a_network_cannot_take_is_named():
    with pytest.raises(StudyError, match=r"'test_vit' cannot take images of 24x24 \(.*\); mend `size`") as caught:
        open_extractor(RANDOM | {"model": "test_vit"}).shape((24, 24, 3))
    assert "\n" not in str(caught.value)


def test_a_classifier_and_counters_of_batches_are_not_needed(weights):
    images = random_images(2)
    whole = open_extractor(FILE, data_root=weights)(images)
    unneeded = [
        name for name in trained().state_dict() if name.startswith("fc.") or name.endswith("num_batches_tracked")
    ]
    assert len(unneeded) > 2
    changed(weights, lambda state: [state.pop(name) for name in unneeded])
    assert (open_extractor(FILE, data_root=weights)(images) == whole).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("conv1.0.weight"), r"1 missing \(conv1.0.weight\); mend"),
        (lambda s: s.update(extra=torch.ones(2)), r"1 unexpected \(extra\)"),
        (lambda s: s.update({"bn1.bias": torch.ones(3)}), r"1 of another shape \(bn1.bias\)"),
        (lambda s: [s.update({f"net.{k}": s.pop(k)}) for k in list(s)], r"missing \(.*, \.\.\.\), \d+ unexpected"),
    ],
)
def test_tensors_that_do_not_fit_are_named_in_one_sentence(weights, change, words):
    changed(weights, change)
    with pytest.raises(StudyError, match=f"tiny.safetensors: its tensors are not those of this .*{words}") as caught:
        open_extractor(FILE, data_root=weights)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": "no.safetensors"}, "no.safetensors: no such file"),
        ({"weights": "tiny.pth"}, "tiny.pth: weights are read from a .safetensors file"),
        ({"weights": "broken.safetensors"}, "broken.safetensors: not a readable safetensors file"),
        ({"sha256": "0" * 64}, "tiny.safetensors: its SHA-256 is .* another file"),
        ({"model": "resnet_50"}, "'resnet_50' is neither 'resnext29-cifar' nor one of timm"),
        ({"model": "hf-hub:timm/test_resnet.r160_in1k"}, "is neither"),  # nothing is fetched
    ],
)
def test_weights_and_models_that_are_not_there_are_named(weights, options, words):
    (weights / "broken.safetensors").write_bytes(b"nothing")
    (weights / "tiny.pth").write_bytes(b"nothing")
    with pytest.raises(StudyError, match=words):
        open_extractor(FILE | options, data_root=weights)


def test_shards_and_their_manifest_say_which_file_made_them(weights, make_records, make_folder):
    folder, out = make_folder(make_records(8, (24, 24, 3)), count=2), weights / "out"
    paths = [out / f"part-{index:05d}.parquet" for index in range(2)]
    expected = sha256(weights / "tiny.safetensors")

    def extract(index, options):
        extract_shard(options, folder, index, paths[index], data_root=weights)

    for index in range(2):
        extract(index, FILE | {"sha256": expected})
    prepare_manifest("tiny", folder, paths, out / "manifest.json")
    assert json.loads((out / "manifest.json").read_text())["made_from"] == {
        "model": TINY,
        "weights": expected,
        "backend": backends.version("torch"),
    }
    table = shards.load(out)
    assert table.shape == (96,) and len(table) == 8
    extract(1, RANDOM)  # as if the file had changed in between
    with pytest.raises(StudyError, match="part-00001.parquet: its .* network differ"):
        prepare_manifest("tiny", folder, paths, out / "manifest.json")


def test_the_middle_of_enlarged_images_is_taken(weights):
    """As mehta2023 D.1 has it: enlarge, then crop."""
    image = random_images(1)
    extractor = open_extractor(FILE | {"size": [36, 40], "crop": [30, 20]}, data_root=weights)
    whole = open_extractor(FILE | {"size": [36, 40]}, data_root=weights)
    extractor.network = whole.network = torch.nn.Identity()
    np.testing.assert_array_equal(extractor(image), whole(image)[:, :, 3:33, 10:30])
    with pytest.raises(StudyError, match="crop: 64x64 does not fit into images of 36x40"):
        open_extractor(FILE | {"size": [36, 40], "crop": [64, 64]}, data_root=weights).shape((24, 24, 3))


def test_tokens_are_pooled_as_told(tmp_path):
    images = random_images(2, (160, 160, 3))
    options = RANDOM | {"model": "test_vit"}
    token, mean = (open_extractor(options | {"pool": pool}) for pool in ("token", "mean"))
    planes = (torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.5
    tokens = token.network.cpu().forward_features(planes)[:, 0].detach().numpy()
    token = open_extractor(options | {"pool": "token"})
    np.testing.assert_allclose(token(images), tokens, rtol=1e-4, atol=1e-5)
    assert not np.allclose(token(images), mean(images))
    own = open_extractor(options)(images)
    assert np.allclose(own, token(images)) or np.allclose(own, mean(images))
    weights = open_extractor(options | {"pool": "model"}).network.state_dict()  # a file's, as the network was trained
    save_file(weights, tmp_path / "vit.safetensors")
    brought = {"weights": "vit.safetensors", "pool": "mean"}
    np.testing.assert_array_equal(open_extractor(options | brought, data_root=tmp_path)(images), mean(images))
    with pytest.raises(StudyError, match="pool: a ResNet has no tokens to choose from"):
        open_extractor(RANDOM | {"pool": "token"})


def kept_by_the_hub(folder, content, name):
    """A file as the hub's client keeps it, under a name that stands for its content."""
    (folder / "blobs").mkdir()
    (folder / "blobs" / name).write_bytes(content)
    link = folder / "model.safetensors"
    link.symlink_to(f"blobs/{name}")
    return link


def test_weights_from_the_hub_are_those_of_a_file(weights, monkeypatch, tmp_path):
    asked, file = [], weights / "tiny.safetensors"
    link = kept_by_the_hub(tmp_path, file.read_bytes(), sha256(file))

    def download(*names):
        asked.append(names)
        return str(link)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    hub = open_extractor(FILE | {"weights": "hub"}, data_root=weights)
    assert asked == [(f"timm/{TINY}.r160_in1k", "model.safetensors")]
    assert hub.made_from == open_extractor(FILE, data_root=weights).made_from
    assert (hub(random_images(2)) == open_extractor(FILE, data_root=weights)(random_images(2))).all()


def test_weights_from_the_hub_are_held_against_the_hash_that_it_tells(weights, monkeypatch, tmp_path):
    content, told = (weights / "tiny.safetensors").read_bytes(), sha256(weights / "tiny.safetensors")
    damaged = content[:-1] + bytes([content[-1] ^ 1])
    for name, kept, refused in (
        (told, damaged, f"but the hub tells {told}: damaged, or another file"),
        ("0" * 40, content, "the hub tells no SHA-256 to check this file by; give it in the config's `sha256`"),
    ):
        (tmp_path / name).mkdir()
        link = kept_by_the_hub(tmp_path / name, kept, name)
        monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_, link=link: str(link))
        with pytest.raises(StudyError, match=refused):
            open_extractor(FILE | {"weights": "hub"})
    open_extractor(FILE | {"weights": "hub", "sha256": told})  # of the last, which the config knows
    with pytest.raises(StudyError, match="but the config's `sha256` is 1111"):
        open_extractor(FILE | {"weights": "hub", "sha256": "1" * 64})


def test_weights_that_cannot_be_fetched_are_named_with_the_place_for_them(monkeypatch):
    def download(*names):
        raise OSError("no route to host\nand more")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    with pytest.raises(StudyError) as caught:
        open_extractor(FILE | {"weights": "hub"})
    assert str(caught.value) == (
        f"model '{TINY}': its weights cannot be fetched (no route to host); on a machine with a network fetch"
        f" https://huggingface.co/timm/{TINY}.r160_in1k/resolve/main/model.safetensors, place it under data_root as"
        f" weights/{TINY}.safetensors, and write `weights: weights/{TINY}.safetensors`"
    )


def test_a_transformer_takes_images_of_another_size(tmp_path):
    """As mehta2023 D.1 has it: resized, and their middle cut out, of another size than the network was made for."""
    import timm

    network = timm.create_model("test_vit", pretrained=False, num_classes=5)
    save_file(network.state_dict(), tmp_path / "vit.safetensors")
    options = {"extractor": "timm", "model": "test_vit", "weights": "vit.safetensors"}
    images = random_images(2, (32, 32, 3))
    larger = open_extractor(options | {"size": [224, 224], "crop": [192, 192]}, data_root=tmp_path)
    assert larger.shape((32, 32, 3)) == (64,)
    made = timm.create_model("test_vit", pretrained=False, num_classes=0, img_size=192).eval()
    state = checkpoint_filter_fn(dict(network.state_dict()), made)  # resamples the positions
    made.load_state_dict({key: value for key, value in state.items() if not key.startswith("head")})
    with torch.no_grad():
        np.testing.assert_allclose(larger(images), made(larger.views(images)[0].cpu()).numpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(StudyError, match="network 'test_vit' cannot take images of 190x190"):
        open_extractor(options | {"size": [190, 190]}, data_root=tmp_path).shape((32, 32, 3))
