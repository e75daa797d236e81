#include "formats/recipe/recipe_table.h"

namespace snug::formats {
namespace {

// A connection has a thread and memory of its own.
constexpr double kMostConnections = 4096;
constexpr double kMostWaiting = 1 << 20;
constexpr double kMostSeconds = 30.0 * 24 * 3600;
constexpr double kLeastBody = 1 << 10;
constexpr double kMostBody = 1 << 30;

}  // namespace

void add_serve_keys(KeyTable& table) {
  table.group("Serving", kServe, OnResume::ignored);
  table.add<&Recipe::host>("host", "127.0.0.1",
                           "the address to listen on; 0.0.0.0: all of this machine, so that others "
                           "reach the server");
  table.add<&Recipe::port>("port", "8080", "the port to listen on; 0: any that is free")
      .range({.least = 0, .most = 65535});
  table
      .add<&Recipe::api_key>("api_key", "",
                             "what clients must send as Authorization: Bearer KEY; give it in a "
                             "recipe file, since others see command lines")
      .computed("none is needed");
  table.add<&Recipe::adapter_loading>(
      "adapter_loading", "false",
      "requests may load and drop adapters, from any folder that this process can read");
  table
      .add<&Recipe::max_connections>("max_connections", "64",
                                     "connections that are open at one time; more are told to try "
                                     "again later")
      .range({.least = 1, .most = kMostConnections});
  table
      .add<&Recipe::max_waiting>("max_waiting", "128",
                                 "answers that wait for one of the places that batch says; more "
                                 "are told to try again later; 0: no limit")
      .range({.least = 0, .most = kMostWaiting});
  table
      .add<&Recipe::request_timeout>("request_timeout", "600",
                                     "seconds from a request to the end of its answer; 0: no limit")
      .range({.least = 0, .most = kMostSeconds});
  table.add_size<&Recipe::max_body>("max_body", "1MiB", "the largest body of a request")
      .range({.least = kLeastBody, .most = kMostBody});
  table
      .add<&Recipe::runs>("runs", "",
                          "a folder of runs whose curves and figures the server's page shows")
      .computed("none are shown");
}

}  // namespace snug::formats
