#include <fmt/format.h>
#include <zlib.h>

#include <cstring>
#include <memory>
#include <vector>

#include "sim/trace_parse.h"

namespace hidane::sim {
namespace {

constexpr size_t kLineMax = size_t{64} << 20;
constexpr unsigned kBuffer = 1 << 18;

struct Close {
  void operator()(gzFile file) const { gzclose(file); }
};
using File = std::unique_ptr<gzFile_s, Close>;

/// Feeds whole lines of `text` (all of it at the end of the file) and keeps the rest.
Status FeedLines(TraceParser& parser, std::vector<char>& text, bool at_end) {
  size_t begin = 0;
  while (begin < text.size()) {
    const void* newline = std::memchr(text.data() + begin, '\n', text.size() - begin);
    if (newline == nullptr && !at_end) break;
    const size_t end = newline ? static_cast<const char*>(newline) - text.data() : text.size();
    HIDANE_CHECK_OK(parser.Line({text.data() + begin, end - begin}));
    begin = end + 1;
  }
  text.erase(text.begin(), text.begin() + static_cast<ptrdiff_t>(std::min(begin, text.size())));
  return {};
}

}  // namespace

Result<Trace> ReadTrace(const std::string& path) {
  const File file(gzopen(path.c_str(), "rb"));  // reads plain files as they are
  if (!file) return Fail(Code::kNotFound, fmt::format("cannot open `{}`", path));
  gzbuffer(file.get(), kBuffer);
  TraceParser parser(path);
  std::vector<char> text;
  for (bool at_end = false; !at_end;) {
    const size_t held = text.size();
    if (held > kLineMax) {
      return Fail(Code::kInvalidArgument,
                  fmt::format("{}: a line is longer than {} bytes", path, kLineMax));
    }
    text.resize(held + kBuffer);
    const int got = gzread(file.get(), text.data() + held, kBuffer);
    int error = Z_OK;
    gzerror(file.get(), &error);
    if (got < 0 || (error != Z_OK && error != Z_STREAM_END)) {
      return Fail(Code::kDataLoss, fmt::format("{}: cannot be read to its end", path));
    }
    text.resize(held + static_cast<size_t>(got));
    at_end = got == 0;
    HIDANE_CHECK_OK(FeedLines(parser, text, at_end));
  }
  return parser.Finish();
}

}  // namespace hidane::sim
