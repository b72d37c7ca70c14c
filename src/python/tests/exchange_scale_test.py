import json
import math
from pathlib import Path

import pytest

from dsc.exchange.plan import ddp_kwargs
from dsc.exchange.scale import Scale, advance, plan_averaging, plan_wire, target_exponent

ROOT = Path(__file__).resolve().parents[3]


def test_the_scale_does_exactly_what_the_typescript_engine_does():
    vectors = json.loads((ROOT / "fixtures/exchange/scale-vectors.json").read_text())
    for sequence in vectors["sequences"]:
        scale = Scale()
        for step in sequence:
            scale = advance(scale, step["kind"], step["wireType"], step["amaxes"])
            expected = step["scale"]
            assert list(scale.exponents) == expected["exponents"]
            assert (scale.is_looking, scale.since_growth, scale.overflows, scale.since_overflow) == (
                expected["isLooking"],
                expected["sinceGrowth"],
                expected["overflows"],
                expected["sinceOverflow"],
            )
            wire_type, exponents = plan_wire(scale, 5000, 3)
            assert (wire_type, list(exponents)) == (step["wire"]["wireType"], step["wire"]["exponents"])


def test_the_largest_value_lands_in_the_upper_half_below_2_to_the_11():
    for amax in [1.0, 0.75, 2.0**-20, 2.0**-20 * (1 + 2.0**-23), 65504.0]:
        assert 2**10 < amax * 2.0 ** target_exponent(amax) <= 2**11
    assert target_exponent(1e-30) == 110 and target_exponent(3.4e38) == -117


def test_averaging_is_a_power_of_two_before_and_the_rest_after():
    assert plan_averaging(1) == (0, 1.0)
    assert plan_averaging(8) == (-3, 1.0)
    assert plan_averaging(3) == (-2, 4 / 3)
    assert math.isclose(2.0 ** plan_averaging(6)[0] * plan_averaging(6)[1], 1 / 6)


def test_ddp_kwargs_come_from_the_plan_and_fit_this_pytorch(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"format": "dsc.exchange.plan/1", "ddp": {"bucket_cap_mb": 7.5}}))
    assert ddp_kwargs(path) == {"bucket_cap_mb": 7.5}
    both = {"bucket_cap_mb": 7.5, "bucket_cap_mb_list": [1.0, 2.0]}
    path.write_text(json.dumps({"format": "dsc.exchange.plan/1", "ddp": both}))
    assert len(ddp_kwargs(path)) == 1
    path.write_text(json.dumps({"format": "dsc.exchange.link/1"}))
    with pytest.raises(ValueError, match="expected format dsc.exchange.plan/1, found dsc.exchange.link/1"):
        ddp_kwargs(path)
