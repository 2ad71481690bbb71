#include "prompt/canonical.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "prompt/escape.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "prompt/canonical.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hidane::prompt::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kStep = 64;

// One bit per byte of a step.
struct Masks {
  uint64_t quote = 0;
  uint64_t backslash = 0;
  uint64_t blank = 0;
};

// Control characters are invalid in strings and blank outside them, so one comparison finds
// the white space.
HWY_INLINE Masks Classify(const char* at) {
  const hn::CappedTag<uint8_t, kStep> d;
  const auto* bytes = reinterpret_cast<const uint8_t*>(at);
  const auto bits = [d](auto mask) {
    uint8_t stored[kStep / 8] = {};
    hn::StoreMaskBits(d, mask, stored);
    uint64_t all;
    std::memcpy(&all, stored, sizeof all);
    return all;
  };
  Masks m;
  for (size_t i = 0; i < kStep; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, bytes + i);
    m.quote |= bits(hn::Eq(v, hn::Set(d, '"'))) << i;
    m.backslash |= bits(hn::Eq(v, hn::Set(d, '\\'))) << i;
    m.blank |= bits(hn::Eq(v, hn::Min(v, hn::Set(d, ' ')))) << i;
  }
  return m;
}

HWY_INLINE void CopyStep(char* to, const char* from) {
  const hn::CappedTag<uint8_t, kStep> d;
  for (size_t i = 0; i < kStep; i += hn::Lanes(d)) {
    hn::StoreU(hn::LoadU(d, reinterpret_cast<const uint8_t*>(from) + i), d,
               reinterpret_cast<uint8_t*>(to) + i);
  }
}

// Bytes whose predecessor is an unescaped backslash. `carry`: so is the next step's first byte.
HWY_INLINE uint64_t Escaped(uint64_t backslash, bool& carry) {
  uint64_t escaped = carry ? 1 : 0;
  carry = false;
  backslash &= ~escaped;
  while (backslash != 0) {
    const uint64_t lowest = backslash & -backslash;
    carry = lowest >> 63 != 0;
    escaped |= lowest << 1;
    backslash &= ~(lowest | lowest << 1);
  }
  return escaped;
}

HWY_INLINE uint64_t PrefixXor(uint64_t x) {
  for (int shift = 1; shift < 64; shift *= 2) x ^= x << shift;
  return x;
}

struct Cursor {
  const char* from;  // first byte not yet copied
  char* to;
  HWY_INLINE void CopyUpTo(const char* end) {
    CopyStep(to, from);
    to += end - from;
  }
};

// Copies [cursor.from, step_end) without the blanks and with escapes in their one spelling.
HWY_INLINE void CopyKept(uint64_t blanks, uint64_t escapes, const char* step, const char* step_end,
                         const char* end, Cursor& cursor) {
  uint64_t events = blanks | escapes;
  while (events != 0) {
    const int bit = std::countr_zero(events);
    const char* const at = step + bit;
    if (at < cursor.from) {  // inside an escape already rewritten
      events &= events - 1;
      continue;
    }
    cursor.CopyUpTo(at);
    if (escapes >> bit & 1) {
      --cursor.to;  // the backslash
      const EscapeRewrite r = RewriteEscape(at - 1, end, cursor.to);
      cursor.to += r.written;
      cursor.from = at - 1 + r.consumed;
      events &= events - 1;
    } else {
      const uint64_t run = events + (1ull << bit);  // carries through the run of blanks
      cursor.from = at + std::countr_zero(~(blanks >> bit));
      events &= run;
    }
  }
  if (cursor.from < step_end) {
    cursor.CopyUpTo(step_end);
    cursor.from = step_end;
  }
}

size_t Canonicalise(const char* json, size_t size, char* out) {
  const char* const end = json + size;
  Cursor cursor{json, out};
  bool escape_carry = false;
  uint64_t string_carry = 0;  // all ones inside a string
  for (const char* step = json; step < end; step += kStep) {
    Masks m = Classify(step);
    const char* const step_end = std::min(step + kStep, end);
    if (step_end == end && size % kStep != 0) {
      const uint64_t valid = (1ull << size % kStep) - 1;
      m = {m.quote & valid, m.backslash & valid, m.blank & valid};
    }
    uint64_t rewrites = 0;
    if (m.backslash != 0 || escape_carry) {
      const uint64_t escaped = Escaped(m.backslash, escape_carry);
      m.quote &= ~escaped;
      for (uint64_t e = escaped; e != 0; e &= e - 1) {
        const char c = step[std::countr_zero(e)];
        if (c == 'u' || c == '/') rewrites |= e & -e;
      }
    }
    const uint64_t in_string = PrefixXor(m.quote) ^ string_carry;
    string_carry = static_cast<uint64_t>(static_cast<int64_t>(in_string) >> 63);
    CopyKept(m.blank & ~in_string, rewrites, step, step_end, end, cursor);
  }
  return cursor.to - out;
}

}  // namespace hidane::prompt::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hidane::prompt {

HWY_EXPORT(Canonicalise);

size_t Canonicalise(const char* json, size_t size, char* out) {
  return HWY_DYNAMIC_DISPATCH(Canonicalise)(json, size, out);
}

char* CanonicalBuffer::Room(size_t more) {
  const size_t wanted = size_ + more + kCanonicalPadding;
  if (bytes_.size() < wanted) bytes_.resize(std::max(wanted, 2 * bytes_.size()));
  return bytes_.data() + size_;
}

void CanonicalBuffer::AppendJson(std::string_view json) {
  char* const to = Room(json.size());
  size_ += Canonicalise(json.data(), json.size(), to);
}

void CanonicalBuffer::AppendRaw(std::string_view bytes) {
  std::memcpy(Room(bytes.size()), bytes.data(), bytes.size());
  size_ += bytes.size();
}

}  // namespace hidane::prompt
#endif
