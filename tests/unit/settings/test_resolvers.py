"""What a trace answers to a view, and what counts as a repeated block with attention."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests import builders
from tests.builders import Builder, Ref
from torchlens.base.errors import InvalidArgumentError
from torchlens.plan.focus import find_focus
from torchlens.records.trace_data import TraceData
from torchlens.settings.compose import resolve
from torchlens.settings.options import options
from torchlens.settings.resolvers import RESOLVERS, Block, attention_block, block_at, has_attention, several_passes

FUSED = "scaled_dot_product_attention"


def _attend(b: Builder, address: str, x: Ref, class_name: str = "Attn", names: Sequence[str] = ()) -> Ref:
    with b.module(address, class_name) as call:
        h = x
        for name in names:
            h = b.linear(f"{address}.{name}", h, 8)
        if not names:
            h = b.op(FUSED, [x, x, x])
        call.returns = [h]
    return h


def blocks(
    count: int = 3, place: str = "h.{}", names: Sequence[str] = (), *, stray: bool = False, classes: Sequence[str] = ()
) -> TraceData:
    """Blocks that hold attention, one after the other. stray: the second holds none; names: of its projections."""
    b = Builder("Former")
    h = b.input()
    for k in range(count):
        address = place.format(k)
        with b.module(address, classes[k] if classes else "Block") as block:
            h = b.op("tanh", [h]) if stray and k == 1 else _attend(b, f"{address}.attn", h, names=names)
            block.returns = [h]
    b.output(h)
    return b.build()


def test_every_answer_is_a_value_of_the_options_it_is_for() -> None:
    for make in (*builders.SAMPLES.values(), blocks):
        data = make()
        for resolver in RESOLVERS.values():
            assert set(resolver.options) <= set(options())
            answer = resolver.answer(data)
            assert answer == resolver.answer(data)
            for name in resolver.options:
                view = {"question": "q", "draw": {name: {"resolve": _name_of(resolver.answer)}}}
                assert getattr(resolve(data, {"view": view}).options, name) == answer


def _name_of(answer: object) -> str:
    return next(name for name, resolver in RESOLVERS.items() if resolver.answer is answer)


def _block_at(data: TraceData, place: str) -> Block | None:
    focus = find_focus(data, place)
    assert focus is not None
    return block_at(data, focus.module, focus.calls)


def test_a_call_number_is_none_of_the_address() -> None:
    b = Builder("Net")
    h = b.input()
    for address in ("part:0", "part:1"):
        h = _attend(b, address, h)
    b.output(h)
    data = b.build()
    assert _block_at(data, "part:1") == ("part:1", 2, 2, "Attn", False)
    assert _block_at(data, "@part:1:1") == ("part:1", 2, 2, "Attn", False)


def test_several_passes() -> None:
    assert several_passes(builders.loop(2))
    assert not several_passes(builders.chain())


def test_the_first_of_a_row_of_blocks() -> None:
    block = attention_block(blocks())
    assert block == ("h.0", 1, 3, "Block", False)
    assert _block_at(blocks(), "h.2") == ("h.2", 3, 3, "Block", False)
    assert _block_at(blocks(), "h.1.attn") is None


@pytest.mark.parametrize("names", [["q_proj", "k_proj"], ["c_attn"], ["query"], ["qkv"], ["to_qkv"], ["o_proj"]])
def test_projections_inside_what_is_called_attention(names: list[str]) -> None:
    assert attention_block(blocks(names=names)) == ("h.0", 1, 3, "Block", False)


@pytest.mark.parametrize(("inner", "found"), [("softmax", True), ("sigmoid", False)])
def test_a_softmax_inside_what_is_called_attention(inner: str, found: bool) -> None:
    b = Builder()
    h = b.input()
    for k in range(2):
        with b.module(f"h.{k}", "RelativeAttention") as block:
            h = b.op(inner, [h])
            block.returns = [h]
    b.output(b.op("softmax", [h]))
    assert has_attention(b.build()) is found


def test_a_projection_elsewhere_is_no_attention() -> None:
    b = Builder()
    h = b.input()
    for k in range(2):
        with b.module(f"h.{k}") as block:
            h = b.linear(f"h.{k}.q_proj", h, 8)
            block.returns = [h]
    b.output(h)
    assert not has_attention(b.build())


def test_a_row_in_which_one_holds_none_is_no_row_of_attention_blocks() -> None:
    data = blocks(stray=True)
    assert has_attention(data)
    assert attention_block(data) is None


def test_blocks_of_different_classes_do_not_repeat() -> None:
    assert attention_block(blocks(2, classes=["Encoder", "Decoder"])) is None
    assert attention_block(blocks(3, classes=["First", "Other", "Other"])) == ("h.1", 1, 2, "Other", False)


def test_numbered_blocks_come_before_a_pair_of_stacks() -> None:
    b = Builder("Seq2Seq")
    h = b.input()
    for side in ("encoder", "decoder"):
        with b.module(side, "Stack") as stack:
            for k in range(2):
                with b.module(f"{side}.block.{k}", "Block") as block:
                    h = _attend(b, f"{side}.block.{k}.attn", h)
                    block.returns = [h]
            stack.returns = [h]
    b.output(h)
    assert attention_block(b.build()) == ("encoder.block.0", 1, 2, "Block", False)
    pair = blocks(2, place="tower_{}_side", classes=["Stack", "Stack"])
    assert attention_block(pair) == ("tower_0_side", 1, 2, "Stack", False)


def test_a_block_that_repeats_by_its_calls() -> None:
    b = Builder("Albert")
    h = b.input()
    for _ in range(3):
        with b.module("layer", "Layer") as layer:
            h = _attend(b, "layer.attn", h)
            layer.returns = [h]
    b.output(h)
    data = b.build()
    assert attention_block(data) == ("layer:1", 1, 3, "Layer", True)
    assert _block_at(data, "layer:2") == ("layer:2", 2, 3, "Layer", True)
    assert _block_at(data, "layer") is None


def test_attention_of_the_model_itself_is_in_no_block() -> None:
    b = Builder()
    x = b.input()
    b.output(b.op(FUSED, [x, x, x]))
    data = b.build()
    assert has_attention(data)
    assert attention_block(data) is None


def test_torchs_own_attention_may_be_the_model_itself() -> None:
    for name, found in (("MultiheadAttention", True), ("Net", False)):
        b = Builder(name)
        b.output(b.op("softmax", [b.input()]))
        data = b.build()
        assert has_attention(data) is found
        assert attention_block(data) is None


def test_a_resolver_that_lost_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(data: TraceData) -> object:
        raise AssertionError("asked")

    monkeypatch.setitem(RESOLVERS, "several_passes", RESOLVERS["several_passes"]._replace(answer=never))
    view = {"question": "q", "draw": {"rolled": {"resolve": "several_passes"}}}
    request = resolve(builders.loop(), {"view": view, "rolled": False})
    assert str(request.trail["rolled"][0][1]) == "by the trace: several_passes"
    with pytest.raises(AssertionError, match="asked"):
        resolve(builders.loop(), {"view": view})


def test_an_answer_of_the_wrong_kind_has_the_code_of_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = RESOLVERS["several_passes"]._replace(answer=lambda data: "yes")
    monkeypatch.setitem(RESOLVERS, "several_passes", wrong)
    view = {"question": "q", "draw": {"rolled": {"resolve": "several_passes"}}}
    with pytest.raises(InvalidArgumentError, match=r"\[draw_rolled_invalid\] several_passes: rolled='yes'"):
        resolve(builders.loop(), {"view": view})
