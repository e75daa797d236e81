// How a program that reads, makes or writes tensors is put together (storage_programs.h): its
// operations, with the staging memory that they pass values through. One thread.
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

// What lasts through a run, by name, as the programs of a job have it. The job must outlive it.
class RunTensors {
 public:
  explicit RunTensors(const Job& job);

  bool has(std::string_view name) const { return tensors_.contains(name); }
  const program::Tensor& at(std::string_view name) const;
  // Where a tensor's values in files belong.
  const program::Tensor& original_of(const std::string& name) const;

 private:
  std::unordered_map<std::string_view, const program::Tensor*> tensors_;
};

// Which staging memory an operation passes values through.
enum class Staging : uint8_t { one_slot, all_slots, quantised, made_quantised };

class StorageProgram {
 public:
  // What is referred to must outlive it.
  StorageProgram(program::ProgramName name, const RunTensors& tensors,
                 const program::Target& target);

  // The blocks of the largest weight that is quantised by the program, and whether it is nested.
  void set_largest(int64_t blocks, bool nested);

  std::vector<program::TensorId> staging(Staging form);
  // The staging memory without the absmax of whole weights.
  std::vector<program::TensorId> staging_of_parts(Staging form);
  // A rank's part, or the whole, of what is gathered in the absmax of a slot: `blocks` of each of
  // so many ranks.
  program::TensorId absmax_part(int slot, int64_t blocks);
  program::TensorId absmax_whole(int slot, int64_t blocks, int32_t ranks);

  void emit(program::Attributes attributes, const program::Tensor& output,
            std::vector<program::TensorId> updates = {},
            program::Channel channel = program::Channel::compute);
  void read(const program::Tensor& tensor, int64_t file_width);
  // Rows of a matrix, `count` from `first` on.
  void read_rows(const program::Tensor& matrix, int64_t first, int64_t count, int64_t file_width);
  // What writes a weight that is stored as NF4.
  void emit_stored(program::Attributes attributes, const std::string& weight,
                   std::vector<program::TensorId> updates, program::Channel channel);
  // What writes the codes of such a weight and leaves its absmax in staging memory.
  void emit_codes(program::Attributes attributes, const std::string& weight,
                  program::TensorId absmax, std::vector<program::TensorId> updates,
                  program::Channel channel);
  // What makes its scales of all its absmax.
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
