/* A host engine in C: a pool of blocks whose slots hold a number instead of K/V. It appends, evicts
 * by a policy from a shared object, copies what the plan says and checks every row.
 *
 *     cc -Iinclude examples/vtoken_host.c -Lbuild/release/src/vtoken -lhidane_vtoken -ldl -o host
 *     ./host [./plugin.so]                                  (examples/vtoken_policy.c) */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "hidane_vtoken.h"

enum { kBlocks = 32, kBlockSize = 4, kUnits = 2, kSlots = kBlocks * kBlockSize };

static size_t memory; /* bytes that the library has */
static uint32_t refs[kBlocks];
static uint32_t rows[kUnits][kSlots]; /* which token lies there */

static int32_t RefCount(void* user, uint32_t block, uint32_t* count) {
  (void)user;
  *count = refs[block];
  return HIDANE_VT_OK;
}
static int32_t Allocate(void* user, uint32_t* block) {
  uint32_t b;
  (void)user;
  for (b = 0; b < kBlocks; ++b) {
    if (refs[b] == 0) {
      refs[b] = 1;
      *block = b;
      return HIDANE_VT_OK;
    }
  }
  return HIDANE_VT_NO_BLOCKS;
}
static int32_t Retain(void* user, uint32_t block) {
  (void)user;
  ++refs[block];
  return HIDANE_VT_OK;
}
static int32_t Release(void* user, uint32_t block) {
  (void)user;
  --refs[block];
  return HIDANE_VT_OK;
}
static void Log(void* user, const char* text) {
  (void)user;
  fprintf(stderr, "vtoken: %s\n", text);
}

static void* MemoryAlloc(void* user, size_t bytes) {
  void* const piece = malloc(bytes);
  (void)user;
  if (piece != NULL) memory += bytes;
  return piece;
}
static void MemoryFree(void* user, void* piece, size_t bytes) {
  (void)user;
  memory -= bytes;
  free(piece);
}

static void Must(int32_t code, const char* what) {
  if (code == HIDANE_VT_OK) return;
  fprintf(stderr, "%s: code %d\n", what, (int)code);
  exit(1);
}

/* Keeps even tokens; what a plug-in would say. */
static int32_t Even(void* user, const hidane_vt_view* view, float* score) {
  uint32_t i;
  (void)user;
  for (i = 0; i < view->n; ++i) score[i] = view->positions[i] % 2 == 0 ? 1.0F : 0.0F;
  return 0;
}

static const hidane_vt_policy* LoadPolicy(const char* path) {
  static hidane_vt_policy even;
  void* library;
  hidane_vt_policy_entry_fn entry = NULL;
  HIDANE_VT_INIT(even);
  even.name = "even";
  even.sinks = 1;
  even.recent = 2;
  even.score = Even;
  if (path == NULL) return &even;
  library = dlopen(path, RTLD_NOW);
  if (library != NULL) *(void**)&entry = dlsym(library, "hidane_vt_policy_entry");
  if (entry == NULL) Must(HIDANE_VT_INVALID, path);
  return entry();
}

/* Rows of n new tokens, before they count. */
static void Write(hidane_vt_context* context, hidane_vt_seq seq, uint32_t n) {
  hidane_vt_growth growth;
  hidane_vt_seq_info info;
  uint32_t table[kBlocks], waiting[kUnits], blocks, open, i, u;
  HIDANE_VT_INIT(growth);
  HIDANE_VT_INIT(info);
  growth.seq = seq;
  growth.tokens = n;
  Must(hidane_vt_reserve(context, &growth, 1), "reserve");
  Must(hidane_vt_seq_get(context, seq, &info), "info");
  Must(hidane_vt_table(context, seq, table, 4, 4, kBlocks, &blocks), "table");
  Must(hidane_vt_waiting(context, seq, waiting, kUnits, &open), "waiting");
  for (i = 0; i < n; ++i) {
    for (u = 0; u < kUnits; ++u) {
      const uint32_t slot = open > 0 ? waiting[u] : info.active_length + i;
      rows[u][table[slot / kBlockSize] * kBlockSize + slot % kBlockSize] = info.logical_length + i;
    }
  }
  Must(hidane_vt_append(context, &growth, 1), "append");
}

/* Every row that attention would read is the one of its token. */
static uint32_t Check(hidane_vt_context* context, hidane_vt_seq seq) {
  uint32_t table[kBlocks], tokens[kSlots], blocks, n, i, u;
  Must(hidane_vt_table(context, seq, table, 4, 4, kBlocks, &blocks), "table");
  for (u = 0; u < kUnits; ++u) {
    Must(hidane_vt_tokens(context, seq, u, tokens, kSlots, &n), "tokens");
    for (i = 0; i < n; ++i) {
      if (tokens[i] == UINT32_MAX) continue;
      if (rows[u][table[i / kBlockSize] * kBlockSize + i % kBlockSize] != tokens[i]) {
        Must(HIDANE_VT_INTERNAL, "a row of another token");
      }
    }
  }
  return blocks;
}

static void Evict(hidane_vt_context* context, hidane_vt_seq seq, const hidane_vt_policy* policy,
                  uint32_t keep) {
  hidane_vt_signals signals;
  hidane_vt_seq_info info;
  hidane_vt_eviction item;
  hidane_vt_plan_info plan;
  hidane_vt_move moves[kUnits * kSlots];
  uint32_t victims[kUnits * kSlots], n;
  size_t n_moves, i;
  HIDANE_VT_INIT(signals);
  HIDANE_VT_INIT(info);
  HIDANE_VT_INIT(item);
  HIDANE_VT_INIT(plan);
  Must(hidane_vt_seq_get(context, seq, &info), "info");
  signals.slots = info.active_length;
  Must(
      hidane_vt_choose(context, seq, policy, NULL, &signals, keep, 1, victims, kUnits * kSlots, &n),
      "choose");
  item.seq = seq;
  item.victims = victims;
  item.n_victims = n;
  item.incoming = 1;
  Must(hidane_vt_plan(context, &item, 1, &plan), "plan");
  Must(hidane_vt_plan_moves(context, moves, kUnits * kSlots, &n_moves), "moves");
  for (i = 0; i < n_moves; ++i)
    rows[moves[i].unit][moves[i].to] = rows[moves[i].unit][moves[i].from];
  Must(hidane_vt_commit(context, plan.epoch, plan.digest), "commit");
  printf("%s: %u tokens -> %u, %u blocks back, %u moves (bound %u)\n", policy->name,
         info.live_tokens, keep, plan.blocks_freed, (unsigned)plan.moves,
         (unsigned)plan.moves_bound);
}

int main(int argc, char** argv) {
  hidane_vt_options options;
  hidane_vt_host host;
  hidane_vt_context* context;
  hidane_vt_seq seq;
  uint32_t b, held = 0;
  const hidane_vt_policy* const policy = LoadPolicy(argc > 1 ? argv[1] : NULL);
  HIDANE_VT_INIT(options);
  HIDANE_VT_INIT(host);
  options.block_size = kBlockSize;
  options.layers = kUnits;
  options.kv_heads = 1;
  options.scope = HIDANE_VT_SCOPE_LAYER;
  host.ref_count = RefCount;
  host.allocate = Allocate;
  host.retain = Retain;
  host.release = Release;
  host.log = Log;
  host.memory_alloc = MemoryAlloc;
  host.memory_free = MemoryFree;
  Must(hidane_vt_create(&options, &host, &context), "create");
  Must(hidane_vt_seq_new(context, &seq), "new");
  Write(context, seq, 40);
  Evict(context, seq, policy, 22);
  printf("table: %u blocks\n", Check(context, seq));
  Write(context, seq, 1); /* into the slot that a victim left */
  Write(context, seq, 9);
  Evict(context, seq, policy, 20);
  printf("table: %u blocks\n", Check(context, seq));
  Must(hidane_vt_seq_free(context, seq), "free");
  hidane_vt_destroy(context);
  for (b = 0; b < kBlocks; ++b) held += refs[b];
  printf("held at the end: %u blocks, %u bytes\n", held, (unsigned)memory);
  return held == 0 && memory == 0 ? 0 : 1;
}
