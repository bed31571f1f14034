from tests.unit.tables.conftest import paper_study, study  # noqa: F401, finished studies on disk
