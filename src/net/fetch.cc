#include <optional>

#include "net/client.h"

namespace hidane::net {
namespace {

Task<Result<FetchResult>> FetchOnce(ClientStream& stream, const Address& address,
                                    const RequestHead& head, std::string_view body, size_t limit,
                                    bool reuse) {
  const std::string_view pieces[] = {body};
  RequestHead copy = head;
  const Status sent = co_await stream.Send(address, std::move(copy), pieces, {}, reuse);
  if (!sent) co_return Fail(sent.error());
  auto answer = co_await stream.ReadHead();
  if (!answer) co_return Fail(answer.error());
  auto read = co_await stream.ReadAll(limit);
  if (!read) co_return Fail(read.error());
  FetchResult result{std::move(*answer), std::move(*read)};
  co_return result;
}

Task<> FetchInto(std::optional<Result<FetchResult>>& out, ClientPool& pool, const Address& address,
                 const RequestHead& head, std::string_view body, size_t limit, Duration total) {
  RequestHead copy = head;
  out = co_await Fetch(pool, address, std::move(copy), body, limit, total);
  pool.loop().Stop();
}

}  // namespace

Task<Result<FetchResult>> Fetch(ClientPool& pool, Address address, RequestHead head,
                                std::string_view body, size_t limit, Duration total) {
  std::optional<ClientStream> stream;
  bool late = false;
  Deadline deadline(pool.loop(), [&] {
    late = true;
    stream->Abort();
  });
  deadline.Arm(total);
  for (const bool reuse : {true, false}) {
    stream.emplace(pool);
    auto result = co_await FetchOnce(*stream, address, head, body, limit, reuse);
    if (late) co_return Fail(Code::kDeadlineExceeded, "no answer in time");
    if (result || stream->failure() != Failure::kStale) co_return result;
  }
  co_return Fail(Code::kUnavailable, "the connection ended without an answer");
}

Result<FetchResult> FetchBlocking(const Address& address, RequestHead head, std::string_view body,
                                  size_t limit, Duration total) {
  std::optional<Result<FetchResult>> result;
  Loop loop;
  ClientPool pool(loop, {});
  loop.Spawn(FetchInto(result, pool, address, head, body, limit, total));
  loop.Run();
  return std::move(*result);
}

}  // namespace hidane::net
