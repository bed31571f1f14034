"""Snakemake's hooks, by a workflow that only knows what they ask of it."""

import json
from types import SimpleNamespace

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.plan import before, internals, paths, start, targets


class Workflow:
    """What a hook sees."""

    touch = False


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What the hooks ask of Snakemake and of the checks, in order."""
    calls = []
    monkeypatch.chdir(tmp_path)
    for name, answer in (("unthrottle", None), ("due_jobs", []), ("all_jobs", []), ("keep_going", None)):
        monkeypatch.setattr(internals, name, lambda _, name=name, answer=answer: calls.append(name) or answer)
    monkeypatch.setattr(internals, "copied_without_times", lambda _: ["copied"])
    monkeypatch.setattr(internals, "readings", lambda _: [["a", "b"]])
    return calls


@pytest.mark.parametrize(
    ("module", "noise"), [(True, "secure"), (True, "seeded"), (False, "secure"), (False, "seeded")]
)
def test_secure_noise_is_no_module_s(module, noise, monkeypatch):
    monkeypatch.setattr(internals, "is_module", lambda _: module)
    if (module, noise) == (True, "secure"):
        with pytest.raises(StudyError, match="for a study that runs by itself, not as a module"):
            start.refuse_module(Workflow(), {"noise": noise})
    else:
        start.refuse_module(Workflow(), {"noise": noise})


@pytest.mark.parametrize(("files", "named"), [([], "config.yaml"), (["a.yaml", "b.yaml"], "a.yaml b.yaml")])
def test_a_mistake_in_a_config_is_told_with_its_file(files, named, asked, monkeypatch):
    monkeypatch.setattr(start, "name_workflow", lambda: asked.append("named"))
    with pytest.raises(StudyError, match=f"^{named}: 6 mistakes"):
        start.read_study(SimpleNamespace(configfiles=files), {})
    assert asked == ["named"]


@pytest.mark.parametrize(("files", "told"), [(["a.yaml"], 0), (["a.yaml", "b.yaml"], 1)])
def test_that_two_configs_are_merged_is_told(files, told, monkeypatch, capsys):
    monkeypatch.setattr(start, "name_workflow", lambda: None)
    monkeypatch.setattr(start, "load_study", lambda config, names: config)
    assert start.read_study(SimpleNamespace(configfiles=files), {"study": "s"}) == {"study": "s"}
    assert capsys.readouterr().err.count("a.yaml and b.yaml: Snakemake merged them into one study") == told


@pytest.mark.parametrize("noise", ["secure", "seeded"])
def test_once_rules_are_read_the_environment_is_heeded(noise, monkeypatch):
    calls = []
    for module, name in (
        (start, "refuse_module"),
        (start, "mind_records"),
        (internals, "look_up_sizes"),
        (internals, "run_here"),
        (before, "note_kept"),
        (internals, "refuse_other_reports"),
        (internals, "tell_when_planned"),
    ):
        monkeypatch.setattr(module, name, lambda *all, name=name: calls.append((name, *all[1:2])))
    monkeypatch.setenv("DPSTUDY_HERE", "all tables")
    monkeypatch.setenv("DPSTUDY_KEPT", "kept.json")
    study = {"noise": noise}
    start.when_read(Workflow(), study)
    kept = [("note_kept", "kept.json")] if noise == "secure" else []
    expected = [("refuse_module", study), ("mind_records", study), ("look_up_sizes",), ("run_here", ["all", "tables"])]
    assert calls[:-1] == [*expected, *kept, ("refuse_other_reports",)] and calls[-1][0] == "tell_when_planned"


@pytest.mark.parametrize(("main", "remote"), [(True, False), (False, True), (False, False)])
def test_files_without_a_record_are_named_and_made_anew_by_the_main_process_alone(main, remote, monkeypatch, caplog):
    calls = []
    monkeypatch.setattr(internals, "keep_records", lambda: calls.append("keep"))
    monkeypatch.setattr(internals, "record_own_jobs", lambda: calls.append("own"))
    monkeypatch.setattr(targets, "lasting_files", lambda _: ["a", "b", "c"])
    monkeypatch.setattr(internals, "unrecorded", lambda files: files[1:])
    monkeypatch.setattr(internals, "outdate", lambda files: calls.append(files) or files)
    caplog.set_level("WARNING", logger="snakemake.logging")
    start.mind_records(SimpleNamespace(is_main_process=main, remote_exec=remote), {})
    assert calls == (["keep", ["b", "c"]] if main else ["own"] * remote)
    assert ("no record says what made b and 1 other files: made anew" in caplog.text) == main


@pytest.mark.parametrize("refusing", [True, False])
def test_before_the_first_job_checks_are_made_and_other_cells_go_on_where_one_may_refuse(refusing, asked, monkeypatch):
    given = []
    monkeypatch.setattr(before, "check", lambda *all: given.append(all) or (refusing, []))
    monkeypatch.setattr(before, "has", lambda rule, _: rule == "build_report")
    start.look_before(Workflow(), {"study": "s"})
    assert given == [({"study": "s"}, [], False, ["copied"])]
    assert asked == ["unthrottle", "due_jobs", *["keep_going"] * refusing, "all_jobs"]
    with open(paths.GRAPH, encoding="utf-8") as file:
        assert json.load(file) == {"edges": [["a", "b"]]}


def test_a_refusal_goes_through(asked, monkeypatch):
    def refuse(*_all):
        raise StudyError("nothing was run: because")

    monkeypatch.setattr(before, "check", refuse)
    with pytest.raises(StudyError, match="because"):
        start.look_before(Workflow(), {})
    assert "all_jobs" not in asked


def test_ahead_a_refusal_is_said_and_written_where_it_is_asked_for(asked, monkeypatch, tmp_path):
    monkeypatch.setattr(before, "refusal", lambda *_: ("because", True))
    assert start.look_ahead(Workflow(), {}) == "because" and not list(tmp_path.iterdir())
    monkeypatch.setenv("DPSTUDY_REFUSED", str(tmp_path / "refused.json"))
    assert start.look_ahead(Workflow(), {}) == "because"
    assert json.loads((tmp_path / "refused.json").read_text()) == ["because", True]


@pytest.mark.parametrize(("whole", "told"), [(True, "made\nall\n"), (False, "\nDone.\n")])
def test_at_the_end_a_whole_study_is_named(whole, told, asked, monkeypatch, capsys):
    monkeypatch.setattr(before, "has", lambda rule, _: whole and rule == "all")
    monkeypatch.setattr(before, "made", lambda _: ["made", "all"])
    start.announce(Workflow(), {})
    assert capsys.readouterr().out == told
