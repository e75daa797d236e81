#include "program/verify/verify_transfers.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/kinds/kind.h"

namespace snug::program {
namespace {

struct Open {
  size_t operation;
  TensorId source;
  TensorId target;
  bool host_has_waited = false;  // operations on the host may then touch the target
};

// A rank's part of staging memory in which an operation has left values for a gather.
struct LeftPart {
  size_t operation;
  TensorId tensor;
  bool is_gathered = false;  // or the gather has begun
};

class TransferVerifier {
 public:
  TransferVerifier(const Program& program, std::span<const Region> regions)
      : program_(program), regions_(regions) {}

  std::vector<std::string> run() {
    for (size_t i = 0; i < program_.operations.size(); ++i) {
      const Operation& operation = program_.operations[i];
      if (!operand_error(operation).empty()) continue;  // the shape rule reports this
      if (ends_copy(operation))
        close(i, operation);
      else if (traits_of(operation).copying == Copying::ends)
        note_wait(i, operation);
      else
        check_touches(i, operation);
      if (traits_of(operation).copying == Copying::begins)
        for (const auto& [source, target] : copies_of(operation)) {
          open_.push_back({i, source, target});
          note_gather(i, target);
        }
      if (traits_of(operation).performer == Performer::runtime) leave_parts(i, operation);
    }
    for (const LeftPart& part : left_)
      if (!part.is_gathered)
        report(part.operation,
               fmt::format("leaves its part in '{}', which is never gathered", name(part.tensor)));
    for (const Open& transfer : open_)
      report(transfer.operation,
             fmt::format("begins to copy '{}', which is never awaited", name(transfer.source)));
    return std::move(problems_);
  }

 private:
  const std::string& name(TensorId id) const { return program_.tensor(id).name; }

  bool share(TensorId a, TensorId b) const {
    return overlap(regions_[static_cast<size_t>(a)], regions_[static_cast<size_t>(b)]);
  }

  void report(size_t i, const std::string& problem) {
    problems_.push_back(
        fmt::format("operation {} ({}) {}", i, name_of(program_.operations[i].kind()), problem));
  }

  // The transfer that the await ends. Reports a problem and returns the end of the list if no such
  // transfer was begun.
  std::vector<Open>::iterator awaited(size_t i, TensorId source, TensorId target) {
    const auto begun = std::find_if(open_.begin(), open_.end(), [&](const Open& transfer) {
      return transfer.source == source && transfer.target == target;
    });
    if (begun == open_.end())
      report(i, fmt::format("awaits a copy of '{}' that was not begun", name(source)));
    return begun;
  }

  // The workspace of a collective is in use until the collective is awaited.
  void close(size_t i, const Operation& await) {
    for (const auto& [source, target] : copies_of(await)) {
      const auto begun = awaited(i, source, target);
      if (begun == open_.end()) continue;
      if (program_.operations[begun->operation].workspace != await.workspace)
        report(i, fmt::format("awaits a copy of '{}' without its scratch", name(source)));
      open_.erase(begun);
      if (program_.tensor(target).role == Role::staging) gathered_.push_back(target);
      std::erase_if(left_, [&, end = target](const LeftPart& part) {
        return part.is_gathered && share(part.tensor, end);
      });
    }
  }

  void note_wait(size_t i, const Operation& await) {
    for (const auto& [source, target] : copies_of(await))
      if (const auto begun = awaited(i, source, target); begun != open_.end())
        begun->host_has_waited = true;
  }

  void check_touches(size_t i, const Operation& operation) {
    for (const Open& transfer : open_) {
      const auto source_written = [&](TensorId id) { return share(id, transfer.source); };
      const bool writes = std::ranges::any_of(operation.writes, source_written) ||
                          std::ranges::any_of(operation.updates, source_written) ||
                          (operation.workspace != kNone && source_written(operation.workspace));
      if (writes) report(i, fmt::format("writes '{}' while it is copied", name(transfer.source)));
      bool touches = false;
      for_each_tensor(operation, [&](TensorId id) { touches |= share(id, transfer.target); });
      const bool may_touch = transfer.host_has_waited && operation.on_host;
      if (touches && !may_touch)
        report(i, fmt::format("touches '{}' before its copy is awaited", name(transfer.target)));
    }
  }

  void note_gather(size_t i, TensorId target) {
    bool found = program_.tensor(target).role != Role::staging;
    for (LeftPart& part : left_) {
      if (!share(part.tensor, target)) continue;
      part.is_gathered = found = true;
    }
    if (!found) report(i, fmt::format("gathers '{}', where no part was left", name(target)));
  }

  // The runtime performs these operations ahead of others, so values left for a gather must not be
  // overwritten.
  void leave_parts(size_t i, const Operation& operation) {
    for_each_tensor(operation, [&](TensorId id) {
      for (const LeftPart& part : left_)
        if (share(part.tensor, id))
          report(i, fmt::format("touches '{}' before it is gathered", name(part.tensor)));
    });
    for (const TensorId id : operation.writes)
      if (program_.tensor(id).view.rank_step > 0) left_.push_back({i, id});
    read_gathered(i, operation);
  }

  // Gathered values are valid until another operation uses the same memory.
  void read_gathered(size_t i, const Operation& operation) {
    for (const TensorId id : operation.reads)
      if (program_.tensor(id).role == Role::staging && !std::ranges::count(gathered_, id))
        report(i, fmt::format("reads '{}', which was not gathered", name(id)));
    for (const auto* ids : {&operation.writes, &operation.updates})
      for (const TensorId id : *ids)
        std::erase_if(gathered_, [&](TensorId gathered) { return share(id, gathered); });
  }

  const Program& program_;
  std::span<const Region> regions_;
  std::vector<Open> open_;
  std::vector<LeftPart> left_;
  std::vector<TensorId> gathered_;  // staging memory that holds gathered values
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> verify_transfers(const Program& program, std::span<const Region> regions) {
  return TransferVerifier(program, regions).run();
}

}  // namespace snug::program
