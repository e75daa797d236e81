// Changes that can make a job fit. Training (change_search.h) and inference
// (assemble_inference.cpp) each know their changes; fit.h asks for them and reports them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace snug::formats {
struct Recipe;
}

namespace snug::plan {

// Overrides of a recipe: keys and values as a user writes them, in the order in which they are
// shown.
using Overrides = std::vector<std::pair<std::string, std::string>>;

// Text such as "recompute=layer per_device_train_batch_size=1".
std::string to_string(const Overrides& overrides);

// The recipe with keys set as if they were given on the command line. Throws UserError as
// load_recipe does.
formats::Recipe with_overrides(formats::Recipe recipe, const Overrides& overrides);

// The divisors of `rows` in descending order: the sizes of micro-batches that keep the number of
// rows in a step.
std::vector<int64_t> micro_batches(int64_t rows);

// The bytes that arenas may take. For the host, memory outside the arenas is already subtracted.
struct Budget {
  int64_t device_bytes = 0;
  int64_t host_bytes = 0;
};

// A job with other keys, planned in full.
struct Change {
  Overrides overrides;
  int64_t device_bytes = 0;
  int64_t host_bytes = 0;
  // Whether the applied change uses more of the device's memory than is stated here, as far as
  // there is room: for copies that begin earlier, and for layers that keep more.
  bool takes_more_once_applied = false;
  double seconds_per_token = 0;  // training: predicted by the clock, with full rows
};

// The possible changes of one job.
class Changes {
 public:
  Changes() = default;
  virtual ~Changes() = default;
  Changes(const Changes&) = delete;
  Changes& operator=(const Changes&) = delete;

  // The cheapest change that fits; nothing when no known change does.
  virtual std::optional<Change> cheapest(const Budget& budget) = 0;
  // The change with the smallest device arena among those planned; nothing when none could be
  // planned.
  virtual std::optional<Change> least() const = 0;
};

}  // namespace snug::plan
