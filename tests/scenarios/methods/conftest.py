from tests.unit.methods.conftest import kind  # noqa: F401, a fixture
