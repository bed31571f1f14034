import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.readers import glyphs, open_reader


def read(indices, **options):
    return open_reader("glyphs", options, ".").read("all", np.array(indices))


def test_an_image_depends_on_the_seed_and_its_number_alone(monkeypatch):
    together = read(range(40))
    scattered = read([31, 7, 20], count=50)
    np.testing.assert_array_equal(scattered.images, together.images[[31, 7, 20]])
    assert list(scattered.ids) == ["glyphs-000031", "glyphs-000007", "glyphs-000020"]
    monkeypatch.setattr(glyphs, "_CHUNK", 7)
    np.testing.assert_array_equal(read(range(40)).images, together.images)
    assert (read(range(40), seed=1).images != together.images).any(axis=(1, 2, 3)).all()


def test_labels_run_through_the_ten_digits_and_ids_agree_with_rows():
    records = read(range(30))
    assert records.labels.tolist() == list(range(10)) * 3
    rows = open_reader("glyphs", {"count": 30}, ".").rows("all")
    assert rows.ids.tolist() == records.ids.tolist() and len(rows) == 30


def test_images_have_the_statistics_of_scikit_learns_digits():
    from sklearn.datasets import load_digits

    ours, theirs = read(range(600)).images[..., 0] / 255, load_digits().images / 16
    assert ours.shape[1:] == (8, 8)
    assert abs(ours.mean() - theirs.mean()) < 0.02
    assert abs(ours.mean(axis=(1, 2)).std() - theirs.mean(axis=(1, 2)).std()) < 0.01
    assert np.abs(ours.mean(axis=(0, 1)) - theirs.mean(axis=(0, 1))).max() < 0.2  # where the ink lies, by column
    assert (ours.max(axis=2) > 0).all(axis=1).mean() > 0.99  # stretched to the full height


def test_every_font_has_every_digit():
    for font in glyphs.FONTS:
        assert not any(glyphs._tofu(font, digit) for digit in glyphs.CLASSES)
        drawn = {glyphs._draw(font, digit).tobytes() for digit in glyphs.CLASSES}
        assert len(drawn) == 10


def test_other_sizes():
    records = read(range(10), size=[28, 20])
    assert records.images.shape == (10, 28, 20, 1)
    assert (np.ptp(records.images, axis=(1, 2, 3)) == 255).all()


def test_a_size_out_of_range_is_named():
    with pytest.raises(StudyError, match="size"):
        open_reader("glyphs", {"size": [8]}, ".")
