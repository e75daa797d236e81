// Connections and their limits, with a handler that says what it was asked.
#include "serve/http_server.h"

#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "raw_client.h"

namespace snug::testing {
namespace {

using serve::HttpAnswer;
using serve::HttpLimits;
using serve::HttpRequest;
using serve::HttpServer;
using serve::SendPiece;

HttpLimits quick_limits() {
  HttpLimits limits;
  limits.max_connections = 2;
  limits.max_body_bytes = 10000;
  limits.max_header_bytes = 2000;
  limits.header_seconds = 0.3;
  limits.body_seconds = 0.3;
  return limits;
}

class HttpServerTest : public ::testing::Test {
 protected:
  HttpAnswer answer(const HttpRequest& request) {
    if (request.is_crowd) return {.status = 429, .body = "crowd"};
    if (request.path != "/stream")
      return {.body = fmt::format("{} {} {}", request.method, request.path, request.body.size())};
    HttpAnswer answer;
    answer.stream = [this, is_cut = request.is_cut](const SendPiece& send) {
      while (send("piece ")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      is_told_of_cut_ = is_cut();
    };
    return answer;
  }

  HttpServer server_{quick_limits(),
                     [this](const HttpRequest& request) { return answer(request); }};
  const int64_t port_ = server_.start("127.0.0.1", 0);
  std::atomic<bool> is_told_of_cut_ = false;
};

TEST_F(HttpServerTest, AnswersRequestsOfOneConnectionInTurn) {
  RawClient client(port_);
  client.send(get_text("/a", ""));
  EXPECT_EQ(status_of(client.read_to("GET /a 0")), 200);
  client.send(post_text("/b?c=d", "body", ""));
  EXPECT_NE(client.read_to("POST /b 4").find("POST /b 4"), std::string::npos);
  client.send(
      "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: "
      "close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_NE(client.read_all().find("POST /c 5"), std::string::npos);
}

// How many connections may wait until the server takes them: the kernel's own figure of the socket
// that listens.
int64_t listening_room(int64_t port) {
  constexpr int kMostDescriptors = 1024;
  for (int socket = 0; socket < kMostDescriptors; ++socket) {
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
      continue;
    sockaddr_in address{};
    size = sizeof address;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    if (ntohs(address.sin_port) != port) continue;
    tcp_info info{};
    size = sizeof info;
    ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size);
    return info.tcpi_sacked;
  }
  return -1;
}

TEST_F(HttpServerTest, LosesNoneOfManyThatComeAtOneTime) { EXPECT_GE(listening_room(port_), 128); }

TEST_F(HttpServerTest, CutsOffWhoSendsSlowlyOrTooMuch) {
  EXPECT_EQ(status_of(answer_to(port_, post_text("/", std::string(10001, 'x')))), 413);
  EXPECT_EQ(status_of(answer_to(port_, get_text(std::string(1, '/') + std::string(600, 'a')))),
            414);
  EXPECT_NE(status_of(answer_to(port_, get_text("/", "X: " + std::string(3000, 'a') + "\r\n"))),
            200);
  EXPECT_EQ(status_of(answer_to(port_, post_text("/", "x",
                                                 "Content-Encoding: gzip\r\n"
                                                 "Connection: close\r\n"))),
            415);
  // The library looks for ranges before anybody can refuse them, which takes a stack for many.
  const auto is_cut_off = [&](const std::string& ranges) {
    const std::string answer =
        answer_to(port_, get_text("/", "rAnGe: bytes=0-1" + ranges + "\r\nConnection: close\r\n"));
    EXPECT_EQ(status_of(answer), 400);
    return answer.find("no request that can be read") != std::string::npos;
  };
  EXPECT_FALSE(is_cut_off(",2-3"));
  EXPECT_TRUE(is_cut_off(std::string(120, '1')));
  // Chunks have no length that could be refused before they are read.
  std::string chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 40; ++i) chunked += "400\r\n" + std::string(1024, 'x') + "\r\n";
  EXPECT_NE(status_of(answer_to(port_, chunked + "0\r\n\r\n")), 200);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NE(status_of(answer_to(port_, "GET / HTTP/1.1\r\nHost: ")), 200);
  EXPECT_NE(status_of(answer_to(port_, "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab")), 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(HttpServerTest, TellsThoseThatAreTooMany) {
  RawClient first(port_);
  RawClient second(port_);
  first.send(get_text("/stream"));
  second.send(get_text("/stream"));
  first.read_to("piece");
  second.read_to("piece");
  EXPECT_EQ(server_.connections(), 2);
  EXPECT_EQ(status_of(answer_to(port_, get_text("/"))), 429);
  // One that goes is noticed, and gives its place to another.
  first.close();
  for (int i = 0; i < 400 && !is_told_of_cut_; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(is_told_of_cut_);
  for (int i = 0; i < 400 && server_.connections() > 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(status_of(answer_to(port_, get_text("/"))), 200);
  server_.stop();
  second.read_all();
}

}  // namespace
}  // namespace snug::testing
