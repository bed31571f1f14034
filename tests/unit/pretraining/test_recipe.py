import math

import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.pretraining.options import complete
from dpstudy.pretraining.recipe import Recipe


def test_the_rates_of_de2022s_recipes():
    """C.3: 100K steps with a tenth at 50K and at 75K; or constant."""
    steps = Recipe(1, 128, 0.1, schedule="steps")
    rates = [steps.rate(step, 100_000) for step in (0, 49_999, 50_000, 74_999, 75_000, 99_999)]
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001])
    assert Recipe(1, 1024, 0.3, schedule="constant").rate(7, 10) == 0.3
    cosine = Recipe(2, 10, 0.2, warm_up=50)
    assert cosine.rate(0, 1000) == pytest.approx(0.2 / 50)
    assert cosine.rate(500, 1000) == pytest.approx(0.1) and cosine.rate(999, 1000) < 1e-6


def test_the_recipe_of_mehta2023():
    """C.2 and Table 5: ViT-B/16, 300 epochs, batches of 4,096, 1e-3 after 10,000 steps, then linearly to 0."""
    options = complete({"architecture": "timm:vit_base_patch16_224", "public": "imagenet", "size": [224, 224]})
    recipe = Recipe.of(options)
    assert (recipe.epochs, recipe.batch_size, recipe.learning_rate, recipe.warm_up) == (300, 4096, 1e-3, 10_000)
    assert (recipe.mixup, recipe.rand_augment, recipe.clip_norm) == (0.2, {"layers": 2, "magnitude": 15}, 1.0)
    steps = 300 * math.ceil(1_281_167 / 4096)
    rates = [recipe.rate(step, steps) for step in (0, 4_999, 9_999, (10_000 + steps) // 2, steps - 1)]
    assert rates == pytest.approx([1e-7, 5e-4, 1e-3, 5e-4, 1e-3 / (steps - 10_000)], rel=1e-3)
    # the text's weight decay, 0.1 times the rate, is the 0.0001 of Table 5
    weight = torch.nn.Parameter(torch.ones(1))
    optimiser = recipe.make_optimiser([weight])
    optimiser.param_groups[0]["lr"] = recipe.learning_rate
    weight.grad = torch.zeros(1)
    optimiser.step()
    assert weight.item() == pytest.approx(1 - 0.0001, rel=1e-6)


def test_each_family_has_a_recipe_of_its_own():
    small, wide = complete({"architecture": "small_cnn"}), complete({"architecture": "wrn-16-4"})
    assert (small["epochs"], small["augmentation"]) == (6, "warp")
    assert (wide["optimiser"], wide["schedule"], wide["augmentation"]) == ("momentum", "steps", "crop")
    contrast = complete({"architecture": "timm:resnet10t", "objective": "contrast"})
    assert (contrast["augmentation"], contrast["mixup"], contrast["rand_augment"]) == ("contrast", 0.0, None)
    with pytest.raises(StudyError, match="unknown key 'width' of architecture 'wrn-16-4'"):
        complete({"architecture": "wrn-16-4", "width": 3})
    with pytest.raises(StudyError, match="'timm:resnet10t@64': a side is for private training"):
        complete({"architecture": "timm:resnet10t@64", "public": "p"})
    with pytest.raises(StudyError, match="'big_cnn' does not exist"):
        complete({"architecture": "big_cnn"})
