// What can be changed in a job that does not fit. Training (change_search.h) and inference
// (assemble_inference.cpp) each know their changes; fit.h asks for them and says them.
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

// Overrides of a recipe: keys and values as a user writes them, in the order they are shown.
using Overrides = std::vector<std::pair<std::string, std::string>>;

// "recompute=layer per_device_train_batch_size=1".
std::string to_string(const Overrides& overrides);

// The recipe with keys set as if they were given on the command line. Throws UserError as
// load_recipe does.
formats::Recipe with_overrides(formats::Recipe recipe, const Overrides& overrides);

// Divisors of `rows`, falling: the micro-batches that keep the rows of a step.
std::vector<int64_t> micro_batches(int64_t rows);

// Bytes that arenas may take. What lies outside is already subtracted from the host's.
struct Budget {
  int64_t device_bytes = 0;
  int64_t host_bytes = 0;
};

// A job with other keys, planned whole.
struct Change {
  Overrides overrides;
  int64_t device_bytes = 0;
  int64_t host_bytes = 0;
  // Copies that begin ahead, and layers that keep more, take more of the device, as far as there is
  // room, once it is applied.
  bool takes_more_once_applied = false;
  double seconds_per_token = 0;  // training: by the clock, rows full
};

// The changes of one job.
class Changes {
 public:
  Changes() = default;
  virtual ~Changes() = default;
  Changes(const Changes&) = delete;
  Changes& operator=(const Changes&) = delete;

  // Nothing when no change that is known fits.
  virtual std::optional<Change> cheapest(const Budget& budget) = 0;
  // The one with the smallest device arena that is known; nothing when none could be planned.
  virtual std::optional<Change> least() const = 0;
};

}  // namespace snug::plan
