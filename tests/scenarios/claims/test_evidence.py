"""The page of evidence is what the recorded numbers make of it."""

from dpstudy.evidence import measured, page, verdicts


def test_the_page_is_what_make_evidence_writes(tmp_path):
    page.write(measured.read(), verdicts.read(), tmp_path / "evidence.md")
    for name in ("evidence.md", "evidence.csv", "claims.csv"):
        made, kept = ((folder / name).read_text("utf-8") for folder in (tmp_path, page.PAGE.parent))
        assert made == kept, f"docs/{name}: run make evidence"
