#include "real.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>

#include "cli/vocab.h"
#include "model/gguf.h"
#include "vtoken/policy.h"

namespace hidane::bench {
namespace {

constexpr uint32_t kTokensMax = 4096;
constexpr uint32_t kNeedleTokens[] = {512, 256};  // the first at which full KV finds most
constexpr uint32_t kReferenceTokens = 48;         // scalar kernels are slow

Result<std::unique_ptr<model::Model>> LoadModel(const RealOptions& options, bool reference) {
  model::ModelOptions m;
  m.precision = model::Precision::kF32;
  m.block_size = 16;
  m.kv_blocks = kTokensMax / m.block_size + 1;
  m.threads = options.threads;
  m.reference_kernels = reference;
  return model::Model::Load(options.model, m);
}

Result<std::unique_ptr<text::TextModel>> LoadText(const std::string& path) {
  HIDANE_TRY(const model::GgufFile file, model::GgufFile::Open(path));
  HIDANE_TRY(const text::VocabSource source, cli::VocabOf(file.gguf));
  return text::TextModel::Load(source);
}

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Fail(Code::kNotFound, "no text " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The run takes long; what is known already.
void Tell(const QualityRow& row) {
  fmt::print(stderr, "{} keep {}: perplexity {:.3f}, full KV {:.3f}\n", row.policy, row.keep,
             row.ppl_virtual, row.ppl_full);
}

}  // namespace

Result<RealResults> RunReal(const RealOptions& options) {
  HIDANE_TRY(const auto text_model, LoadText(options.model));
  HIDANE_TRY(const std::string text, ReadFile(options.text));
  HIDANE_TRY(const auto tokens, text_model->Encode(text, false));
  HIDANE_TRY(const auto fast, LoadModel(options, false));
  Passage passage{.tokens = tokens};
  passage.predicted = options.quick ? 64 : 256;
  if (tokens.size() < passage.prompt + passage.predicted + 1)
    return Fail(Code::kInvalidArgument,
                fmt::format("{}: {} tokens, {} needed", options.text, tokens.size(),
                            passage.prompt + passage.predicted + 1));
  const std::vector<double> keeps{0.3, 0.5, 0.7};
  const std::vector<uint32_t> block_sizes{16, 32, 64, 128};
  const auto policies = vtoken::PolicyNames();
  RealResults results;
  Reader reader(*fast, passage);
  for (const std::string_view policy : policies) {
    const auto rows = reader.Arms(policy, keeps, block_sizes);
    results.rows.insert(results.rows.end(), rows.begin(), rows.end());
    for (const double keep : keeps) {
      results.quality.push_back(reader.Quality(policy, keep));
      Tell(results.quality.back());
    }
  }
  if (options.quick) return results;
  fmt::print(stderr, "needles\n");
  Haystacks haystacks{.text = *text_model, .filler = text, .tokens = 0, .needles = 10};
  for (const uint32_t length : kNeedleTokens) {
    haystacks.tokens = length;
    if (NeedlesWithFullKv(*fast, haystacks) >= 0.8) break;
  }
  Needles(*fast, haystacks, results.quality);
  fmt::print(stderr, "the masked reference, by scalar kernels\n");
  HIDANE_TRY(const auto reference, LoadModel(options, true));
  passage.predicted = kReferenceTokens;
  Reader checked(*fast, passage);
  for (const std::string_view policy : policies)
    for (const double keep : keeps) {
      results.quality.push_back(checked.Compare(policy, keep, *reference));
      Tell(results.quality.back());
    }
  return results;
}

}  // namespace hidane::bench
