// What the server answers to requests: the interface of OpenAI and what else there is, path by
// path. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>

#include "serve/http_server.h"
#include "serve/inference_loop.h"
#include "serve/planner.h"
#include "serve/served_model.h"
#include "serve/server_metrics.h"

namespace snug::serve {

// Requests whose text is read and made ids of at one time: so many have memory for that.
inline constexpr int64_t kReaders = 2;

struct ApiOptions {
  std::string api_key{};                   // empty: none is needed
  std::string runs{};                      // the folder of runs that are shown; empty: none
  bool adapter_loading = false;            // requests may load and drop adapters
  std::string planner{};                   // the binary of snug, which plans; empty: nothing does
  int64_t planner_room = -1;               // bytes that host_memory leaves; -1: no limit
  int64_t planned_bytes = 0;               // arenas, connections and the process
  std::function<int64_t()> connections{};  // that are open
};

class Api {
 public:
  // All must outlive it.
  Api(ServedModel& model, InferenceLoop& loop, ApiOptions options);

  HttpAnswer handle(const HttpRequest& request);
  // From now on new requests are told that the server is stopping.
  void refuse_new() { is_stopping_ = true; }

 private:
  struct Route;
  static const Route* find_route(const std::string& path);
  void check(const HttpRequest& request, bool is_open) const;
  HttpAnswer page_answer(const HttpRequest& request);
  HttpAnswer health(const HttpRequest& request);
  HttpAnswer metrics(const HttpRequest& request);
  HttpAnswer models(const HttpRequest& request);
  HttpAnswer server(const HttpRequest& request);
  HttpAnswer runs(const HttpRequest& request);
  HttpAnswer planner(const HttpRequest& request);
  HttpAnswer plan(const HttpRequest& request);
  HttpAnswer load_adapter(const HttpRequest& request);
  HttpAnswer drop_adapter(const HttpRequest& request);
  HttpAnswer tokenize(const HttpRequest& request);
  HttpAnswer detokenize(const HttpRequest& request);
  HttpAnswer chat(const HttpRequest& request) { return complete(request, true); }
  HttpAnswer completion(const HttpRequest& request) { return complete(request, false); }
  HttpAnswer complete(const HttpRequest& request, bool is_chat);

  ServedModel& model_;
  InferenceLoop& loop_;
  const ApiOptions options_;
  const int64_t begun_;  // seconds since 1970
  ServerMetrics metrics_{};
  Planner planner_;
  std::counting_semaphore<kReaders> readers_{kReaders};
  std::mutex adapters_{};  // held while they are replaced
  std::atomic<bool> is_stopping_ = false;
  std::atomic<int64_t> asked_ = 0;  // answers so far, so that each draws anew
};

}  // namespace snug::serve
