#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "net/http1.h"
#include "net/server.h"
#include "net/tcp.h"

namespace hidane::net {

class Connection;
using ConnectionHook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

/// What the connections of one server share.
struct ServerCore {
  ServerCore(Loop& l, Handler h, const ServerOptions& o)
      : loop(l), handler(std::move(h)), options(o), slot_free(l), drained(l) {}

  std::string_view Date();  ///< for a head, of this second

  Loop& loop;
  const Handler handler;
  const ServerOptions options;
  bool draining = false, listening = true;
  boost::intrusive::list<Connection, boost::intrusive::base_hook<ConnectionHook>,
                         boost::intrusive::constant_time_size<false>>
      connections;
  size_t count = 0;
  Event slot_free, drained;
  SpareBuffers spare{1 << 20};    // to read into; an idle connection holds none
  SpareBuffers bodies{32 << 20};  // of those large enough for their pages to cost

 private:
  int64_t date_second_ = -1;
  std::string date_;
};

/// One HTTP/1.1 connection: reads a request, runs the handler, keeps or ends the connection.
///
///     head ─> handler ─> rest of the body read away ─> next head
///       └ refused ──────────────┴──> last answer, linger, close
class Connection final : public Exchange, public ConnectionHook {
 public:
  /// Serves it to its end.
  static Task<> Serve(std::unique_ptr<Connection> connection);

  Connection(std::shared_ptr<ServerCore> core, int fd, const Address& peer);
  ~Connection();
  void Cut() { stream_.Close(); }
  void CloseIfIdle();

  // Exchange
  const RequestHead& head() const override { return head_; }
  const Address& peer() const override { return peer_; }
  Loop& loop() override { return core_->loop; }
  Task<Result<Buffer>> ReadBody(size_t limit) override;
  void TakeBack(Buffer body) override;
  Task<Status> Respond(ResponseHead head, std::string_view body) override;
  void WriteHead(ResponseHead head) override;
  Task<Status> Write(std::string_view bytes) override;
  Task<Status> Flush() override;
  Task<Status> Finish(std::string_view last) override;
  void Abort() override;
  bool head_sent() const override { return answer_ != Answer::kNone; }
  bool disconnected() const override { return stream_.hung_up(); }
  void OnDisconnect(std::function<void()> fn) override { stream_.OnHangUp(std::move(fn)); }

 private:
  enum class Answer : uint8_t { kNone, kStreaming, kDone, kAborted };
  using Pieces = std::array<iovec, 4>;

  Task<> Run();
  Task<bool> ReadHead();
  void BeginExchange();
  Task<bool> EndExchange();
  Task<> Refuse(HttpError error);
  Task<> Linger();

  Task<Status> Fill();  // more bytes into in_; waits
  Task<Status> SendContinue();
  Task<Status> ReadLength(Buffer& body);
  Task<Status> ReadChunked(Buffer& body, size_t limit);
  Task<Status> FillBody();  // Fill under the minimum rate
  Task<Status> BodyWait();  // until readable, under the minimum rate
  Status CheckRate();       // at the end of a window
  Task<bool> DrainBody();

  void AppendHead(const ResponseHead& head, std::optional<uint64_t> size);
  static iovec Piece(std::string_view bytes);
  Task<Status> WriteAll(std::span<iovec> pieces);  // which live until it returns
  Task<Status> WriteBody(std::string_view bytes, bool last);
  Status Dead(Code code, std::string_view what);
  std::string_view unread() const { return in_.view().substr(at_); }
  void Consume(size_t n);

  std::shared_ptr<ServerCore> core_;
  TcpStream stream_;
  const Address peer_;
  Buffer in_;
  size_t at_ = 0;  // in_ is used up to here
  HeadScanner scanner_;

  // Of the request at hand.
  RequestHead head_;
  RequestMeta meta_;
  bool idle_ = true, continue_sent_ = false, body_done_ = true, close_ = false, dead_ = false;
  uint64_t body_left_ = 0;     // with Framing::kLength
  uint64_t window_bytes_ = 0;  // of the body, in the window at hand
  ChunkedDecoder chunked_;

  // Of its answer.
  Answer answer_ = Answer::kNone;
  SendFraming out_framing_;
  bool no_body_ = false;
  uint64_t out_left_ = 0;  // with Framing::kLength
  std::string out_;        // framing that waits to go out with the next bytes
  unsigned reads_ = 0;
};

}  // namespace hidane::net
