#include "cli/vocab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "text/text.h"

namespace hidane::cli {
namespace {

using Ids = std::vector<TokenId>;

/// The default model's tokenizer and template, read from its file.
class DefaultModel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string path = HIDANE_SOURCE_DIR "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
    if (!std::filesystem::exists(path)) return;
    auto file = model::GgufFile::Open(path);
    ASSERT_TRUE(file) << file.error().what;
    auto source = VocabOf(file->gguf);
    ASSERT_TRUE(source) << source.error().what;
    auto loaded = text::TextModel::Load(*source);
    ASSERT_TRUE(loaded) << loaded.error().what;
    model_ = *std::move(loaded);
  }
  static void TearDownTestSuite() { model_.reset(); }
  void SetUp() override {
    if (!model_) GTEST_SKIP() << "no model file: run tools/fetch_model.sh";
  }

  static inline std::unique_ptr<text::TextModel> model_;
};

struct Row {
  std::string text;
  Ids ids;    // control tokens recognised
  Ids plain;  // not recognised; empty = the same
};

// Recorded from the PyPI package tokenizers 0.23 with the file's own vocabulary and merges; the
// same as llama.cpp's, row for row.
const std::vector<Row> kRows = {
    {"", {}, {}},
    {"Hello, world!", {19556, 28, 905, 17}, {}},
    {" leading and trailing  ", {2899, 284, 35079, 256}, {}},
    {"don't we'll I'VE they're", {12420, 982, 392, 3060, 339, 23, 18525, 502, 2316}, {}},
    {"12345 3.14 1e10", {33, 34, 35, 36, 37, 216, 35, 30, 33, 36, 216, 33, 85, 33, 32}, {}},
    {"a\tb\r\nc\n\n\nd", {81, 197, 82, 201, 198, 83, 1116, 198, 84}, {}},
    {"def f(x):\n    return x**2\n", {1604, 275, 24, 104, 727, 472, 1003, 1792, 828, 34, 198}, {}},
    {"caf\303\251 na\303\257ve \303\274ber", {83, 1939, 2756, 15486, 46494, 5549, 137, 593}, {}},
    {"\346\227\245\346\234\254\343\201\256\351\246\226\351\203\275\343\201\257\346\235\261\344\272"
     "\254\343\201\247\343\201\231\343\200\202",
     {23274, 115, 40993, 26453, 180, 116, 240, 180, 38466, 7365, 124, 30679, 126, 16736, 122, 7365,
      117, 39958, 19076},
     {}},
    {"\360\237\224\245\360\237\221\251\342\200\215\360\237\232\200",
     {10813, 238, 115, 10813, 235, 119, 321, 231, 10813, 244, 218},
     {}},
    {"e\314\201 combining", {85, 151, 219, 9301}, {}},
    {"{\"name\": \"f\", \"a\": [1, 2]}",
     {39428, 1245, 1799, 476, 86, 1002, 476, 81, 1799, 933, 33, 28, 216, 34, 28852},
     {}},
    {"<|im_start|>user\nhi<|im_end|>\n",
     {1, 4093, 198, 6004, 2, 198},
     {44, 108, 306, 79, 3738, 108, 46, 4093, 198, 6004, 44, 108, 306, 79, 486, 108, 46, 198}},
    {"<|endoftext|>", {0}, {44, 108, 486, 1714, 2692, 108, 46}},
    {"<file_sep><repo_name>x", {5, 3, 104}, {44, 2153, 79, 29070, 21198, 22139, 79, 1245, 46, 104}},
    {"x<|im_end|", {104, 44, 108, 306, 79, 486, 108}, {}},
    {std::string("\0\1", 2), {190, 191}, {}},
    {"          ten spaces", {17377, 3772, 5600}, {}},
    {"SELECT * FROM t WHERE id=42;", {23428, 1672, 18451, 252, 28531, 4492, 45, 36, 34, 43}, {}},
    {"\320\237\321\200\320\270\320\262\320\265\321\202 \320\274\320\270\321\200",
     {155, 249, 46879, 16464, 32547, 41337, 7872, 9175},
     {}},
    {"\331\241\331\242\331\243", {164, 111, 164, 112, 164, 113}, {}},
    {"ABCdef_ghi-jkl", {35542, 1604, 79, 460, 89, 29, 90, 7959}, {}},
};

TEST_F(DefaultModel, TokenizesAsRecorded) {
  for (const Row& row : kRows) {
    EXPECT_EQ(*model_->Encode(row.text, true), row.ids) << row.text;
    EXPECT_EQ(*model_->Encode(row.text, false), row.plain.empty() ? row.ids : row.plain)
        << row.text;
  }
}

TEST_F(DefaultModel, TokensSpellTheirText) {
  for (const Row& row : kRows) {
    std::string bytes;
    const Ids ids = *model_->Encode(row.text, false);
    for (const TokenId id : ids) bytes += model_->TokenBytes(id);
    EXPECT_EQ(bytes, row.text);
  }
}

TEST_F(DefaultModel, ChatsWithoutASystemMessageGetTheTemplatesOwn) {
  EXPECT_EQ(model_->RenderChat(R"([{"role":"user","content":"hi"}])", "", true),
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
            "Face<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(DefaultModel, AChatsTokensAreThoseOfItsText) {
  const std::string messages =
      R"([{"role":"system","content":"Be brief. 1 | 2"},
          {"role":"user","content":"a  b\n\nc <d>"}])";
  EXPECT_EQ(*model_->EncodeChat(messages, "", true),
            *model_->Encode(*model_->RenderChat(messages, "", true), true));
}

TEST_F(DefaultModel, ControlTokenTextInAMessageIsNone) {
  const auto ids = *model_->EncodeChat(
      R"([{"role":"system","content":"<|im_end|>"},
          {"role":"user","content":"<|im_start|><file_sep>"}])",
      "", true);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 1), 3);  // <|im_start|>
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 2), 2);  // <|im_end|>
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 5), 0);  // <file_sep>
}

// This template has no tools branch: the tools come in front of the system text.
TEST_F(DefaultModel, ToolsAreWrittenIntoTheSystemMessage) {
  const auto text = *model_->RenderChat(
      R"([{"role":"user","content":"hi"}])",
      R"([{"type":"function","function":{"name":"add","description":"Adds."}}])", true);
  EXPECT_EQ(text.find("<|im_start|>system\n"), 0u);
  EXPECT_NE(
      text.find(R"({"type": "function", "function": {"name": "add", "description": "Adds."}})"),
      std::string::npos);
}

}  // namespace
}  // namespace hidane::cli
