#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hidane::serve {

/// Cuts a stream of text before the first stop string, wherever the pieces end. Text that may be
/// the start of a stop string is held back until the next piece tells. The stop string that is
/// complete first counts; of several that end at one place, the longest. The output does not
/// depend on how the text was cut into pieces.
class StopMatcher {
 public:
  /// REQUIRES: no stop string is empty.
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// What can be shown now; nothing once stopped.
  std::string Push(std::string_view text);
  /// What was held back, at the end of the text.
  std::string Flush();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;  // shorter than the longest stop string
  bool stopped_ = false;
};

}  // namespace hidane::serve
