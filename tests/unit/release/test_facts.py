"""bundle.json in plain Python against its schema: what the one refuses the other does, too."""

import copy
import itertools

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.release.facts import PLAIN, check_facts
from dpstudy.schema.reading import check

FACTS = {
    "name": "toy",
    "classes": ["a", "b"],
    "multi_label": False,
    "image": {"size": [12, 8], "channels": 1, "crop": True, "frame": 2},
    "features": {
        "extractor": "pixels",
        "scaling": "unit",
        "normalise": "l2",
        "dtype": "float16",
        "fit": "pca",
        "deskew": True,
    },
}
VALUES = (
    None,
    True,
    False,
    0,
    1,
    2,
    3,
    3.0,
    2.5,
    -1,
    4097,
    "",
    "unit",
    "none",
    "x",
    [],
    [1, 2],
    [0, 2],
    [1, 2, 3],
    {},
    ["a", 1],
)
VALUES += (
    {"group_norm": 3},
    {"group_norm": 0},
    {"group_norm": 3, "x": 1},
    {"size": [1, 1]},
    [1, 5000],
    [True, 2],
    "float32",
)


def refused(function, *arguments):
    try:
        function(*arguments)
    except StudyError as error:
        assert str(error).startswith("here: ") and "\n" not in str(error)
        return True
    return False


@pytest.mark.parametrize("extractor", PLAIN)
def test_the_same_is_refused(extractor):
    own = ("classes", "multi_label", "image", "features", "name", "backend")
    places = [(key,) for key in own]
    places += [("image", key) for key in ("size", "channels", "crop", "frame", "more")]
    places += [("features", key) for key in ("scaling", "normalise", "dtype", "fit", "deskew", "more")]
    tried = 0
    for place, value in itertools.product(places, (*VALUES, "left out")):
        facts = copy.deepcopy(FACTS)
        facts["features"]["extractor"] = extractor
        *path, key = place
        node = facts[path[0]] if path else facts
        if value == "left out":
            node.pop(key, None)
        else:
            node[key] = value
        if facts.get("features") is not None and facts["features"] != {} and not isinstance(facts["features"], dict):
            continue
        plain = refused(check_facts, facts, "here")
        assert plain == refused(check, facts, "bundle", "here"), (place, value)
        tried += 1
    assert tried > 400


def test_a_key_of_another_extractor_is_unknown():
    facts = copy.deepcopy(FACTS)
    facts["features"]["mirror"] = True
    with pytest.raises(StudyError, match="unknown key 'mirror'"):
        check_facts(facts, "here")


@pytest.mark.parametrize("facts", [None, [], "x", {}, {"features": 3}])
def test_what_is_no_bundle_is_a_sentence(facts):
    with pytest.raises(StudyError, match="^here: "):
        check_facts(facts, "here")
