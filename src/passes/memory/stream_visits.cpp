#include "passes/memory/stream_visits.h"

#include <algorithm>
#include <utility>

#include "program/ir/operands.h"
#include "program/kinds/kind.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

// How an operation touches a tensor.
enum class Touch : uint8_t { read, overwrite, change };

class Visits {
 public:
  explicit Visits(const StreamPlacement& placement)
      : program_(placement.program),
        placement_(placement),
        latest_(program_.tensors.size(), -1),
        at_home_(program_.tensors.size()) {}

  std::vector<StreamVisit> find() {
    for (size_t i = 0; i < program_.operations.size(); ++i) look_at(static_cast<int32_t>(i));
    std::ranges::stable_sort(found_, {}, &StreamVisit::first);
    return std::move(found_);
  }

 private:
  void look_at(int32_t i) {
    const Operation& operation = program_.operations[index(i)];
    const std::pair place{operation.layer, operation.phase == Phase::forward};
    if (place != place_ || operation.layer < 0) ++section_;
    place_ = place;
    const bool on_host = placement_.is_on_host(operation);
    for (const TensorId id : operation.reads) touch(i, id, on_host, Touch::read);
    for (const TensorId id : operation.updates) touch(i, id, on_host, Touch::change);
    for (const TensorId id : operation.writes)
      touch(i, id, on_host, program_.tensor(id).is_view() ? Touch::change : Touch::overwrite);
    const bool begins = traits_of(operation).copying == Copying::begins;
    const bool ends = traits_of(operation).copying == Copying::ends;
    if (begins || ends)
      for_each_tensor(operation, [&](TensorId id) {
        int32_t& moving = at_home_[index(program_.owner(id))].moving;
        moving = std::max(moving + (begins ? 1 : -1), 0);
      });
  }

  void touch(int32_t i, TensorId id, bool on_host, Touch how) {
    const TensorId owner = program_.owner(id);
    AtHome& home = at_home_[index(owner)];
    if (placement_.touches_in_place(program_.operations[index(i)], on_host, owner)) {
      home.touched = i;
      if (how != Touch::read) home.written = i;
      return;
    }
    const int32_t latest = latest_[index(owner)];
    const bool goes_on =
        home.moving > 0 || (latest >= 0 && section_of_[index(latest)] == section_ &&
                            found_[index(latest)].last > home.touched);
    if (!goes_on) begin(i, owner, how);
    StreamVisit& visit = found_[index(latest_[index(owner)])];
    visit.last = i;
    visit.is_changed |= how != Touch::read;
  }

  void begin(int32_t i, TensorId owner, Touch how) {
    int32_t& latest = latest_[index(owner)];
    StreamVisit visit{.home = owner, .first = i, .last = i, .is_read = how != Touch::overwrite};
    visit.earliest = at_home_[index(owner)].written + 1;
    if (latest >= 0 && found_[index(latest)].is_changed)
      visit.earliest = std::max(visit.earliest, found_[index(latest)].last + 1);
    latest = static_cast<int32_t>(found_.size());
    found_.push_back(visit);
    section_of_.push_back(section_);
  }

  // The last operations that touch and that write a tensor where it lies, and the number of copies
  // from or to it that have begun and not ended. That number may exceed 1: a weight that two layers
  // share may be gathered for the second layer while it is still being gathered for the first.
  struct AtHome {
    int32_t touched = -1;
    int32_t written = -1;
    int32_t moving = 0;
  };

  const Program& program_;
  const StreamPlacement& placement_;
  std::vector<StreamVisit> found_;
  std::vector<int32_t> section_of_;  // of each visit
  std::vector<int32_t> latest_;      // by owner: its latest visit, -1 before the first
  std::vector<AtHome> at_home_;      // by owner of bytes
  std::pair<int32_t, bool> place_{-1, false};
  int32_t section_ = 0;
};

}  // namespace

bool StreamPlacement::lies_there(TensorId id) const {
  return lies_on_host(program.tensor(program.owner(id)), options);
}

bool StreamPlacement::is_kept_there(TensorId id) const {
  const Role role = program.tensor(program.owner(id)).role;
  return (role == Role::master || role == Role::moment) && lies_there(id);
}

bool StreamPlacement::is_on_host(const Operation& operation) const {
  if (traits_of(operation).is_of_optimizer())
    return options.update_on_host &&
           std::ranges::any_of(operation.updates, [&](TensorId id) { return is_kept_there(id); });
  return reaches_device && traits_of(operation).reads_in_place &&
         std::ranges::any_of(operation.reads, [&](TensorId id) { return lies_there(id); });
}

bool StreamPlacement::touches_in_place(const Operation& operation, bool on_host,
                                       TensorId id) const {
  const bool home_on_host = lies_there(id);
  return on_host == home_on_host || (on_host && reaches_device) ||
         (home_on_host && traits_of(operation).reads_in_place);
}

std::vector<StreamVisit> find_visits(const StreamPlacement& placement) {
  return Visits(placement).find();
}

}  // namespace snug::passes
