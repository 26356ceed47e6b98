"""The header."""

from __future__ import annotations

from collections.abc import Callable

from tests import builders
from tests.builders import Builder
from torchlens.records.provenance import InputProvenance, Outcome
from torchlens.scene.model import Scene, TextLine

MakeScene = Callable[..., Scene]


def header(scene: Scene) -> list[str]:
    return [line.text for line in scene.root if isinstance(line, TextLine) and line.kind == "header"]


def test_it_counts_the_whole_network_whatever_is_drawn(scene: MakeScene) -> None:
    expected = ["TinyCnn", "12 ops (19.4 KB)", "1.61K params (all trainable)"]
    data = builders.demo()
    assert header(scene(data)) == expected
    assert header(scene(data, depth=1, show_buffers="never", rolled=True)) == expected


def test_the_words_for_parameters(scene: MakeScene) -> None:
    assert header(scene(builders.state()))[2] == "144 params (64 of 144 trainable)"
    assert header(scene(builders.awkward()))[2] == "0 params"
    b = Builder("Linear")
    b.output(b.linear("fc", b.input(), 1, trainable=False))
    assert header(scene(b.build()))[1:] == ["1 op (8 B)", "9 params (all frozen)"]


def test_few_frozen_parameters_are_named_where_rounding_would_hide_them(scene: MakeScene) -> None:
    b = Builder("Net")
    x = b.linear("fc", b.input(shape=(2, 99)), 101)
    b.output(b.linear("head", x, 1, trainable=False))
    assert header(scene(b.build()))[2] == "10.2K params (10.1K of 10.2K trainable)"
    b = Builder("Net")
    x = b.linear("fc", b.input(shape=(2, 99)), 101)
    b.output(b.leaf("norm", "Norm", "mul", [x], (2, 101), params=(b.param("norm.gain", (20,), trainable=False),)))
    assert header(scene(b.build()))[2] == "10.1K params (20 frozen)"


def test_a_long_note_is_broken_and_cut(scene: MakeScene) -> None:
    data = builders.demo()
    data.outcome = Outcome(completed=False, error=f"ValueError: no\n{'word ' * 200}", advisories=["y" * 250])
    notes = header(scene(data))[3:]
    assert all(0 < len(note) <= 100 for note in notes)
    assert notes[:2] == ["the forward stopped early: ValueError: no", ("word " * 20).strip()]
    assert sum(map(len, notes[:-3])) <= 300
    assert notes[-4].endswith("…")
    assert notes[-3:] == ["y" * 100, "y" * 100, "y" * 50]


def test_only_the_class_is_bold(scene: MakeScene) -> None:
    lines = [line for line in scene(builders.demo()).root if isinstance(line, TextLine)]
    assert [line.bold for line in lines] == [True, False, False]


def test_notes_say_what_was_not_the_users(scene: MakeScene) -> None:
    data = builders.demo()
    data.provenance = InputProvenance("declared", (((1, 3, 8, 8), "float32", "cpu"),))
    data.outcome = Outcome(completed=False, error="ValueError: no", advisories=["threads: ops of workers are not seen"])
    assert header(scene(data))[3:] == [
        "input: shape declared (1x3x8x8), random values", "the forward stopped early: ValueError: no",
        "threads: ops of workers are not seen",
    ]  # fmt: skip


def test_in_focus_it_names_and_counts_the_module(scene: MakeScene) -> None:
    data = builders.residual(2)
    expected = ["Stack > blocks.1", "class Block", "5 ops (448 B)", "280 params (all trainable)"]
    assert header(scene(data, module="blocks.1")) == expected
    assert header(scene(data, module="blocks.1:1", depth=1, show_legend=False, show_buffers="never")) == expected
    assert header(scene(data, module="blocks.1.mlp.fc1"))[0] == "Stack > blocks.1.mlp.fc1"
    assert header(scene(data, module="self")) == header(scene(data))
    lines = [line for line in scene(data, module="head").root if isinstance(line, TextLine)]
    assert [line.bold for line in lines] == [True, False, False, False]


def test_in_focus_several_calls_are_counted_together_and_say_so(scene: MakeScene) -> None:
    data = builders.loop(3)
    several = ["Rnn > rec (x3)", "class Linear", "3 ops (192 B) across 3 calls", "72 params (all trainable)"]
    assert header(scene(data, module="rec")) == several
    assert header(scene(data, module="rec", rolled=True)) == several
    assert header(scene(data, module="rec:2"))[:3] == ["Rnn > rec:2", "class Linear", "1 op (64 B)"]


def test_in_focus_hidden_ops_and_orphans_count(scene: MakeScene) -> None:
    assert header(scene(builders.demo(), module="features.0.norm"))[2] == "2 ops (2.0 KB)"
    b = Builder()
    x = b.input()
    with b.module("m") as call:
        b.op("rand", [], (4,))
        call.returns = [b.op("neg", [x])]
    b.output(call.returns[0])
    data = b.build()
    assert header(scene(data, module="m"))[2] == "2 ops (80 B)"
    assert header(scene(data, show_orphans=True)) == header(scene(data))


def test_notes_about_the_recording_stay_in_focus(scene: MakeScene) -> None:
    data = builders.residual(1)
    data.provenance = InputProvenance("declared", (((2, 8), "float32", "cpu"),))
    assert header(scene(data, module="head"))[-1] == "input: shape declared (2x8), random values"


def test_a_long_class_name_is_broken_and_an_endless_one_cut(scene: MakeScene) -> None:
    def titles(name: str) -> list[str]:
        lines = [line for line in scene(Builder(name).build()).root if isinstance(line, TextLine)]
        return [line.text for line in lines if line.bold]

    assert titles("Net") == ["Net"]
    assert titles("A" * 70) == ["A" * 60, "A" * 10]
    assert [len(line) for line in titles("A" * 999)] == [60] * 5
    assert titles("A" * 999)[-1].endswith("…")
