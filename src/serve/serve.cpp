#include "serve/serve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/console.h"
#include "plan/document/document.h"
#include "serve/server.h"

namespace snug::serve {
namespace {

constexpr double kEndSeconds = 20;  // that answers have after SIGTERM

std::atomic<bool> is_asked_to_stop = false;

// SIGINT and SIGTERM ask for the end. A second one ends the process at once, as it does elsewhere.
void listen_to_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { is_asked_to_stop = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

std::string address_of(const std::string& host, int64_t port) {
  const bool is_all = host == "0.0.0.0" || host == "::";
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("http://{}:{}", is_all ? "localhost" : is_v6 ? "[" + host + "]" : host, port);
}

void tell(Server& server, const std::string& address, bool json) {
  const ServedModel& model = server.model();
  const ConnectionMemory& memory = server.memory();
  const plan::InferenceShape& shape = server.model().inference().shape();
  const int64_t arenas = server.model().inference().arena_bytes();
  if (json) {
    const nlohmann::ordered_json told = {{"url", address},
                                         {"model", model.name()},
                                         {"adapters", model.adapters()},
                                         {"max_length", model.context()},
                                         {"running_sequences", shape.sequences},
                                         {"arena_bytes", arenas},
                                         {"connection_bytes", memory.bytes()},
                                         {"process_bytes", server.process_bytes()}};
    base::print("{}\n", told.dump());
  } else {
    base::print("{}{}{}\n", model.name(), model.adapters().empty() ? "" : " with the adapters ",
                fmt::join(model.adapters(), ", "));
    base::print("{:>12}  weights, keys and values: {} answers at one time, of {} tokens each\n",
                plan::readable_bytes(arenas), shape.sequences, model.context());
    base::print("{:>12}  at most, for {} connections\n", plan::readable_bytes(memory.bytes()),
                memory.connections);
    base::print("{:>12}  the process itself\n", plan::readable_bytes(server.process_bytes()));
    base::print("{} is open for a browser, {}/v1 for clients; Ctrl-C ends it\n", address, address);
  }
  base::flush_output();
}

}  // namespace

std::string served_name(const std::string& model) {
  std::filesystem::path path = std::filesystem::path(model).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string name = (path.extension() == ".gguf" ? path.stem() : path.filename()).string();
  return name.empty() || name == "." || name == ".." ? "model" : name;
}

int serve(const formats::Recipe& recipe, const std::string& name, bool json) {
  std::error_code unknown;
  if (!recipe.runs.empty() && !std::filesystem::is_directory(recipe.runs, unknown))
    base::say("runs={}: there is no such folder yet, so that the page shows no runs", recipe.runs);
  Server server(recipe, name, fmt::format("/proc/{}/exe", ::getpid()));
  const int64_t port = server.start();
  listen_to_signals();
  tell(server, address_of(recipe.host, port), json);
  if (recipe.api_key.empty() && recipe.host != "127.0.0.1" && recipe.host != "localhost" &&
      recipe.host != "::1")
    base::say("whoever reaches {} may use this server, since it has no api_key", recipe.host);
  while (!is_asked_to_stop && server.failure().empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::string failure = server.failure();
  server.stop(failure.empty() ? kEndSeconds : 0);
  if (!failure.empty()) throw std::runtime_error(failure);
  return 0;
}

}  // namespace snug::serve
