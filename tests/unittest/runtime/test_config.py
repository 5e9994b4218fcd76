"""Configuration class hipress.CompressionConfig: one description of a compression, for every front
end."""

from __future__ import annotations

import dataclasses

import pytest

from hipress import CompressionConfig
from hipress.config import difference
from hipress.planning.plan import Decision


def test_what_a_user_may_give():
    config = CompressionConfig("2bit", {"threshold": 0.5}, topology="Ring", min_size=9)
    assert CompressionConfig.of(config) is config
    assert CompressionConfig.of("tbq") == CompressionConfig("tbq")
    text = {"type": "2bit", "threshold": 0.5, "topology": "RING", "min_size": "9"}
    assert CompressionConfig.of(text) == config
    second = {"params": {"threshold": 0.5}, "topology": "ring", "min_size": 9}
    assert CompressionConfig.of("2bit", **second) == config
    assert CompressionConfig.of({}) == CompressionConfig("none")
    assert str(config) == "type=2bit, threshold=0.5, topology=ring, min_size=9"


def test_it_does_not_change():
    given = {"threshold": 0.5}
    config = CompressionConfig("2bit", given)
    given["threshold"] = 7
    assert config.params == {"threshold": 0.5}
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.min_size = 3
    assert dataclasses.replace(config, min_size=3).params == config.params


def test_what_a_store_is_told():
    assert CompressionConfig("tbq").store_params() == {"type": "tbq", "pull": "auto"}
    config = CompressionConfig("tbq", {"threshold": 1}, "ps", 0, devices_per_host=2, pull="none")
    assert config.store_params() == {
        "type": "tbq",
        "threshold": 1,
        "topology": "ps",
        "min_size": 0,
        "devices_per_host": 2,
        "pull": "none",
    }
    for name, value in (("warmup_steps", 5), ("encode_on", "device"), ("shared_momentum", 0.9)):
        with pytest.raises(ValueError, match=f"{name} is for PyTorch"):
            CompressionConfig("tbq", **{name: value}).store_params()
    with pytest.raises(ValueError, match="powersgd needs whole gradients by name and shape"):
        CompressionConfig("powersgd", {"rank": 4}).store_params()


def test_a_plan_is_a_file_or_decisions(tmp_path):
    path = tmp_path / "plan.txt"
    path.write_text("g,100,y,2\n")
    decisions = {"g": Decision(True, 2)}
    for plan in (path, str(path), decisions):
        assert CompressionConfig("tbq", plan=plan).decisions == decisions
    for plan in (None, "", "auto"):
        assert CompressionConfig("tbq", plan=plan).decisions == {}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"type": 3}, "a compression type is a name such as 'dgc', not 3"),
        ({"type": "zip"}, 'unknown compression type "zip"; allowed: 1bit, 2bit, .*powersgd'),
        (
            {"treshold": 1},
            'type 2bit has no parameter "treshold"; .*: threshold .default 0.5.;',
        ),
        ({"threads": 2}, 'type 2bit has no parameter "threads"'),
        ({"params": {"pull": "none"}}, "pull is no parameter of a codec: it is a setting beside"),
        (
            {"type": "none", "typ": "2bit"},
            'type none .the one if none is named. has no parameter "typ"',
        ),
        ({"threshold": -1}, "threshold of compression type 2bit must be a finite number > 0"),
        ({"type": "powersgd", "rank": 0}, "rank must be a whole number from 1 to 32, not 0"),
        ({"type": "powersgd", "bits": 2}, "powersgd has no parameter 'bits'; it has rank"),
        ({"topology": "mesh"}, "there is no topology 'mesh'; there are ps"),
        ({"min_size": -1}, "min_size must be a whole number of 0 or more, not -1"),
        ({"min_size": "many"}, "min_size must be a whole number of 0 or more, not 'many'"),
        ({"min_size": 1.5}, "min_size must be a whole number of 0 or more, not 1.5"),
        ({"warmup_steps": True}, "warmup_steps must be a whole number of 0 or more, not True"),
        ({"devices_per_host": -2}, "devices_per_host must be a whole number of 0 or more, not -2"),
        ({"encode_on": "gpu"}, "encode_on must be 'host' or 'device', not 'gpu'"),
        ({"pull": "maybe"}, "pull must be 'auto', 'none' or 'same', not 'maybe'"),
        ({"shared_momentum": 1.0}, r"shared_momentum must be in \[0, 1\), not 1.0"),
        ({"plan": "missing.txt"}, "cannot read the plan missing.txt: No such file"),
    ],
)
def test_what_is_wrong_is_one_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        CompressionConfig.of({"type": "2bit", **wrong})
    assert "\n" not in str(caught.value)


def test_a_config_says_all():
    config = CompressionConfig("2bit", {"threshold": 0.5})
    with pytest.raises(ValueError, match="says all of a compression: min_size must be in it"):
        CompressionConfig.of(config, min_size=3)
    with pytest.raises(ValueError, match="min_size is given twice"):
        CompressionConfig.of({"type": "2bit", "min_size": 3}, min_size=4)


def test_torch_fills_in_its_own_values():
    pytest.importorskip("torch")
    from hipress.torch.settings import MIN_SIZE, Settings

    settings = Settings.of(CompressionConfig("2bit", {"threshold": 0.5}))
    assert (settings.min_size, settings.topology) == (MIN_SIZE, "colocated")
    assert settings == Settings("2bit", {"threshold": 0.5})
    again = Settings.of(CompressionConfig("2bit", min_size=3, topology="tree"), topology=None)
    assert (again.min_size, again.topology) == (3, "tree")
    with pytest.raises(ValueError, match="warmup_steps must be in it"):
        Settings.of(CompressionConfig("2bit"), warmup_steps=3)
    with pytest.raises(ValueError, match="pull is for key-value stores"):
        Settings.of(CompressionConfig("2bit", pull="none"))


def test_long_texts_are_shown_where_they_begin_to_differ():
    common = "weight (400, 100); " * 20
    assert difference(common + "a", common + "b").count("weight (400, 100)") < 10
    shorter, longer = difference(common, common + "another (3,)").split(" and ")
    assert "another" in longer and "another" not in shorter


@pytest.mark.parametrize(
    ("type", "params", "message"),
    [
        ("auto", {"compression": "maxmin"}, "did you mean 'type'"),
        ("auto", {"min_sise": 3}, "did you mean 'min_size'"),
        ("maxmin", {"bitwidth": 8}, "did you mean 'bits'"),
        ("maxmim", {}, "did you mean 'maxmin'"),
        ("maxmin:8", {}, "is not name=value"),
    ],
)
def test_wrong_setting_is_answered_with_the_nearest(type, params, message):
    with pytest.raises(ValueError, match=message):
        CompressionConfig(type, params)


def test_parameters_may_follow_the_type():
    assert CompressionConfig("maxmin:bits=8") == CompressionConfig("maxmin", {"bits": 8})
    config = CompressionConfig.of("dgc:ratio=0.01,momentum=0", min_size=5)
    assert config == CompressionConfig("dgc", {"ratio": 0.01, "momentum": 0}, min_size=5)
