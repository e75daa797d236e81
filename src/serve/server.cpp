#include "serve/server.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/seconds_since.h"
#include "runtime/process/process_memory.h"

namespace snug::serve {
namespace {

// Of a connection: what its thread touches of its stack, headers, and the answer that it writes.
constexpr int64_t kConnectionBytes = 512 << 10;
// While a body is read, next to it: its JSON document, the conversation, the text that the template
// makes of it, the windows of the tokenizer, and ids. Each is of the order of the body.
constexpr int64_t kReadingFactor = 16;

// Connections are memory of the host, so a budget for all of that has less left for the model.
formats::Recipe for_model(formats::Recipe recipe, const ConnectionMemory& memory) {
  if (recipe.host_memory == 0) return recipe;
  recipe.host_memory -= memory.bytes();
  if (recipe.host_memory <= 0) {
    recipe.fail("host_memory",
                fmt::format("is less than the {} bytes that connections may take; lower "
                            "max_connections or max_body",
                            memory.bytes()));
  }
  return recipe;
}

HttpLimits http_limits(const formats::Recipe& recipe) {
  HttpLimits limits;
  limits.max_connections = recipe.max_connections;
  limits.max_body_bytes = recipe.max_body;
  return limits;
}

}  // namespace

ConnectionMemory connection_memory(const formats::Recipe& recipe) {
  return {.connections = recipe.max_connections,
          .connection_bytes = kConnectionBytes + recipe.max_body,
          .reading_bytes = kReaders * kReadingFactor * recipe.max_body};
}

Server::Server(const formats::Recipe& recipe, const std::string& name, std::string planner)
    : recipe_(recipe),
      process_bytes_(runtime::outside_bytes()),
      memory_(connection_memory(recipe)),
      model_(for_model(recipe, memory_), name),
      loop_(model_.inference(), model_.tokenizer(),
            {.max_waiting = recipe.max_waiting,
             .request_seconds = static_cast<double>(recipe.request_timeout)}),
      api_(model_, loop_,
           {.api_key = recipe.api_key,
            .runs = recipe.runs,
            .adapter_loading = recipe.adapter_loading,
            .planner = std::move(planner),
            .planner_room = recipe.host_memory == 0
                                ? -1
                                : std::max<int64_t>(0, recipe.host_memory - planned_bytes()),
            .planned_bytes = planned_bytes(),
            .connections = [this] { return http_.connections(); }}),
      http_(http_limits(recipe),
            [this](const HttpRequest& request) { return api_.handle(request); }) {}

int64_t Server::planned_bytes() {
  return model_.inference().arena_bytes() + memory_.bytes() + process_bytes();
}

int64_t Server::start() { return http_.start(recipe_.host, recipe_.port); }

void Server::stop(double seconds) {
  api_.refuse_new();
  const auto begin = std::chrono::steady_clock::now();
  const auto wait_for = [&](double until) {
    while (loop_.state().open > 0 && base::seconds_since(begin) < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  wait_for(seconds);
  if (loop_.state().open > 0) {
    loop_.fail_all(ApiError(kUnavailable, "the server is stopping"));
    wait_for(seconds + 2);
  }
  // What the last answers say is still on its way to their connections.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  http_.stop();
}

}  // namespace snug::serve
