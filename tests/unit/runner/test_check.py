"""What is said of a figure that changed."""

from __future__ import annotations

from torchlens.runner.check import describe_change

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" width="9pt"><g id="tl-graph" class="graph">'


def _svg(*parts: str) -> bytes:
    return f"{HEAD}{''.join(parts)}</g></svg>".encode()


def _part(name: str, text: str, kind: str = "node", x: int = 0) -> str:
    return f'<g id="{name}" class="{kind}"><text x="{x}">{text}</text></g>'


def test_parts_that_came_and_went_are_named() -> None:
    before = _svg(_part("relu_1_1", "relu"), _part("edge:a->b:1", "", "edge"), _part("cluster:f:1", "@f", "cluster"))
    after = _svg(_part("gelu_1_1", "gelu"), _part("cluster:f:1", "@f", "cluster"))
    assert describe_change(before, after) == "gained node gelu_1_1; lost node relu_1_1, arrow edge:a->b:1"


def test_many_are_counted() -> None:
    many = _svg(*(_part(f"relu_{k}", "r") for k in range(9)))
    assert describe_change(_svg(), many) == "gained node relu_0, node relu_1, node relu_2, node relu_3 and 5 more"


def test_other_texts_are_shown_and_moves_counted() -> None:
    before = _svg(_part("a", "one"), _part("b", "same"), _part("c", "same"))
    after = _svg(_part("a", "two"), _part("b", "same", x=4), _part("c", "same"))
    assert (
        describe_change(before, after) == "says otherwise in a ('one', now 'two'); 1 of 3 parts moved or look different"
    )


def test_the_rest_of_the_page() -> None:
    assert describe_change(_svg(), _svg().replace(b"9pt", b"8pt")) == "only its page, title or style changed"
    assert describe_change(b"<svg", _svg()) == "is no SVG that can be read"
