/* Token-level virtual memory for a paged KV cache, as a C library.
 *
 * The library decides where tokens lie and which blocks are free; the host keeps the K/V bytes, the
 * block pool and the kernels. One call per step for all sequences:
 *
 *     hidane_vt_append ...                     tokens of this step were written
 *     hidane_vt_plan(items)                    who evicts what; nothing has changed yet
 *     hidane_vt_plan_blob / _plan_moves        what to copy, and the tables afterwards
 *     [the host copies K/V rows, here or in other processes]
 *     hidane_vt_commit(epoch, digest)          tables and lengths change, blocks come back
 *
 * Words: a table slot i of a sequence stands in block table[i / block_size] at i % block_size; a
 * physical slot is block * block_size + offset; a unit is what has victims of its own (the
 * sequence, a layer, a kv head); a logical token is a position in the stream and keeps its number.
 * The logical length counts tokens ever appended (positions, RoPE, stop rules), the active length
 * the slots that attention reads.
 *
 * Rules of this interface: every struct begins with its size and version, set by the caller by
 * HIDANE_VT_INIT (one that grows within a version does so at its end, and what an older caller's
 * lacks is 0); memory belongs to whoever allocated it; a buffer that is too small is answered by
 * HIDANE_VT_TOO_SMALL and the size that is wanted; no exception, thread or errno crosses it. A
 * context and its sequences are used by one thread at a time; different contexts are independent.
 * Functions without a context are safe in any thread. */
#ifndef HIDANE_VTOKEN_H
#define HIDANE_VTOKEN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HIDANE_VT_ABI 1u /* of this header; hidane_vt_abi() is the library's */

#if defined(__GNUC__)
#define HIDANE_VT_API __attribute__((visibility("default")))
#else
#define HIDANE_VT_API
#endif

/* memset to 0, then size and version. */
#define HIDANE_VT_INIT(s)                     \
  do {                                        \
    unsigned char* p_ = (unsigned char*)&(s); \
    size_t i_;                                \
    for (i_ = 0; i_ < sizeof(s); ++i_) {      \
      p_[i_] = 0;                             \
    }                                         \
    (s).size = (uint32_t)sizeof(s);           \
    (s).version = HIDANE_VT_ABI;              \
  } while (0)

enum { /* what every call returns */
       HIDANE_VT_OK = 0,
       HIDANE_VT_INVALID = 1,   /* a value is wrong; nothing has changed */
       HIDANE_VT_NO_BLOCKS = 2, /* the host has no free block */
       HIDANE_VT_NO_MEMORY = 3, /* nothing has changed, of the item at least; try again later */
       HIDANE_VT_HOST = 4,      /* a callback failed */
       HIDANE_VT_TOO_SMALL = 5, /* a buffer; the size wanted was written */
       HIDANE_VT_INTERNAL = 6
};
enum { HIDANE_VT_SCOPE_SEQUENCE = 0, HIDANE_VT_SCOPE_LAYER = 1, HIDANE_VT_SCOPE_KV_HEAD = 2 };
enum { HIDANE_VT_EXACT = 0, HIDANE_VT_MASKED = 1, HIDANE_VT_LAZY = 2 };
enum { HIDANE_VT_STABLE = 0, HIDANE_VT_FEWEST_MOVES = 1 };

/* The host's block pool, log and memory. Those of the pool return HIDANE_VT_OK, HIDANE_VT_NO_BLOCKS
 * (allocate) or HIDANE_VT_HOST. All are called inside calls of the same context, by its thread, and
 * must not call the library. */
typedef struct hidane_vt_host {
  uint32_t size, version;
  void* user;                                                   /* first argument of each */
  int32_t (*ref_count)(void*, uint32_t block, uint32_t* count); /* > 1: shared, never written */
  int32_t (*pinned)(void*, uint32_t block, uint32_t* pinned);   /* somebody reads it; or NULL */
  int32_t (*allocate)(void*, uint32_t* block);                  /* with one reference */
  int32_t (*retain)(void*, uint32_t block);                     /* NULL: forks are refused */
  int32_t (*release)(void*, uint32_t block);
  int32_t (*unpublish)(void*, uint32_t block); /* out of the prefix cache; or NULL */
  void (*log)(void*, const char* text);        /* each error, as hidane_vt_error says it; or NULL */
  /* All memory that a context keeps between two calls, itself included; aligned as malloc's. NULL:
   * there is none, and the call returns HIDANE_VT_NO_MEMORY. Every piece comes back with its size,
   * by hidane_vt_destroy at the latest. Both or neither; neither: operator new. hidane_vt_seq_free,
   * _rollback, _commit and _abort take none. */
  void* (*memory_alloc)(void*, size_t bytes);
  void (*memory_free)(void*, void* memory, size_t bytes);
} hidane_vt_host;

typedef struct hidane_vt_options {
  uint32_t size, version;
  uint32_t block_size;       /* 1..65535 */
  uint32_t layers, kv_heads; /* units are numbered by them: layer * kv_heads + head */
  uint32_t scope;            /* HIDANE_VT_SCOPE_ */
  uint32_t mode;             /* HIDANE_VT_EXACT, unless your kernel masks dead slots */
  uint32_t placement;        /* HIDANE_VT_STABLE: the layout hangs on the token stream alone */
} hidane_vt_options;

typedef struct hidane_vt_context hidane_vt_context;
typedef uint64_t hidane_vt_seq; /* never 0, never used twice */

HIDANE_VT_API uint32_t hidane_vt_abi(void);
/* Copies both structs. */
HIDANE_VT_API int32_t hidane_vt_create(const hidane_vt_options* options, const hidane_vt_host* host,
                                       hidane_vt_context** out);
/* Gives back no block: free the sequences first. NULL is allowed. */
HIDANE_VT_API void hidane_vt_destroy(hidane_vt_context* context);
/* What the last failed call of this context says, at most 255 bytes; "" if none. Valid until the
 * next call. */
HIDANE_VT_API const char* hidane_vt_error(const hidane_vt_context* context);

/* --- sequences --- */

HIDANE_VT_API int32_t hidane_vt_seq_new(hidane_vt_context* context, hidane_vt_seq* out);
/* A new sequence takes over blocks the host holds for it: a prefix-cache hit of `tokens` tokens. */
HIDANE_VT_API int32_t hidane_vt_seq_adopt(hidane_vt_context* context, hidane_vt_seq seq,
                                          const uint32_t* blocks, uint32_t n, uint32_t tokens);
HIDANE_VT_API int32_t hidane_vt_seq_fork(hidane_vt_context* context, hidane_vt_seq seq,
                                         hidane_vt_seq* out);
/* Gives its blocks back; inside an open plan, once that is committed or aborted. */
HIDANE_VT_API int32_t hidane_vt_seq_free(hidane_vt_context* context, hidane_vt_seq seq);
/* Forgets the newest `n` tokens; never further back than the last plan. */
HIDANE_VT_API int32_t hidane_vt_rollback(hidane_vt_context* context, hidane_vt_seq seq, uint32_t n);

typedef struct hidane_vt_growth {
  uint32_t size, version;
  hidane_vt_seq seq;
  uint32_t tokens;
  int32_t result; /* out: of this sequence */
} hidane_vt_growth;
/* Makes room for the next tokens, before the step; and counts them as written. Both go on with the
 * others when one fails, and return the first failure. */
HIDANE_VT_API int32_t hidane_vt_reserve(hidane_vt_context* context, hidane_vt_growth* items,
                                        uint32_t n);
HIDANE_VT_API int32_t hidane_vt_append(hidane_vt_context* context, hidane_vt_growth* items,
                                       uint32_t n);

typedef struct hidane_vt_seq_info {
  uint32_t size, version;
  uint32_t logical_length, active_length, live_tokens;
  uint32_t table_blocks;
  uint32_t rollback_max;
  uint32_t publishable_blocks; /* leading blocks that may be published; UINT32_MAX: all full ones */
  uint32_t waiting;            /* 1: the next token takes the slots of hidane_vt_waiting */
  uint32_t must_own;           /* 1: plan it (no victims) before the next token */
  uint32_t damaged;            /* 1: lost K/V in an aborted copy; free it */
  uint32_t units;
} hidane_vt_seq_info;
HIDANE_VT_API int32_t hidane_vt_seq_get(hidane_vt_context* context, hidane_vt_seq seq,
                                        hidane_vt_seq_info* info);
/* Writes the block table as the host keeps it: integers of `index_bytes` (4 or 8), `stride` bytes
 * apart, of which `capacity` fit. *n: the blocks there are. */
HIDANE_VT_API int32_t hidane_vt_table(hidane_vt_context* context, hidane_vt_seq seq, void* out,
                                      uint32_t index_bytes, size_t stride, uint32_t capacity,
                                      uint32_t* n);
/* The same from the first block on that has changed since the last call for this sequence: *first,
 * and *n blocks there; out[0] becomes table block *first. */
HIDANE_VT_API int32_t hidane_vt_table_delta(hidane_vt_context* context, hidane_vt_seq seq,
                                            void* out, uint32_t index_bytes, size_t stride,
                                            uint32_t capacity, uint32_t* first, uint32_t* n);
/* The logical token of each active slot of a unit, UINT32_MAX where none lives. */
HIDANE_VT_API int32_t hidane_vt_tokens(hidane_vt_context* context, hidane_vt_seq seq, uint32_t unit,
                                       uint32_t* out, uint32_t capacity, uint32_t* n);
/* [units] table slots where the next token's rows go. */
HIDANE_VT_API int32_t hidane_vt_waiting(hidane_vt_context* context, hidane_vt_seq seq,
                                        uint32_t* out, uint32_t capacity, uint32_t* n);

/* --- eviction --- */

typedef struct hidane_vt_eviction {
  uint32_t size, version;
  hidane_vt_seq seq;
  const uint32_t* victims; /* [units][n_victims / units] table slots */
  uint32_t n_victims;      /* 0: repair alone (must_own, a slot that still waits, masked dead) */
  uint32_t incoming;       /* 1: the next step appends one token, which takes a dead slot */
  int32_t result;          /* out: of this sequence; those that fail are not in the plan */
} hidane_vt_eviction;

typedef struct hidane_vt_plan_info {
  uint32_t size, version;
  uint64_t epoch, digest; /* of the plan: what commit wants back */
  uint64_t moves;
  uint64_t moves_bound; /* fewest moves; the others copy out of blocks that others read */
  uint32_t sequences, blocks_freed, blocks_fresh, reserved;
} hidane_vt_plan_info;

typedef struct hidane_vt_move { /* physical slots; disjoint, so any order will do */
  uint32_t unit, from, to;
} hidane_vt_move;

/* Plans for all sequences at once, and withdraws from the prefix cache what will change. One plan
 * is open at a time. When some items fail, the plan is open with the others (each has its result),
 * and the first failure is returned; info->epoch stays 0 if none is open. */
HIDANE_VT_API int32_t hidane_vt_plan(hidane_vt_context* context, hidane_vt_eviction* items,
                                     uint32_t n, hidane_vt_plan_info* info);
HIDANE_VT_API int32_t hidane_vt_plan_moves(hidane_vt_context* context, hidane_vt_move* out,
                                           size_t capacity, size_t* n);
/* The plan as bytes, for other processes: hidane_vt_blob_header, then moves, then sequences. */
HIDANE_VT_API int32_t hidane_vt_plan_blob(hidane_vt_context* context, void* out, size_t capacity,
                                          size_t* size);
/* REQUIRES: all moves are done. HIDANE_VT_INVALID for another plan's epoch or digest: then a worker
 * copied something else. */
HIDANE_VT_API int32_t hidane_vt_commit(hidane_vt_context* context, uint64_t epoch, uint64_t digest);
/* As if there had been no plan, but that sequences whose victims may be overwritten are damaged. */
HIDANE_VT_API int32_t hidane_vt_abort(hidane_vt_context* context);

typedef struct hidane_vt_blob_header { /* little-endian, 8-byte aligned */
  uint32_t magic;                      /* "HVTP" */
  uint32_t abi;
  uint64_t epoch, digest; /* digest: of all bytes, this field as 0 */
  uint64_t bytes;         /* of the whole blob */
  uint64_t n_moves;       /* hidane_vt_move each, right behind this header */
  uint32_t n_sequences;   /* behind the moves, padded to 8: hidane_vt_blob_seq and its arrays */
  uint32_t block_size, scope, units;
} hidane_vt_blob_header;
typedef struct hidane_vt_blob_seq { /* then blocks, then waiting, u32 each, padded to 8 */
  uint64_t seq;
  uint32_t logical_length, active_length; /* afterwards */
  uint32_t n_blocks, n_waiting;           /* the table afterwards; slots the next token takes */
} hidane_vt_blob_seq;
/* HIDANE_VT_OK if the blob is whole: for whoever received it. */
HIDANE_VT_API int32_t hidane_vt_blob_check(const void* blob, size_t size);

/* --- a sequence as a value --- */

/* Two-call sizing. K/V rows travel beside it: those of the live slots, ascending, unit by unit. */
HIDANE_VT_API int32_t hidane_vt_export(hidane_vt_context* context, hidane_vt_seq seq, void* out,
                                       size_t capacity, size_t* size);
/* In new blocks; the i-th row of a unit goes to its i-th live slot. */
HIDANE_VT_API int32_t hidane_vt_import(hidane_vt_context* context, const void* data, size_t size,
                                       hidane_vt_seq* out);

/* --- policies --- */

/* The live tokens of one unit in logical order. Arrays that are not known are NULL. */
typedef struct hidane_vt_view {
  uint32_t size, version;
  uint32_t unit, n, logical_length, head_dim;
  uint64_t seed;
  const uint32_t* positions;                                              /* [n], ascending */
  const float *column_sum, *low_count, *last_row, *window_sum, *key_norm; /* [n] */
  const float* key_rows;                                                  /* [n][head_dim] */
} hidane_vt_view;

/* A policy plug-in: from a shared object (symbol hidane_vt_policy_entry), from Python, anywhere. */
typedef struct hidane_vt_policy {
  uint32_t size, version;
  const char* name;
  void* user;
  uint32_t sinks, recent; /* first and newest tokens that always stay */
  /* One score per token; higher stays. Equal views get equal scores. 0, or an error that stops. */
  int32_t (*score)(void* user, const hidane_vt_view* view, float* score);
} hidane_vt_policy;
typedef const hidane_vt_policy* (*hidane_vt_policy_entry_fn)(void);

/* Signals by table slot, unit by unit, already reduced over the query heads of a unit: [units][n].
 * NULL where the policy doesn't need them. */
typedef struct hidane_vt_signals {
  uint32_t size, version;
  uint32_t slots, head_dim; /* slots: the active length */
  const float *column_sum, *low_count, *last_row, *window_sum, *key_norm;
  const float* key_rows; /* [units][slots][head_dim] */
} hidane_vt_signals;

/* Who should go so that `keep` tokens of each unit stay: table slots [units][*n / units], as
 * hidane_vt_plan takes them. policy: a plug-in; or NULL, and then `name` is a shipped one (h2o,
 * snapkv, ...). Changes nothing. HIDANE_VT_INVALID while a slot waits for a token. */
HIDANE_VT_API int32_t hidane_vt_choose(hidane_vt_context* context, hidane_vt_seq seq,
                                       const hidane_vt_policy* policy, const char* name,
                                       const hidane_vt_signals* signals, uint32_t keep,
                                       uint64_t seed, uint32_t* victims, uint32_t capacity,
                                       uint32_t* n);

#ifdef __cplusplus
}
#endif
#endif
