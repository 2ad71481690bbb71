#include "prompt/canonical.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "prompt/escape.h"
#include "prompt/selections.h"

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
  uint64_t control = 0;  // below the space
  uint64_t blank = 0;    // the space too
  uint64_t open = 0;
  uint64_t close = 0;
};

template <class D, class M>
HWY_INLINE uint64_t Bits(D d, M mask) {
  hwy::UnsignedFromSize<std::max<size_t>(1, hn::MaxLanes(D()) / 8)> bits = 0;
  hn::StoreMaskBits(d, mask, reinterpret_cast<uint8_t*>(&bits));
  return bits;
}

// Control characters are invalid in strings and blank outside them, so one comparison finds
// the white space. [ and { differ from each other by one bit, as ] and } do.
HWY_INLINE Masks Classify(const char* at) {
  const hn::CappedTag<uint8_t, kStep> d;
  Masks m;
  HWY_UNROLL(4)
  for (size_t i = 0; i < kStep; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, reinterpret_cast<const uint8_t*>(at) + i);
    const auto folded = hn::Or(v, hn::Set(d, '{' ^ '['));
    m.quote |= Bits(d, hn::Eq(v, hn::Set(d, '"'))) << i;
    m.backslash |= Bits(d, hn::Eq(v, hn::Set(d, '\\'))) << i;
    m.control |= Bits(d, hn::Eq(v, hn::Min(v, hn::Set(d, ' ' - 1)))) << i;
    m.blank |= Bits(d, hn::Eq(v, hn::Min(v, hn::Set(d, ' ')))) << i;
    m.open |= Bits(d, hn::Eq(folded, hn::Set(d, '{'))) << i;
    m.close |= Bits(d, hn::Eq(folded, hn::Set(d, '}'))) << i;
  }
  return m;
}

// Of the text's last step: what lies behind its end doesn't count.
HWY_INLINE void Cut(ptrdiff_t bytes, Masks& m) {
  const uint64_t valid = (uint64_t{1} << bytes) - 1;
  m.quote &= valid;
  m.backslash &= valid;
  m.open &= valid;
  m.close &= valid;
}

HWY_INLINE void CopyStep(char* to, const char* from) {
  const hn::CappedTag<uint8_t, kStep> d;
  HWY_UNROLL(4)
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

// Those of them whose escape has another spelling.
HWY_INLINE uint64_t Rewrites(uint64_t escaped, const char* step) {
  uint64_t rewrites = 0;
  for (; escaped != 0; escaped &= escaped - 1) {
    const char c = step[std::countr_zero(escaped)];
    if (c == 'u' || c == '/') rewrites |= escaped & -escaped;
  }
  return rewrites;
}

// Bit i of the result: the parity of bits 0 to i, a carry-less product with all ones.
HWY_INLINE uint64_t PrefixXor(uint64_t x) {
#if HWY_TARGET == HWY_SCALAR
  for (int shift = 1; shift < 64; shift *= 2) x ^= x << shift;
  return x;
#else
  const hn::FixedTag<uint64_t, 2> d;
  return hn::GetLane(hn::CLMulLower(hn::Set(d, x), hn::Set(d, ~uint64_t{0})));
#endif
}

// Bits of this step up to and with the one that brings `depth` back to 0; 0 while none does.
HWY_INLINE int EndOfValue(uint64_t opens, uint64_t closes, int64_t& depth) {
  if (std::popcount(closes) >= depth) {
    for (uint64_t rest = closes; rest != 0; rest &= rest - 1) {
      const uint64_t upto = rest ^ (rest - 1);
      if (depth + std::popcount(opens & upto) == std::popcount(closes & upto))
        return std::popcount(upto);
    }
  }
  depth += std::popcount(opens) - std::popcount(closes);
  return 0;
}

// The bytes of `from` whose bits are set in `kept`, close together; returns behind the last.
HWY_INLINE char* CopySelected(uint64_t kept, const char* from, char* to) {
#if HWY_TARGET == HWY_SCALAR
  for (; kept != 0; kept &= kept - 1) *to++ = from[std::countr_zero(kept)];
#else
  const hn::FixedTag<uint8_t, 8> d;
  HWY_UNROLL(8)
  for (size_t i = 0; i < kStep; i += 8) {
    const uint64_t bits = kept >> i & 0xff;
    const auto order = hn::LoadU(d, kSelections[bits].data());
    const auto bytes = hn::LoadU(d, reinterpret_cast<const uint8_t*>(from) + i);
    hn::StoreU(hn::TableLookupBytes(bytes, order), d, reinterpret_cast<uint8_t*>(to));
    to += std::popcount(bits);
  }
#endif
  return to;
}

struct Cursor {
  const char* from;  // first byte not yet copied
  char* to;
  HWY_INLINE void CopyUpTo(const char* end) {
    CopyStep(to, from);
    to += end - from;
  }
};

// Copies a step without the blanks.
HWY_INLINE void CopyWhole(uint64_t blanks, const char* step, Cursor& cursor) {
  if (blanks == 0) {
    CopyStep(cursor.to, step);
    cursor.to += kStep;
  } else {
    cursor.to = CopySelected(~blanks, step, cursor.to);
  }
  cursor.from = step + kStep;
}

// Copies [cursor.from, step_end) without the blanks.
HWY_INLINE void CopyKept(uint64_t blanks, const char* step, const char* step_end, Cursor& cursor) {
  if (cursor.from >= step_end) return;  // all inside an escape already rewritten
  blanks &= ~uint64_t{0} << (cursor.from - step);
  while (blanks != 0) {
    const int bit = std::countr_zero(blanks);
    cursor.CopyUpTo(step + bit);
    const uint64_t run = blanks + (uint64_t{1} << bit);  // carries through the run
    cursor.from = step + bit + std::countr_zero(~(blanks >> bit));
    blanks &= run;
  }
  if (cursor.from < step_end) {
    cursor.CopyUpTo(step_end);
    cursor.from = step_end;
  }
}

// The same for a step where escapes have to be rewritten; `escapes` are the bytes behind their
// backslashes.
HWY_NOINLINE void CopyRewritten(uint64_t blanks, uint64_t escapes, const char* step,
                                const char* step_end, const char* end, Cursor& cursor) {
  for (; escapes != 0; escapes &= escapes - 1) {
    const int bit = std::countr_zero(escapes);
    const char* const at = step + bit;
    if (at < cursor.from) continue;  // the second half of a pair
    CopyKept(blanks & ((uint64_t{1} << bit) - 1), step, at, cursor);
    --cursor.to;  // the backslash
    const EscapeRewrite r = RewriteEscape(at - 1, end, cursor.to);
    cursor.to += r.written;
    cursor.from = at - 1 + r.consumed;
  }
  CopyKept(blanks, step, step_end, cursor);
}

// `kText`: the value is a string, else an object or an array.
template <bool kText>
HWY_INLINE Copied Copy(const char* json, size_t size, char* out) {
  const char* const end = json + size;
  Cursor cursor{json, out};
  bool escape_carry = false;
  uint64_t string_carry = 0;  // all ones inside a string
  int64_t depth = 0;          // a string counts as a bracket
  for (const char* step = json; step < end; step += kStep) {
    Masks m = Classify(step);
    if (end - step < ptrdiff_t{kStep}) Cut(end - step, m);
    uint64_t rewrites = 0;
    if (m.backslash != 0 || escape_carry) {
      const uint64_t escaped = Escaped(m.backslash, escape_carry);
      m.quote &= ~escaped;
      rewrites = Rewrites(escaped, step);
    }
    const uint64_t in_string = PrefixXor(m.quote) ^ string_carry;
    string_carry = static_cast<uint64_t>(static_cast<int64_t>(in_string) >> 63);
    const uint64_t opens = kText ? m.quote & in_string : m.open & ~in_string;
    const uint64_t closes = kText ? m.quote & ~in_string : m.close & ~in_string;
    const uint64_t blanks = kText ? 0 : m.blank & ~in_string;
    const uint64_t control = m.control & in_string;
    const int last = EndOfValue(opens, closes, depth);
    if ((control | rewrites) == 0 && last == 0 && cursor.from == step) {
      CopyWhole(blanks, step, cursor);
      continue;
    }
    const char* const step_end = last != 0 ? step + last : std::min(step + kStep, end);
    const uint64_t mine = last == 0 ? ~uint64_t{0} : ~uint64_t{0} >> (kStep - last);
    if ((control & mine) != 0) return {};
    CopyRewritten(blanks & mine, rewrites & mine, step, step_end, end, cursor);
    if (last != 0)
      return {static_cast<size_t>(step_end - json), static_cast<size_t>(cursor.to - out)};
  }
  return {};
}

Copied CopyString(const char* json, size_t size, char* out) {
  return Copy<true>(json, size, out);
}
Copied CopyBrackets(const char* json, size_t size, char* out) {
  return Copy<false>(json, size, out);
}

}  // namespace hidane::prompt::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hidane::prompt {

namespace {

HWY_EXPORT(CopyString);
HWY_EXPORT(CopyBrackets);

// true, null, a number, or what stands in the place of one.
Copied CopyScalar(const char* json, size_t size, char* out) {
  size_t n = 0;
  while (n < size && static_cast<unsigned char>(json[n]) > ' ' &&
         std::strchr(",:\"[]{}", json[n]) == nullptr)
    ++n;
  std::memcpy(out, json, n);
  return {n, n};
}

}  // namespace

Copied CopyValue(const char* json, size_t size, char* out) {
  if (size == 0) return {};
  if (*json == '"') return HWY_DYNAMIC_DISPATCH(CopyString)(json, size, out);
  if (*json == '{' || *json == '[') return HWY_DYNAMIC_DISPATCH(CopyBrackets)(json, size, out);
  return CopyScalar(json, size, out);
}

char* CanonicalBuffer::Room(size_t more) {
  const size_t wanted = size_ + more + kCanonicalPadding;
  if (bytes_.size() < wanted) bytes_.resize(std::max(wanted, 2 * bytes_.size()));
  return bytes_.data() + size_;
}

size_t CanonicalBuffer::AppendValue(std::string_view json) {
  const Copied copied = CopyValue(json.data(), json.size(), Room(json.size()));
  size_ += copied.written;
  return copied.read;
}

void CanonicalBuffer::AppendRaw(std::string_view bytes) {
  std::memcpy(Room(bytes.size()), bytes.data(), bytes.size());
  size_ += bytes.size();
}

}  // namespace hidane::prompt
#endif
