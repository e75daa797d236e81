// A connection to a server on this machine that sends what it is given, right or wrong.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace snug::testing {

class RawClient {
 public:
  explicit RawClient(int64_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // the server closed the connection
      text.remove_prefix(static_cast<size_t>(sent));
    }
  }

  // Reads until the text is there, or the server has closed the connection. Returns all so far.
  const std::string& read_to(std::string_view text) {
    while (read_.find(text) == std::string::npos && read_more()) continue;
    return read_;
  }
  // Reads until the server closes the connection.
  const std::string& read_all() {
    while (read_more()) continue;
    return read_;
  }

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

 private:
  bool read_more() {
    constexpr int kPatienceMilliseconds = 20000;
    pollfd descriptor{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&descriptor, 1, kPatienceMilliseconds) <= 0) {
      ADD_FAILURE() << "the server says nothing more after: " << read_;
      return false;
    }
    std::string part(4096, '\0');
    const ssize_t got = ::recv(socket_, part.data(), part.size(), 0);
    if (got > 0) read_.append(part, 0, static_cast<size_t>(got));
    return got > 0;
  }

  int socket_;
  std::string read_{};
};

inline std::string post_text(std::string_view path, std::string_view body,
                             std::string_view headers = "Connection: close\r\n") {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{}Content-Length: "
      "{}\r\n\r\n{}",
      path, headers, body.size(), body);
}

inline std::string get_text(std::string_view path,
                            std::string_view headers = "Connection: close\r\n") {
  return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", path, headers);
}

// The whole answer to one request.
inline std::string answer_to(int64_t port, const std::string& request) {
  RawClient client(port);
  client.send(request);
  return client.read_all();
}

inline int status_of(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9, 3)) : 0;
}

// What follows the headers; chunks are joined.
inline std::string body_of(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  if (end == std::string::npos) return "";
  std::string rest = answer.substr(end + 4);
  if (answer.substr(0, end).find("chunked") == std::string::npos) return rest;
  std::string body;
  for (size_t at = 0; at < rest.size();) {
    const size_t line = rest.find("\r\n", at);
    if (line == std::string::npos) break;
    const size_t size = std::stoul(rest.substr(at, line - at), nullptr, 16);
    body += rest.substr(line + 2, size);
    at = line + 2 + size + 2;
  }
  return body;
}

}  // namespace snug::testing
