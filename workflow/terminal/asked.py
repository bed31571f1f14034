"""What is wrong with a command before Snakemake sees it: the folder that it is given in, and the file of the study."""

from collections.abc import Iterator
from pathlib import Path

from dpstudy.suggest import suggestion


def mistake(arguments: list[str]) -> str:
    """One sentence; "" where nothing is wrong.

    Args:
        arguments: Snakemake's.
    """
    if not Path("Snakefile").is_file():
        return f"{Path.cwd()}: no Snakefile is here; run this in the repository's top folder"
    for name in _studies(arguments):
        if said := _wrong(Path(name)):
            return said
    return ""


def _studies(arguments: list[str]) -> Iterator[str]:
    """What follows --configfile, up to the next option."""
    follows = False
    for argument in arguments:
        flag, _, value = argument.partition("=")
        if argument.startswith("-"):
            follows = flag in ("--configfile", "--configfiles")
            if follows and value:
                yield value
        elif follows:
            yield argument


def _wrong(file: Path) -> str:
    import yaml

    if not file.is_file():
        names = [str(path) for path in (Path("config.yaml"), *sorted(Path("studies").glob("*.yaml")))]
        stems = {Path(name).stem: name for name in names}
        near = f" (did you mean {stems[file.stem]!r}?)" if file.stem in stems else suggestion(str(file), names)
        return f"{file}: no such file{near}; a study is a YAML file such as config.yaml or those in studies/"
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        return f"{file}: not a text in UTF-8; save it so"
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        return (
            f"{file}: not YAML{where}: {getattr(error, 'problem', None) or error}; mend the line, or the one before it"
        )
    return "" if isinstance(content, dict) else f"{file}: holds no keys; config.yaml is a study, and explains each key"
