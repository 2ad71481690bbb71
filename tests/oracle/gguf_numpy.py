"""Reads a GGUF v2/v3 file into numpy: metadata as Python values, tensors as f32 arrays.

Written for the oracle alone and sharing nothing with the engine's reader, so that a mistake in one
does not hide in the other. Trusts the file.
"""
import mmap
import struct

import numpy as np

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
           11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9


def half_to_float(raw):
    return raw.view(np.float16).astype(np.float32)


def from_f32(raw):
    return raw.view(np.float32).copy()


def from_bf16(raw):
    return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def from_q8_0(raw):
    """Blocks of 32: f16 scale, 32 signed bytes."""
    blocks = raw.reshape(-1, 34)
    scale = half_to_float(np.ascontiguousarray(blocks[:, :2]))
    return blocks[:, 2:].view(np.int8).astype(np.float32) * scale


def from_q4_1(raw):
    """Blocks of 32: f16 scale, f16 minimum, 16 bytes; low nibbles are the first 16 values."""
    blocks = raw.reshape(-1, 20)
    scale = half_to_float(np.ascontiguousarray(blocks[:, 0:2]))
    minimum = half_to_float(np.ascontiguousarray(blocks[:, 2:4]))
    nibbles = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
    return nibbles.astype(np.float32) * scale + minimum


# type -> (values in a block, bytes of a block, decoder)
TYPES = {0: (1, 4, from_f32), 1: (1, 2, half_to_float), 3: (32, 20, from_q4_1),
         8: (32, 34, from_q8_0), 30: (1, 2, from_bf16)}


class Gguf:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.at = 0
        magic, version, n_tensors, n_metadata = self.take("<4sIQQ")
        assert magic == b"GGUF" and version in (2, 3), (magic, version)
        self.metadata = {}
        for _ in range(n_metadata):
            key = self.string()
            self.metadata[key] = self.value(self.take("<I")[0])
        heads = [self.head() for _ in range(n_tensors)]
        alignment = self.metadata.get("general.alignment", 32)
        start = (self.at + alignment - 1) // alignment * alignment
        self.heads = {name: (shape, kind, start + offset) for name, shape, kind, offset in heads}

    def take(self, form):
        values = struct.unpack_from(form, self.bytes, self.at)
        self.at += struct.calcsize(form)
        return values

    def string(self):
        (length,) = self.take("<Q")
        self.at += length
        return self.bytes[self.at - length:self.at].decode("utf-8", "surrogateescape")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            return self.take(SCALARS[kind])[0]
        element, count = self.take("<IQ")
        return [self.value(element) for _ in range(count)]

    def head(self):
        name = self.string()
        (n_dims,) = self.take("<I")
        dims = self.take(f"<{n_dims}Q")
        kind, offset = self.take("<IQ")
        return name, dims[::-1], kind, offset  # numpy order: rows first

    def tensor(self, name):
        shape, kind, offset = self.heads[name]
        values, size, decode = TYPES[kind]
        count = int(np.prod(shape))
        raw = np.frombuffer(self.bytes, np.uint8, count // values * size, offset)
        return decode(raw).reshape(shape)
