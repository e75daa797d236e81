#include "convert/folder/quantize_folder.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/last_part.h"
#include "base/nearest.h"
#include "base/seconds_since.h"
#include "convert/folder/quantize_pieces.h"
#include "formats/adapter/torch_name.h"
#include "formats/folder/directory_transaction.h"
#include "formats/folder/hf_folder.h"
#include "formats/quantization/quant_state.h"
#include "formats/quantization/quantization_config.h"
#include "models/config/config.h"
#include "models/families/families.h"
#include "models/stored/open_weights.h"
#include "models/weights.h"
#include "runtime/loading/stored_weight.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using base::DType;
using formats::IndexedTensor;
using formats::TensorIndex;
using formats::TensorSpec;
using models::Weight;
using nlohmann::json;

// The contents of one file of the result.
struct FilePlan {
  std::vector<TensorSpec> tensors;
  std::vector<TensorSpec> late;  // the linears' JSON tensors, whose sizes are not known yet

  int64_t most_bytes() const {
    int64_t bytes = 0;
    for (const auto* list : {&tensors, &late})
      for (const TensorSpec& tensor : *list)
        bytes += tensor.bytes() + std::ssize(tensor.name) + kHeaderBytes;
    return bytes;
  }
};

// What no training changes keeps the type in which the family computes with it.
DType stored_type(DType source, const Weight& weight, const FolderQuantizeOptions& options) {
  if (weight.is_constant) return source;
  return runtime::quantised_from(source, options.keep_fp32 ? DType::f32 : DType::bf16);
}

void check_tensor(const TensorIndex& index, const IndexedTensor& tensor, const Weight& weight) {
  const formats::TensorInfo& info = *tensor.info;
  std::vector<int64_t> expected;
  expected.reserve(program::Shape::kMaxRank);
  for (int axis = 0; axis < weight.shape.rank(); ++axis) expected.push_back(weight.shape[axis]);
  const std::string where =
      fmt::format("{}: tensor '{}'", index.path_of(tensor).string(), info.name);
  if (info.shape != expected)
    base::throw_user_error("{} has shape {}; expected {}, as config.json says", where,
                           formats::shape_text(info.shape), formats::shape_text(expected));
  if (!info.dtype || !base::is_float(*info.dtype))
    base::throw_user_error(
        "{} is stored as {}; expected BF16, F16, F32 or F64. Use a folder with the weights in 16 "
        "or "
        "32 bits",
        where, info.stored_dtype);
}

// The tensors in the order of the files, so that reading is sequential.
std::vector<StreamedTensor> streamed(const TensorIndex& index, const models::ModelConfig& config,
                                     const FolderQuantizeOptions& options) {
  const models::Stack stack = models::stack_of(config);
  std::unordered_map<std::string, Weight> weights;
  for (Weight& weight : models::file_weights_of(stack)) {
    index.at(weight.name);  // throws where the weight is missing
    std::string name = weight.name;
    weights.emplace(std::move(name), std::move(weight));
  }
  const std::string quantised_head = options.head ? models::head_weight(stack) : "";
  std::vector<StreamedTensor> tensors;
  for (const IndexedTensor& tensor : index.tensors()) {
    const auto weight = weights.find(tensor.info->name);
    if (weight == weights.end()) {
      if (models::is_ignorable(tensor.info->name, stack)) continue;
      base::throw_user_error(
          "{}: tensor '{}' is not part of the model that config.json describes. Is config.json "
          "this "
          "model's?",
          index.path_of(tensor).string(), tensor.info->name);
    }
    check_tensor(index, tensor, weight->second);
    tensors.push_back({&tensor, stored_type(*tensor.info->dtype, weight->second, options),
                       weight->second.is_quantised() || weight->first == quantised_head,
                       weight->second.transposed});
  }
  return tensors;
}

void add_linear(const StreamedTensor& tensor, bool double_quant, FilePlan& file) {
  formats::QuantState state = state_of(tensor);
  if (double_quant) state.nested_offset = -1.2345678e-38F;  // the longest text of a float
  auto parts = formats::nf4_parts(tensor.source->info->name, state);
  constexpr int64_t kMoreDigits = 8;
  parts.back().shape[0] += kMoreDigits;
  file.late.push_back(parts.back());
  parts.pop_back();
  file.tensors.insert(file.tensors.end(), parts.begin(), parts.end());
}

std::map<size_t, FilePlan> files_of(std::span<const StreamedTensor> tensors, bool double_quant) {
  std::map<size_t, FilePlan> files;
  for (const StreamedTensor& tensor : tensors) {
    FilePlan& file = files[tensor.source->file];
    if (tensor.quantised)
      add_linear(tensor, double_quant, file);
    else
      file.tensors.push_back(
          {tensor.source->info->name, tensor.stored, tensor.source->info->shape});
  }
  return files;
}

void check_unquantised(const formats::HfFolder& folder, const TensorIndex& index) {
  const bool is_declared = folder.config().contains("quantization_config") &&
                           !folder.config()["quantization_config"].is_null();
  if (is_declared || formats::holds_quantised(index))
    base::throw_user_error(
        "{}: the folder is quantised already{}; give the model's folder in 16 or 32 bits, which "
        "snug "
        "dequantize makes of one whose experts are MXFP4",
        folder.path().string(), is_declared ? " (its config.json has a quantization_config)" : "");
}

}  // namespace

class FolderQuantizer::Impl {
 public:
  Impl(const fs::path& folder, const FolderQuantizeOptions& options)
      : folder_(folder),
        options_(options),
        config_(checked_config()),
        index_(models::open_weights(folder_.path(), models::stack_of(config_))),
        tensors_(streamed(index_, config_, options_)),
        files_(files_of(tensors_, options.double_quant)) {
    for (const StreamedTensor& tensor : tensors_) {
      plan_.source_bytes += tensor.source->info->bytes();
      if (!tensor.quantised) continue;
      ++plan_.linears;
      plan_.linear_weights += tensor.source->info->elements();
    }
    for (const auto& [number, file] : files_) plan_.result_bytes += file.most_bytes();
    plan_.for_snug_alone = models::find_family(config_.model_type)->elsewhere.own_linear_class;
    plan_.buffer_bytes = streaming_buffer_bytes(tensors_, options_.double_quant);
  }

  const FolderQuantizePlan& plan() const { return plan_; }

  FolderReport write(const fs::path& output) const {
    const auto start = std::chrono::steady_clock::now();
    check_output(output, plan_.result_bytes);
    formats::DirectoryTransaction transaction(output);
    const int64_t bytes = write_weights(transaction.staging());
    base::write_file_atomically(transaction.staging() / "config.json", config_json());
    formats::copy_companion_files(folder_.path(), transaction.staging());
    // An earlier check found at most an empty folder there.
    transaction.commit(formats::DirectoryTransaction::IfExists::replace);
    return {bytes, base::seconds_since(start)};
  }

 private:
  models::ModelConfig checked_config() const {
    check_unquantised(folder_, folder_.weights());
    models::ModelConfig config = models::find_model(folder_.path().string()).config;
    if (!config.text_module.empty())
      base::throw_user_error(
          "{}: this is a multimodal model, of which only the text part could be quantised; train "
          "the folder as it is with method=qlora, or read it with load_in_4bit=true, which "
          "quantise that part while it is read",
          folder_.path().string());
    if (options_.head && config.tied_embeddings)
      base::throw_user_error(
          "{}: load_head_in_4bit is true, but the model's head is its embedding, which stays in 16 "
          "bits; leave it out",
          folder_.path().string());
    return config;
  }

  std::string name_of(size_t file) const { return index_.files()[file].path().filename().string(); }

  int64_t write_weights(const fs::path& folder) const {
    std::optional<formats::SafetensorsWriter> writer;
    int64_t bytes = 0;
    int64_t tensor_bytes = 0;
    const auto finish = [&] {
      if (!writer) return;
      writer->finish();
      bytes += writer->file_bytes();
      tensor_bytes += writer->data_bytes();
    };
    stream_tensors(
        index_, tensors_, options_.double_quant, [&](size_t file) -> formats::SafetensorsWriter& {
          finish();
          const FilePlan& contents = files_.at(file);
          return writer.emplace(folder / name_of(file), contents.tensors,
                                formats::SafetensorsMetadata{{"format", "pt"}}, contents.late);
        });
    finish();
    if (index_.files().size() > 1) write_index(folder, tensor_bytes);
    return bytes;
  }

  void write_index(const fs::path& folder, int64_t tensor_bytes) const {
    json index;
    index["metadata"]["total_size"] = tensor_bytes;
    for (const auto& [number, file] : files_)
      for (const auto* list : {&file.tensors, &file.late})
        for (const TensorSpec& tensor : *list) index["weight_map"][tensor.name] = name_of(number);
    base::write_file_atomically(folder / "model.safetensors.index.json", index.dump(2) + "\n");
  }

  // The linears that stay in 16 bits, where they are not those that transformers leaves by itself:
  // the head alone. An empty list has the head quantised. transformers compares ends of names.
  std::optional<std::vector<std::string>> skipped_modules() const {
    const models::Stack stack = models::stack_of(config_);
    std::vector<std::string> modules;
    if (stack.layer_inputs)
      modules.push_back(base::last_part(stack.layer_inputs->projection.module));
    if (const std::string router = linear_router(stack); !router.empty()) modules.push_back(router);
    if (modules.empty() && !options_.head) return std::nullopt;
    if (!options_.head) modules.insert(modules.begin(), base::last_part(stack.head));
    return modules;
  }

  // The routers' module in a layer, if transformers has linears for them.
  std::string linear_router(const models::Stack& stack) const {
    if (!models::find_family(config_.model_type)->elsewhere.linear_routers) return {};
    for (const models::Layer& layer : stack.layers)
      for (const models::Branch& branch : layer.branches)
        if (const auto* experts = std::get_if<models::ExpertsBlock>(&branch.block))
          return experts->router.module;
    return {};
  }

  std::string config_json() const {
    json config = folder_.config();
    if (config.contains("tie_word_embeddings"))
      config["tie_word_embeddings"] = config_.tied_embeddings;
    const auto linear = std::find_if(tensors_.begin(), tensors_.end(),
                                     [](const StreamedTensor& tensor) { return tensor.quantised; });
    SNUG_CHECK(linear != tensors_.end(), "a model without linears");
    formats::QuantizationConfig quantisation{.double_quant = options_.double_quant,
                                             .compute_dtype = linear->stored};
    quantisation.skip_modules = skipped_modules();
    config["quantization_config"] = formats::to_json(quantisation);
    // transformers 5 writes "dtype", earlier ones "torch_dtype"; both read the latter.
    const char* key = config.contains("dtype") ? "dtype" : "torch_dtype";
    config[key] = formats::torch_name(linear->stored);
    return config.dump(2) + "\n";
  }

  formats::HfFolder folder_;
  FolderQuantizeOptions options_;
  models::ModelConfig config_;
  TensorIndex index_;
  std::vector<StreamedTensor> tensors_;
  std::map<size_t, FilePlan> files_;
  FolderQuantizePlan plan_;
};

FolderQuantizer::FolderQuantizer(const fs::path& folder, const FolderQuantizeOptions& options)
    : impl_(std::make_unique<const Impl>(folder, options)) {}
FolderQuantizer::~FolderQuantizer() = default;

const FolderQuantizePlan& FolderQuantizer::plan() const { return impl_->plan(); }

FolderReport FolderQuantizer::write(const fs::path& output) const { return impl_->write(output); }

}  // namespace snug::convert
