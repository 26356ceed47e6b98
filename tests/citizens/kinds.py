"""Kinds of tensors: nested, sparse, complex, quantized, subclasses, meta, fake, empty, and writes to parts of them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from tests.citizens.harness import deep, graph, linked


# -- nested
def used_before(_model):
    """Torch keeps a tensor of its own from the first jagged tensor on: two runs of one process differ by it."""
    torch.nested.as_nested_tensor([torch.ones(1, 4), torch.ones(2, 4)], layout=torch.jagged).clone()


@linked()
def nested_made_in_forward(m, x):
    return torch.nested.nested_tensor([x[0], x[1]]).to_padded_tensor(0.0)


@linked()
def nested_as_nested(m, x):
    return torch.nested.as_nested_tensor([x[:1], x]).to_padded_tensor(0.0)


@linked(constants=True, prepare=used_before)
def nested_jagged(m, x):
    nt = torch.nested.as_nested_tensor([x[:1], x], layout=torch.jagged)
    return m.fc(nt).values()


@linked(constants=True, prepare=used_before)
def nested_from_values_and_offsets(m, x):
    nt = torch.nested.nested_tensor_from_jagged(x, torch.tensor([0, 1, 2]))
    return (nt * 2).values() + 1


@linked(constants=True, prepare=used_before)
def nested_unbound(m, x):
    nt = torch.nested.as_nested_tensor([x[:1], x], layout=torch.jagged)
    return torch.cat([part * 2 for part in nt.unbind()])


# -- sparse
@linked()
def sparse_product(m, x):
    return torch.sparse.mm(x.to_sparse(), x.T) + 1


@linked()
def sparse_values(m, x):
    s = x.to_sparse()
    return s.values() * 2


@linked()
def sparse_parts_put_together(m, x):
    s = x.to_sparse()
    return torch.sparse_coo_tensor(s.indices(), s.values() * 2, s.shape).to_dense()


@linked()
def sparse_from_outside_indices(m, x):
    s = torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 2]]), x[0, :2], (2, 4))
    return s.coalesce().to_dense()


@linked()
def sparse_rows(m, x):
    s = x.to_sparse_csr()
    return torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), s.values() * 2, s.shape) @ x.T


@linked()
def sparse_softmax(m, x):
    return torch.sparse.softmax(x.to_sparse(), dim=1).to_dense()


def sparse_arguments():
    return (torch.eye(4).to_sparse(), torch.ones(4, 2))


@graph("mm(a, b)", "out(mm)", args=sparse_arguments)
def sparse_input(m, a, b):
    return torch.mm(a, b)


# -- complex
@graph("mul(x)", "complex(x, mul)", "real(complex)", "imag(complex)", "add(real, imag)", "out(add)")
def complex_parts(m, x):
    z = torch.complex(x, x * 2)
    return z.real + z.imag


@graph("complex(x, x)", "set_real(complex, x)", "abs(set_real)", "out(abs)")
def complex_part_assigned(m, x):
    z = torch.complex(x, x)
    z.real = x
    return z.abs()


@graph("complex(x, x)", "imag(complex)", "mul(imag)", "abs(complex, mul)", "out(abs)")
def complex_part_written(m, x):
    z = torch.complex(x, x)
    z.imag.mul_(2)
    return z.abs()


@graph("complex(x, x)", "view_as_real(complex)", "setitem(view_as_real, x)", "abs(complex, setitem)", "out(abs)")
def complex_written_as_real(m, x):
    z = torch.complex(x, x)
    torch.view_as_real(z)[..., 0] = x
    return z.abs()


@graph("fft_rfft(x)", "mul(fft_rfft)", "fft_irfft(mul)", "out(fft_irfft)")
def spectrum(m, x):
    return torch.fft.irfft(torch.fft.rfft(x) * 0.5)


@graph("complex(x, x)", "conj(complex)", "mul(complex, conj)", "real(mul)", "out(real)")
def conjugate(m, x):
    z = torch.complex(x, x)
    return (z * z.conj()).real


@linked()
def short_time_spectrum(m, x):
    signal = x.reshape(-1)
    return torch.stft(signal, n_fft=4, window=torch.hann_window(4), return_complex=True).abs()


# -- quantized
@graph("quantize_per_tensor(x)", "dequantize(quantize_per_tensor)", "out(dequantize)")
def quantized_and_back(m, x):
    return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize()


@graph("quantize_per_tensor(x)", "int_repr(quantize_per_tensor)", "float(int_repr)", "out(float)")
def quantized_integers(m, x):
    return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).int_repr().float()


def dynamic(model):
    model.quick = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 4)), {nn.Linear}, torch.qint8)


@linked(prepare=dynamic)
def quantized_dynamic_module(m, x):
    return m.quick(x) + 1


def observed(model):
    model.fake = torch.ao.quantization.FakeQuantize()


@linked(prepare=observed, train=True)
def quantization_aware_training(m, x):
    return m.fake(m.fc(x))


@graph("fake_quantize_per_tensor_affine(x)", "out(fake_quantize_per_tensor_affine)")
def fake_quantized(m, x):
    return torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)


# -- subclasses
class Tagged(torch.Tensor):
    """A subclass without code of its own."""


class Wrapped(torch.Tensor):
    """A tensor around another one, answering at the dispatcher."""

    @staticmethod
    def __new__(cls, inner):
        wrapper = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        wrapper.inner = inner
        return wrapper

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        strip = lambda value: value.inner if isinstance(value, cls) else value  # noqa: E731
        out = func(*[strip(a) for a in args], **{k: strip(v) for k, v in (kwargs or {}).items()})
        return cls(out) if isinstance(out, torch.Tensor) else out


def tagged_input():
    return (torch.linspace(-1, 1, 8).reshape(2, 4).as_subclass(Tagged),)


def wrapped_input():
    return (Wrapped(torch.linspace(-1, 1, 8).reshape(2, 4)),)


@graph("mul(x)", "add(mul)", "out(add)", args=tagged_input)
def subclass_as_input(m, x):
    return x * 2 + 1


@graph("mul(x)", "as_subclass(mul)", "add(as_subclass)", "out(add)")
def subclass_made_in_forward(m, x):
    return (x * 2).as_subclass(Tagged) + 1


@graph("linear(x; fc.weight, fc.bias)", "as_subclass(linear)", "out(as_subclass)", args=tagged_input)
def subclass_left_in_forward(m, x):
    return m.fc(x).as_subclass(torch.Tensor)


@linked(args=wrapped_input, disclosed="subclass", gradients=False)
def wrapper_as_input(m, x):
    return (x * 2 + 1).inner


@linked(disclosed="subclass", gradients=False)
def wrapper_made_in_forward(m, x):
    return (Wrapped(x * 2) + 1).inner


@linked(disclosed="subclass")
def masked_tensor(m, x):
    from torch.masked import masked_tensor

    return masked_tensor(x, x > 0).sum(1).to_tensor(0.0)


@graph(
    "detach(x)",
    "mul(detach; scale)",
    "out(mul)",
    prepare=lambda model: setattr(model, "scale", nn.Parameter(torch.ones(4).as_subclass(Tagged))),
)
def subclass_parameter(m, x):
    return x.detach() * m.scale


# -- nothing in them
@graph("sum(x)", "add(sum)", "out(add)", args=deep(torch.tensor(3.0)))
def without_dimensions(m, x):
    return x.sum() + 1


@graph("linear(x; fc.weight, fc.bias)", "cat(linear, linear)", "out(cat)", args=deep(torch.zeros(0, 4)))
def without_elements(m, x):
    y = m.fc(x)
    return torch.cat([y, y])


@linked(args=lambda: (torch.ones(2, 4, device="meta"),), prepare=lambda model: model.to("meta"), gradients=False)
def without_data(m, x):
    return m.out(m.fc(x).relu())


@linked(gradients=False)
def to_meta_and_shape_only(m, x):
    return x.to("meta") @ torch.empty(4, 4, device="meta")


# -- several results, sequences
@graph("max(x)", "mul(max[0])", "getitem(mul, max[1])", "out(getitem)")
def values_and_indexes(m, x):
    values, indexes = x.max(dim=0)
    return (values * 2)[indexes]


@graph(
    "linalg_svd(x)", "mul(linalg_svd[0], linalg_svd[1])", "matmul(mul, linalg_svd[2])", "out(matmul)", gradients=False
)
def decomposition(m, x):
    u, s, v = torch.linalg.svd(x, full_matrices=False)
    return (u * s) @ v


@graph("unbind(x)", "add(unbind[0], unbind[1])", "out(add)")
def rows_by_iteration(m, x):
    first, second = x
    return first + second


@linked()
def padded_and_packed(m, x):
    padded = pad_sequence([x, x[:1]], batch_first=True)
    packed = pack_padded_sequence(padded, torch.tensor([2, 1]), batch_first=True)
    return pad_packed_sequence(packed, batch_first=True)[0]


def recurrent(model):
    model.rnn = nn.GRU(4, 3)


@linked(prepare=recurrent)
def packed_through_a_gru(m, x):
    packed = pack_padded_sequence(torch.stack([x, x], 1), torch.tensor([2, 1]))
    return m.rnn(packed)[0].data


# -- writes
@graph("mul(x)", "chunk(mul)", "relu(chunk[0])", "add(mul, relu)", "out(add)")
def written_half(m, x):
    y = x * 2
    left, _ = y.chunk(2, dim=1)
    left.relu_()
    return y + 1


@graph("zeros()", "foreach_add(x, zeros)", "mul(foreach_add[0], foreach_add[1])", "out(mul)")
def foreach_ops(m, x):
    a, b = torch._foreach_add([x, torch.zeros(4)], 1.0)
    return a * b


@graph("mul(x)", "add(x)", "foreach_mul(mul, add)", "sub(foreach_mul[0], foreach_mul[1])", "out(sub)")
def foreach_writes(m, x):
    y, z = x * 2, x + 1
    torch._foreach_mul_([y, z], 3.0)
    return y - z


@graph("empty()", "add(x, x, empty)", "mul(add)", "out(mul)")
def result_into_a_tensor(m, x):
    y = torch.empty(2, 4)
    torch.add(x, x, out=y)
    return y * 2


@graph("empty()", "empty#2()", "max(x, empty, empty#2)", "add(max[0], max[1])", "out(add)")
def results_into_tensors(m, x):
    y, i = torch.empty(4), torch.empty(4, dtype=torch.long)
    torch.max(x, 0, out=(y, i))
    return y + i


@graph("zeros()", "mul(x)", "set(zeros, mul)", "add(set)", "out(add)")
def storage_taken_over(m, x):
    y = torch.zeros(2, 4)
    y.set_(x * 2)
    return y + 1


@linked()
def storage_taken_over_by_parts(m, x):
    y = x * 2
    z = torch.empty(0).set_(y.untyped_storage(), 0, (2, 4), (4, 1))
    return z + 1


@graph("mul(x)", "add(x)", "set_data(mul, add)", "sub(set_data)", "out(sub)")
def data_replaced(m, x):
    y = x * 2
    y.data = x + 1
    return y - 1


@graph(
    "mul(x)", "tensor()", "getitem(x)", "index_put(mul, tensor, getitem)", "gt(x)", "masked_fill(index_put, gt)",
    "out(masked_fill)",
)  # fmt: skip
def written_by_index(m, x):
    y = x * 2
    y.index_put_((torch.tensor([0]),), x[0])
    return y.masked_fill_(x > 0, 0.0)


@graph("mul(x)", "getitem(x)", "setitem(mul, getitem)", "out(setitem)")
def written_by_slice(m, x):
    y = x * 2
    y[0] = x[1]
    return y


@graph("mul(x)", "mul#2(mul)", "out(mul#2)")
def written_input(m, x):
    x.mul_(2)
    return x * 2


@graph("rand()", "add(x, rand)", "out(add)")
def own_generator(m, x):
    return x + torch.rand(2, 4, generator=torch.Generator().manual_seed(3))


@graph("dropout(x)", "out(dropout)", train=True)
def functional_dropout(m, x):
    return F.dropout(x, 0.5, m.training)


@graph("mul(x)", "gt(x)", "getitem(x, gt)", "setitem(mul, gt, getitem)", "out(setitem)")
def written_by_mask(m, x):
    y, mask = x * 2, x > 0
    y[mask] = x[mask]
    return y


@graph("mul(x)", "detach(mul)", "add(detach)", "sub(mul, add)", "out(sub)")
def written_through_detach(m, x):
    y = x * 2
    y.detach().add_(1)
    return y - 1


@graph("mul(x)", "T(mul)", "getitem(T)", "unsqueeze(getitem)", "add(unsqueeze)", "sub(mul, add)", "out(sub)")
def written_through_views_of_views(m, x):
    y = x * 2
    y.T[0].unsqueeze(0).add_(1)
    return y - 1


@graph("mul(x)", "getitem(mul)", "add(mul)", "sub(getitem, add)", "out(sub)")
def view_taken_before_a_write(m, x):
    y = x * 2
    view = y[0]
    y.add_(1)
    return view - 1


@graph("mul(x)", "sum(x)", "fill(mul, sum)", "out(fill)")
def filled_with_a_tensor(m, x):
    y = x * 2
    y.fill_(x.sum())
    return y


@graph("mul(x)", "t(mul)", "add(t)", "out(add)")
def transposed_in_place(m, x):
    y = x * 2
    y.t_()
    return y + 1


@graph("mul(x)", "add(mul, x)", "detach(add)", "out(detach)")
def added_in_place_and_detached(m, x):
    y = x * 2
    y += x
    return y.detach_()


@linked()
def scattered(m, x):
    index = torch.zeros(2, 4, dtype=torch.long)
    return torch.zeros(2, 4).scatter_add_(0, index, x) + torch.zeros(3, 4).index_add_(0, torch.tensor([0, 1]), x)[:2]


@linked()
def chosen_by_where(m, x):
    rows, columns = torch.where(x > 0)
    return torch.where(x > 0, x * 2, x * 3)[rows, columns]
