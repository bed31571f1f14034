from tests.unit.tables.conftest import compiles  # noqa: F401, a fixture
