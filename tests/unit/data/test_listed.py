"""What readers of listed images share."""

from dpstudy.data.listed import age_bands


def test_ages_fall_into_bands():
    ages = ["39", "40", "59.0", "060Y", "80", "", "411"]
    assert age_bands(ages).tolist() == ["under 40", "40-59", "40-59", "60-79", "80 and over", "unknown", "unknown"]
