"""The number formats against ml_dtypes, the implementation that JAX and numpy users have.

Where the two differ by intent, the difference is stated and tested: ml_dtypes turns an fp8 overflow into NaN (e4m3) or
infinity (e5m2), HPQF stores the largest finite value; infinities and NaN of the source agree. A NaN is compared by its sign,
since ml_dtypes keeps its own payloads.
"""
import ctypes

import numpy as np
import pytest

ml_dtypes = pytest.importorskip("ml_dtypes")

TYPES = {
    "bf16": (ml_dtypes.bfloat16, np.uint16),
    "fp16": (np.float16, np.uint16),
    "fp8_e4m3": (ml_dtypes.float8_e4m3fn, np.uint8),
    "fp8_e5m2": (ml_dtypes.float8_e5m2, np.uint8),
}
FORMATS = list(TYPES)


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def encode(library, name, x):
    codes = np.empty(x.size, np.uint32)
    assert library.hpqf_encode_n(name.encode(), pointer(x), pointer(codes), ctypes.c_int64(x.size)) == 0
    return codes


def decode(library, name, codes):
    codes = np.ascontiguousarray(codes, np.uint32)
    x = np.empty(codes.size, np.float32)
    assert library.hpqf_decode_n(name.encode(), pointer(codes), pointer(x), ctypes.c_int64(codes.size)) == 0
    return x


def all_values(name):
    """Every code's value by ml_dtypes, as float32, in the order of the codes."""
    dtype, word = TYPES[name]
    return np.arange(1 << 8 * np.dtype(word).itemsize).astype(word).view(dtype).astype(np.float32)


def bits(x):
    return x.view(np.uint32)


def same(got, want):
    """Equal bits, or NaN of the same sign."""
    nan = np.isnan(want)
    return np.where(nan, np.isnan(got) & (np.signbit(got) == np.signbit(want)), bits(got) == bits(want))


def largest(name):
    return np.float64(ml_dtypes.finfo(TYPES[name][0]).max)


def expected_codes(name, x):
    """ml_dtypes' codes, with HPQF's rule for fp8: a finite value beyond the largest saturates."""
    dtype, word = TYPES[name]
    with np.errstate(over="ignore", invalid="ignore"):
        codes = x.astype(dtype).view(word).astype(np.uint32)
        if name.startswith("fp8"):
            top = np.array(largest(name), np.float32).astype(dtype).view(word).astype(np.uint32)
            back = codes.astype(word).view(dtype).astype(np.float32)
            over = np.isfinite(x) & ~np.isfinite(back)
            codes = np.where(over, top | (np.signbit(x).astype(np.uint32) << 7), codes)
    return codes


def check_encoding(library, name, x):
    dtype, word = TYPES[name]
    x = np.ascontiguousarray(x, np.float32)
    got, want = encode(library, name, x), expected_codes(name, x)
    values = [c.astype(word).view(dtype).astype(np.float32) for c in (got, want)]
    wrong = np.flatnonzero(np.where(np.isnan(x), ~same(*values), got != want))
    assert wrong.size == 0, f"{wrong.size} of {x.size}, first {x[wrong[0]]!r}: {got[wrong[0]]:#x}, not {want[wrong[0]]:#x}"


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_decodes(core_library, name):
    want = all_values(name)
    got = decode(core_library, name, np.arange(want.size))
    assert np.all(same(got, want))


@pytest.mark.parametrize("name", FORMATS)
def test_every_16_bit_float_encodes(core_library, name):
    for source in ("bf16", "fp16"):
        check_encoding(core_library, name, all_values(source))


@pytest.mark.parametrize("name", FORMATS)
def test_midpoints_and_their_neighbours_encode(core_library, name):
    values = all_values(name)
    values = np.unique(values[np.isfinite(values) & (values >= 0)]).astype(np.float64)
    beyond = values[-1] + (values[-1] - values[-2])  # where the next value would be
    values = np.append(values, beyond)
    middle = ((values[1:] + values[:-1]) / 2).astype(np.float32)
    with np.errstate(over="ignore"):
        middle = np.concatenate([middle, values.astype(np.float32)])
    for x in (middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))):
        check_encoding(core_library, name, x)
        check_encoding(core_library, name, -x)


@pytest.mark.parametrize("name", FORMATS)
def test_random_patterns_encode(core_library, name):
    x = np.random.default_rng(7).integers(0, 1 << 32, 2_000_000, dtype=np.uint32).view(np.float32)
    check_encoding(core_library, name, x)


@pytest.mark.parametrize("name,code", [("fp8_e4m3", 0x7E), ("fp8_e5m2", 0x7B)])
def test_fp8_saturates_and_never_hides_a_source_infinity(core_library, name, code):
    x = np.array([1e30, -1e30, np.inf, -np.inf, np.nan], np.float32)
    codes = encode(core_library, name, x)
    assert list(codes[:2]) == [code, code | 0x80]
    assert not np.isfinite(decode(core_library, name, codes[2:])).any()
    with np.errstate(over="ignore"):
        assert not np.isfinite(x[:2].astype(TYPES[name][0]).astype(np.float32)).any()  # what ml_dtypes does instead


@pytest.mark.parametrize("name", FORMATS)
def test_the_kernel_rounds_as_the_codec(core_library, name):
    x = np.random.default_rng(8).integers(0, 1 << 32, 100_003, dtype=np.uint32).view(np.float32)
    out = np.empty_like(x)
    counts = [ctypes.c_int64(), ctypes.c_int64()]
    text = f"{name}[none]".encode()
    size = ctypes.c_int64(x.size)
    one = ctypes.c_int64(1)
    assert core_library.hpqf_quantize_dequantize(text, pointer(x), pointer(out), one, size, one, *map(ctypes.byref, counts)) == 0
    want = decode(core_library, name, expected_codes(name, x))
    assert np.all(same(out, want))
    assert counts[0].value == np.count_nonzero(~np.isfinite(x))
    beyond = np.isfinite(x) & (np.abs(x) > np.float32(largest(name)))
    assert 0 < counts[1].value <= np.count_nonzero(beyond)


def test_int8_blocks_against_numpy(core_library):
    x = (np.random.default_rng(9).standard_normal((5, 200)) * 3).astype(np.float32)
    x[2, 64:128] = 0
    out = np.empty_like(x)
    sizes = [ctypes.c_int64(v) for v in (5, 200, 1)]
    assert core_library.hpqf_quantize_dequantize(b"int8", pointer(x), pointer(out), *sizes, None, None) == 0
    for first in range(0, 200, 64):
        block = x[:, first : first + 64]
        scale = np.maximum(np.abs(block).max(1, keepdims=True) / np.float32(127), np.finfo(np.float32).tiny)
        assert np.array_equal(out[:, first : first + 64], np.rint(block / scale) * scale)


def test_a_mistake_is_reported_not_thrown(core_library):
    x = np.zeros(1, np.float32)
    assert core_library.hpqf_encode_n(b"fp12", pointer(x), pointer(x), ctypes.c_int64(1)) == -1
    assert b"fp12" in core_library.hpqf_last_error()
