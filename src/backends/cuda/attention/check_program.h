// The program of a check of the library's attention (library_check.h), and its memory on the
// device: the same operations by own kernels and by the library, on the same inputs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/attention/segment_attention.h"
#include "backends/cuda/device/context.h"
#include "backends/invocation.h"
#include "program/ir/builder.h"
#include "program/kinds/attention/attention.h"

namespace snug::backends::cuda {

// What is checked in the place of an operation.
struct CheckForm {
  program::Attention forward{};
  program::AttentionGrad gradient{};
  bool is_gradient = false;
  program::DType dtype = program::DType::bf16;
  int64_t segments = 0;
  int64_t tokens = 0;
  bool no_empty_segments = false;
  std::array<bool, kSegmentOperands> gaps{};  // between the rows that the library uses
};

// Operations in pairs, decided: the forward pass by own kernels and by the library, then, of a
// gradient, the gradients, both from what own kernels made of it.
class CheckProgram {
 public:
  CheckProgram(const CheckForm& form, const Card& card);

  // The form in words, which tell it from any other.
  std::string text() const;

  program::Program program;
  program::TensorId q = 0;
  program::TensorId k = 0;
  program::TensorId v = 0;
  program::TensorId d_o = 0;
  program::TensorId bounds = 0;
  // Own kernels', then the library's: o and lse; dq, dk and dv.
  std::array<std::vector<program::TensorId>, 2> attended;
  std::array<std::vector<program::TensorId>, 2> gradients;

 private:
  // (tokens, columns); with a gap after each row where the job's matrix has one.
  program::TensorId matrix(const char* name, int64_t columns, SegmentOperand operand);

  CheckForm form_;
  program::Builder builder_{"library check"};
};

// Device memory of all tensors of a program, and for the scratch of its operations.
class CheckMemory {
 public:
  CheckMemory(const program::Program& program, CudaContext& context);
  CheckMemory(const CheckMemory&) = delete;
  CheckMemory& operator=(const CheckMemory&) = delete;
  ~CheckMemory();
  // False where the device had no memory left; then nothing else may be asked.
  bool is_there() const { return data_ != nullptr; }

  void fill_with_nan() const;
  Buffer buffer(program::TensorId id) const;
  // From the first element to the last, with the gaps between rows.
  void write(program::TensorId id, const void* values) const;
  std::vector<std::byte> read(program::TensorId id) const;
  // Prepares and runs an operation, and waits for its end. Throws UserError where the library
  // refuses.
  void run(const program::Operation& operation) const;

 private:
  template <typename Struct>
  void run_as(const program::Operation& operation) const;
  int64_t scratch_of(const program::Operation& operation) const;

  const program::Program& program_;
  CudaContext& context_;
  std::vector<int64_t> offsets_;
  int64_t workspace_ = 0;
  int64_t bytes_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace snug::backends::cuda
