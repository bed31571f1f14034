from tests.unit.data.conftest import idx_bytes, real_data, refused  # noqa: F401, fixtures
