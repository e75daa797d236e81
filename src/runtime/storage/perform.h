// Performs a program of operations that no backend runs (Performer::runtime): tensors are read from
// files, made, and set, in the order of the list. What is to be read between two others is read
// together: one thread reads ahead while another converts or quantises (read_tensors.h). What is
// done is noted, as backends note what they run, and held against the program (trace_check.h). Each
// rank reads or makes its part of what is sharded, and padding becomes 0. The absmax of a double
// quantised weight are gathered by operations of the program, between the hosts of the ranks, since
// its scales are made with the mean over all of them (plan/job/storage_programs.h). Programs that
// save are walked by save_tensors.h.
//
// One thread. Must not be used while a program runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/host_collectives.h"
#include "backends/trace.h"
#include "formats/folder/tensor_index.h"
#include "formats/quantization/quant_state.h"
#include "models/config/config.h"
#include "models/weights.h"
#include "program/ir/program.h"
#include "runtime/execution/executor.h"
#include "runtime/loading/read_tensors.h"
#include "runtime/storage/file_names.h"

namespace snug::runtime {

// Where files hold a tensor or a range of its elements.
struct FilePart {
  const formats::IndexedTensor* source = nullptr;
  std::optional<int64_t> first{};  // first element of a range of the flattened tensor; nothing: the
                                   // whole tensor
  // The shape in the file where a part is a separate tensor there; nothing: the shape in the
  // program.
  std::optional<program::Shape> shape{};
  // The index of the first element in the file's tensor, where the program's tensor is a part of
  // it; nothing where it is the whole tensor.
  std::optional<int64_t> from{};
};

// Where the operations of a program take their values from, in addition to their attributes.
struct Sources {
  const models::ModelConfig* model = nullptr;  // the model of the weights; null for an adapter
  // The parts that together hold the tensor's values, in order. Throws UserError where there are
  // none.
  std::function<std::vector<FilePart>(const program::Tensor&)> find{};
  // Checks a read that has a destination. Throws UserError.
  std::function<void(const TensorRead&)> check{};
  std::function<ReadReport(std::span<const TensorRead>)> read{};
  // The index of the model's files, where some weights are stored as NF4.
  const formats::TensorIndex* index = nullptr;
};

// Files of one set in one folder. `reason` says where expected shapes come from: "as config.json
// says". The references must outlive the result.
Sources sources_of(const formats::TensorIndex& index, FileSet files, std::string reason,
                   const models::ModelConfig* model, program::ProgramName program,
                   Executor& executor);

struct Performed {
  int64_t bytes_read = 0;    // the bytes that this rank has read
  int64_t bytes_around = 0;  // how many of them are outside of the requested ranges
  // A digest of all values that were read; the digests of a replica's ranks add up.
  uint64_t digest = 0;
  std::vector<backends::Trace> traces;  // one for each operation
};

// Performs one operation at a time; perform() does all of them.
class Performance {
 public:
  // The references must outlive the object.
  Performance(program::ProgramName program, const Sources& sources, Executor& executor);

  void operation(size_t index);
  // Performs the reads that are still queued.
  Performed finish();

 private:
  void operator()(const program::Read& read);
  void operator()(const program::ReadNf4& read);
  void operator()(const program::Fill& fill);
  void operator()(const program::FillNf4& fill);
  void operator()(const program::EncodeScales& encode);
  void operator()(const program::Put& put);
  void operator()(const program::PutBounds& put);
  void operator()(const program::Write& write);

  template <typename Struct>
  void perform(const Struct& attributes);
  // The current operation as an invocation, for collectives.
  backends::Invocation between_ranks();
  // An operand of the current operation.
  template <typename Struct>
  const program::Tensor& tensor(const program::Operand<Struct>& operand) const {
    return program_.tensor(id_of(*operation_, operand));
  }
  template <typename Struct>
  const backends::Buffer& buffer(const program::Operand<Struct>& operand) const {
    return executor_.tensor(name_, id_of(*operation_, operand));
  }
  void queue(TensorRead tensor_read);
  // Throws UserError where the widest element type of these parts does not have the planned width.
  void refuse_other_width(std::span<const FilePart> parts, int64_t planned) const;
  void queue_part(const FilePart& part, const program::Tensor& tensor,
                  const backends::Buffer& held);
  void queue_bytes(const formats::IndexedTensor& source, const backends::Buffer& destination,
                   bool is_part, bool holds_values);
  void zero_padding();
  void queue_quantised(std::span<const FilePart> parts, const models::Weight& given,
                       const StoredWeight& stored);
  void queue_parts(const formats::Nf4Parts& in_file, const StoredWeight& stored);
  void check_map(const formats::Nf4Parts& in_file);
  void flush();
  template <typename Struct>
  StoredWeight stored() const;
  void await_room(const StoredWeight& stored);
  template <typename Struct>
  void zero_codes(const StoredWeight& weight, int64_t elements);
  bool counts(bool is_part) const { return is_part || executor_.mesh().shard() == 0; }

  const program::ProgramName name_;
  const program::Program& program_;
  const Sources& sources_;
  Executor& executor_;
  std::unordered_map<std::string, models::Weight> weights_;  // weights of the model, by name
  const program::Operation* operation_ = nullptr;            // the operation being performed
  backends::Trace* trace_ = nullptr;                         // the trace of that operation
  std::vector<TensorRead> tensor_reads_;                     // reads to be done together
  // Whether queued weights use the absmax memory as a temporary buffer.
  bool has_whole_scales_ = false;
  backends::HostCollectives collectives_;
  std::vector<backends::Buffer> between_;  // the operands of between_ranks()
  std::optional<program::OperationView> view_;
  Performed performed_;
};

// Performs all operations in order. Fails a CHECK when what was done differs from the program.
Performed perform(program::ProgramName program, const Sources& sources, Executor& executor);

}  // namespace snug::runtime
