from tests.unit.tuning.conftest import rows, toy_features  # noqa: F401, fixtures
