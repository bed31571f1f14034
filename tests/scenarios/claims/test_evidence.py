"""The page of evidence is what the recorded numbers make of it."""

from dpstudy.evidence import measured, page, verdicts


def test_the_page_is_what_make_evidence_writes(tmp_path):
    page.write(measured.read(), verdicts.read(), tmp_path / "evidence.md")
    for ending in (".md", ".csv"):
        made, kept = (path.with_suffix(ending).read_text("utf-8") for path in (tmp_path / "evidence.md", page.PAGE))
        assert made == kept, f"docs/evidence{ending}: run make evidence"
