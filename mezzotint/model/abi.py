"""What Python and the C++ in kernels hand each other, field by field; the comments there say what each field holds."""

import ctypes
from ctypes import POINTER, Structure, c_double, c_int64, c_void_p


class Matrix(Structure):
    """Of products.h: a packed matrix [out, in]."""

    _fields_ = (("packed", c_void_p), ("out", c_int64), ("in_", c_int64))


class Layer(Structure):
    """Of stack.h: the weights of one layer."""

    _fields_ = (
        *((name, Matrix) for name in ("qkv", "out", "gate_up", "down", "expert_gate_up", "expert_down")),
        *((name, c_void_p) for name in ("head_scale", "after_attention", "after_mlp", "after_experts")),
        *((name, c_void_p) for name in ("after_feedforward", "router", "per_expert")),
        *((name, c_double) for name in ("encode_scalar", "denoise_scalar")),
        *((name, c_int64) for name in ("kv_heads", "head_dim", "shares_kv", "kind")),
    )


class Stack(Structure):
    """Of stack.h: all layers."""

    _fields_ = (
        ("layers", POINTER(Layer)),
        ("norm", c_void_p),
        ("eps", c_double),
        *((name, c_int64) for name in ("size", "width", "heads", "experts", "top_k")),
    )


class Slots(Structure):
    """Of stack.h: where one layer's keys and values stand."""

    _fields_ = (
        *((name, c_void_p) for name in ("k", "v")),
        *((name, c_int64) for name in ("row_stride", "head_stride", "token_stride")),
    )


class Angles(Structure):
    """Of stack.h: rotary tables of one kind of layers."""

    _fields_ = (("cos", c_void_p), ("sin", c_void_p))


class Call(Structure):
    """Of stack.h: one forward. Spans and pages are int64, see seats."""

    _fields_ = (
        *((name, c_void_p) for name in ("input", "hidden")),
        ("slots", POINTER(Slots)),
        *((name, c_void_p) for name in ("spans", "pages")),
        ("angles", Angles * 2),
        ("reach", c_int64 * 2),
        *((name, c_int64) for name in ("tokens", "size", "denoising", "threads")),
    )


class Embedding(Structure):
    """Of embedding.cpp: the embedding table as it is."""

    _fields_ = (("table", c_void_p), ("scale", c_double), ("size", c_int64), ("width", c_int64))


class Conditioning(Structure):
    """Of conditioning.cpp: its weights."""

    _fields_ = (("gate_up", Matrix), ("down", Matrix), ("eps", c_double))


class Belief(Structure):
    """Of conditioning.cpp: one call."""

    _fields_ = (
        *((name, c_void_p) for name in ("x", "soft", "to")),
        *((name, c_int64) for name in ("rows", "threads")),
    )


class Head(Structure):
    """Of vocabulary.cpp: the embedding table."""

    _fields_ = (
        ("scores", Matrix),
        ("mix", Matrix),
        *((name, c_double) for name in ("softcap", "scale")),
        ("bin", c_int64),
    )


class Question(Structure):
    """Of vocabulary.cpp: one reading."""

    _fields_ = (
        *((name, c_void_p) for name in ("hidden", "uniforms", "temperature", "proposal_temperature")),
        *((name, c_void_p) for name in ("argmax", "proposal", "entropy", "log_prob", "soft")),
        *((name, c_int64) for name in ("rows", "threads")),
    )


def declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Tell ctypes what the kernels' functions take. Returns: the library."""
    for name, result, taken in (
        ("embed", c_int64, (POINTER(Embedding), c_void_p, c_int64, c_void_p)),
        ("run_layers", c_int64, (POINTER(Stack), POINTER(Call))),
        ("condition", None, (POINTER(Conditioning), POINTER(Belief))),
        ("read_vocabulary", None, (POINTER(Head), POINTER(Question))),
        ("full_logits", c_int64, (POINTER(Head), c_void_p, c_int64, c_int64, c_void_p)),
    ):
        function = getattr(library, name)
        function.argtypes, function.restype = taken, result
    return library
