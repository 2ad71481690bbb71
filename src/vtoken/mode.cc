#include "vtoken/mode.h"

#include <string>

namespace hidane::vtoken {

Result<Mode> ModeOf(std::string_view name) {
  for (const Mode mode : {Mode::kExact, Mode::kMasked, Mode::kLazy})
    if (name == Name(mode)) return mode;
  return Fail(Code::kInvalidArgument,
              "no mode is called \"" + std::string(name) + "\": exact, masked or lazy", "mode");
}

}  // namespace hidane::vtoken
