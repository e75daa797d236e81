// Stages: the text model, which the files may hold alone, inside a larger one, or in a form that
// Snug does not know; the tensors of the files under its names; then what each of them is stored
// as.
#include "convert/source/folder_weights.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "convert/source/stored_values.h"
#include "formats/adapter/adapter_names.h"
#include "formats/folder/hf_folder.h"
#include "formats/quantization/quantization_config.h"
#include "models/config/multimodal.h"
#include "models/families/families.h"
#include "models/stored/expert_files.h"
#include "models/stored/open_weights.h"
#include "models/weights.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using base::DType;
using formats::IndexedTensor;
using formats::TensorIndex;
using models::ModelConfig;
using models::Weight;
using nlohmann::json;

constexpr const char* kQuantization = "quantization_config";
constexpr const char* kTie = "tie_word_embeddings";

// How files hold a tensor of the source.
struct HeldTensor {
  const IndexedTensor* plain = nullptr;
  std::optional<formats::Nf4Parts> nf4{};
  bool is_nf4_transposed = false;  // of a linear that folders hold as (in, out)
  std::optional<formats::Mxfp4Parts> mxfp4{};
};

bool is_mxfp4(const json& config) {
  return config.value(json::json_pointer("/quantization_config/quant_method"), json()) == "mxfp4";
}

json without_quantization(json config) {
  config.erase(kQuantization);
  return config;
}

// The text model in a multimodal one; nothing where Snug does not know it, since merging and
// exporting other tensors needs none.
std::optional<ModelConfig> text_model(const json& whole, const fs::path& folder,
                                      const std::string& file) {
  const std::optional<json> part = models::text_config(whole);
  if (!part) return std::nullopt;
  try {
    ModelConfig config = models::parse_config(part->dump(), file);
    models::settle_expert_files(folder, config);
    return config;
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

std::vector<int64_t> dims_of(const Weight& weight) {
  std::vector<int64_t> dims;
  dims.reserve(program::Shape::kMaxRank);
  for (int axis = 0; axis < weight.shape.rank(); ++axis) dims.push_back(weight.shape[axis]);
  return dims;
}

}  // namespace

class FolderWeights::Impl {
 public:
  explicit Impl(const fs::path& path)
      : folder_(path),
        is_multimodal_(models::find_family(folder_.config().value("model_type", "")) == nullptr),
        model_(open_model()),
        index_(open_index()),
        config_(without_quantization(folder_.config())) {
    if (model_) {
      const models::Stack stack = models::stack_of(*model_);
      if (is_multimodal_) settle_tie(stack);
      list(models::stack_of(*model_));
    } else {
      list_unknown();
    }
    for (const HeldTensor& held : held_) stored_bytes_ += stored_bytes_of(held);
    settle_config();
  }

  const fs::path& folder() const { return folder_.path(); }
  const json& config() const { return config_; }
  const std::vector<SourceTensor>& tensors() const { return tensors_; }
  const ModelConfig* model() const { return model_ ? &*model_ : nullptr; }
  int64_t stored_bytes() const { return stored_bytes_; }

  int64_t read_bytes(const SourceTensor& tensor) const {
    const HeldTensor& held = held_of(tensor);
    if (held.is_nf4_transposed) return tensor.rows() * int64_t{sizeof(float)};
    return held.mxfp4 ? expert_of(tensor, held, 0).read_bytes() : 0;
  }

  void read(const SourceTensor& tensor, int64_t first, int64_t rows,
            std::span<float> values) const {
    const HeldTensor& held = held_of(tensor);
    const int64_t width = tensor.row_elements();
    SNUG_CHECK_EQ(std::ssize(values), rows * width);
    if (held.mxfp4) {
      for (int64_t row = 0; row < rows; ++row)
        read_values(index_, expert_of(tensor, held, first + row),
                    values.subspan(static_cast<size_t>(row * width), static_cast<size_t>(width)));
    } else if (held.is_nf4_transposed) {
      read_transposed(tensor, first, rows, values);
    } else if (held.nf4) {
      read_values(index_, *held.nf4, first * width, values);
    } else {
      read_values(index_, *held.plain, first * width, values);
    }
  }

  void copy(const SourceTensor& tensor, int64_t offset, std::span<std::byte> bytes) const {
    const HeldTensor& held = held_of(tensor);
    SNUG_CHECK(tensor.is_stored_so, "{} is not stored so", tensor.name);
    index_.read_range(*held.plain, offset, std::ssize(bytes), bytes.data());
  }

 private:
  // Reads the model of a folder that holds it alone.
  std::optional<ModelConfig> open_model() const {
    const std::string file = folder_.config_path().string();
    if (!is_multimodal_ && !is_mxfp4(folder_.config()))
      return models::find_model(folder_.path().string()).config;
    const json plain = without_quantization(folder_.config());
    if (!is_multimodal_) return models::parse_config(plain.dump(), file);
    formats::parse_quantization_config(folder_.config(), file);  // refuses all but NF4
    return text_model(plain, folder_.path(), file);
  }

  TensorIndex open_index() const {
    if (is_multimodal_ || !model_) return TensorIndex(folder_.path());
    return models::open_weights(folder_.path(), models::stack_of(*model_));
  }

  std::string weight_name_of(const std::string& name) const {
    if (!is_multimodal_) return name;
    return formats::is_of_other_part(name) ? "" : formats::plain_module(name);
  }

  // The head of a text model inside another one is tied where files hold none, or the same table.
  void settle_tie(const models::Stack& stack) {
    const IndexedTensor* head = nullptr;
    const IndexedTensor* embedding = nullptr;
    for (const IndexedTensor& tensor : index_.tensors()) {
      const std::string name = weight_name_of(tensor.info->name);
      if (name == models::head_weight(stack)) head = &tensor;
      if (name == models::embedding_weight(stack)) embedding = &tensor;
    }
    const bool is_said = model_->tied_embeddings || folder_.config().value(kTie, false);
    model_->tied_embeddings =
        head == nullptr || (is_said && embedding != nullptr && index_.are_same(*head, *embedding));
  }

  // The config of a T5 that scales the input of its head says so by this key, whether or not the
  // head has weights of its own; files decide that in transformers 5.
  void settle_config() {
    if (!model_ || model_->scaled_head) return;
    if (!is_multimodal_) {
      config_[kTie] = model_->tied_embeddings;
      return;
    }
    if (config_.contains(kTie)) config_[kTie] = model_->tied_embeddings;
  }

  void list(const models::Stack& stack) {
    std::unordered_map<std::string, const Weight*> wanted;
    const std::vector<Weight> weights = models::file_weights_of(stack);
    for (const Weight& weight : weights) wanted.emplace(weight.name, &weight);
    std::unordered_set<std::string> found;
    for (const IndexedTensor& tensor : index_.tensors()) {
      std::string name = weight_name_of(tensor.info->name);
      if (const auto stack_name = formats::mxfp4_stack_of(name);
          stack_name && wanted.contains(std::string(*stack_name))) {
        name = std::string(*stack_name);
        if (!tensor.info->name.ends_with("_blocks")) continue;
      }
      const auto weight = wanted.find(name);
      if (weight == wanted.end()) {
        add_other(tensor, name, stack);
      } else {
        found.insert(name);
        add(tensor, *weight->second);
      }
    }
    for (const Weight& weight : weights)
      if (!found.contains(weight.name)) fail_without(weight.name);
  }

  [[noreturn]] void fail_without(const std::string& name) const {
    index_.at(name);  // says what the folder has
    base::throw_user_error("{}: there is no tensor '{}', which config.json says the model has",
                           folder_.path().string(), name);
  }

  static bool is_table_copy(const std::string& name, const models::Stack& stack) {
    return std::ranges::count(stack.embedding_copies, name) > 0 ||
           (stack.tied_head && name == models::head_weight(stack));
  }

  void add_other(const IndexedTensor& tensor, const std::string& name, const models::Stack& stack) {
    if (is_table_copy(name, stack)) return;
    add_unknown(tensor);
  }

  void list_unknown() {
    for (const IndexedTensor& tensor : index_.tensors()) add_unknown(tensor);
  }

  // A tensor that the model does not tell about. One in NF4 is what its JSON says.
  void add_unknown(const IndexedTensor& tensor) {
    const formats::TensorInfo& info = *tensor.info;
    if (formats::weight_of_part(info.name)) return;
    SourceTensor spec{.name = info.name, .shape = info.shape, .is_other = model_.has_value()};
    if (const auto state = formats::find_quant_state(index_, info.name)) {
      spec.dtype = state->dtype;
      spec.shape = state->shape;
      push(std::move(spec), {.nf4 = formats::find_nf4(index_, info.name, state->shape)});
      return;
    }
    spec.is_stored_so = true;
    if (info.dtype) spec.dtype = *info.dtype;
    if (!info.dtype) spec.stored_dtype = info.stored_dtype;
    spec.stored_bytes = info.bytes();
    push(std::move(spec), {.plain = &tensor});
  }

  // The name of a tensor of the result: that of the files without what MXFP4 adds.
  static std::string written_name(const std::string& stored) {
    const auto stack = formats::mxfp4_stack_of(stored);
    return stack ? std::string(*stack) : stored;
  }

  void add(const IndexedTensor& tensor, const Weight& weight) {
    SourceTensor spec{.name = tensor.info->name, .shape = dims_of(weight), .dtype = DType::bf16};
    if (is_multimodal_) spec.weight = weight.name;
    if (tensor.info->name.ends_with("_blocks") && weight.shape.rank() == 3) {
      spec.name = written_name(tensor.info->name);
      auto parts =
          formats::find_mxfp4(index_, spec.name, weight.shape[0], weight.shape[2], weight.shape[1]);
      SNUG_CHECK(parts, "{} is in MXFP4", spec.name);
      push(std::move(spec), {.mxfp4 = parts});
      return;
    }
    std::vector<int64_t> in_4_bits = spec.shape;
    if (weight.transposed) std::swap(in_4_bits.front(), in_4_bits.back());
    if (auto nf4 = formats::find_nf4(index_, spec.name, in_4_bits)) {
      spec.dtype = nf4->state.dtype;
      push(std::move(spec), {.nf4 = std::move(nf4), .is_nf4_transposed = weight.transposed});
      return;
    }
    check_plain(tensor, spec);
    spec.dtype = *tensor.info->dtype;
    spec.is_stored_so = true;
    push(std::move(spec), {.plain = &tensor});
  }

  void check_plain(const IndexedTensor& tensor, const SourceTensor& spec) const {
    const formats::TensorInfo& info = *tensor.info;
    if (info.shape == spec.shape && info.dtype && base::is_float(*info.dtype)) return;
    base::throw_user_error(
        "{}: tensor '{}' is {} of {}; expected floats of {}, as config.json says",
        index_.path_of(tensor).string(), info.name, formats::shape_text(info.shape),
        info.stored_dtype, formats::shape_text(spec.shape));
  }

  void push(SourceTensor spec, HeldTensor held) {
    tensors_.push_back(std::move(spec));
    held_.push_back(std::move(held));
  }

  const HeldTensor& held_of(const SourceTensor& tensor) const {
    const auto place = static_cast<size_t>(&tensor - tensors_.data());
    SNUG_CHECK(place < tensors_.size(), "{} is no tensor of this source", tensor.name);
    return held_[place];
  }

  static Mxfp4Expert expert_of(const SourceTensor& tensor, const HeldTensor& held, int64_t expert) {
    return {.parts = *held.mxfp4, .expert = expert, .out = tensor.shape[2], .in = tensor.shape[1]};
  }

  static int64_t stored_bytes_of(const HeldTensor& held) {
    int64_t bytes = 0;
    const auto add = [&](const IndexedTensor* part) {
      if (part != nullptr) bytes += part->info->bytes();
    };
    add(held.plain);
    if (held.nf4) {
      add(held.nf4->codes);
      add(held.nf4->absmax);
      add(held.nf4->nested_absmax);
    }
    if (held.mxfp4) {
      add(held.mxfp4->blocks);
      add(held.mxfp4->scales);
    }
    return bytes;
  }

  // Rows of the folder's (in, out) are columns of what is quantised.
  void read_transposed(const SourceTensor& tensor, int64_t first, int64_t rows,
                       std::span<float> values) const {
    const formats::Nf4Parts& parts = *held_of(tensor).nf4;
    const int64_t in = tensor.shape[0];
    const int64_t out = tensor.shape[1];
    std::vector<float> column(static_cast<size_t>(rows));
    for (int64_t o = 0; o < out; ++o) {
      read_values(index_, parts, o * in + first, column);
      for (int64_t row = 0; row < rows; ++row) values[row * out + o] = column[row];
    }
  }

  formats::HfFolder folder_;
  bool is_multimodal_;
  std::optional<ModelConfig> model_;
  TensorIndex index_;
  json config_;
  std::vector<SourceTensor> tensors_;
  std::vector<HeldTensor> held_;  // of each tensor
  int64_t stored_bytes_ = 0;
};

FolderWeights::FolderWeights(const fs::path& folder)
    : impl_(std::make_unique<const Impl>(folder)) {}
FolderWeights::~FolderWeights() = default;

std::span<const SourceTensor> FolderWeights::tensors() const { return impl_->tensors(); }
const json& FolderWeights::config() const { return impl_->config(); }
const fs::path& FolderWeights::companions() const { return impl_->folder(); }
const ModelConfig* FolderWeights::model() const { return impl_->model(); }
int64_t FolderWeights::stored_bytes() const { return impl_->stored_bytes(); }

int64_t FolderWeights::read_bytes(const SourceTensor& tensor, int64_t /*rows*/) const {
  return impl_->read_bytes(tensor);
}

void FolderWeights::read(const SourceTensor& tensor, int64_t first, int64_t rows,
                         std::span<float> values) const {
  impl_->read(tensor, first, rows, values);
}

void FolderWeights::copy(const SourceTensor& tensor, int64_t offset,
                         std::span<std::byte> bytes) const {
  impl_->copy(tensor, offset, bytes);
}

}  // namespace snug::convert
