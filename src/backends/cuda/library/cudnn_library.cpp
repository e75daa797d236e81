#include "backends/cuda/attention/segment_attention.h"

#include <cudnn_frontend.h>

#include <cstdlib>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/cuda/device/cuda_check.h"
#include "backends/cuda/library/open_library.h"

// The handle of the library in which the frontend looks up functions.
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}  // namespace cudnn_frontend

namespace snug::backends::cuda {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using fe::graph::Tensor_attributes;
using TensorRef = std::shared_ptr<Tensor_attributes>;

// Ids that tell a graph, when it runs, which tensor a pointer is for.
constexpr int64_t kOperandIds = 1;
constexpr int64_t kBeginIds = 101;
constexpr int64_t kLengthsId = 201;

void require(const fe::error_t& error, const char* what) {
  if (error.is_bad())
    base::throw_user_error("cuDNN cannot do this attention ({}: {})", what, error.err_msg);
}

// A graph of one attention, described but not yet compiled. Segments are described as (segments,
// heads, segment_tokens, head_dim); a table says where each begins in its tensor.
class Description {
 public:
  Description(const SegmentAttention& shape, Graph& graph) : shape_(shape), graph_(graph) {
    graph
        .set_io_data_type(shape.format == ElementFormat::f16 ? fe::DataType_t::HALF
                                                             : fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    lengths_ = graph.tensor(Tensor_attributes()
                                .set_name("lengths")
                                .set_uid(kLengthsId)
                                .set_dim({shape.segments, 1, 1, 1})
                                .set_stride({1, 1, 1, 1})
                                .set_data_type(fe::DataType_t::INT32));
    shape.is_gradient ? describe_gradient() : describe_forward();
  }

 private:
  void describe_forward() {
    auto attributes = with_masks(fe::graph::SDPA_attributes().set_name("attention"));
    attributes.set_generate_stats(true);
    const auto [o, lse] = graph_.sdpa(input(SegmentOperand::q), input(SegmentOperand::k),
                                      input(SegmentOperand::v), attributes);
    output(o, SegmentOperand::o);
    output(lse, SegmentOperand::lse);
  }

  void describe_gradient() {
    auto attributes = with_masks(fe::graph::SDPA_backward_attributes().set_name("attention_grad"));
    attributes.set_max_total_seq_len_q(shape_.tokens).set_max_total_seq_len_kv(shape_.tokens);
    const auto [dq, dk, dv] =
        graph_.sdpa_backward(input(SegmentOperand::q), input(SegmentOperand::k),
                             input(SegmentOperand::v), input(SegmentOperand::o),
                             input(SegmentOperand::d_o), input(SegmentOperand::lse), attributes);
    output(dq, SegmentOperand::dq);
    output(dk, SegmentOperand::dk);
    output(dv, SegmentOperand::dv);
  }

  template <typename Attributes>
  Attributes with_masks(Attributes attributes) {
    attributes.set_attn_scale(shape_.scale).set_seq_len_q(lengths_).set_seq_len_kv(lengths_);
    if (shape_.softcap > 0.0F) return with_cap(std::move(attributes));
    attributes.set_padding_mask(true);
    if (shape_.causal)
      attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
          .set_diagonal_band_right_bound(0);
    // A query sees only the last `window` keys up to its own.
    if (shape_.window > 0) attributes.set_diagonal_band_left_bound(static_cast<int>(shape_.window));
    return attributes;
  }

  // A graph that changes scores must mask them itself. What is causal needs no mask of keys behind
  // the end of a segment, since they are behind every query of it.
  template <typename Attributes>
  Attributes with_cap(Attributes attributes) {
    const auto cap = std::make_shared<Tensor_attributes>(shape_.softcap);
    const auto form = std::make_shared<fe::graph::attn::score_modifiers::Softcap>();
    std::optional<int64_t> window;
    if (shape_.window > 0) window = shape_.window;
    attributes.set_score_mod([=](std::shared_ptr<Graph> graph, TensorRef scores) {
      return fe::graph::attn::score_modifiers::sliding_window_mask(
          graph, form->forward(graph, std::move(scores), cap), fe::DiagonalAlignment_t::TOP_LEFT,
          window, 0, 0, 0, nullptr, nullptr);
    });
    if constexpr (std::is_same_v<Attributes, fe::graph::SDPA_backward_attributes>)
      attributes.set_score_mod_bprop([=](std::shared_ptr<Graph> graph, TensorRef scores) {
        return form->backward(std::move(graph), std::move(scores), cap);
      });
    return attributes;
  }

  int64_t heads_of(SegmentOperand operand) const {
    switch (operand) {
      case SegmentOperand::k:
      case SegmentOperand::v:
      case SegmentOperand::dk:
      case SegmentOperand::dv:
        return shape_.kv_heads;
      default:
        return shape_.heads;
    }
  }

  // Describes (segments, heads, segment_tokens, columns), with the heads of a token adjacent.
  void place(Tensor_attributes& tensor, SegmentOperand operand) {
    const bool is_lse = operand == SegmentOperand::lse;
    const int64_t columns = is_lse ? 1 : shape_.head_dim;
    const int64_t stride = shape_.stride(operand);
    tensor.set_uid(kOperandIds + static_cast<int64_t>(operand))
        .set_dim({shape_.segments, heads_of(operand), shape_.segment_tokens, columns})
        .set_stride({shape_.segment_tokens * stride, columns, stride, 1});
    if (is_lse) tensor.set_data_type(fe::DataType_t::FLOAT);
    tensor.set_ragged_offset(graph_.tensor(Tensor_attributes()
                                               .set_name("begins")
                                               .set_uid(kBeginIds + static_cast<int64_t>(operand))
                                               .set_dim({shape_.segments + 1, 1, 1, 1})
                                               .set_stride({1, 1, 1, 1})
                                               .set_data_type(fe::DataType_t::INT64)));
  }

  TensorRef input(SegmentOperand operand) {
    Tensor_attributes tensor;
    tensor.set_name("input");
    place(tensor, operand);
    return graph_.tensor(tensor);
  }

  void output(const TensorRef& tensor, SegmentOperand operand) {
    tensor->set_output(true);
    place(*tensor, operand);
  }

  const SegmentAttention& shape_;
  Graph& graph_;
  TensorRef lengths_;
};

class Plan final : public SegmentPlan {
 public:
  Plan(const SegmentAttention& shape, std::shared_ptr<Graph> graph, cudnnHandle_t handle)
      : shape_(shape), graph_(std::move(graph)), handle_(handle) {
    require(graph_->get_workspace_size(workspace_bytes_), "its scratch");
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  void run(const SegmentAddresses& addresses, void* workspace, cudaStream_t stream) const override {
    SNUG_CHECK(handle_ != nullptr, "a plan for a card that is not here cannot run");
    std::unordered_map<int64_t, void*> pointers;
    pointers[kLengthsId] = const_cast<int32_t*>(addresses.lengths);
    for (size_t i = 0; i < shape_.operands(); ++i) {
      const auto id = static_cast<int64_t>(i);
      pointers[kOperandIds + id] = addresses.operands[i];
      pointers[kBeginIds + id] =
          const_cast<int64_t*>(addresses.begins + id * segment_table_entries(shape_.segments));
    }
    const cudnnStatus_t status = fe::detail::set_stream(handle_, stream);
    SNUG_CHECK(status == CUDNN_STATUS_SUCCESS, "cudnnSetStream: status {}",
               static_cast<int>(status));
    require(graph_->execute(handle_, pointers, workspace), "its run");
  }

 private:
  SegmentAttention shape_;
  std::shared_ptr<Graph> graph_;
  cudnnHandle_t handle_;
  int64_t workspace_bytes_ = 0;
};

class Library final : public Cudnn {
 public:
  // Opens the library for the current device.
  Library() {
    const cudnnStatus_t status = fe::detail::create_handle(&handle_);
    if (status != CUDNN_STATUS_SUCCESS)
      base::throw_user_error(
          "cuDNN {} does not open (status {}). Set SNUG_CUDNN=off to do without it.", version(),
          static_cast<int>(status));
  }
  // Describes a device that is not present.
  Library(std::string_view properties, int compute_capability)
      : properties_(std::make_shared<fe::DeviceProperties>()),
        compute_capability_(compute_capability) {
    require(properties_->deserialize({properties.begin(), properties.end()}), "the card");
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() override {
    if (handle_ != nullptr) fe::detail::destroy_handle(handle_);
  }

  std::string version() const override {
    const size_t version = fe::detail::get_backend_version();
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }

  std::unique_ptr<SegmentPlan> plan(const SegmentAttention& shape) override {
    auto graph = std::make_shared<Graph>();
    if (properties_ != nullptr)
      graph->set_device_properties(properties_).set_sm_version(compute_capability_);
    const Description description(shape, *graph);
    require(graph->validate(), "its graph");
    require(
        handle_ != nullptr ? graph->build_operation_graph(handle_) : graph->build_operation_graph(),
        "its operations");
    require(graph->create_execution_plans({fe::HeurMode_t::A}), "its plans");
    require(graph->check_support(), "what it supports");
    require(graph->build_plans(), "its kernels");
    return std::make_unique<Plan>(shape, std::move(graph), handle_);
  }

 private:
  cudnnHandle_t handle_ = nullptr;
  std::shared_ptr<fe::DeviceProperties> properties_;
  int compute_capability_ = 0;
};

// Opens the library, and those that it and the frontend look up only by name.
bool find_libraries() {
  if (fe::cudnn_dlhandle == nullptr) {
    const std::string runtime = fmt::format("libcudart.so.{}", CUDART_VERSION / 1000);
    if (open_library(runtime) == nullptr) return false;
    open_library(fmt::format("libnvrtc.so.{}", CUDART_VERSION / 1000));
    setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime.c_str(), 0);
    fe::cudnn_dlhandle = open_library(fmt::format("libcudnn.so.{}", CUDNN_MAJOR));
  }
  return fe::cudnn_dlhandle != nullptr;
}

}  // namespace

std::unique_ptr<Cudnn> open_cudnn() {
  if (!find_libraries()) return nullptr;
  return std::make_unique<Library>();
}

std::unique_ptr<Cudnn> open_cudnn_without_card(std::string_view properties,
                                               int compute_capability) {
  if (!find_libraries()) return nullptr;
  return std::make_unique<Library>(properties, compute_capability);
}

}  // namespace snug::backends::cuda
