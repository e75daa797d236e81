// Assembles a program that reads, initialises or writes tensors (storage_programs.h): its
// operations, and the staging memory through which they pass values. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plan/job/job.h"
#include "program/ir/program.h"
#include "program/ir/program_name.h"
#include "program/kinds/transfer/collective.h"

namespace snug::plan {

// The job's tensors of lifetime run, by name. The job must outlive the object.
class RunTensors {
 public:
  explicit RunTensors(const Job& job);

  bool has(std::string_view name) const { return tensors_.contains(name); }
  const program::Tensor& at(std::string_view name) const;
  // The tensor that holds a tensor's original values: its master if it has one, else itself.
  const program::Tensor& original_of(const std::string& name) const;

 private:
  std::unordered_map<std::string_view, const program::Tensor*> tensors_;
};

// The staging memory through which an operation passes values.
enum class Staging : uint8_t { one_slot, all_slots, quantised, made_quantised };

class StorageProgram {
 public:
  // The arguments must outlive the object.
  StorageProgram(program::ProgramName name, const RunTensors& tensors,
                 const program::Target& target);

  // Sets the number of blocks of the largest weight that the program quantises, and whether it is
  // double quantised.
  void set_largest(int64_t blocks, bool nested);

  std::vector<program::TensorId> staging(Staging form);
  // The staging memory without the absmax tensors of whole weights.
  std::vector<program::TensorId> staging_of_parts(Staging form);
  // A rank's part of a slot's absmax, and the whole into which the parts are gathered: `blocks` for
  // each of the ranks.
  program::TensorId absmax_part(int slot, int64_t blocks);
  program::TensorId absmax_whole(int slot, int64_t blocks, int32_t ranks);

  void emit(program::Attributes attributes, const program::Tensor& output,
            std::vector<program::TensorId> updates = {},
            program::Channel channel = program::Channel::compute);
  void read(const program::Tensor& tensor, int64_t file_width);
  // Emits reading `count` rows of a matrix, starting at `first`.
  void read_rows(const program::Tensor& matrix, int64_t first, int64_t count, int64_t file_width);
  // Emits an operation that writes a weight stored as NF4.
  void emit_stored(program::Attributes attributes, const std::string& weight,
                   std::vector<program::TensorId> updates, program::Channel channel);
  // Emits an operation that writes the codes of such a weight and leaves its absmax in staging
  // memory.
  void emit_codes(program::Attributes attributes, const std::string& weight,
                  program::TensorId absmax, std::vector<program::TensorId> updates,
                  program::Channel channel);
  // Emits the operation that computes the weight's quantised scales from all of its absmax.
  void encode_scales(const std::string& weight, program::TensorId gathered);
  void write(const program::Tensor& tensor, bool read_back);
  // Begins a gather in place, and awaits it.
  void gather(program::AllGather gather, const std::vector<program::TensorId>& wholes,
              int32_t layer);

  program::Program take();

 private:
  program::TensorId add(const program::Tensor& tensor);
  program::TensorId staging_tensor(std::string name, program::DType dtype, int64_t elements,
                                   program::Space space);
  program::TensorId absmax_view(int slot, std::string_view what, int64_t elements,
                                int64_t rank_step);
  std::vector<program::TensorId> make_staging(Staging form);
  program::TensorId stage(int slot);

  const RunTensors& tensors_;
  const bool is_remote_;
  int64_t largest_blocks_ = 0;
  bool is_nested_ = false;
  program::Program program_;
  std::unordered_map<Staging, std::vector<program::TensorId>> staging_;
};

}  // namespace snug::plan
