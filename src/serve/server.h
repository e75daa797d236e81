// A server: the model, the thread that answers, and the connections, from start to end.
#pragma once

#include <cstdint>
#include <string>

#include "formats/recipe/recipe.h"
#include "serve/api.h"
#include "serve/http_server.h"
#include "serve/inference_loop.h"
#include "serve/served_model.h"

namespace snug::serve {

// What connections may take, next to the model's arenas.
struct ConnectionMemory {
  int64_t connections = 0;
  int64_t connection_bytes = 0;  // of one
  int64_t reading_bytes = 0;     // of the requests whose text is made ids of
  int64_t bytes() const { return connections * connection_bytes + reading_bytes; }
};
ConnectionMemory connection_memory(const formats::Recipe& recipe);

class Server {
 public:
  // Plans and loads. Throws UserError; with exit code 3 where it does not fit the budget.
  // `name`: by which clients ask for the model. `planner`: the binary of snug, with which the page
  // plans; empty: it does not.
  Server(const formats::Recipe& recipe, const std::string& name, std::string planner = "");

  // Listens from now on. Returns the port. Throws UserError where that is not possible.
  int64_t start();
  // Refuses what is new, gives what runs these seconds to end, and takes the rest back.
  void stop(double seconds);

  ServedModel& model() { return model_; }
  const ConnectionMemory& memory() const { return memory_; }
  // Of the process itself: its code, libraries and the tokenizer.
  int64_t process_bytes() const { return process_bytes_ + model_.tokenizer().host_bytes(); }
  // All of it: arenas, connections, the process.
  int64_t planned_bytes();
  LoopState state() const { return loop_.state(); }
  // Why nothing runs any more; empty: it does.
  std::string failure() const { return loop_.failure(); }

 private:
  const formats::Recipe recipe_;
  const int64_t process_bytes_;
  const ConnectionMemory memory_;
  ServedModel model_;
  InferenceLoop loop_;
  Api api_;
  HttpServer http_;
};

}  // namespace snug::serve
