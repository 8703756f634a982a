"""Sizes that share the plans of larger ones: the library runs them at the shapes that a variant pack names."""

from __future__ import annotations

import numpy as np
import pytest

from bucket_models import BUCKETS, SAFE, check, feeds_of, floats, model, reference
from hipdnn_mlir import Session
from hipdnn_mlir.compiler import lower as compile_model
from hipdnn_mlir.compiler.instances import compile_instances
from hipdnn_mlir.errors import ModelError
from hipdnn_mlir.session.devices import open_device

BROADCASTING = ("embedding and positions", "a size written out")
"""An operand broadcasts by a stride of zero, which hipDNN's override shapes exclude."""


@pytest.fixture(autouse=True)
def afresh() -> None:
    """A device that has no plans."""
    open_device.cache_clear()


def plans_of(session: Session) -> int:
    return session._device.plan_count


def overriding_steps(session: Session) -> list[str]:
    return [step["summary"] for step in session.steps if step.get("overrides")]


@pytest.mark.parametrize("name", SAFE)
def test_values_equal_onnxruntime_with_plans_of_larger_sizes(name: str) -> None:
    proto, symbol = SAFE[name]
    session = Session(compile_model(proto), override_shapes=True)
    want = reference(proto)
    others = dict.fromkeys(session.symbols, 3)
    check(want, session, feeds_of(session, others | {symbol: max(BUCKETS)}))
    largest, steps = plans_of(session), session.steps
    for size in (1, 5, 2):
        check(want, session, feeds_of(session, others | {symbol: size}))
        assert [step["kind"] for step in session.steps] == [step["kind"] for step in steps]
    if name in BROADCASTING:
        assert not overriding_steps(session)
    elif any(step["kind"] == "execute" for step in steps):
        assert overriding_steps(session)
        assert plans_of(session) < 4 * largest, "each size has plans of its own"


def test_no_plan_is_built_for_a_smaller_size() -> None:
    proto, symbol = SAFE["perceptron"]
    session = Session(compile_model(proto), override_shapes=True)
    session.run(None, feeds_of(session, {symbol: 8}))
    plans = plans_of(session)
    session.run(None, feeds_of(session, {symbol: 3}))
    assert plans_of(session) == plans == session.stats.plans
    assert overriding_steps(session) == [step["summary"] for step in session.steps if step["kind"] == "execute"]
    session.run(None, feeds_of(session, {symbol: 9}))
    assert plans_of(session) == 2 * plans
    assert not overriding_steps(session)


def test_sizes_have_plans_of_their_own_by_default() -> None:
    proto, symbol = SAFE["perceptron"]
    session = Session(compile_model(proto))
    session.run(None, feeds_of(session, {symbol: 8}))
    plans = plans_of(session)
    session.run(None, feeds_of(session, {symbol: 3}))
    assert plans_of(session) == 2 * plans
    assert not overriding_steps(session)


def test_buckets_share_plans() -> None:
    proto, symbol = SAFE["convolutions"]
    program = compile_instances(proto, buckets={symbol: BUCKETS}, target="host", precision="model")
    session = program.session(override_shapes=True)
    want = reference(proto)
    check(want, session, feeds_of(session, {symbol: max(BUCKETS)}))
    plans = plans_of(session)
    for size in BUCKETS:
        check(want, session, feeds_of(session, {symbol: size}))
    assert plans_of(session) == plans


def test_recurring_runs_of_several_sizes_are_stable() -> None:
    """More sizes than a plan of the host keeps, twice."""
    proto = model("g (float[b,8] x) => (float[b,4] y) { h = MatMul(x, w) y = Relu(h) }", w=floats(8, 4))
    session = Session(compile_model(proto), override_shapes=True, instances=64)
    sizes = [40, *range(1, 24)]
    first = {size: session.run(None, feeds_of(session, {"b": size}))[0] for size in sizes}
    assert len(overriding_steps(session)) == 1
    for size in reversed(sizes):
        feeds = feeds_of(session, {"b": size})
        (got,) = session.run(None, feeds)
        np.testing.assert_array_equal(got, first[size])
        np.testing.assert_allclose(got, np.maximum(feeds["x"] @ floats(8, 4), 0), rtol=1e-4, atol=1e-5)


AXES = """g (float[b,6] x) => (float[b,6] y, float[b,6] z) <int64[1] rows = {0}, int64[1] columns = {1}> {
    s = Softmax<axis=0>(x) m = ReduceMean(x, rows) y = Sub(s, m) t = Softmax<axis=1>(x) n = ReduceMean(x, columns) z = Sub(t, n) }"""


def test_sums_over_other_axes_do_not_share() -> None:
    proto = model(AXES)
    session, want = Session(compile_model(proto), override_shapes=True), reference(proto)
    for size in (9, 5, 3, 1, 6, 2):
        check(want, session, feeds_of(session, {"b": size}))


def test_programs_of_one_device_do_not_take_each_others_sums() -> None:
    sessions = []  # which keep their plans
    for axis in (0, 1):
        proto = model(f"g (float[b,6] x) => (float[b,6] y) {{ y = Softmax<axis={axis}>(x) }}")
        sessions.append(Session(compile_model(proto), override_shapes=True))
        for size in (6, 4):
            check(reference(proto), sessions[-1], feeds_of(sessions[-1], {"b": size}))


def test_prewarmed_sessions_show_the_largest_sizes() -> None:
    proto, symbol = SAFE["perceptron"]
    session = compile_instances(proto, buckets={symbol: BUCKETS}, target="host", precision="model").session(
        override_shapes=True
    )
    session.prewarm()
    assert not overriding_steps(session)
    assert plans_of(session) == session.stats.plans


def test_other_options_hold() -> None:
    proto, symbol = SAFE["perceptron"]
    session = Session(compile_model(proto), override_shapes=True, tune=2, plan_cache=False)
    check(reference(proto), session, feeds_of(session, {symbol: 5}))
    with pytest.raises(ModelError, match="MISSING"):
        Session(compile_model(proto), override_shapes=True, engine="MISSING")
