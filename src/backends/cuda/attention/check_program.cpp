#include "backends/cuda/attention/check_program.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "backends/cuda/attention/cudnn_attention.h"
#include "backends/cuda/attention/cudnn_needs.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

using program::Attention;
using program::AttentionGrad;
using program::DType;
using program::OperationView;
using program::TensorId;

CheckProgram::CheckProgram(const CheckForm& form, const Card& card) : form_(form) {
  const Attention& forward = form.forward;
  const int64_t q_width = forward.heads * forward.head_dim;
  const int64_t k_width = forward.kv_heads * forward.head_dim;
  q = matrix("q", q_width, SegmentOperand::q);
  k = matrix("k", k_width, SegmentOperand::k);
  v = matrix("v", k_width, SegmentOperand::v);
  bounds = builder_.activation("bounds", {form.segments, 2}, DType::i32);
  for (const bool by_library : {false, true}) {
    const TensorId o = matrix(by_library ? "o" : "own o", q_width, SegmentOperand::o);
    const TensorId lse = builder_.activation(by_library ? "lse" : "own lse",
                                             {forward.heads, form.tokens}, DType::f32);
    attended[by_library ? 1 : 0] = {o, lse};
    builder_.emit(forward, {q, k, v, bounds, bounds}, {o, lse});
  }
  if (form.is_gradient) {
    d_o = matrix("d_o", q_width, SegmentOperand::d_o);
    for (const bool by_library : {false, true}) {
      const std::vector<TensorId> made{
          matrix(by_library ? "dq" : "own dq", q_width, SegmentOperand::dq),
          matrix(by_library ? "dk" : "own dk", k_width, SegmentOperand::dk),
          matrix(by_library ? "dv" : "own dv", k_width, SegmentOperand::dv)};
      gradients[by_library ? 1 : 0] = made;
      builder_.emit(form.gradient,
                    {d_o, q, k, v, attended[0].front(), attended[0].back(), bounds, bounds}, made);
    }
  }
  program = builder_.take();
  Card without = card;
  without.cudnn = false;
  for (size_t i = 0; i < program.operations.size(); ++i)
    program.operations[i].attributes =
        decide({program, program.operations[i]}, i % 2 == 0 ? without : card);
}

std::string CheckProgram::text() const {
  const program::Operation& last = program.operations.back();
  const OperationView view{program, last};
  const std::vector<SegmentAttention> shapes =
      form_.is_gradient ? segments_of(last.attributes.get<AttentionGrad>(), view)
                        : segments_of(last.attributes.get<Attention>(), view);
  const SegmentAttention& shape = shapes.back();
  std::string gaps;
  for (const bool gap : form_.gaps) gaps += gap ? '1' : '0';
  return fmt::format(
      "{} of {}, {} heads of {} on {}, scale {}{}{}{}, {} segments{} of {} in {}, {} calls, gaps "
      "{}",
      form_.is_gradient ? "gradient" : "attention", base::name_of(form_.dtype), shape.heads,
      shape.head_dim, shape.kv_heads, shape.scale, shape.causal ? ", causal" : "",
      shape.window > 0 ? fmt::format(", window {}", shape.window) : "",
      shape.softcap > 0 ? fmt::format(", soft cap {}", shape.softcap) : "", form_.segments,
      form_.no_empty_segments ? "" : " or fewer", form_.forward.segment_tokens, form_.tokens,
      shapes.size(), gaps);
}

TensorId CheckProgram::matrix(const char* name, int64_t columns, SegmentOperand operand) {
  if (!form_.gaps[static_cast<size_t>(operand)])
    return builder_.activation(name, {form_.tokens, columns}, form_.dtype);
  constexpr int64_t kGap = 64;
  program::Tensor part;
  part.name = name;
  part.shape = {form_.tokens, columns};
  part.dtype = form_.dtype;
  part.view.base = builder_.activation(std::string(name) + " with gaps",
                                       {form_.tokens, columns + kGap}, form_.dtype);
  part.view.strides = {columns + kGap, 1, 0, 0};
  return builder_.add(std::move(part));
}

CheckMemory::CheckMemory(const program::Program& program, CudaContext& context)
    : program_(program), context_(context), offsets_(program.tensors.size(), 0) {
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    if (program.tensors[i].is_view()) continue;
    offsets_[i] = workspace_;
    workspace_ += aligned(program.tensors[i].bytes());
  }
  int64_t most = 0;
  for (const program::Operation& operation : program.operations)
    most = std::max(most, scratch_of(operation));
  bytes_ = workspace_ + aligned(most);
  if (cudaMalloc(reinterpret_cast<void**>(&data_), static_cast<size_t>(bytes_)) == cudaSuccess)
    return;
  cudaGetLastError();  // clears the error
  data_ = nullptr;
}

CheckMemory::~CheckMemory() {
  if (data_ != nullptr) cudaFree(data_);
}

void CheckMemory::fill_with_nan() const {
  CUDA_CHECK(cudaMemsetAsync(data_, 0xff, static_cast<size_t>(bytes_), context_.stream.get()));
}

Buffer CheckMemory::buffer(TensorId id) const {
  const program::Tensor& tensor = program_.tensor(id);
  const TensorId base = tensor.is_view() ? tensor.view.base : id;
  Buffer buffer;
  buffer.data = data_ + offsets_[static_cast<size_t>(base)];
  buffer.dtype = tensor.dtype;
  buffer.shape = tensor.shape;
  buffer.strides = tensor.is_view() ? tensor.view.strides : program::dense_strides(tensor.shape);
  return buffer;
}

void CheckMemory::write(TensorId id, const void* values) const {
  const Buffer to = buffer(id);
  CUDA_CHECK(cudaMemcpyAsync(to.data, values, static_cast<size_t>(to.spanned_bytes()),
                             cudaMemcpyDefault, context_.stream.get()));
  CUDA_CHECK(cudaStreamSynchronize(context_.stream.get()));
}

std::vector<std::byte> CheckMemory::read(TensorId id) const {
  const Buffer from = buffer(id);
  std::vector<std::byte> bytes(static_cast<size_t>(from.spanned_bytes()));
  CUDA_CHECK(cudaMemcpyAsync(bytes.data(), from.data, bytes.size(), cudaMemcpyDefault,
                             context_.stream.get()));
  CUDA_CHECK(cudaStreamSynchronize(context_.stream.get()));
  return bytes;
}

template <typename Struct>
void CheckMemory::run_as(const program::Operation& operation) const {
  const OperationView view{program_, operation};
  const auto buffers = [&](const auto& ids) {
    std::vector<Buffer> found(ids.size());
    std::transform(ids.begin(), ids.end(), found.begin(), [&](TensorId id) { return buffer(id); });
    return found;
  };
  const std::vector<Buffer> reads = buffers(operation.reads);
  const std::vector<Buffer> writes = buffers(operation.writes);
  const Struct& attributes = operation.attributes.get<Struct>();
  const KindFunctions<Struct>& functions = FunctionsOf<Struct>::kDefined;
  const std::unique_ptr<Prepared> prepared = functions.prepare(attributes, view, context_);
  Invocation invocation;
  invocation.attributes = &operation.attributes;
  invocation.reads = reads;
  invocation.writes = writes;
  invocation.workspace.data = data_ + workspace_;
  invocation.workspace.dtype = DType::u8;
  invocation.workspace.shape = {scratch_of(operation)};
  invocation.workspace.strides = program::dense_strides(invocation.workspace.shape);
  invocation.prepared = prepared.get();
  functions.run(attributes, invocation, context_);
  CUDA_CHECK(cudaStreamSynchronize(context_.stream.get()));
}

void CheckMemory::run(const program::Operation& operation) const {
  if (operation.attributes.is<Attention>()) return run_as<Attention>(operation);
  run_as<AttentionGrad>(operation);
}

int64_t CheckMemory::scratch_of(const program::Operation& operation) const {
  return workspace_bytes({program_, operation}, context_.device.card);
}

}  // namespace snug::backends::cuda
