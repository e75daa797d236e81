// The ranks of a run: which launcher started them, how they communicate, and which of them this
// process is. Rank 0 prints, writes metrics and owns the run's folder.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/agreement.h"
#include "comm/launch.h"
#include "comm/mesh.h"
#include "formats/recipe/recipe.h"

namespace snug::runtime {

// A request to stop, on which ranks agree before each step, since a signal reaches each rank at its
// own time. If several ranks ask to stop, the smallest signal other than 0 counts.
struct StopRequest {
  int signal = 0;
  bool fails = false;  // the run cannot continue: its metrics or its folder are gone
  bool any() const { return signal != 0 || fails; }
};

class Ranks {
 public:
  // A single rank.
  Ranks() = default;
  // For tests: ranks that the caller connected. They must outlive the object.
  explicit Ranks(const comm::Mesh& mesh) : mesh_(mesh) {}

  // Connects to the other ranks of the launch. Where the recipe asks for several devices and no
  // launcher started this process, the process itself launches that many ranks and does not return.
  // Throws UserError, also where the number of ranks is not the recipe's; and on all ranks where
  // any was given another recipe, or has another version, than the first.
  static Ranks join(const formats::Recipe& recipe);

  const comm::Mesh* mesh() const { return size() > 1 ? &mesh_ : nullptr; }
  int rank() const { return mesh_.rank(); }
  int size() const { return mesh_.size(); }
  bool is_first() const { return rank() == 0; }

  // What the launch says of these keys of a recipe, where nobody gave them (0).
  void settle(int64_t& devices, int64_t& nodes, int64_t& threads) const;

  // The text of each rank, by rank, on all ranks.
  std::vector<std::string> of_all(std::string_view text) const;

  // The smallest of the values that the ranks pass.
  int64_t least(int64_t value) const;
  // Rank 0's text, on all ranks.
  std::string of_first(std::string_view text) const;
  // What rank 0 decides, as text, on all: by memory, files and calibrations of their own they might
  // decide otherwise. Rank 0 alone calls `decide`; what that throws ends the others. All must call
  // this.
  std::string decided_by_first(const std::function<std::string()>& decide) const;
  void wait_for_all() const;
  // Calls `work` on this rank, and throws on all ranks where it failed on any
  // (runtime/process/ranks.h).
  void on_all(const std::function<void()>& work) const;
  // Throws a UserError on all ranks where any was given another value than the first; it names both
  // values.
  void require_same(std::span<const comm::NamedValue> values) const;
  StopRequest agree(const StopRequest& own) const;
  // Sets the number of the current step, for errors of collectives.
  void set_step(int64_t step) const;
  // Call it when this rank is about to end with an error: it makes the other ranks fail as well,
  // and decides which of them reports which error (comm/last_words.h). If this rank is to report
  // its error, that happens here, or in main on the first rank; otherwise this rank reports nothing
  // more. A SIGTERM from the launcher, which it sends after another rank has ended, does not
  // interrupt this.
  void end_with(const std::exception& error) const;

 private:
  // Checks what this rank was given, both by itself and against the other ranks, and forms the
  // groups of ranks.
  void agree_on(const formats::Recipe& recipe);
  void share_processors();

  comm::Launch launch_;
  int threads_ = 0;  // the number for each rank where the recipe sets none; 0 for a single rank
  std::unique_ptr<comm::Communicator> world_;
  std::unique_ptr<comm::Communicator> shards_;
  std::unique_ptr<comm::Communicator> replicas_;
  comm::Mesh mesh_;
};

}  // namespace snug::runtime
