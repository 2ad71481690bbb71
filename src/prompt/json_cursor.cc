#include "prompt/json_cursor.h"

#include <fmt/format.h>

namespace hidane::prompt {

char JsonCursor::Peek() {
  if (wrong_ != nullptr) return 0;
  while (at_ < json_.size()) {
    const char c = json_[at_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return c;
    ++at_;
  }
  return 0;
}

bool JsonCursor::PeekNull() {
  return Peek() == 'n' && json_.substr(at_, 4) == "null";
}

bool JsonCursor::AtEnd() {
  return Peek() == 0 && wrong_ == nullptr && at_ == json_.size();
}

bool JsonCursor::Take(char c) {
  if (Peek() != c) return false;
  ++at_;
  return true;
}

bool JsonCursor::Broken(const char* what) {
  if (wrong_ == nullptr) wrong_ = what;
  return false;
}

bool JsonCursor::Enter(char open) {
  if (!Take(open)) return Broken("another kind of value");
  return !Take(open == '{' ? '}' : ']');
}

bool JsonCursor::Next(char close) {
  if (Take(',')) return true;
  return Take(close) ? false : Broken("no comma and no closing bracket");
}

void JsonCursor::Copy(CanonicalBuffer& out) {
  if (wrong_ != nullptr) return;
  static_cast<void>(Peek());
  const size_t size = out.AppendValue(json_.substr(at_));
  if (size == 0) Broken("no whole value");
  at_ += size;
}

void JsonCursor::CopyKey(CanonicalBuffer& out) {
  if (Peek() != '"') {
    Broken("no key");
    return;
  }
  Copy(out);
  if (!Take(':')) Broken("no colon");
}

Status JsonCursor::status() const {
  if (wrong_ == nullptr) return {};
  return Fail(Code::kInvalidArgument,
              fmt::format("body is not a JSON object: {} at byte {}", wrong_, at_));
}

}  // namespace hidane::prompt
