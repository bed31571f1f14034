# Where the rules lie: of a repository elsewhere (a module as snakedeploy writes it) Snakemake fetches their files alone,
# but they ask the library. The whole commit is then laid out beside the study.

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

RULES, HERE = "workflow/rules", workflow.current_basedir
if hasattr(HERE, "ref"):
    from git import Repo

    repository = Repo(HERE.repo_path if HERE.is_local else HERE.hosted_repo.repo_clone)
    laid = Path(".snakemake/dpstudy", repository.commit(HERE.ref).hexsha).resolve()
    laid.parent.mkdir(parents=True, exist_ok=True)
    if not laid.exists():
        with TemporaryDirectory(dir=laid.parent) as new:
            repository.git.archive("-o", f"{new}/of.tar", laid.name, "workflow", "envs")
            shutil.unpack_archive(f"{new}/of.tar", f"{new}/whole", filter="data")
            shutil.move(f"{new}/whole", laid)
    RULES = str(laid / "workflow/rules")
