# Which files tables and figures read (dpstudy.plan.documents), of this study.


ASKED = study_of(STUDY)


def documents(kind, names):
    """What some tables or figures read besides the summary: kind of document -> name -> path."""
    return plan_documents.documents(ASKED, kind, names)


def document_files(kind, names):
    """The same as a list of files."""
    return plan_documents.files(ASKED, documents(kind, names))


def style_modules(kind, names):
    """The modules of some tables or figures that scripts find by name: of their styles, and of metrics."""
    specs = [STUDY[kind][name] for name in names]
    return plan_documents.style_modules(kind, specs) + metric_code(*(spec["metric"] for spec in specs))


def audits():
    """Cell -> its audit, for every cell that the study attacks."""
    return plan_documents.audits(ASKED)


def black_boxes():
    """Cell -> what came of attacking it by the loss of trained models."""
    return plan_documents.black_boxes(ASKED)


def claims_table(paper):
    """The table on a paper's claims as a list of names: one or none."""
    return [name for name in [plan_documents.claims_table(ASKED, paper)] if name]
