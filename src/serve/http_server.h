// HTTP, as far as a server of a model needs it: connections with limits, and one handler for all
// requests. The library behind it (cpp-httplib) is seen by http_server.cpp alone.
//
// A thread serves a connection for as long as it is open. Of more connections than
// `max_connections` one at a time is told so and closed. A connection that says nothing gives its
// place to one that waits. Whoever sends slowly, sends too much or reads too slowly is cut off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace snug::serve {

struct HttpRequest {
  std::string method{};
  std::string path{};           // without what follows a question mark
  std::string authorization{};  // the header of that name
  std::string origin{};         // the page of a browser that asks; empty: none does
  std::string host{};           // by which name the server was asked for
  std::string_view body{};      // valid until the handler returns
  bool is_crowd = false;        // there are more connections than there may be: refuse it
  // Whether the other side has closed the connection. Valid until the answer has been sent.
  std::function<bool()> is_cut{};
};

// Sends a piece of an answer. False: the other side is gone, and nothing more can be sent.
using SendPiece = std::function<bool(std::string_view)>;

struct HttpAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::function<void(const SendPiece&)> stream{};  // in place of a body
};

// Called on many threads at once.
using HttpHandler = std::function<HttpAnswer(const HttpRequest&)>;

struct HttpLimits {
  int64_t max_connections = 64;
  int64_t max_body_bytes = 1 << 20;
  int64_t max_header_bytes = 32 << 10;
  double header_seconds = 10;      // from the first byte to the end of the headers
  double body_seconds = 60;        // for the rest of the request
  double write_seconds = 30;       // in which the other side takes something of what is sent
  double keep_alive_seconds = 30;  // without a word
};

class HttpServer {
 public:
  HttpServer(const HttpLimits& limits, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Listens from now on, on the port that it returns; `port` 0: any that is free. Throws UserError
  // where that is not possible.
  int64_t start(const std::string& host, int64_t port);
  // Takes no more connections, cuts those that are open, and waits until their threads have ended.
  void stop();
  // Those that are open now.
  int64_t connections() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace snug::serve
