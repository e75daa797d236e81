// Tensors of a program: their names, sizes, memory spaces and lifetimes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/dtype.h"
#include "base/token_streams.h"
#include "base/words.h"

namespace snug::program {

using base::DType;

// Index of a tensor in its program's table.
using TensorId = int32_t;
inline constexpr TensorId kNone = -1;
// Converts an id to the index type of containers with one entry for each tensor, operation or
// layer.
constexpr size_t index(int32_t number) { return static_cast<size_t>(number); }

// Up to four dimensions, outermost first.
class Shape {
 public:
  static constexpr int kMaxRank = 4;
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t elements() const;  // 1 for rank 0
  // Product of all dimensions but the last; 1 for rank 0 and 1.
  int64_t rows() const;
  // The last dimension; 1 for rank 0.
  int64_t columns() const { return rank_ == 0 ? 1 : dims_[static_cast<size_t>(rank_ - 1)]; }
  void append(int64_t dim);
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// The purpose of a tensor. Plans report bytes by role.
enum class Role : uint8_t {
  weight,       // of the base model, in its storage type
  quant_state,  // scales and maps of a quantised weight
  adapter,      // trainable tensor of an adapter, in the compute type
  master,       // f32 original of a trainable tensor
  gradient,     // of a trainable tensor, accumulated over the whole step
  moment,       // optimizer state
  activation,   // within a micro-batch
  // An activation kept for recomputation: a layer's input or attention's output.
  checkpoint,
  logits,       // of a chunk of rows, or of scored tokens
  kv_cache,     // keys and values of generated sequences
  workspace,    // scratch memory of one operation
  staging,      // buffer through which values are loaded or saved
  batch,        // set by the host for each run: tokens, targets, bounds, the learning rate
  scalar,       // single numbers and short vectors: losses, norms, rotary frequencies
  comm_buffer,  // buffer of a collective
};

constexpr auto words_of(Role /*type*/) {
  return base::words<Role>({{Role::weight, "weight"},
                            {Role::quant_state, "quant_state"},
                            {Role::adapter, "adapter"},
                            {Role::master, "master"},
                            {Role::gradient, "gradient"},
                            {Role::moment, "moment"},
                            {Role::activation, "activation"},
                            {Role::checkpoint, "checkpoint"},
                            {Role::logits, "logits"},
                            {Role::kv_cache, "kv_cache"},
                            {Role::workspace, "workspace"},
                            {Role::staging, "staging"},
                            {Role::batch, "batch"},
                            {Role::scalar, "scalar"},
                            {Role::comm_buffer, "comm_buffer"}});
}
constexpr std::string_view name_of(Role role) { return base::word_of(role); }
inline constexpr int kRoleCount = static_cast<int>(base::kWordsOf<Role>.size());

// The memory in which a tensor lies. On a CPU, device and host are two budgets of the same memory.
enum class Space : uint8_t { device, pinned_host, host };

constexpr auto words_of(Space /*type*/) {
  return base::words<Space>(
      {{Space::device, "device"}, {Space::pinned_host, "pinned_host"}, {Space::host, "host"}});
}
constexpr std::string_view name_of(Space space) { return base::word_of(space); }
inline constexpr int kSpaceCount = static_cast<int>(base::kWordsOf<Space>.size());

// run: from loading to the end of the job. step: across the programs of one stage (program_name.h),
// for example from the first micro-batch to the update. program: within one program.
enum class Lifetime : uint8_t { run, step, program };

constexpr auto words_of(Lifetime /*type*/) {
  return base::words<Lifetime>(
      {{Lifetime::run, "run"}, {Lifetime::step, "step"}, {Lifetime::program, "program"}});
}
constexpr std::string_view name_of(Lifetime lifetime) { return base::word_of(lifetime); }

// A view of another tensor: the same bytes with another offset, shape and strides. Strides and
// offset count elements of the base, which is never a view itself.
struct View {
  TensorId base = kNone;
  int64_t offset = 0;
  std::array<int64_t, Shape::kMaxRank> strides{};
  // Rank r's view begins r * rank_step elements later: it is this rank's part of a tensor. Only for
  // views of one dimension with offset 0.
  int64_t rank_step = 0;
  bool operator==(const View&) const = default;
};

struct Tensor {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  Role role = Role::activation;
  Space space = Space::device;
  Lifetime lifetime = Lifetime::program;
  int32_t layer = -1;  // -1: belongs to no layer
  View view;           // view.base == kNone: owns its bytes
  // For a batch tensor: the stream of tokens that it belongs to.
  base::TokenStream stream = base::TokenStream::decoder;
  // The values exist when the program begins, and do not change until it has ended, so that a
  // kernel may read them while earlier operations still run. Only for lifetime run.
  bool constant = false;
  // For a tensor that is sharded flat over ranks: the shape of the whole tensor. `shape` is then
  // that of this rank's elements, which are contiguous; elements beyond the end of the whole are 0.
  std::optional<Shape> whole{};
  // Rank r holds the elements from r * rank_step on; 0: each rank holds all elements, padded for a
  // gather.
  int64_t rank_step = 0;
  bool is_view() const { return view.base != kNone; }
  // Whether this rank may hold only a part of the whole tensor, or all of it with padding.
  bool is_sharded() const { return whole.has_value(); }
  int64_t bytes() const { return shape.elements() * base::size_of(dtype); }
  bool operator==(const Tensor&) const = default;
};

// The shape of the whole tensor, even if this rank holds only a part.
inline const Shape& whole_shape(const Tensor& tensor) {
  return tensor.whole ? *tensor.whole : tensor.shape;
}

// The strides of a dense tensor, whose last dimension varies fastest; 0 beyond the tensor's rank.
std::array<int64_t, Shape::kMaxRank> dense_strides(const Shape& shape);

// Text such as "(16384, 4096)".
std::string to_string(const Shape& shape);

}  // namespace snug::program
