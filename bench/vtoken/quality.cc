#include "quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/json_out.h"
#include "base/rng.h"
#include "model_sequence.h"

namespace hidane::bench {
namespace {

double LogProbability(std::span<const float> logits, TokenId token) {
  const double top = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - top);
  return logits[static_cast<size_t>(token)] - top - std::log(sum);
}

size_t Best(std::span<const float> logits) {
  return static_cast<size_t>(std::ranges::max_element(logits) - logits.begin());
}

/// Feeds the passage's own tokens and looks at what each step says of the next.
Course Follow(ModelSequence& sequence, const Passage& passage) {
  Course course;
  double sum = 0;
  for (uint32_t i = 0; i < passage.predicted; ++i) {
    const auto logits = sequence.Decode(passage.tokens[passage.prompt + i]);
    sum += LogProbability(logits, passage.tokens[passage.prompt + i + 1]);
    course.logits.emplace_back(logits.begin(), logits.end());
  }
  course.perplexity = std::exp(-sum / passage.predicted);
  course.trace = sequence.trace();
  course.blocks = sequence.blocks();
  return course;
}

double LargestDifference(const Course& a, const Course& b) {
  double largest = 0;
  for (size_t i = 0; i < a.logits.size(); ++i)
    for (size_t v = 0; v < a.logits[i].size(); ++v)
      largest = std::max(largest, std::abs(double{a.logits[i][v]} - b.logits[i][v]));
  return largest;
}

uint32_t Flips(const Course& a, const Course& b) {
  uint32_t flips = 0;
  for (size_t i = 0; i < a.logits.size(); ++i) flips += Best(a.logits[i]) != Best(b.logits[i]);
  return flips;
}

}  // namespace

Reader::Reader(model::Model& fast, const Passage& passage) : fast_(fast), passage_(passage) {
  constexpr uint32_t kTail = 64;  // more than any policy's window
  warm_tokens_ = passage.prompt - std::min(passage.prompt, kTail);
  ModelSequence sequence(fast, nullptr, warm_tokens_);
  sequence.Prefill(passage.tokens.first(warm_tokens_));
  warm_ = sequence.SaveKv();
}

Reader::Start& Reader::StartOf(std::string_view name) {
  if (const auto it = starts_.find(name); it != starts_.end()) return it->second;
  Start start;
  if (!name.empty()) start.policy = std::move(*vtoken::MakePolicy(name));
  start.sequence = std::make_unique<ModelSequence>(fast_, start.policy.get(),
                                                   passage_.prompt + passage_.predicted);
  const auto logits =
      start.sequence->Prefill(passage_.tokens.first(passage_.prompt), warm_, warm_tokens_);
  start.logits.assign(logits.begin(), logits.end());
  start.kv = start.sequence->SaveKv();
  return starts_.emplace(name, std::move(start)).first->second;
}

std::vector<Row> Reader::Arms(std::string_view name, std::span<const double> keeps,
                              std::span<const uint32_t> block_sizes) {
  Start& start = StartOf(name);
  ModelSequence sequence = *start.sequence;
  sequence.Resume(fast_, start.kv, Eviction::kNone, {});
  std::vector<Row> rows;
  for (const double keep : keeps) {
    const auto stays = static_cast<uint32_t>(std::ceil(keep * passage_.prompt));
    const vtoken::Victims victims = sequence.Choose(stays);
    for (const uint32_t block_size : block_sizes) {
      Sequence units;
      for (uint32_t unit = 0; unit < victims.units; ++unit) {
        std::vector<uint8_t> map(passage_.prompt, 1);
        for (const uint32_t position : victims.PositionsOf(unit)) map[position] = 0;
        units.push_back(FromMap(map, block_size));
      }
      const auto made = RunArms(std::string(name), keep, {&units, 1}, 20);
      rows.insert(rows.end(), made.begin(), made.end());
    }
  }
  return rows;
}

Course Reader::Run(std::string_view name, model::Model& model, Eviction eviction,
                   const vtoken::BudgetConfig& budget, const VictimTrace* replay) {
  Start& start = StartOf(name);
  ModelSequence sequence = *start.sequence;
  sequence.Resume(model, start.kv, eviction, budget, replay);
  return Follow(sequence, passage_);
}

std::pair<ModelSequence, std::vector<float>> Reader::Begin(std::string_view name, double keep) {
  Start& start = StartOf(name);
  ModelSequence sequence = *start.sequence;
  sequence.Resume(fast_, start.kv, name.empty() ? Eviction::kNone : Eviction::kVirtual,
                  {.keep = keep});
  return {std::move(sequence), start.logits};
}

const Course& Reader::Full() {
  if (!full_) full_ = Run("", fast_, Eviction::kNone, {});
  return *full_;
}

QualityRow Reader::Quality(std::string_view name, double keep) {
  const Course moved = Run(name, fast_, Eviction::kVirtual, {.keep = keep});
  return {.policy = std::string(name),
          .keep = keep,
          .prompt = passage_.prompt,
          .tokens = passage_.predicted,
          .ppl_full = Full().perplexity,
          .ppl_virtual = moved.perplexity,
          .blocks = static_cast<double>(moved.blocks),
          .blocks_full = static_cast<double>(Full().blocks)};
}

// What order alone costs: the same victims from sequences whose tokens lie in random orders.
QualityRow Reader::Compare(std::string_view name, double keep, model::Model& reference) {
  const vtoken::BudgetConfig budget{.keep = keep};
  const Course masked = Run(name, reference, Eviction::kMasked, budget);
  const Course moved = Run(name, fast_, Eviction::kVirtual, budget, &masked.trace);
  constexpr uint64_t kPermutations = 4;
  double permutation_error = 0;
  uint32_t permutation_flips = 0;
  for (uint64_t seed = 1; seed <= kPermutations; ++seed) {
    ModelSequence shuffled = *StartOf(name).sequence;
    shuffled.Resume(fast_, StartOf(name).kv, Eviction::kVirtual, budget, &masked.trace);
    shuffled.Shuffle(seed);
    const Course permuted = Follow(shuffled, passage_);
    permutation_error = std::max(permutation_error, LargestDifference(masked, permuted));
    permutation_flips = std::max(permutation_flips, Flips(masked, permuted));
  }
  return {.policy = std::string(name),
          .keep = keep,
          .prompt = passage_.prompt,
          .tokens = passage_.predicted,
          .ppl_full = Full().perplexity,
          .ppl_masked = masked.perplexity,
          .ppl_virtual = moved.perplexity,
          .output_error = LargestDifference(masked, moved),
          .permutation_error = permutation_error,
          .flips = Flips(masked, moved),
          .flips_permuted = permutation_flips,
          .blocks = static_cast<double>(moved.blocks),
          .blocks_full = static_cast<double>(Full().blocks)};
}

namespace {

constexpr uint32_t kAnswer = 24;  // tokens

/// A chat of which the first part is filler with one sentence about a number in it.
std::string Haystack(std::string_view filler, size_t bytes, double depth, uint64_t number) {
  size_t at = static_cast<size_t>(depth * static_cast<double>(bytes));
  at = std::min(filler.find(". ", at), bytes);
  const size_t cut = at == bytes ? bytes : at + 2;
  std::string text(filler.substr(0, cut));
  text += fmt::format("The secret number of the lighthouse is {}. ", number);
  text += filler.substr(cut, bytes - std::min(bytes, cut));
  text += "\n\nWhat is the secret number of the lighthouse?";
  JsonWriter w;
  w.BeginArray().BeginObject().Field("role", "user").Field("content", text).EndObject().EndArray();
  return w.Take();
}

/// Whether the greedy answer names the number.
bool Found(ModelSequence& sequence, const text::TextModel& text, std::span<const float> logits,
           uint64_t number) {
  std::string answer;
  for (uint32_t i = 0; i < kAnswer; ++i) {
    const auto token = static_cast<TokenId>(Best(logits));
    if (text.IsEndOfGeneration(token)) break;
    answer += text.TokenBytes(token);
    logits = sequence.Decode(token);
  }
  return answer.find(fmt::format("{}", number)) != std::string::npos;
}

/// The i-th prompt, as long as `haystacks` allows.
std::vector<TokenId> Prompt(const Haystacks& haystacks, uint32_t i, uint64_t number) {
  const double depth = (i + 0.5) / haystacks.needles;
  size_t bytes = std::min(haystacks.filler.size(), size_t{haystacks.tokens} * 5);
  for (;; bytes = bytes * 19 / 20) {
    const std::string chat = Haystack(haystacks.filler, bytes, depth, number);
    auto prompt = *haystacks.text.EncodeChat(chat, "", true);
    if (prompt.size() <= haystacks.tokens) return prompt;
  }
}

/// Calls each(found) for each needle; found(policy, keep) is what it adds to the share.
template <class Each>
void ForEachNeedle(model::Model& fast, const Haystacks& haystacks, Each each) {
  for (uint32_t i = 0; i < haystacks.needles; ++i) {
    const uint64_t number = 10'000 + Mix64(i) % 90'000;
    const auto prompt = Prompt(haystacks, i, number);
    Reader reader(
        fast,
        {.tokens = prompt, .prompt = static_cast<uint32_t>(prompt.size()), .predicted = kAnswer});
    each([&](std::string_view policy, double keep) {
      auto [sequence, logits] = reader.Begin(policy, keep);
      return Found(sequence, haystacks.text, logits, number) ? 1.0 / haystacks.needles : 0;
    });
  }
}

}  // namespace

double NeedlesWithFullKv(model::Model& fast, const Haystacks& haystacks) {
  double share = 0;
  ForEachNeedle(fast, haystacks, [&](const auto& found) { share += found("", 1); });
  return share;
}

void Needles(model::Model& fast, const Haystacks& haystacks, std::span<QualityRow> rows) {
  for (QualityRow& row : rows) {
    row.needle = row.needle_full = 0;
    row.needle_tokens = haystacks.tokens;
  }
  ForEachNeedle(fast, haystacks, [&](const auto& found) {
    const double full = found("", 1);
    for (QualityRow& row : rows) {
      row.needle_full += full;
      row.needle += found(row.policy, row.keep);
    }
  });
}

}  // namespace hidane::bench
