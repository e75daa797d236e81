// The one thing passes and plans know of a machine. Backends implement it by asking their
// libraries; rows of a hardware table implement it by stating bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "program/ir/program.h"
#include "program/work/device_facts.h"
#include "program/work/workspace_basis.h"

namespace snug::program {

// Scratch bytes of an operation.
struct Workspace {
  int64_t bytes = 0;
  WorkspaceBasis basis = WorkspaceBasis::computed;
};

class Target {
 public:
  virtual ~Target() = default;
  virtual std::string name() const = 0;
  // Library versions and thread count: what exact sizes depend on.
  virtual std::string library_versions() const = 0;
  // Bytes a job's arena may take in a space; what the machine has when the user set no budget. 0:
  // not known.
  virtual int64_t capacity_bytes(Space space) const = 0;
  // What is known of a device with memory of its own, asked anew by each call; nothing where the
  // host's memory is the device's.
  virtual std::optional<DeviceFacts> device() const { return std::nullopt; }
  // Whether the host may read and write device tensors at their addresses. If not, what it loads
  // and saves passes through pinned staging memory that the plan counts.
  virtual bool host_reaches_device() const { return true; }
  // Every tensor's offset is a multiple of this.
  virtual int64_t alignment_bytes() const = 0;
  // Whether it runs this kind with these element types; if not, lower expands or refuses.
  virtual bool runs(const OperationView& view) const = 0;
  // The operation's attributes with the decisions that lower leaves to the target: the algorithm,
  // and the size of the pieces in which it works. What is written here is what runs: the clock
  // prices it, workspace() sizes it, and a backend that cannot do it refuses in prepare().
  virtual Attributes decide(const OperationView& view) const { return view.operation.attributes; }
  // How many operations of the list, from this one on, it runs in one launch: those after the first
  // are marked as joined. At least 1.
  virtual size_t launched_together(const Program& /*program*/, size_t /*first*/) const { return 1; }
  virtual Workspace workspace(const OperationView& view) const = 0;
  // How many kernels and calls of libraries it starts for the operation, as decided and with its
  // workspace (Operation::launches). 0: it does not say.
  virtual int32_t launches(const OperationView& /*view*/) const { return 0; }
};

}  // namespace snug::program
