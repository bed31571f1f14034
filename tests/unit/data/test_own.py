"""Which studies are for their owner's eyes."""

import pytest

from dpstudy.data.own import is_confidential, own_reader


@pytest.mark.parametrize(
    ("noise", "dataset", "confidential"),
    [
        ("seeded", {"reader": "digits"}, False),
        ("secure", {"reader": "digits"}, True),
        ("seeded", {"reader": "digits", "test_split": "private"}, True),
        ("seeded", {"reader": "image_table"}, True),
        ("seeded", {"reader": "image_table", "test_split": "public"}, True),
        ("seeded", {"reader": "cifar", "extra": {"reader": "image_folder"}}, True),
        ("seeded", {"reader": "cifar", "extra": {"reader": "arrays"}}, True),
        ("seeded", {"reader": "arrays"}, True),
        ("seeded", {"reader": "cifar", "extra": {"reader": "imagenet32"}}, False),
    ],
)
def test_what_is_confidential(noise, dataset, confidential):
    assert is_confidential({"noise": noise, "datasets": {"toy": {"reader": "cifar"}, "d": dataset}}) == confidential


def test_files_whose_test_records_are_private_are_somebodys_own_in_whatever_format():
    """Then delta must be below 1/n, and nothing looks at training records."""
    assert own_reader({"reader": "cifar"}) is None
    assert own_reader({"reader": "cifar", "test_split": "private"}) == "cifar"
    assert own_reader({"reader": "image_table", "test_split": "public"}) == "image_table"
