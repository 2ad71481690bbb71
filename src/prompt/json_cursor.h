#pragma once
#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "prompt/canonical.h"

namespace hidane::prompt {

/// Reads JSON text from its front, value by value; one pass finds where a value ends and copies it
/// in its canonical form.
///
///     for (bool more = at.Enter('{'); more; more = at.Next('}')) {
///       at.CopyKey(key);
///       at.Copy(value);
///     }
///     HIDANE_CHECK_OK(at.status());
///
/// After a fault in the text every question is answered "no" and nothing is copied, so that loops
/// end by themselves and one look at status() is enough. A copy of a cursor looks ahead. What is
/// inside a value that is copied whole is judged as by CopyValue.
class JsonCursor {
 public:
  /// REQUIRES: json readable to json.size() + kCanonicalPadding, and outlives the cursor.
  explicit JsonCursor(std::string_view json) : json_(json) {}

  /// The next token's first byte, 0 where there is none. Stands on it then: see offset().
  char Peek();
  bool PeekNull();
  size_t offset() const { return at_; }  ///< bytes read
  bool AtEnd();                          ///< nothing but white space is left

  /// Reads the opening bracket; whether a first member follows. Reads the closing one if not.
  bool Enter(char open);
  /// Reads a comma, and true, or the closing bracket, and false.
  bool Next(char close);

  /// Appends a value. A whole one or nothing.
  void Copy(CanonicalBuffer& out);
  /// Appends a member's key, with its quotes, and reads the colon.
  void CopyKey(CanonicalBuffer& out);

  /// kInvalidArgument says what is wrong and at which byte.
  Status status() const;

 private:
  bool Take(char c);
  bool Broken(const char* what);

  std::string_view json_;
  size_t at_ = 0;
  const char* wrong_ = nullptr;  // what, at at_
};

}  // namespace hidane::prompt
