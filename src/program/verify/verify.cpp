// Two stages: first the tables (names, sizes, views, ids) and then, only if these are correct, each
// operation in list order. Operations are assumed to run one after the other; transfers, which run
// concurrently, are checked in verify_transfers.h.
#include "program/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "program/ir/inputs.h"
#include "program/kinds/kind.h"
#include "program/verify/verify_regions.h"
#include "program/verify/verify_transfers.h"

namespace snug::program {
namespace {

// Far above any memory size; sums of a few such sizes still fit 64 bits.
constexpr int64_t kMaxBytes = int64_t{1} << 56;

// Whether the number of elements and of bytes stay below kMaxBytes.
bool has_sane_size(const Tensor& tensor) {
  int64_t bytes = base::size_of(tensor.dtype);
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
    const int64_t size = std::max<int64_t>(tensor.shape[axis], 1);
    if (bytes > kMaxBytes / size) return false;
    bytes *= size;
  }
  return true;
}

// The problem with a view, or empty.
std::string view_problem(const Program& program, const Tensor& tensor) {
  const View& view = tensor.view;
  if (!tensor.is_view()) return view == View{} ? "" : "has an offset or strides but no base";
  if (view.base < 0 || static_cast<size_t>(view.base) >= program.tensors.size())
    return fmt::format("is a view of tensor {}, which does not exist", view.base);
  const Tensor& base = program.tensor(view.base);
  if (base.is_view()) return fmt::format("is a view of '{}', which is a view itself", base.name);
  if (base.dtype != tensor.dtype || base.space != tensor.space || base.lifetime != tensor.lifetime)
    return fmt::format("is a view of '{}' with another element type, space or lifetime", base.name);
  int64_t last = view.offset;
  bool outside = view.offset < 0;
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
    const int64_t stride = view.strides[static_cast<size_t>(axis)];
    const int64_t steps = std::max<int64_t>(tensor.shape[axis] - 1, 0);
    outside = outside || stride < 0 || (steps > 0 && stride > kMaxBytes / steps);
    if (!outside) last += steps * stride;
    outside = outside || last > kMaxBytes;
  }
  if (view.rank_step != 0 && (view.offset != 0 || tensor.shape.rank() != 1 || view.rank_step < 0 ||
                              view.rank_step < tensor.shape.elements()))
    return "is a rank's part, but not of one dimension, from the beginning and apart from others";
  const bool reads_none = tensor.shape.elements() == 0;
  if (outside || (last >= base.shape.elements() && !reads_none))
    return fmt::format("is a view that leaves its base '{}' of shape {}", base.name,
                       to_string(base.shape));
  return "";
}

void check_tensors(const Program& program, std::vector<std::string>& problems) {
  std::unordered_map<std::string_view, size_t> names;
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    const Tensor& tensor = program.tensors[i];
    if (tensor.name.empty()) problems.push_back(fmt::format("tensor {} has no name", i));
    const auto [other, is_new] = names.emplace(tensor.name, i);
    if (!is_new)
      problems.push_back(
          fmt::format("tensors {} and {} are both named '{}'", other->second, i, tensor.name));
    if (!has_sane_size(tensor))
      problems.push_back(fmt::format("tensor '{}' of shape {} is larger than any memory",
                                     tensor.name, to_string(tensor.shape)));
  }
  if (!problems.empty()) return;
  for (const Tensor& tensor : program.tensors)
    if (const std::string problem = view_problem(program, tensor); !problem.empty())
      problems.push_back(fmt::format("tensor '{}' {}", tensor.name, problem));
}

// How an operation touches a tensor.
enum class Touch : uint8_t { read, write, update, workspace };

constexpr std::string_view verb(Touch touch) {
  switch (touch) {
    case Touch::read:
      return "reads";
    case Touch::write:
      return "writes";
    case Touch::update:
      return "updates";
    case Touch::workspace:
      return "scribbles on";
  }
  return "";
}

struct Touched {
  TensorId id = kNone;
  Touch touch = Touch::read;
};

std::vector<Touched> touched_by(const Operation& operation) {
  std::vector<Touched> operands;
  const auto add = [&](const std::vector<TensorId>& ids, Touch touch) {
    for (const TensorId id : ids) operands.push_back({id, touch});
  };
  add(operation.writes, Touch::write);
  add(operation.updates, Touch::update);
  if (operation.workspace != kNone) operands.push_back({operation.workspace, Touch::workspace});
  add(operation.reads, Touch::read);
  return operands;
}

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  std::vector<std::string> run() {
    check_tensors(program_, problems_);
    for (size_t i = 0; i < program_.operations.size(); ++i) check_ids(i);
    if (!problems_.empty()) return std::move(problems_);
    written_.resize(program_.tensors.size());
    regions_.reserve(program_.tensors.size());
    for (size_t id = 0; id < program_.tensors.size(); ++id)
      regions_.push_back(region_of(program_, static_cast<TensorId>(id)));
    check_constants();
    for (size_t i = 0; i < program_.operations.size(); ++i) check_operation(i);
    for (std::string& problem : verify_transfers(program_, regions_))
      problems_.push_back(std::move(problem));
    return std::move(problems_);
  }

 private:
  void report(size_t operation, const std::string& problem) {
    const Operation& subject = program_.operations[operation];
    const std::string_view kind = subject.kind() != kNoKind ? name_of(subject.kind()) : "no kind";
    problems_.push_back(fmt::format("operation {} ({}) {}", operation, kind, problem));
  }

  // Checks the operation's kind, tensors and channel; all other checks require these to be valid.
  void check_ids(size_t i) {
    const Operation& operation = program_.operations[i];
    if (operation.kind() == kNoKind) return report(i, "has no kind");
    const auto check = [&](TensorId id) {
      if (id < 0 || static_cast<size_t>(id) >= program_.tensors.size())
        report(i, fmt::format("touches tensor {} of {}", id, program_.tensors.size()));
    };
    for_each_tensor(operation, check);
    const Traits& traits = traits_of(operation);
    const bool is_of_host =
        operation.channel == Channel::host &&
        (operation.on_host || (traits.copying == Copying::ends && awaits_on_host(operation)));
    if (operation.channel != Channel::compute && traits.copying != Copying::begins &&
        traits.performer != Performer::runtime && !is_of_host)
      report(i, fmt::format("runs on channel {}", name_of(operation.channel)));
  }

  void check_operation(size_t i) {
    const Operation& operation = program_.operations[i];
    const std::string error = program::shape_error({program_, operation});
    if (!error.empty()) report(i, error);
    const std::vector<Touched> operands = touched_by(operation);
    for (const Touched& operand : operands) {
      check_place(i, operand);
      check_unchanged(i, operand);
    }
    check_conflicts(i, operands);
    check_order(i, operands);
    check_joined(i);
  }

  // Checks that tensors which kernels may read early have their values when the program begins.
  void check_constants() {
    const bool begins_with_input = program::begins_with_input(program_);
    for (const Tensor& tensor : program_.tensors) {
      if (!tensor.constant) continue;
      const auto report_tensor = [&](std::string_view problem) {
        problems_.push_back(fmt::format("tensor '{}' is constant, but {}", tensor.name, problem));
      };
      if (tensor.lifetime != Lifetime::run) report_tensor("does not last through the run");
      if (tensor.is_view() && !program_.tensor(tensor.view.base).constant)
        report_tensor("is a view of one that is not");
      if (!begins_with_input)
        report_tensor("what ran before may still write it, for the program copies no input first");
    }
  }

  void check_unchanged(size_t i, const Touched& operand) {
    const bool changes = operand.touch == Touch::write || operand.touch == Touch::update;
    if (changes && program_.tensor(region(operand.id).owner).constant)
      report(i, fmt::format("{} '{}', which is constant", verb(operand.touch),
                            program_.tensor(operand.id).name));
  }

  // Whether the copy that the operation awaits ends in host memory.
  bool awaits_on_host(const Operation& await) const {
    const auto copies = copies_of(await);
    const TensorId y = copies.empty() ? kNone : copies.front().second;
    return y >= 0 && static_cast<size_t>(y) < program_.tensors.size() &&
           program_.tensor(y).space != Space::device;
  }

  // Joined operations must be optimizers of the same kind, or operations whose kinds can be joined,
  // in the same layer.
  void check_joined(size_t i) {
    const Operation& operation = program_.operations[i];
    if (!operation.joined) return;
    const auto fits_to = [&](const Operation& before) {
      if (traits_of(operation).category == Category::optimizer)
        return operation.kind() == before.kind();
      return traits_of(operation).is_joinable && traits_of(before).is_joinable;
    };
    if (i == 0 || !fits_to(program_.operations[i - 1]))
      report(i, "is joined to what it cannot run with");
  }

  // Every kind runs on the device and accesses only device memory, except for copies between
  // spaces, operations on the host, kinds that read an operand in place once, and operations that
  // the runtime performs.
  void check_place(size_t i, const Touched& operand) {
    const Tensor& tensor = program_.tensor(operand.id);
    const Traits& traits = traits_of(program_.operations[i]);
    const bool reaches_host = traits.copying != Copying::none ||
                              traits.performer == Performer::runtime || traits.reads_in_place ||
                              program_.operations[i].on_host;
    if (tensor.space != Space::device && !reaches_host)
      report(i,
             fmt::format("{} '{}', which lies in {} memory and cannot be reached from the device",
                         verb(operand.touch), tensor.name, name_of(tensor.space)));
    const bool is_workspace = tensor.role == Role::workspace;
    if (is_workspace != (operand.touch == Touch::workspace))
      report(i, fmt::format("{} '{}', which has role {}", verb(operand.touch), tensor.name,
                            name_of(tensor.role)));
  }

  const Region& region(TensorId id) const { return regions_[static_cast<size_t>(id)]; }

  bool works_in_place(const Operation& operation, const Touched& write, const Touched& read) const {
    if (write.touch != Touch::write || read.touch != Touch::read) return false;
    const Tensor& target = program_.tensor(write.id);
    const Tensor& source = program_.tensor(read.id);
    if (target.shape != source.shape || target.dtype != source.dtype) return false;
    const Region& a = region(write.id);
    const Region& b = region(read.id);
    if (a.begin != b.begin || a.end != b.end || a.exact != b.exact || a.columns != b.columns ||
        a.rectangle != b.rectangle)
      return false;
    return std::ranges::any_of(in_place_pairs(operation), [&](const InPlacePair& pair) {
      return find_operand(operation, pair.output) == write.id &&
             find_operand(operation, pair.input) == read.id;
    });
  }

  void check_conflicts(size_t i, const std::vector<Touched>& operands) {
    const Operation& operation = program_.operations[i];
    for (size_t a = 0; a < operands.size() && operands[a].touch != Touch::read; ++a) {
      for (size_t b = a + 1; b < operands.size(); ++b) {
        if (!overlap(region(operands[a].id), region(operands[b].id))) continue;
        if (works_in_place(operation, operands[a], operands[b])) continue;
        report(i, fmt::format("{} '{}' and {} '{}', which share bytes", verb(operands[a].touch),
                              program_.tensor(operands[a].id).name, verb(operands[b].touch),
                              program_.tensor(operands[b].id).name));
      }
    }
  }

  void check_order(size_t i, const std::vector<Touched>& operands) {
    for (const Touched& operand : operands) {
      if (operand.touch != Touch::read && operand.touch != Touch::update) continue;
      const Tensor& tensor = program_.tensor(operand.id);
      const Region& part = region(operand.id);
      // Values in staging memory are gone when the operation is done, so they need not be written
      // before.
      if (tensor.lifetime != Lifetime::program || tensor.role == Role::staging) continue;
      if (!written_[static_cast<size_t>(part.owner)].covers(part))
        report(i, fmt::format("{} '{}' before all of it is written", verb(operand.touch),
                              tensor.name));
    }
    for (const Touched& operand : operands)
      if (operand.touch == Touch::write)
        written_[static_cast<size_t>(region(operand.id).owner)].add(region(operand.id));
  }

  const Program& program_;
  std::vector<std::string> problems_;
  std::vector<Region> regions_;          // by tensor
  std::vector<WrittenRegions> written_;  // by owner, up to the current operation
};

}  // namespace

std::vector<std::string> verify(const Program& program) { return Verifier(program).run(); }

}  // namespace snug::program
