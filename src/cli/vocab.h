#pragma once
#include "base/result.h"
#include "model/gguf.h"
#include "text/text.h"

namespace hidane::cli {

/// What text/ needs of a model file: the one place where the file format meets the tokenizer. Views
/// point into `gguf`. Errors name the metadata key.
Result<text::VocabSource> VocabOf(const model::Gguf& gguf);

}  // namespace hidane::cli
