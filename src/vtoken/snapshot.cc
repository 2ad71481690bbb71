#include "vtoken/snapshot.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "vtoken/digest.h"

namespace hidane::vtoken {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr uint32_t kMagic = 0x4b56'5648;  // "HVVK"
constexpr uint32_t kVersion = 1;

struct Header {
  uint32_t magic = kMagic, version = kVersion;
  uint32_t scope, units, logical_length, live, intact_tokens, zero = 0;
  uint64_t tokens, waiting, policy, rows;  // elements
  uint64_t checksum;                       // digest of all else, with this field 0
};
static_assert(sizeof(Header) == 72);

template <class T>
void Put(std::vector<std::byte>& out, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <class T>
void Take(std::span<const std::byte>& in, uint64_t n, std::vector<T>& values) {
  values.resize(n);
  if (n > 0) std::memcpy(values.data(), in.data(), n * sizeof(T));
  in = in.subspan(n * sizeof(T));
}

Result<Header> ReadHeader(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof header) {
    return Fail(Code::kInvalidArgument, fmt::format("a snapshot of {} bytes", bytes.size()));
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic || header.version != kVersion) {
    return Fail(Code::kInvalidArgument, fmt::format("a snapshot of version {}", header.version));
  }
  const uint64_t rest = bytes.size() - sizeof header;
  const auto fits = [&](uint64_t n, uint64_t size) { return n <= rest / size; };
  if (!fits(header.tokens, 4) || !fits(header.waiting, 4) || !fits(header.policy, 1) ||
      !fits(header.rows, 1) ||
      4 * (header.tokens + header.waiting) + header.policy + header.rows != rest) {
    return Fail(Code::kInvalidArgument, fmt::format("a snapshot cut to {} bytes", bytes.size()));
  }
  return header;
}

uint64_t Checksum(Header header, std::span<const std::byte> rest) {
  header.checksum = 0;
  return Digest(rest, Digest(std::as_bytes(std::span(&header, 1))));
}

}  // namespace

Status Validate(const Snapshot& s) {
  const uint64_t all = uint64_t{s.units} * s.live;
  const bool sizes =
      s.units > 0 && s.units <= kUnitsMax && s.logical_length <= kTokensMax &&
      (s.tokens.empty() || s.tokens.size() == all) &&
      (s.waiting.empty() || (s.waiting.size() == s.units && s.tokens.size() == all)) &&
      s.intact_tokens <= s.live && s.live <= s.logical_length &&
      (!s.tokens.empty() || s.live == s.logical_length || all == 0);
  if (!sizes) {
    return Fail(Code::kInvalidArgument,
                fmt::format("a snapshot of {} units with {} of {} tokens has {} token ids", s.units,
                            s.live, s.logical_length, s.tokens.size()));
  }
  for (const uint32_t token : s.tokens) {
    if (token < s.logical_length) continue;
    return Fail(Code::kInvalidArgument, fmt::format("a snapshot with token {}", token));
  }
  for (const uint32_t slot : s.waiting) {
    if (slot <= s.live) continue;
    return Fail(Code::kInvalidArgument, fmt::format("a snapshot where slot {} waits", slot));
  }
  return {};
}

std::vector<std::byte> Encode(const Snapshot& s) {
  Header header{.scope = static_cast<uint32_t>(s.scope),
                .units = s.units,
                .logical_length = s.logical_length,
                .live = s.live,
                .intact_tokens = s.intact_tokens,
                .tokens = s.tokens.size(),
                .waiting = s.waiting.size(),
                .policy = s.policy.size(),
                .rows = s.rows.size(),
                .checksum = 0};
  std::vector<std::byte> out(sizeof header);
  Put(out, s.tokens);
  Put(out, s.waiting);
  Put(out, s.policy);
  Put(out, s.rows);
  header.checksum = Checksum(header, std::span(out).subspan(sizeof header));
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

Result<Snapshot> Decode(std::span<const std::byte> bytes) {
  HIDANE_TRY(const Header header, ReadHeader(bytes));
  auto rest = bytes.subspan(sizeof header);
  if (header.checksum != Checksum(header, rest) ||
      header.scope > static_cast<uint32_t>(Scope::kKvHead)) {
    return Fail(Code::kInvalidArgument, "a snapshot with a wrong checksum");
  }
  Snapshot s{.scope = static_cast<Scope>(header.scope),
             .units = header.units,
             .logical_length = header.logical_length,
             .live = header.live,
             .intact_tokens = header.intact_tokens};
  Take(rest, header.tokens, s.tokens);
  Take(rest, header.waiting, s.waiting);
  Take(rest, header.policy, s.policy);
  Take(rest, header.rows, s.rows);
  HIDANE_CHECK_OK(Validate(s));
  return s;
}

}  // namespace hidane::vtoken
