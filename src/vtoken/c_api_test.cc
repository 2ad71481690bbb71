// The C interface as a host meets it: what it refuses, and how it says so.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "hidane_vtoken.h"
#include "vtoken/c_test_host.h"

namespace {

using hidane::vtoken::Init;

struct Pool : hidane::vtoken::TestPool {
  std::vector<std::string> logged = {};

  Pool() : TestPool{std::vector<uint32_t>(16)} {}
};

void Log(void* user, const char* text) {
  static_cast<Pool*>(static_cast<hidane::vtoken::TestPool*>(user))->logged.emplace_back(text);
}

class CApiTest : public testing::Test {
 protected:
  CApiTest() {
    host_ = pool_.Callbacks();
    host_.log = Log;
    options_ = Init<hidane_vt_options>();
    options_.block_size = 4;
    options_.layers = options_.kv_heads = 1;
    EXPECT_EQ(hidane_vt_create(&options_, &host_, &context_), HIDANE_VT_OK);
    EXPECT_EQ(hidane_vt_seq_new(context_, &seq_), HIDANE_VT_OK);
  }
  ~CApiTest() override { hidane_vt_destroy(context_); }

  int32_t Grow(uint32_t tokens) {
    auto growth = Init<hidane_vt_growth>();
    growth.seq = seq_;
    growth.tokens = tokens;
    const int32_t code = hidane_vt_reserve(context_, &growth, 1);
    EXPECT_EQ(growth.result, code);
    return code != HIDANE_VT_OK ? code : hidane_vt_append(context_, &growth, 1);
  }
  int32_t Plan(std::vector<uint32_t> victims, hidane_vt_plan_info* info) {
    auto item = Init<hidane_vt_eviction>();
    item.seq = seq_;
    item.victims = victims.data();
    item.n_victims = static_cast<uint32_t>(victims.size());
    return hidane_vt_plan(context_, &item, 1, info);
  }
  hidane_vt_seq_info Info() {
    auto info = Init<hidane_vt_seq_info>();
    EXPECT_EQ(hidane_vt_seq_get(context_, seq_, &info), HIDANE_VT_OK);
    return info;
  }

  Pool pool_;
  hidane_vt_host host_;
  hidane_vt_options options_;
  hidane_vt_context* context_ = nullptr;
  hidane_vt_seq seq_ = 0;
  hidane_vt_plan_info plan_ = Init<hidane_vt_plan_info>();
};

// Another engine links what it compiled against: these numbers change with HIDANE_VT_ABI alone.
TEST_F(CApiTest, StructsHaveTheSizesOfAbi1) {
  EXPECT_EQ(hidane_vt_abi(), 1u);
  EXPECT_EQ(sizeof(hidane_vt_host), 88u);
  EXPECT_EQ(offsetof(hidane_vt_host, memory_alloc), 72u);  // shorter before it came
  EXPECT_EQ(sizeof(hidane_vt_options), 32u);
  EXPECT_EQ(sizeof(hidane_vt_growth), 24u);
  EXPECT_EQ(sizeof(hidane_vt_seq_info), 48u);
  EXPECT_EQ(sizeof(hidane_vt_eviction), 40u);
  EXPECT_EQ(sizeof(hidane_vt_plan_info), 56u);
  EXPECT_EQ(sizeof(hidane_vt_move), 12u);
  EXPECT_EQ(sizeof(hidane_vt_blob_header), 56u);
  EXPECT_EQ(sizeof(hidane_vt_blob_seq), 24u);
  EXPECT_EQ(sizeof(hidane_vt_view), 88u);
  EXPECT_EQ(sizeof(hidane_vt_policy), 40u);
  EXPECT_EQ(sizeof(hidane_vt_signals), 64u);
}

TEST_F(CApiTest, RefusesStructsOfAnotherSizeOrVersion) {
  hidane_vt_context* other = nullptr;
  hidane_vt_options options = options_;
  options.version = 2;
  EXPECT_EQ(hidane_vt_create(&options, &host_, &other), HIDANE_VT_INVALID);
  options = options_;
  options.size -= 4;
  EXPECT_EQ(hidane_vt_create(&options, &host_, &other), HIDANE_VT_INVALID);
  options = options_;
  options.scope = 3;
  EXPECT_EQ(hidane_vt_create(&options, &host_, &other), HIDANE_VT_INVALID);
  host_.allocate = nullptr;
  EXPECT_EQ(hidane_vt_create(&options_, &host_, &other), HIDANE_VT_INVALID);
  EXPECT_EQ(hidane_vt_create(nullptr, &host_, &other), HIDANE_VT_INVALID);
  EXPECT_EQ(other, nullptr);
}

void* NoMemory(void*, size_t) {
  return nullptr;
}
void NothingToFree(void*, void*, size_t) {}

// Whoever compiled against the header before memory_alloc has other things where it would be.
TEST_F(CApiTest, AnOlderHostsShorterStructStillWorks) {
  hidane_vt_context* other = nullptr;
  host_.memory_alloc = NoMemory;
  host_.memory_free = NothingToFree;
  EXPECT_EQ(hidane_vt_create(&options_, &host_, &other), HIDANE_VT_NO_MEMORY);
  EXPECT_EQ(other, nullptr);
  host_.size = 72;
  EXPECT_EQ(hidane_vt_create(&options_, &host_, &other), HIDANE_VT_OK);
  hidane_vt_seq seq = 0;
  EXPECT_EQ(hidane_vt_seq_new(other, &seq), HIDANE_VT_OK);
  hidane_vt_destroy(other);
  host_.size = 71;
  EXPECT_EQ(hidane_vt_create(&options_, &host_, &other), HIDANE_VT_INVALID);
}

TEST_F(CApiTest, MemoryComesByBothCallbacksOrNeither) {
  hidane_vt_context* other = nullptr;
  host_.memory_alloc = NoMemory;
  EXPECT_EQ(hidane_vt_create(&options_, &host_, &other), HIDANE_VT_INVALID);
}

TEST_F(CApiTest, SaysWhatWentWrongAndLogsIt) {
  EXPECT_EQ(hidane_vt_seq_free(context_, 77), HIDANE_VT_INVALID);
  EXPECT_STREQ(hidane_vt_error(context_), "no sequence 77");
  EXPECT_EQ(pool_.logged, std::vector<std::string>{"no sequence 77"});
}

TEST_F(CApiTest, AFreedSequenceIsUnknownForever) {
  ASSERT_EQ(Grow(6), HIDANE_VT_OK);
  const hidane_vt_seq gone = seq_;
  EXPECT_EQ(hidane_vt_seq_free(context_, gone), HIDANE_VT_OK);
  EXPECT_EQ(hidane_vt_seq_new(context_, &seq_), HIDANE_VT_OK);
  EXPECT_NE(seq_, gone);
  EXPECT_EQ(hidane_vt_rollback(context_, gone, 0), HIDANE_VT_INVALID);
  EXPECT_EQ(pool_.refs, std::vector<uint32_t>(16));
}

TEST_F(CApiTest, AFullPoolIsNotAnError) {
  EXPECT_EQ(Grow(65), HIDANE_VT_NO_BLOCKS);
  EXPECT_EQ(Info().table_blocks, 0u);
  EXPECT_EQ(Grow(UINT32_MAX), HIDANE_VT_INVALID);  // no count of slots may overflow
  EXPECT_EQ(Grow(64), HIDANE_VT_OK);
}

TEST_F(CApiTest, AHostsFailureIsToldApart) {
  ASSERT_EQ(Grow(8), HIDANE_VT_OK);
  pool_.broken = true;
  EXPECT_EQ(Plan({1}, &plan_), HIDANE_VT_HOST);
  pool_.broken = false;
  EXPECT_EQ(hidane_vt_abort(context_), HIDANE_VT_OK);  // the plan is open, and empty
  EXPECT_EQ(Info().active_length, 8u);
}

TEST_F(CApiTest, CommitWantsTheOpenPlansDigest) {
  ASSERT_EQ(Grow(8), HIDANE_VT_OK);
  EXPECT_EQ(hidane_vt_commit(context_, 0, 0), HIDANE_VT_INVALID);
  ASSERT_EQ(Plan({0, 1, 2, 3}, &plan_), HIDANE_VT_OK);
  EXPECT_EQ(Plan({0}, &plan_), HIDANE_VT_INVALID);  // one at a time
  EXPECT_EQ(hidane_vt_commit(context_, plan_.epoch, plan_.digest + 1), HIDANE_VT_INVALID);
  EXPECT_EQ(Info().active_length, 8u);
  EXPECT_EQ(hidane_vt_commit(context_, plan_.epoch, plan_.digest), HIDANE_VT_OK);
  EXPECT_EQ(Info().active_length, 4u);
  EXPECT_EQ(Info().logical_length, 8u);
  EXPECT_EQ(plan_.blocks_freed, 1u);
}

TEST_F(CApiTest, ABlobIsWholeOrRefused) {
  ASSERT_EQ(Grow(8), HIDANE_VT_OK);
  ASSERT_EQ(Plan({1, 5}, &plan_), HIDANE_VT_OK);
  size_t size = 0;
  EXPECT_EQ(hidane_vt_plan_blob(context_, nullptr, 0, &size), HIDANE_VT_TOO_SMALL);
  std::vector<unsigned char> blob(size);
  ASSERT_EQ(hidane_vt_plan_blob(context_, blob.data(), size, &size), HIDANE_VT_OK);
  EXPECT_EQ(hidane_vt_blob_check(blob.data(), size), HIDANE_VT_OK);
  EXPECT_EQ(hidane_vt_blob_check(blob.data(), size - 1), HIDANE_VT_INVALID);
  for (size_t i = 0; i < size; ++i) {
    blob[i] ^= 0x40;
    EXPECT_EQ(hidane_vt_blob_check(blob.data(), size), HIDANE_VT_INVALID) << i;
    blob[i] ^= 0x40;
  }
  EXPECT_EQ(hidane_vt_abort(context_), HIDANE_VT_OK);
}

TEST_F(CApiTest, TablesComeAsDeltasInTheHostsIntegers) {
  ASSERT_EQ(Grow(8), HIDANE_VT_OK);
  struct Entry {
    int64_t block, other;
  };
  Entry row[4] = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
  uint32_t first = 9, n = 9;
  const auto delta = [&](uint32_t capacity) {
    return hidane_vt_table_delta(context_, seq_, row, 8, sizeof(Entry), capacity, &first, &n);
  };
  EXPECT_EQ(delta(1), HIDANE_VT_TOO_SMALL);
  EXPECT_EQ(delta(4), HIDANE_VT_OK);
  EXPECT_EQ(first, 0u);
  EXPECT_EQ(n, 2u);
  EXPECT_EQ(row[1].block, 1);
  EXPECT_EQ(row[1].other, -1);
  ASSERT_EQ(Grow(1), HIDANE_VT_OK);
  EXPECT_EQ(delta(4), HIDANE_VT_OK);
  EXPECT_EQ(first, 2u);
  EXPECT_EQ(n, 1u);
  EXPECT_EQ(row[0].block, 2);
}

TEST_F(CApiTest, ASequenceTravelsAsBytes) {
  ASSERT_EQ(Grow(8), HIDANE_VT_OK);
  ASSERT_EQ(Plan({1, 5}, &plan_), HIDANE_VT_OK);
  ASSERT_EQ(hidane_vt_commit(context_, plan_.epoch, plan_.digest), HIDANE_VT_OK);
  std::vector<unsigned char> bytes(1000);
  size_t size = 0;
  ASSERT_EQ(hidane_vt_export(context_, seq_, bytes.data(), bytes.size(), &size), HIDANE_VT_OK);
  hidane_vt_seq again = 0;
  ASSERT_EQ(hidane_vt_import(context_, bytes.data(), size, &again), HIDANE_VT_OK);
  uint32_t a[8], b[8], n = 0;
  EXPECT_EQ(hidane_vt_tokens(context_, seq_, 0, a, 8, &n), HIDANE_VT_OK);
  EXPECT_EQ(n, 6u);
  EXPECT_EQ(hidane_vt_tokens(context_, again, 0, b, 8, &n), HIDANE_VT_OK);
  EXPECT_EQ(std::vector(a, a + 6), std::vector(b, b + 6));
  EXPECT_EQ(hidane_vt_import(context_, bytes.data(), size - 1, &again), HIDANE_VT_INVALID);
}

TEST_F(CApiTest, ASequenceMayEndInsideAPlan) {
  ASSERT_EQ(Grow(8), HIDANE_VT_OK);
  ASSERT_EQ(Plan({1, 5, 6, 7}, &plan_), HIDANE_VT_OK);
  EXPECT_EQ(hidane_vt_seq_free(context_, seq_), HIDANE_VT_OK);
  EXPECT_EQ(pool_.refs[0], 1u);
  EXPECT_EQ(hidane_vt_commit(context_, plan_.epoch, plan_.digest), HIDANE_VT_OK);
  EXPECT_EQ(pool_.refs, std::vector<uint32_t>(16));
}

int32_t Refuse(void*, const hidane_vt_view*, float*) {
  return 3;
}

TEST_F(CApiTest, PoliciesChooseByNameOrAsPlugIns) {
  ASSERT_EQ(Grow(60), HIDANE_VT_OK);
  auto signals = Init<hidane_vt_signals>();
  signals.slots = 60;
  uint32_t victims[60], n = 0;
  const auto choose = [&](const hidane_vt_policy* policy, const char* name) {
    return hidane_vt_choose(context_, seq_, policy, name, &signals, 40, 1, victims, 60, &n);
  };
  EXPECT_EQ(choose(nullptr, "streaming-llm"), HIDANE_VT_OK);
  EXPECT_EQ(n, 20u);
  EXPECT_EQ(choose(nullptr, "h2o"), HIDANE_VT_INVALID);  // without the attention it needs
  const std::vector<float> mass(60, 1);
  signals.column_sum = mass.data();
  EXPECT_EQ(choose(nullptr, "h2o"), HIDANE_VT_OK);
  EXPECT_EQ(choose(nullptr, "no-such"), HIDANE_VT_INVALID);
  auto policy = Init<hidane_vt_policy>();
  policy.name = "refuses";
  policy.score = Refuse;
  EXPECT_EQ(choose(&policy, nullptr), HIDANE_VT_HOST);
  auto item = Init<hidane_vt_eviction>();
  const uint32_t victim = 9;
  item.seq = seq_;
  item.victims = &victim;
  item.n_victims = item.incoming = 1;
  ASSERT_EQ(hidane_vt_plan(context_, &item, 1, &plan_), HIDANE_VT_OK);
  ASSERT_EQ(hidane_vt_commit(context_, plan_.epoch, plan_.digest), HIDANE_VT_OK);
  signals.slots = 59;
  EXPECT_EQ(choose(nullptr, "random"), HIDANE_VT_INVALID);  // the open slot would be missed
  ASSERT_EQ(Grow(1), HIDANE_VT_OK);
  EXPECT_EQ(choose(nullptr, "random"), HIDANE_VT_INVALID);
}

}  // namespace
