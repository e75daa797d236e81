// The ranks of a run: who started them, how they reach each other, and which of them this is. Rank
// 0 prints, writes metrics and holds the run's folder.
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

// What ranks must agree on before each step, since it comes to each at its own time. Of several
// ranks that ask to stop the least that is not 0 counts.
struct StopRequest {
  int signal = 0;
  bool fails = false;  // the run cannot go on: its metrics or its folder are gone
  bool any() const { return signal != 0 || fails; }
};

class Ranks {
 public:
  // One rank alone.
  Ranks() = default;
  // Ranks that others made, for tests. They must outlive the object.
  explicit Ranks(const comm::Mesh& mesh) : mesh_(mesh) {}

  // Connects to the other ranks of the launch. Where the recipe asks for several devices and
  // nothing launched this process, the process becomes the launcher of so many like it: it does not
  // return then. Throws UserError, also where the launch is not of the recipe's size, and on all
  // ranks where one was given another recipe or is of another version than the first.
  static Ranks join(const formats::Recipe& recipe);

  const comm::Mesh* mesh() const { return size() > 1 ? &mesh_ : nullptr; }
  int rank() const { return mesh_.rank(); }
  int size() const { return mesh_.size(); }
  bool is_first() const { return rank() == 0; }

  // What the launch says of these keys of a recipe, where nobody gave them (0).
  void settle(int64_t& devices, int64_t& nodes, int64_t& threads) const;

  // The text of each rank, by rank, on all.
  std::vector<std::string> of_all(std::string_view text) const;

  // The least of what all ranks hand in.
  int64_t least(int64_t value) const;
  // Rank 0's text, on all.
  std::string of_first(std::string_view text) const;
  // What rank 0 decides, as text, on all: by memory, files and calibrations of their own they might
  // decide otherwise. Rank 0 alone calls `decide`; what that throws ends the others. All must call
  // this.
  std::string decided_by_first(const std::function<std::string()>& decide) const;
  void wait_for_all() const;
  // Calls `work`, and throws on all ranks where it failed on one (runtime/process/ranks.h).
  void on_all(const std::function<void()>& work) const;
  // Throws UserError on all ranks, naming both, where one was given something else than the first.
  void require_same(std::span<const comm::NamedValue> values) const;
  StopRequest agree(const StopRequest& own) const;
  // States the step that is begun, for errors of what ranks do together.
  void set_step(int64_t step) const;
  // Where this rank is about to end with an error: lets the others fail too, and settles which of
  // them says what (comm/last_words.h). This one says what is left to it here, or in main where it
  // is the first, and nothing more where another one does. A launcher's SIGTERM, which it sends
  // once another rank has ended, does not keep it from that.
  void end_with(const std::exception& error) const;

 private:
  // Checks what this rank was given, by itself and next to the others, and forms their groups.
  void agree_on(const formats::Recipe& recipe);
  void share_processors();

  comm::Launch launch_;
  int threads_ = 0;  // of each rank where the recipe does not say; 0: of one alone
  std::unique_ptr<comm::Communicator> world_;
  std::unique_ptr<comm::Communicator> shards_;
  std::unique_ptr<comm::Communicator> replicas_;
  comm::Mesh mesh_;
};

}  // namespace snug::runtime
