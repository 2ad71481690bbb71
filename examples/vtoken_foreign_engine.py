#!/usr/bin/env python3
"""A foreign engine in Python: its own block pool, K/V rows and attention; libhidane_vtoken by ctypes.

It decodes a sequence, lets a policy written in Python choose who goes, takes the plan as bytes, as
a worker in another process would, copies the rows itself and commits. After each eviction its
attention over the block table is compared with reference B: attention over all tokens ever
written, in their order, with the dead ones masked.

usage: examples/vtoken_foreign_engine.py PATH/TO/libhidane_vtoken.so
"""
import ctypes as c
import math
import random
import struct
import sys

BLOCKS, B, LAYERS, HEADS, DIM = 64, 4, 2, 2, 4
UNITS = LAYERS * HEADS
OK, NO_BLOCKS = 0, 2


class Struct(c.Structure):
    """Every struct of the interface begins with its size and version."""

    def __init__(self, **fields):
        super().__init__(c.sizeof(type(self)), 1, **fields)


ALLOCATE = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.POINTER(c.c_uint32))
ASK = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_uint32, c.POINTER(c.c_uint32))
TELL = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_uint32)
LOG = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)


class Options(Struct):
    _fields_ = [(n, c.c_uint32) for n in (
        "size", "version", "block_size", "layers", "kv_heads", "scope", "mode", "placement")]


class Host(Struct):
    _fields_ = [("size", c.c_uint32), ("version", c.c_uint32), ("user", c.c_void_p),
                ("ref_count", ASK), ("pinned", ASK), ("allocate", ALLOCATE), ("retain", TELL),
                ("release", TELL), ("unpublish", TELL), ("log", LOG)]


class Growth(Struct):
    _fields_ = [("size", c.c_uint32), ("version", c.c_uint32), ("seq", c.c_uint64),
                ("tokens", c.c_uint32), ("result", c.c_int32)]


class Info(Struct):
    _fields_ = [(n, c.c_uint32) for n in (
        "size", "version", "logical_length", "active_length", "live_tokens", "table_blocks",
        "rollback_max", "publishable_blocks", "waiting", "must_own", "damaged", "units")]


class Eviction(Struct):
    _fields_ = [("size", c.c_uint32), ("version", c.c_uint32), ("seq", c.c_uint64),
                ("victims", c.POINTER(c.c_uint32)), ("n_victims", c.c_uint32),
                ("incoming", c.c_uint32), ("result", c.c_int32)]


class PlanInfo(Struct):
    _fields_ = [("size", c.c_uint32), ("version", c.c_uint32), ("epoch", c.c_uint64),
                ("digest", c.c_uint64), ("moves", c.c_uint64), ("moves_bound", c.c_uint64),
                ("sequences", c.c_uint32), ("blocks_freed", c.c_uint32),
                ("blocks_fresh", c.c_uint32), ("reserved", c.c_uint32)]


FLOATS = c.POINTER(c.c_float)


class View(Struct):
    _fields_ = [("size", c.c_uint32), ("version", c.c_uint32), ("unit", c.c_uint32),
                ("n", c.c_uint32), ("logical_length", c.c_uint32), ("head_dim", c.c_uint32),
                ("seed", c.c_uint64), ("positions", c.POINTER(c.c_uint32))] + [
                    (n, FLOATS) for n in ("column_sum", "low_count", "last_row", "window_sum",
                                          "key_norm", "key_rows")]


SCORE = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.POINTER(View), FLOATS)


class Policy(Struct):
    _fields_ = [("size", c.c_uint32), ("version", c.c_uint32), ("name", c.c_char_p),
                ("user", c.c_void_p), ("sinks", c.c_uint32), ("recent", c.c_uint32),
                ("score", SCORE)]


class Signals(Struct):
    _fields_ = [("size", c.c_uint32), ("version", c.c_uint32), ("slots", c.c_uint32),
                ("head_dim", c.c_uint32)] + [
                    (n, FLOATS) for n in ("column_sum", "low_count", "last_row", "window_sum",
                                          "key_norm", "key_rows")]


class Engine:
    def __init__(self, library):
        self.lib = c.CDLL(library)
        self.lib.hidane_vt_error.restype = c.c_char_p
        self.refs = [0] * BLOCKS
        self.rows = [[None] * (BLOCKS * B) for _ in range(UNITS)]  # (key, value) by physical slot
        self.written = []  # reference B: [token][unit] (key, value), never touched again
        self.random = random.Random(7)
        self.host = Host(ref_count=ASK(self.ref_count), allocate=ALLOCATE(self.allocate),
                         retain=TELL(lambda _, b: self.count(b, 1)),
                         release=TELL(lambda _, b: self.count(b, -1)))
        self.context = c.c_void_p()
        options = Options(block_size=B, layers=LAYERS, kv_heads=HEADS, scope=2)
        self.must(self.lib.hidane_vt_create(c.byref(options), c.byref(self.host),
                                            c.byref(self.context)))
        self.seq = c.c_uint64()
        self.must(self.lib.hidane_vt_seq_new(self.context, c.byref(self.seq)))

    # --- the pool, as the library asks for it ---
    def ref_count(self, _, block, out):
        out[0] = self.refs[block]
        return OK

    def allocate(self, _, out):
        if 0 not in self.refs:
            return NO_BLOCKS
        out[0] = self.refs.index(0)
        return self.count(out[0], 1)

    def count(self, block, by):
        self.refs[block] += by
        return OK

    def must(self, code):
        if code != OK:
            raise RuntimeError(f"code {code}: {self.lib.hidane_vt_error(self.context)}")

    def numbers(self, call, *args):
        """A call that fills a caller's buffer of u32."""
        out, n = (c.c_uint32 * 1024)(), c.c_uint32()
        self.must(call(self.context, self.seq, *args, out, 1024, c.byref(n)))
        return list(out[:n.value])

    def table(self):
        out, n = (c.c_uint32 * BLOCKS)(), c.c_uint32()
        self.must(self.lib.hidane_vt_table(self.context, self.seq, out, 4, c.c_size_t(4), BLOCKS,
                                           c.byref(n)))
        return list(out[:n.value])

    def info(self):
        info = Info()
        self.must(self.lib.hidane_vt_seq_get(self.context, self.seq, c.byref(info)))
        return info

    # --- the model ---
    def decode(self):
        growth = Growth(seq=self.seq.value, tokens=1)
        self.must(self.lib.hidane_vt_reserve(self.context, c.byref(growth), 1))
        table, waiting = self.table(), self.numbers(self.lib.hidane_vt_waiting)
        length = self.info().active_length
        token = [tuple([self.random.gauss(0, 1) for _ in range(DIM)] for _ in "kv")
                 for _ in range(UNITS)]
        self.written.append(token)
        for unit in range(UNITS):
            slot = waiting[unit] if waiting else length
            self.rows[unit][table[slot // B] * B + slot % B] = token[unit]
        self.must(self.lib.hidane_vt_append(self.context, c.byref(growth), 1))

    @staticmethod
    def attend(query, rows, masked=()):
        scores = [sum(q * k for q, k in zip(query, key)) / math.sqrt(DIM) for key, _ in rows]
        top = max(s for i, s in enumerate(scores) if i not in masked)
        weights = [0.0 if i in masked else math.exp(s - top) for i, s in enumerate(scores)]
        total = sum(weights)
        return [sum(w * value[d] for w, (_, value) in zip(weights, rows)) / total
                for d in range(DIM)]

    def compare(self):
        """The largest difference between attention by the table and reference B."""
        table, worst = self.table(), 0.0
        for unit in range(UNITS):
            tokens = self.numbers(self.lib.hidane_vt_tokens, unit)
            slots = [s for s, token in enumerate(tokens) if token != 0xffffffff]
            rows = [self.rows[unit][table[s // B] * B + s % B] for s in slots]
            dead = set(range(len(self.written))) - {tokens[s] for s in slots}
            query = [self.random.gauss(0, 1) for _ in range(DIM)]
            ours = self.attend(query, rows)
            reference = self.attend(query, [token[unit] for token in self.written], dead)
            worst = max([worst] + [abs(a - b) for a, b in zip(ours, reference)])
        return worst

    # --- eviction ---
    def evict(self, policy, keep):
        info = self.info()
        signals = Signals(slots=info.active_length)
        out, n = (c.c_uint32 * 1024)(), c.c_uint32()
        self.must(self.lib.hidane_vt_choose(
            self.context, self.seq, c.byref(policy), None, c.byref(signals), keep, c.c_uint64(1),
            out, 1024, c.byref(n)))
        item = Eviction(seq=self.seq.value, victims=out, n_victims=n.value, incoming=1)
        plan = PlanInfo()
        self.must(self.lib.hidane_vt_plan(self.context, c.byref(item), 1, c.byref(plan)))
        size = c.c_size_t()
        self.lib.hidane_vt_plan_blob(self.context, None, c.c_size_t(0), c.byref(size))
        blob = c.create_string_buffer(size.value)
        self.must(self.lib.hidane_vt_plan_blob(self.context, blob, size, c.byref(size)))
        epoch, digest = self.carry_out(blob.raw)
        self.must(self.lib.hidane_vt_commit(self.context, c.c_uint64(epoch), c.c_uint64(digest)))
        return plan

    def carry_out(self, blob):
        """What a worker does with the plan: it knows the bytes and its rows, no context."""
        self.must(self.lib.hidane_vt_blob_check(blob, c.c_size_t(len(blob))))
        _, _, epoch, digest, _, n_moves, _, _, _, _ = struct.unpack_from("<IIQQQQIIII", blob)
        for i in range(n_moves):
            unit, source, target = struct.unpack_from("<III", blob, 56 + 12 * i)
            self.rows[unit][target] = self.rows[unit][source]
        return epoch, digest


def main():
    engine = Engine(sys.argv[1])

    @SCORE
    def score(_, view, out):  # keeps what lies in the older half of each ten
        for i in range(view.contents.n):
            out[i] = -((view.contents.positions[i] * 7 + view.contents.unit * 3) % 10)
        return 0

    policy = Policy(name=b"from-python", sinks=1, recent=2, score=score)
    worst = 0.0
    for round_ in range(6):
        for _ in range(30 if round_ == 0 else 13):
            engine.decode()
        plan = engine.evict(policy, keep=20)
        engine.decode()
        worst = max(worst, engine.compare())
        print(f"round {round_}: {plan.moves} moves (bound {plan.moves_bound}), "
              f"{plan.blocks_freed} blocks back, table {len(engine.table())} blocks")
    info = engine.info()
    print(f"{info.logical_length} tokens, {info.live_tokens} live in {info.table_blocks} blocks")
    print(f"largest difference from reference B: {worst:.1e}")
    engine.must(engine.lib.hidane_vt_seq_free(engine.context, engine.seq))
    engine.lib.hidane_vt_destroy(engine.context)
    if any(engine.refs) or worst > 1e-12:
        sys.exit("blocks are held, or attention differs")


if __name__ == "__main__":
    main()
