"""FLOP formulas on shapes, against numbers counted by hand."""

from __future__ import annotations

import pytest

from torchlens.ops import formulas


def test_products_by_hand() -> None:
    assert formulas.linear_flops((2, 3), (2, 5)) == 2 * 2 * 3 * 5
    assert formulas.linear_flops((3,), ()) == 6
    assert formulas.matmul_flops((4, 2, 3), (4, 2, 5)) == 4 * 2 * 2 * 3 * 5
    assert formulas.matmul_flops((7,), ()) == 14
    assert formulas.added_matmul_flops((3, 2, 5), (3, 5, 4)) == 2 * 3 * 2 * 5 * 4
    assert formulas.added_matmul_flops((6, 5), (5,)) == 60
    assert formulas.tensordot_flops((2, 3, 4), (3, 4, 5), (2, 5)) == 2 * 2 * 5 * 12
    assert formulas.tensordot_flops((0, 3), (3, 5), (0, 5)) == 0
    # 7 outputs of 2 rows: A x2 is 3·4 multiply-adds, the product with x1 another 3.
    assert formulas.bilinear_flops((7, 3, 4), (2, 7)) == 2 * (2 * 7) * (3 * 4 + 3)


def test_convolutions_by_hand() -> None:
    assert formulas.conv_flops((1, 3, 8, 8), (4, 3, 3, 3), (1, 4, 6, 6)) == 7776
    assert formulas.conv_flops((1, 6, 9), (4, 3, 5), (1, 4, 5)) == 2 * 4 * 5 * 3 * 5
    assert formulas.conv_flops((2, 4, 5, 5), (4, 3, 2, 2), (2, 3, 10, 10), transposed=True) == 2 * (2 * 4 * 25) * 3 * 4


def test_attention_by_hand() -> None:
    assert formulas.attention_flops((2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 6)) == 2 * 2 * 4 * 5 * 7 * (8 + 6)
    assert formulas.attention_flops((5, 8), (7, 8), (7, 8)) == 2 * 5 * 7 * 16
    assert formulas.attention_flops((2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8)) == 2 * 2 * 4 * 5 * 7 * 16
    assert formulas.attention_flops((1, 4, 5, 8), (3, 4, 7, 8), (3, 4, 7, 8)) == 2 * 3 * 4 * 5 * 7 * 16


def test_recurrent_networks_by_hand() -> None:
    layer = [(4 * 6, 5), (4 * 6, 6), (24,), (24,)]
    assert formulas.recurrent_flops((7, 2, 5), layer) == 2 * 14 * 4 * (5 + 6) * 6
    # proj_size=3: the recurrent input has 3 features, and a projection of 3 x 6 follows.
    projected = [(24, 5), (24, 3), (24,), (24,), (3, 6)]
    assert formulas.recurrent_flops((7, 5), projected) == 2 * 7 * (4 * (5 + 3) * 6 + 3 * 6)


def test_windows_and_sorting_by_hand() -> None:
    assert formulas.pool_flops((1, 2, 3, 3), 2, 2) == 18 * 4
    assert formulas.pool_flops((1, 2, 3, 3), (2, 3), 2) == 18 * 6
    assert formulas.pool_flops((1, 2, 3), (3,), 1) == 18
    assert formulas.pool_flops((1, 2, 3, 3), (3,), 2) == 18 * 9
    assert formulas.sort_flops((3, 8), -1) == 3 * 8 * 3
    assert formulas.sort_flops((4, 10), 0) == 4 * 10 * 2
    assert formulas.sort_flops((), -1) == 0
    assert formulas.sort_flops((5, 1), -1) == 0


@pytest.mark.parametrize(
    ("equation", "shapes", "flops"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)], 2 * 2 * 3 * 4),
        ("ij,jk", [(2, 3), (3, 4)], 2 * 2 * 3 * 4),
        ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)], 2 * 2 * 3 * 4 * 6 * 5),
        ("...ij,...jk->...ik", [(7, 2, 3), (3, 4)], 2 * 7 * 2 * 3 * 4),
        ("...ij, ...jk", [(7, 2, 3), (7, 3, 4)], 2 * 7 * 2 * 3 * 4),
        ("i,j->ij", [(3,), (4,)], 12),
        ("i,i->", [(5,), (5,)], 10),
        ("ij->ji", [(2, 3)], 0),
        ("ii->i", [(3, 3)], 0),
        ("ii", [(3, 3)], 9),
        ("ij->j", [(2, 3)], 6),
        # j of the second operand is summed first: 12 additions, then an outer product.
        ("i,jk->ik", [(2,), (3, 4)], 12 + 8),
        ("bij,bjk->bik", [(1, 2, 3), (5, 3, 4)], 2 * 5 * 2 * 3 * 4),
        ("...ij->...", [(6, 2, 3)], 36),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], None),
    ],
)
def test_einsum_by_hand(equation: str, shapes: list[tuple[int, ...]], flops: int | None) -> None:
    assert formulas.einsum_flops(equation, shapes) == flops
