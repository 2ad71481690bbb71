#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/model.h"
#include "model_sequence.h"
#include "rows.h"
#include "text/text.h"

namespace hidane::bench {

/// What eviction does to answers: one policy at one share of tokens kept. < 0: not measured.
struct QualityRow {
  std::string policy = {};
  double keep = 0;
  uint32_t prompt = 0, tokens = 0;  ///< of the text; tokens: those predicted
  double ppl_full = -1;             ///< perplexity of them, full KV
  double ppl_masked = -1;           ///< reference: the same victims, masked, scalar kernels
  double ppl_virtual = -1;          ///< ours: moved, the fast kernels
  double output_error = -1;         ///< largest |logit difference| of the last two
  double permutation_error = -1;  ///< the greatest such where slots were put in random orders first
  uint32_t flips = 0;             ///< tokens whose most likely successor differs in the last two
  uint32_t flips_permuted = 0;    ///< the most such
  double blocks = -1;             ///< held at the end; full KV would hold blocks_full
  double blocks_full = -1;
  double needle = -1, needle_full = -1;  ///< share of needles found
  uint32_t needle_tokens = 0;            ///< in a prompt of about this length
};

/// One way through the predicted part of a passage.
struct Course {
  std::vector<std::vector<float>> logits;  ///< [predicted][vocab]
  double perplexity = 0;
  VictimTrace trace;
  uint32_t blocks = 0;  ///< held at the end
};

/// A text to predict, after a prompt of its first tokens.
struct Passage {
  std::span<const TokenId> tokens;
  uint32_t prompt = 1536, predicted = 256;
};

/// Runs policies on one passage. Prefills it once without a policy; each policy then starts from
/// there as from a prefix-cache hit, as far as its origin allows.
class Reader {
 public:
  Reader(model::Model& fast, const Passage& passage);

  /// The eight mechanisms on the victims that `policy` takes after the prompt, at each share of
  /// `keeps` and each block size.
  std::vector<Row> Arms(std::string_view policy, std::span<const double> keeps,
                        std::span<const uint32_t> block_sizes);
  /// Perplexity of ours, which takes the policy's own victims.
  QualityRow Quality(std::string_view policy, double keep);
  /// The same with a masked run in `reference` (scalar kernels, slow), whose victims ours replays,
  /// and with full KV in both, ours in a random order of slots.
  QualityRow Compare(std::string_view policy, double keep, model::Model& reference);
  /// A sequence that has read the prompt, and what it says of the next token. One at a time: they
  /// share the model's memory. "": full KV.
  std::pair<ModelSequence, std::vector<float>> Begin(std::string_view policy, double keep);

 private:
  struct Start {
    std::unique_ptr<vtoken::Policy> policy;
    std::unique_ptr<ModelSequence> sequence;  // after the prompt
    std::vector<std::byte> kv;
    std::vector<float> logits;
  };
  Start& StartOf(std::string_view policy);  // "": full KV
  Course Run(std::string_view policy, model::Model& model, Eviction eviction,
             const vtoken::BudgetConfig& budget, const VictimTrace* replay = nullptr);
  const Course& Full();

  model::Model& fast_;
  Passage passage_;
  std::vector<std::byte> warm_;
  uint32_t warm_tokens_ = 0;
  std::map<std::string, Start, std::less<>> starts_;
  std::optional<Course> full_;
};

/// A number is hidden in `filler` at `needles` places, one at a time, and asked for in a chat of at
/// most `tokens` tokens.
struct Haystacks {
  const text::TextModel& text;
  std::string_view filler;
  uint32_t tokens, needles;
};
/// Share of the needles that full KV finds.
double NeedlesWithFullKv(model::Model& fast, const Haystacks& haystacks);
/// Adds that, and what each row's policy finds, to `rows`.
void Needles(model::Model& fast, const Haystacks& haystacks, std::span<QualityRow> rows);

}  // namespace hidane::bench
