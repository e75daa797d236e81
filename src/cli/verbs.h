// The table of verbs: what `snug VERB` can be, and the function that runs each.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/request.h"

namespace snug::cli {

// A mistake that the JSON document printed by the verb already reports.
class ToldError : public base::UserError {
 public:
  explicit ToldError(const base::UserError& error) : UserError(error) {}
};

struct VerbEntry {
  std::string_view name;     // "plan", "bench calibrate"
  std::string_view summary;  // one line
  // The keys that may be given on the command line, and their help.
  std::vector<std::string_view> keys;
  std::string help;
  // Returns the exit code, 0 for success. Throws UserError.
  int (*run)(const Request& request);
  bool runs_on_ranks = false;  // runs as several processes that communicate
  bool takes_folders = false;  // in place of a recipe file
};

// The verbs in the order in which a user meets them.
std::span<const VerbEntry> verbs();

// Throws UserError for a key on the command line that the verb does not use, naming the verbs that
// do. Unknown keys are left to the recipe's reader, which names the nearest.
void require_keys_of(const VerbEntry& verb, const Request& request);

// Throws UserError where a launcher started several processes of a verb that runs as a single
// process.
void require_launch_of(const VerbEntry& verb);

int audit(const Request& request);
int plan(const Request& request);
int train(const Request& request);
int search(const Request& request);
int explain(const Request& request);
int models(const Request& request);
int runs(const Request& request);
int tokenize(const Request& request);
int quantize(const Request& request);
int dequantize(const Request& request);
int expand(const Request& request);
int export_gguf(const Request& request);
int import_gguf(const Request& request);
int merge(const Request& request);

}  // namespace snug::cli
