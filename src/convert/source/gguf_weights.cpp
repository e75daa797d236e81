// Reading goes by runs: elements that follow one another in the file and lie at equal distances in
// the folder's tensor. Runs that touch in the file are read and dequantised together.
#include "convert/source/gguf_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/finite.h"
#include "formats/adapter/torch_name.h"
#include "formats/folder/safetensors_header.h"
#include "formats/gguf/blocks.h"
#include "formats/gguf/metadata_view.h"
#include "models/families/families.h"
#include "models/gguf/imported_config.h"
#include "models/weights.h"

namespace snug::convert {

using base::DType;
using formats::GgmlType;
using formats::GgufTensorInfo;

namespace {

// Elements that are dequantised together, and the most runs among them.
constexpr int64_t kBatchElements = int64_t{1} << 18;
constexpr int64_t kBatchRuns = int64_t{1} << 12;
// Of a batch that begins and ends within a block.
constexpr int64_t kMostBlockElements = 256;

struct Run {
  int64_t stored = 0;  // the first element, of the file's tensor
  int64_t count = 0;
  int64_t place = 0;  // the first element, of the values that are asked for
  int64_t step = 0;
};

int64_t rounded_up(int64_t number, int64_t step) { return (number + step - 1) / step * step; }
int64_t divided_up(int64_t number, int64_t divisor) {
  return number <= 0 ? 0 : (number + divisor - 1) / divisor;
}

DType dtype_of(GgmlType type) {
  return type == GgmlType::f32 ? DType::f32 : type == GgmlType::f16 ? DType::f16 : DType::bf16;
}

// Converters write vectors as such, or as matrices of one row.
std::vector<int64_t> without_single_rows(std::vector<int64_t> shape) {
  while (shape.size() > 1 && shape.front() == 1) shape.erase(shape.begin());
  return shape;
}

// Calls emit(first element of the part, count, first element of the source, step) for the runs of
// the part that lie in [begin, end) of the source, in the order of the part.
template <typename Emit>
void for_each_run(const models::GgufPart& part, int64_t begin, int64_t end, size_t axis,
                  int64_t element, int64_t source, const Emit& emit) {
  const int64_t size = part.sizes[axis];
  const int64_t step = part.steps[axis];
  int64_t inner = 1;  // elements behind one index of this axis, and how far they reach
  int64_t reach = 0;
  for (size_t later = axis + 1; later < part.sizes.size(); ++later) {
    inner *= part.sizes[later];
    reach += (part.sizes[later] - 1) * part.steps[later];
  }
  const int64_t low = divided_up(begin - reach - source, step);
  const int64_t high = std::min(size, divided_up(end - source, step));
  if (low >= high) return;
  if (axis + 1 == part.sizes.size())
    return emit(element + low, high - low, source + low * step, step);
  for (int64_t index = low; index < high; ++index)
    for_each_run(part, begin, end, axis + 1, element + index * inner, source + index * step, emit);
}

// Whether the expected tensor is a stack of whole matrices of the folder, one for each expert.
bool stacks_experts(const models::GgufTensor& expected) {
  return expected.shape.size() == 3 && std::ssize(expected.parts) == expected.shape.front() &&
         expected.name.find("_exps.") != std::string::npos;
}

// "blk.0.ffn_gate_exps.weight" as files made before April 2024 have it: "blk.0.ffn_gate.7.weight".
models::GgufTensor one_expert(const models::GgufTensor& stack, size_t expert) {
  models::GgufTensor one = stack;
  constexpr std::string_view kStacked = "_exps.";
  one.name.replace(stack.name.find(kStacked), kStacked.size(), fmt::format(".{}.", expert));
  one.shape.erase(one.shape.begin());
  one.parts = {stack.parts[expert]};
  return one;
}

// What the architecture's table has for these settings. Its errors are about writing such a file.
models::GgufModel model_of(const std::filesystem::path& path, const models::ModelConfig& config,
                           const nlohmann::json& config_json) {
  try {
    return models::gguf_model(config, config_json);
  } catch (const base::UserError& error) {
    base::throw_user_error("{}: the metadata and the tensors do not fit together: {}",
                           path.string(), error.what());
  }
}

}  // namespace

// Whether the file has the tensor's elements as they are.
bool GgufWeights::Origin::is_unchanged(const SourceTensor& tensor) const {
  if (added != 0.0F || factor != 1.0F || is_rate || part.elements() != tensor.elements())
    return false;
  int64_t inner = 1;
  for (size_t axis = part.sizes.size(); axis-- > 0; inner *= part.sizes[axis])
    if (part.sizes[axis] > 1 && part.steps[axis] != inner) return false;
  return part.first == 0;
}

GgufWeights::GgufWeights(const std::filesystem::path& path) : file_(path) {
  const models::ModelConfig imported = models::imported_config(file_);
  choose_type();
  config_json_ = models::imported_config_json(imported, file_);
  config_json_["torch_dtype"] = formats::torch_name(dtype_);
  config_ = models::parse_config(config_json_.dump(),
                                 fmt::format("{} (config.json from its metadata)", path.string()));
  const models::GgufModel model = model_of(path, config_, config_json_);
  for (const models::GgufTensor& expected : model.tensors) match(expected);
  for (const models::GgufNumbers& expected : model.numbers) match(expected);
  known_.insert(model.ignored.begin(), model.ignored.end());
  refuse_unknown();
  list_tensors();
}

// The type that holds most values. A folder has one type for all: that of the file's floats, or
// bf16 for what is quantised.
void GgufWeights::choose_type() {
  std::map<GgmlType, int64_t> elements;
  for (const GgufTensorInfo& tensor : file_.tensors()) elements[tensor.type] += tensor.elements();
  const auto most = std::ranges::max_element(elements, {}, [](const auto& e) { return e.second; });
  main_type_ = most->first;
  dtype_ = dtype_of(main_type_);
}

void GgufWeights::match(const models::GgufTensor& expected) {
  known_.insert(expected.name);
  if (expected.parts.empty()) return;  // values that config.json stands for
  if (stacks_experts(expected) && file_.find(expected.name) == nullptr &&
      file_.find(one_expert(expected, 0).name) != nullptr) {
    for (size_t expert = 0; expert < expected.parts.size(); ++expert)
      match(one_expert(expected, expert));
    return;
  }
  const GgufTensorInfo* stored = file_.find(expected.name);
  if (stored == nullptr)
    base::throw_user_error(
        "{}: there is no tensor '{}', which a {} of these metadata has; the file is damaged, or "
        "was "
        "written for another program than llama.cpp",
        file_.path().string(), expected.name, config_json_["model_type"].get<std::string>());
  if (without_single_rows(stored->shape) != without_single_rows(expected.shape) ||
      stored->type == GgmlType::i32)
    base::throw_user_error(
        "{}: tensor '{}' is {} of {}; expected values of {}, as the metadata say",
        file_.path().string(), expected.name, formats::shape_text(stored->shape),
        base::word_of(stored->type), formats::shape_text(expected.shape));
  int64_t first = 0;
  for (const models::GgufPart& part : expected.parts) {
    origins_[part.source].push_back(
        {stored, first, part, expected.added, expected.factor, expected.is_rate});
    first += part.elements();
  }
  SNUG_CHECK_EQ(first, stored->elements());
  stored_bytes_ += stored->bytes();
}

void GgufWeights::match(const models::GgufNumbers& expected) {
  const std::vector<double> values = formats::MetadataView(file_.metadata(), file_.path().string())
                                         .numbers(expected.key, std::ssize(expected.sources));
  for (size_t i = 0; i < values.size(); ++i)
    numbers_[expected.sources[i]] = static_cast<float>(values[i]);
}

void GgufWeights::refuse_unknown() const {
  for (const GgufTensorInfo& tensor : file_.tensors())
    if (tensor.name != "rope_freqs.weight" && !known_.contains(tensor.name))
      base::throw_user_error(
          "{}: tensor '{}' is no part of a {} as Snug has it, and leaving it out would make "
          "another "
          "model of it",
          file_.path().string(), tensor.name, config_json_["model_type"].get<std::string>());
}

// In the order of the file.
void GgufWeights::list_tensors() {
  for (const models::Weight& weight : models::file_weights_of(models::stack_of(config_))) {
    SourceTensor& tensor = tensors_.emplace_back();
    tensor.name = weight.name;
    for (int axis = 0; axis < weight.shape.rank(); ++axis)
      tensor.shape.push_back(weight.shape[axis]);
    tensor.dtype = dtype_;
    if (numbers_.contains(tensor.name)) continue;
    const std::vector<Origin>& origins = origins_of(tensor);
    // A head that is tied may be in the file twice.
    int64_t elements = 0;
    for (const Origin& origin : origins) elements += origin.part.elements();
    SNUG_CHECK(elements >= tensor.elements(), "{} of {} values of {} are in the file", elements,
               tensor.elements(), tensor.name);
    const GgmlType type = origins.front().stored->type;
    tensor.is_stored_so = formats::block_size(type).elements == 1 && dtype_of(type) == dtype_ &&
                          origins.front().is_unchanged(tensor);
  }
  std::ranges::stable_sort(tensors_, {}, [&](const SourceTensor& tensor) {
    if (numbers_.contains(tensor.name)) return std::pair(int64_t{0}, int64_t{0});
    const Origin& origin = origins_of(tensor).front();
    return std::pair(origin.stored->begin, origin.first);
  });
}

const std::vector<GgufWeights::Origin>& GgufWeights::origins_of(const SourceTensor& tensor) const {
  const auto found = origins_.find(tensor.name);
  SNUG_CHECK(found != origins_.end(), "nothing in the file is {}", tensor.name);
  return found->second;
}

// Runs of one origin that follow one another in the file, until they are read.
class GgufWeights::Batch {
 public:
  Batch(const formats::GgufFile& file, std::span<float> values) : file_(file), values_(values) {
    runs_.reserve(kBatchRuns);
  }

  void begin(const Origin& origin) { origin_ = &origin; }

  void add(Run run) {
    while (run.count > 0) {
      if (count_ == kBatchElements || std::ssize(runs_) == kBatchRuns ||
          (count_ > 0 && first_ + count_ != run.stored))
        flush();
      if (count_ == 0) first_ = run.stored;
      Run now = run;
      now.count = std::min(run.count, kBatchElements - count_);
      runs_.push_back(now);
      count_ += now.count;
      run.stored += now.count;
      run.place += now.count * run.step;
      run.count -= now.count;
    }
  }

  void flush() {
    if (count_ == 0) return;
    const GgufTensorInfo& stored = *origin_->stored;
    const formats::BlockSize block = formats::block_size(stored.type);
    const int64_t begin = first_ / block.elements * block.elements;
    const int64_t end = rounded_up(first_ + count_, block.elements);
    bytes_.resize(static_cast<size_t>(formats::stored_bytes(stored.type, end - begin)));
    floats_.resize(static_cast<size_t>(end - begin));
    file_.read_range(stored, formats::stored_bytes(stored.type, begin), bytes_);
    formats::dequantise_blocks(stored.type, bytes_, floats_);
    if (base::first_not_finite(DType::f32, floats_.data(), std::ssize(floats_)))
      base::throw_user_error(
          "{}: tensor '{}' has a value that is not finite. Is the file whole? Download or copy it "
          "again",
          file_.path().string(), stored.name);
    const float* from = floats_.data() + (first_ - begin);
    for (const Run& run : runs_) from = scatter(run, from);
    runs_.clear();
    count_ = 0;
  }

 private:
  const float* scatter(const Run& run, const float* from) {
    float* const to = values_.data() + run.place;
    const bool is_changed = origin_->added != 0.0F || origin_->factor != 1.0F;
    if (origin_->is_rate)
      for (int64_t i = 0; i < run.count; ++i) to[i * run.step] = std::log(-from[i]);
    else if (is_changed)
      for (int64_t i = 0; i < run.count; ++i)
        to[i * run.step] = from[i] / origin_->factor - origin_->added;
    else if (run.step == 1)
      std::copy_n(from, run.count, to);
    else
      for (int64_t i = 0; i < run.count; ++i) to[i * run.step] = from[i];
    return from + run.count;
  }

  const formats::GgufFile& file_;
  std::span<float> values_;
  const Origin* origin_ = nullptr;
  std::vector<Run> runs_;
  int64_t first_ = 0;  // element of the file's tensor
  int64_t count_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<float> floats_;
};

int64_t GgufWeights::read_bytes(const SourceTensor& tensor, int64_t rows) const {
  const int64_t elements =
      std::min(kBatchElements, rows * tensor.row_elements()) + 2 * kMostBlockElements;
  return kBatchRuns * static_cast<int64_t>(sizeof(Run)) + 2 * 4 * elements;
}

void GgufWeights::read(const SourceTensor& tensor, int64_t first, int64_t rows,
                       std::span<float> values) const {
  const int64_t begin = first * tensor.row_elements();
  const int64_t end = begin + rows * tensor.row_elements();
  SNUG_CHECK(first >= 0 && end <= tensor.elements() && std::ssize(values) == end - begin,
             "rows {} to {} of {} into {} values", first, first + rows, tensor.name, values.size());
  if (const auto number = numbers_.find(tensor.name); number != numbers_.end()) {
    values.front() = number->second;
    return;
  }
  Batch batch(file_, values);
  for (const Origin& origin : origins_of(tensor)) {
    batch.begin(origin);
    for_each_run(origin.part, begin, end, 0, origin.first, origin.part.first,
                 [&](int64_t stored, int64_t count, int64_t source, int64_t step) {
                   batch.add({stored, count, source - begin, step});
                 });
    batch.flush();
  }
}

void GgufWeights::copy(const SourceTensor& tensor, int64_t offset,
                       std::span<std::byte> bytes) const {
  SNUG_CHECK(tensor.is_stored_so, "{} is not in the file as it is in a folder", tensor.name);
  const Origin& origin = origins_of(tensor).front();
  const int64_t first = formats::stored_bytes(origin.stored->type, origin.first);
  file_.read_range(*origin.stored, first + offset, bytes);
}

}  // namespace snug::convert
