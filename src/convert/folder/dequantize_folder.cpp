#include "convert/folder/dequantize_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/finite.h"
#include "base/seconds_since.h"
#include "formats/adapter/torch_name.h"
#include "formats/folder/directory_transaction.h"
#include "formats/folder/hf_folder.h"
#include "formats/folder/model_writer.h"
#include "formats/quantization/mxfp4.h"
#include "models/config/config.h"
#include "models/families/families.h"
#include "models/stored/open_weights.h"
#include "models/weights.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using base::BFloat16;
using base::DType;
using formats::IndexedTensor;
using formats::TensorIndex;
using models::Weight;
using nlohmann::json;

constexpr const char* kConfigKey = "quantization_config";
// Copied tensors are read and written in pieces of at most this size.
constexpr int64_t kCopyBytes = int64_t{4} << 20;

// A tensor of the result: either a stack of experts to decode, or a tensor whose bytes are copied.
struct Converted {
  formats::TensorSpec spec;
  const IndexedTensor* copied = nullptr;
  std::optional<formats::Mxfp4Parts> decoded{};

  // Only for a stack of experts.
  int64_t experts() const { return spec.shape[0]; }
  int64_t in() const { return spec.shape[1]; }
  int64_t out() const { return spec.shape[2]; }
  int64_t expert_bytes() const { return spec.bytes() / experts(); }
  int64_t expert_blocks_bytes() const { return decoded->blocks->info->bytes() / experts(); }
  int64_t expert_scales_bytes() const { return decoded->scales->info->bytes() / experts(); }
};

// The config.json of the result.
json config_without_quantization(const formats::HfFolder& folder) {
  json config = folder.config();
  const json method = config.value(json::json_pointer("/quantization_config/quant_method"), json());
  const bool is_mxfp4 = method == "mxfp4";
  if (!is_mxfp4)
    base::throw_user_error(
        "{}: the folder has no MXFP4 (its config.json has no quantization_config whose "
        "quant_method "
        "is mxfp4), which is what snug dequantize reads. NF4 folders are trained as they are",
        folder.path().string());
  config.erase(kConfigKey);
  // transformers 5 writes "dtype", earlier ones "torch_dtype"; both read the latter.
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = formats::torch_name(DType::bf16);
  return config;
}

void check_copied(const TensorIndex& index, const IndexedTensor& tensor, const Weight& weight) {
  const formats::TensorInfo& info = *tensor.info;
  std::vector<int64_t> expected;
  expected.reserve(program::Shape::kMaxRank);
  for (int axis = 0; axis < weight.shape.rank(); ++axis) expected.push_back(weight.shape[axis]);
  if (info.shape != expected || !info.dtype || !base::is_float(*info.dtype))
    base::throw_user_error(
        "{}: tensor '{}' is {} of {}; expected floats of {}, as config.json says",
        index.path_of(tensor).string(), info.name, formats::shape_text(info.shape),
        info.stored_dtype, formats::shape_text(expected));
}

// The tensors in the order of the model. Throws for tensors that do not belong to the model.
std::vector<Converted> converted(const TensorIndex& index, const models::Stack& stack) {
  std::vector<Converted> list;
  std::unordered_map<std::string, const Weight*> known;
  const std::vector<Weight> weights = models::file_weights_of(stack);
  for (const Weight& weight : weights) {
    known.emplace(weight.name, &weight);
    Converted& result = list.emplace_back();
    result.spec.name = weight.name;
    for (int axis = 0; axis < weight.shape.rank(); ++axis)
      result.spec.shape.push_back(weight.shape[axis]);
    if (weight.is_expert && weight.shape.rank() == 3)
      result.decoded = formats::find_mxfp4(index, weight.name, weight.shape[0], weight.shape[2],
                                           weight.shape[1]);
    result.spec.dtype = DType::bf16;
    if (result.decoded) continue;
    result.copied = &index.at(weight.name);
    check_copied(index, *result.copied, weight);
    result.spec.dtype = *result.copied->info->dtype;
  }
  for (const IndexedTensor& tensor : index.tensors()) {
    const std::string& name = tensor.info->name;
    const auto stack_name = formats::mxfp4_stack_of(name);
    if (known.contains(name) || (stack_name && known.contains(std::string(*stack_name)))) continue;
    if (models::is_ignorable(name, stack)) continue;
    base::throw_user_error(
        "{}: tensor '{}' is not part of the model that config.json describes. Is config.json this "
        "model's?",
        index.path_of(tensor).string(), name);
  }
  return list;
}

}  // namespace

class FolderDequantizer::Impl {
 public:
  explicit Impl(const fs::path& path)
      : folder_(path),
        config_(config_without_quantization(folder_)),
        stack_(
            models::stack_of(models::parse_config(config_.dump(), folder_.config_path().string()))),
        index_(models::open_weights(folder_.path(), stack_)),
        tensors_(converted(index_, stack_)) {
    plan_.buffer_bytes = kCopyBytes;
    for (const Converted& tensor : tensors_) {
      plan_.result_bytes += tensor.spec.bytes() + std::ssize(tensor.spec.name) + kHeaderBytes;
      if (!tensor.decoded) {
        plan_.source_bytes += tensor.copied->info->bytes();
        continue;
      }
      ++plan_.stacks;
      plan_.stack_weights += tensor.spec.bytes() / base::size_of(DType::bf16);
      plan_.source_bytes += tensor.decoded->blocks->info->bytes();
      plan_.source_bytes += tensor.decoded->scales->info->bytes();
      plan_.buffer_bytes =
          std::max(plan_.buffer_bytes, tensor.expert_blocks_bytes() + tensor.expert_scales_bytes() +
                                           tensor.expert_bytes());
    }
    if (plan_.stacks == 0)
      base::throw_user_error("{}: config.json says MXFP4, but no expert is stored so",
                             folder_.path().string());
  }

  const FolderDequantizePlan& plan() const { return plan_; }

  FolderReport write(const fs::path& output) const {
    const auto start = std::chrono::steady_clock::now();
    check_output(output, plan_.result_bytes);
    formats::DirectoryTransaction transaction(output);
    const int64_t bytes = write_weights(transaction.staging());
    base::write_file_atomically(transaction.staging() / "config.json", config_.dump(2) + "\n");
    formats::copy_companion_files(folder_.path(), transaction.staging());
    // An earlier check found at most an empty folder there.
    transaction.commit(formats::DirectoryTransaction::IfExists::replace);
    return {bytes, base::seconds_since(start)};
  }

 private:
  int64_t write_weights(const fs::path& folder) const {
    std::vector<formats::TensorSpec> specs;
    specs.reserve(tensors_.size());
    for (const Converted& tensor : tensors_) specs.push_back(tensor.spec);
    formats::ModelWriter writer(folder, specs);
    std::vector<std::byte> buffer(static_cast<size_t>(plan_.buffer_bytes));
    int64_t bytes = 0;
    for (const Converted& tensor : tensors_)
      bytes += tensor.decoded ? decode(tensor, buffer, writer) : copy(tensor, buffer, writer);
    writer.finish();
    return bytes;
  }

  int64_t copy(const Converted& tensor, std::span<std::byte> buffer,
               formats::ModelWriter& writer) const {
    const int64_t whole = tensor.copied->info->bytes();
    int64_t written = 0;
    for (int64_t offset = 0; offset < whole; offset += kCopyBytes) {
      const int64_t bytes = std::min(kCopyBytes, whole - offset);
      index_.read_range(*tensor.copied, offset, bytes, buffer.data());
      written += writer.write(tensor.spec.name, buffer.data(), bytes);
    }
    return written;
  }

  // Decodes one expert at a time.
  int64_t decode(const Converted& tensor, std::span<std::byte> buffer,
                 formats::ModelWriter& writer) const {
    auto* const values = reinterpret_cast<BFloat16*>(buffer.data());
    auto* const blocks = reinterpret_cast<uint8_t*>(buffer.data()) + tensor.expert_bytes();
    uint8_t* const scales = blocks + tensor.expert_blocks_bytes();
    int64_t written = 0;
    for (int64_t expert = 0; expert < tensor.experts(); ++expert) {
      const auto read = [&](const IndexedTensor& part, int64_t bytes, uint8_t* to) {
        index_.read_range(part, expert * bytes, bytes, to);
      };
      read(*tensor.decoded->blocks, tensor.expert_blocks_bytes(), blocks);
      read(*tensor.decoded->scales, tensor.expert_scales_bytes(), scales);
      formats::decode_transposed(
          {.blocks = blocks, .scales = scales, .out = tensor.out(), .in = tensor.in()}, values);
      if (base::first_not_finite(DType::bf16, values, tensor.in() * tensor.out()))
        base::throw_user_error(
            "{}: expert {} of '{}' has a value that is not finite in bf16. Is the file whole? "
            "Download or copy it again",
            index_.path_of(*tensor.decoded->scales).string(), expert, tensor.spec.name);
      written += writer.write(tensor.spec.name, values, tensor.expert_bytes());
    }
    return written;
  }

  formats::HfFolder folder_;
  json config_;
  models::Stack stack_;
  TensorIndex index_;
  std::vector<Converted> tensors_;
  FolderDequantizePlan plan_;
};

FolderDequantizer::FolderDequantizer(const fs::path& folder)
    : impl_(std::make_unique<const Impl>(folder)) {}
FolderDequantizer::~FolderDequantizer() = default;

const FolderDequantizePlan& FolderDequantizer::plan() const { return impl_->plan(); }

FolderReport FolderDequantizer::write(const fs::path& output) const { return impl_->write(output); }

}  // namespace snug::convert
