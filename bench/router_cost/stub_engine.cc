// An engine that costs nothing: answers every POST at once, with JSON or, for a path that ends in
// ?stream, with 20 SSE events, each a write of its own. One thread, plain epoll, so that what is
// measured is the proxy in front of it.
//
//   router_cost_stub PORT
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace {

struct Connection {
  std::string head;      // of the request that is being read
  size_t body_left = 0;  // bytes of its body still to come
  bool in_body = false;
};

std::string Sized(std::string_view body, std::string_view type) {
  return "HTTP/1.1 200 OK\r\nContent-Type: " + std::string(type) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

const std::string kAnswer = Sized(
    R"({"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":)"
    R"("assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,)"
    R"("completion_tokens":20,"total_tokens":120}})",
    "application/json");
const std::string kModels =
    Sized(R"({"object":"list","data":[{"id":"m","object":"model"}]})", "application/json");
const std::string kNothing = Sized("", "text/plain");

void Write(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n <= 0) return;  // the reader goes away: the next read says so
    bytes.remove_prefix(n);
  }
}

void WriteStream(int fd) {
  static const std::string event = [] {
    const std::string text =
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\","
        "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"},\"finish_reason\":null}]}\n\n";
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", text.size());
    return size + text + "\r\n";
  }();
  Write(fd,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 20; ++i) Write(fd, event);
  Write(fd, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
}

void Answer(int fd, std::string_view head) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  if (line.substr(0, 4) == "POST")
    line.find("?stream") != line.npos ? WriteStream(fd) : Write(fd, kAnswer);
  else
    Write(fd, line.find("/v1/models") != line.npos ? kModels : kNothing);
}

size_t ContentLength(std::string_view head) {
  for (const char* name : {"\r\nContent-Length: ", "\r\ncontent-length: "})
    if (const size_t at = head.find(name); at != head.npos)
      return std::strtoull(head.data() + at + 18, nullptr, 10);
  return 0;
}

void Take(int fd, Connection& c, std::string_view bytes) {
  while (!bytes.empty()) {
    if (!c.in_body) {
      c.head += bytes;
      const size_t end = c.head.find("\r\n\r\n");
      if (end == c.head.npos) return;
      bytes.remove_prefix(bytes.size() - (c.head.size() - end - 4));
      c.head.resize(end + 4);
      c.body_left = ContentLength(c.head);
      c.in_body = true;
    }
    const size_t n = std::min(c.body_left, bytes.size());
    c.body_left -= n;
    bytes.remove_prefix(n);
    if (c.body_left > 0) return;
    Answer(fd, c.head);
    c.head.clear();
    c.in_body = false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::signal(SIGPIPE, SIG_IGN);
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[1])));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 1024) != 0) {
    std::perror("router_cost_stub");
    return 3;
  }
  const int poll = ::epoll_create1(0);
  epoll_event interest{EPOLLIN, {.fd = listener}};
  ::epoll_ctl(poll, EPOLL_CTL_ADD, listener, &interest);
  std::unordered_map<int, Connection> connections;
  const auto buffer = std::make_unique<char[]>(1 << 18);
  for (;;) {
    epoll_event events[64];
    const int n = ::epoll_wait(poll, events, 64, -1);
    for (int i = 0; i < n; ++i) {
      const int fd = events[i].data.fd;
      if (fd == listener) {
        const int client = ::accept(listener, nullptr, nullptr);
        if (client < 0) continue;
        ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        interest = {EPOLLIN, {.fd = client}};
        ::epoll_ctl(poll, EPOLL_CTL_ADD, client, &interest);
        connections[client];
        continue;
      }
      const ssize_t got = ::read(fd, buffer.get(), 1 << 18);
      if (got > 0) {
        Take(fd, connections[fd], {buffer.get(), static_cast<size_t>(got)});
      } else {
        connections.erase(fd);
        ::close(fd);
      }
    }
  }
}
