#include "serve/http_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <type_traits>

#include "base/error.h"

namespace snug::serve {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kReadBytes = 16 << 10;
constexpr int kPollMilliseconds = 100;
constexpr double kFirstPatienceSeconds = 1;
constexpr size_t kMaxPathBytes = 512;
constexpr int kTooLarge = 413;
constexpr int kClosedByClient = 499;

SteadyClock::time_point seconds_from_now(double seconds) {
  return SteadyClock::now() +
         std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds));
}

bool polls(int socket, short what, int milliseconds) {
  pollfd descriptor{.fd = socket, .events = what, .revents = 0};
  return ::poll(&descriptor, 1, milliseconds) > 0;
}

// A connection, as the library reads and writes it, with limits on the bytes of a request and on
// the time that it takes.
class Connection final : public httplib::Stream {
 public:
  Connection(int socket, const HttpLimits& limits, const std::atomic<bool>& is_stopping)
      : socket_(socket), limits_(limits), is_stopping_(is_stopping) {}

  // Waits for the first byte of a request; false: there is none. After `patience` seconds it asks
  // whether it has to give way.
  bool begin_request(double patience, const std::function<bool()>& gives_way) {
    const SteadyClock::time_point end = seconds_from_now(limits_.keep_alive_seconds);
    const SteadyClock::time_point asks = seconds_from_now(patience);
    while (at_ == held_.size() && !polls(socket_, POLLIN, kPollMilliseconds)) {
      const SteadyClock::time_point now = SteadyClock::now();
      if (now > end || is_stopping_ || (now > asks && gives_way())) return false;
    }
    in_headers_ = true;
    end_of_line_ = 0;
    line_bytes_ = 0;
    of_range_ = 0;
    header_bytes_ = 0;
    body_bytes_ = 0;
    deadline_ = seconds_from_now(limits_.header_seconds);
    return true;
  }

  // Whether the other side has closed the connection, or its half of it.
  bool is_cut() const { return is_stopping_ || polls(socket_, POLLRDHUP, 0); }

  // Reads on for a moment what nobody wants: where a connection is closed before that, the other
  // side may never see what it was answered.
  void read_out() {
    constexpr double kSeconds = 1;
    ::shutdown(socket_, SHUT_WR);
    const SteadyClock::time_point end = seconds_from_now(kSeconds);
    held_.resize(kReadBytes);
    while (SteadyClock::now() < end && !is_stopping_)
      if (polls(socket_, POLLIN, kPollMilliseconds) &&
          ::recv(socket_, held_.data(), held_.size(), 0) <= 0)
        return;
  }

  bool is_readable() const override { return at_ < held_.size() || polls(socket_, POLLIN, 0); }
  bool is_writable() const override { return !is_cut(); }

  ssize_t read(char* data, size_t size) override {
    if (at_ == held_.size() && !fill()) return -1;
    size_t taken = 0;
    while (taken < size && at_ < held_.size()) {
      const char byte = held_[at_];
      if (!count(byte)) return -1;
      data[taken++] = byte;
      ++at_;
    }
    return static_cast<ssize_t>(taken);
  }

  ssize_t write(const char* data, size_t size) override {
    size_t sent = 0;
    while (sent < size) {
      const ssize_t more = ::send(socket_, data + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (more > 0) {
        sent += static_cast<size_t>(more);
      } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        return -1;
      } else if (!polls(socket_, POLLOUT, static_cast<int>(limits_.write_seconds * 1000))) {
        return -1;
      }
    }
    return static_cast<ssize_t>(size);
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  socket_t socket() const override { return socket_; }

 private:
  bool fill() {
    while (!polls(socket_, POLLIN, kPollMilliseconds))
      if (SteadyClock::now() > deadline_ || is_stopping_) return false;
    if (SteadyClock::now() > deadline_) return false;
    held_.resize(kReadBytes);
    at_ = 0;
    const ssize_t got = ::recv(socket_, held_.data(), held_.size(), 0);
    held_.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return got > 0;
  }

  // Counts a byte of the request; false: there are more than there may be. Headers end with an
  // empty line. A body in chunks has the bytes between its chunks, too.
  bool count(char byte) {
    if (!in_headers_) return ++body_bytes_ <= 2 * limits_.max_body_bytes + kChunkAllowance;
    if (byte == '\n') ++end_of_line_;
    if (byte != '\n' && byte != '\r') end_of_line_ = 0;
    if (end_of_line_ == 2) {
      in_headers_ = false;
      deadline_ = seconds_from_now(limits_.body_seconds);
    }
    return ++header_bytes_ <= limits_.max_header_bytes && !is_long_range(byte);
  }

  // Whether the byte makes the header Range longer than it may be. The library looks for ranges,
  // before anybody can refuse them, by a recursion that takes half a KiB of the stack for each
  // byte.
  bool is_long_range(char byte) {
    constexpr std::string_view kName = "range:";
    if (byte == '\n') {
      line_bytes_ = of_range_ = 0;
      return false;
    }
    if (of_range_ == line_bytes_ && of_range_ < kName.size() &&
        std::tolower(static_cast<unsigned char>(byte)) == kName[of_range_])
      ++of_range_;
    return ++line_bytes_ > kMaxRangeBytes && of_range_ == kName.size();
  }

  static constexpr int64_t kChunkAllowance = 4096;
  static constexpr size_t kMaxRangeBytes = 128;

  const int socket_;
  const HttpLimits& limits_;
  const std::atomic<bool>& is_stopping_;
  std::string held_{};
  size_t at_ = 0;
  bool in_headers_ = true;
  int end_of_line_ = 0;
  size_t line_bytes_ = 0;  // of a header so far
  size_t of_range_ = 0;    // of them those with which "range:" begins
  int64_t header_bytes_ = 0;
  int64_t body_bytes_ = 0;
  SteadyClock::time_point deadline_{};
};

// The connection that this thread serves, whether it is one too many, and whether its request has
// been read as a whole: of another one the rest is still to come, and is no request.
thread_local Connection* served_connection = nullptr;
thread_local bool is_of_crowd = false;
thread_local bool is_read_whole = false;

// Threads for connections: one for each that may be open, begun when it is needed, and one more,
// which tells the others that there are too many.
class ConnectionThreads final : public httplib::TaskQueue {
 public:
  using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));

  ConnectionThreads(int64_t count, std::atomic<int64_t>& open) : count_(count), open_(open) {
    crowd_ = std::thread([this] { serve(refused_, true); });
  }

  Enqueued enqueue(std::function<void()> serve_one) override {
    {
      const std::lock_guard lock(mutex_);
      if (busy_ + std::ssize(waiting_) < count_) {
        waiting_.push_back(std::move(serve_one));
        if (busy_ + std::ssize(waiting_) > std::ssize(threads_))
          threads_.emplace_back([this] { serve(waiting_, false); });
      } else {
        refused_.push_back(std::move(serve_one));
      }
    }
    changed_.notify_all();
    return static_cast<Enqueued>(true);  // newer libraries ask whether it was taken
  }

  // Connections wait to be served, so that one that says nothing has to go.
  bool has_crowd() const {
    const std::lock_guard lock(mutex_);
    return !refused_.empty();
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    crowd_.join();
  }

 private:
  using Waiting = std::deque<std::function<void()>>;

  void serve(Waiting& from, bool is_crowd) {
    is_of_crowd = is_crowd;
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !from.empty() || is_ending_; });
      if (from.empty()) return;
      const std::function<void()> serve_one = std::move(from.front());
      from.pop_front();
      if (!is_crowd) ++busy_;
      ++open_;
      lock.unlock();
      serve_one();
      lock.lock();
      --open_;
      if (!is_crowd) --busy_;
    }
  }

  const int64_t count_;
  std::atomic<int64_t>& open_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Waiting waiting_{};
  Waiting refused_{};
  std::vector<std::thread> threads_{};
  std::thread crowd_;
  int64_t busy_ = 0;
  bool is_ending_ = false;
};

// The library's server, with connections of our own.
class LimitedServer final : public httplib::Server {
 public:
  LimitedServer(const HttpLimits& limits, const std::atomic<bool>& is_stopping,
                std::atomic<int64_t>& open)
      : limits_(limits), is_stopping_(is_stopping) {
    new_task_queue = [this, &open]() -> httplib::TaskQueue* {
      return threads_ = new ConnectionThreads(limits_.max_connections, open);
    };
  }

 private:
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket, limits_, is_stopping_);
    served_connection = &connection;
    const auto gives_way = [this] { return is_of_crowd || threads_->has_crowd(); };
    bool is_closed = false;
    bool is_good = true;
    bool is_first = true;
    is_read_whole = true;
    // A connection has a moment for its first request, however many wait.
    while (is_good && !is_closed &&
           connection.begin_request(is_first ? kFirstPatienceSeconds : 0, gives_way)) {
      is_first = false;
      is_read_whole = false;
      is_good = process_request(connection, is_of_crowd || is_stopping_, is_closed,
                                [](httplib::Request&) {});
      if (is_of_crowd || !is_read_whole) break;
    }
    served_connection = nullptr;
    if (!is_read_whole) connection.read_out();
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return is_good;
  }

  const HttpLimits limits_;
  const std::atomic<bool>& is_stopping_;
  ConnectionThreads* threads_ = nullptr;  // the library's
};

HttpRequest request_of(const httplib::Request& of_library) {
  HttpRequest request;
  request.method = of_library.method;
  request.path = of_library.path;
  request.authorization = of_library.get_header_value("Authorization");
  request.origin = of_library.get_header_value("Origin");
  request.host = of_library.get_header_value("Host");
  request.body = of_library.body;
  request.is_crowd = is_of_crowd;
  request.is_cut = [connection = served_connection] { return connection->is_cut(); };
  return request;
}

void fill_in(HttpAnswer answer, httplib::Response& of_library) {
  of_library.status = answer.status;
  for (const auto& [name, value] : answer.headers) of_library.set_header(name, value);
  if (!answer.stream) {
    of_library.set_content(answer.body, answer.type);
    return;
  }
  of_library.set_header("Cache-Control", "no-cache");
  of_library.set_chunked_content_provider(
      answer.type, [stream = std::move(answer.stream)](size_t, httplib::DataSink& sink) {
        bool is_whole = true;
        stream([&](std::string_view piece) {
          is_whole = is_whole && sink.is_writable() && sink.write(piece.data(), piece.size());
          return is_whole;
        });
        if (is_whole) sink.done();
        return is_whole;
      });
}

std::string error_text(std::string_view why) {
  return fmt::format(R"({{"error":{{"message":"{}","type":"invalid_request_error",)"
                     R"("param":null,"code":null}}}})",
                     why);
}

// What the library would do with these headers has no place here: it unpacks a body to any size,
// and repeats an answer for every range.
bool is_refused(const httplib::Request& request, httplib::Response& response) {
  const auto refuse = [&](int status, std::string_view why) {
    response.status = status;
    response.set_content(error_text(why), "application/json");
    return true;
  };
  if (request.path.size() > kMaxPathBytes) return refuse(414, "the path is too long");
  if (request.has_header("Content-Encoding"))
    return refuse(415, "a body is read as it is: leave out Content-Encoding");
  if (request.has_header("Range")) return refuse(400, "answers are whole: leave out Range");
  if (request.is_multipart_form_data())
    return refuse(415, "the body is a JSON object: send Content-Type: application/json");
  return false;
}

}  // namespace

struct HttpServer::State {
  State(const HttpLimits& of_connections, HttpHandler of_requests)
      : handler(std::move(of_requests)), server(of_connections, is_stopping, open) {}

  std::atomic<bool> is_stopping = false;
  std::atomic<int64_t> open = 0;
  HttpHandler handler;
  LimitedServer server;
  std::thread listener{};
};

HttpServer::HttpServer(const HttpLimits& limits, HttpHandler handler)
    : state_(std::make_unique<State>(limits, std::move(handler))) {
  httplib::Server& server = state_->server;
  const auto handle = [state = state_.get()](const httplib::Request& request,
                                             httplib::Response& response) {
    is_read_whole = true;
    fill_in(state->handler(request_of(request)), response);
  };
  server.set_payload_max_length(static_cast<size_t>(limits.max_body_bytes));
  server.set_tcp_nodelay(true);
  server.set_keep_alive_max_count(1000);
  server.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    return is_refused(request, response) ? httplib::Server::HandlerResponse::Handled
                                         : httplib::Server::HandlerResponse::Unhandled;
  });
  server.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty() || response.status == kClosedByClient) return;
    response.set_content(error_text(response.status == kTooLarge
                                        ? "the body is larger than this server takes; more than "
                                          "8192 bytes need Content-Type: application/json"
                                        : "this is no request that can be read"),
                         "application/json");
  });
  server.Get("/.*", handle).Post("/.*", handle).Delete("/.*", handle).Options("/.*", handle);
  server.Put("/.*", handle).Patch("/.*", handle);
}

HttpServer::~HttpServer() { stop(); }

int64_t HttpServer::start(const std::string& host, int64_t port) {
  httplib::Server& server = state_->server;
  // A port that was just in use may be taken again; two servers never share one.
  socket_t last_socket = -1;
  server.set_socket_options([&last_socket](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    last_socket = socket;
  });
  const int64_t bound =
      port == 0 ? server.bind_to_any_port(host)
                : (server.bind_to_port(host, static_cast<int>(port)) ? port : int64_t{-1});
  if (bound < 0)
    base::throw_user_error(
        "nothing can listen on {}:{}: the port is in use, or the address is not this machine's; "
        "choose another with port= (0: any that is free) or host=",
        host, port);
  // The library lets five connections wait to be taken: of more that come at one time some would be
  // lost, each after a minute in which its client believes that it is connected.
  ::listen(last_socket, SOMAXCONN);
  state_->listener = std::thread([&server] { server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return bound;
}

void HttpServer::stop() {
  if (!state_->listener.joinable()) return;
  state_->is_stopping = true;
  state_->server.stop();
  state_->listener.join();
}

int64_t HttpServer::connections() const { return state_->open; }

}  // namespace snug::serve
