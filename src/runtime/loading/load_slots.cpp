#include "runtime/loading/load_slots.h"

#include <cstddef>
#include <unordered_set>

#include "backends/backend.h"
#include "base/error.h"
#include "formats/adapter/peft_adapter.h"
#include "runtime/conversion/convert.h"
#include "runtime/saving/adapter.h"
#include "runtime/storage/check_finite.h"
#include "runtime/storage/tensor_part.h"

namespace snug::runtime {
namespace {

using backends::Buffer;
using base::DType;
using formats::LoraModule;

class SlotLoader {
 public:
  SlotLoader(const methods::LoraSlots& slots, Executor& executor)
      : slots_(slots), executor_(executor) {}

  void load(int64_t slot, const std::string& folder) const {
    const formats::PeftAdapter adapter(folder);
    const formats::TensorIndex index = formats::open_adapter_index(folder);
    for (const LoraModule& module : adapter.modules()) {
      load_a(slot, index, index.at(formats::lora_a_key(module)), module);
      const formats::LoraSize size = adapter.config().size_of(module.module);
      const double scale = formats::lora_scale(size, adapter.config().use_rslora);
      load_b(slot, index, index.at(formats::lora_b_key(module)), module, static_cast<float>(scale));
    }
  }

 private:
  // A (r, in): rows of the slot, after those of the zeros and of the slots before.
  void load_a(int64_t slot, const formats::TensorIndex& index, const formats::IndexedTensor& source,
              const LoraModule& module) const {
    write(methods::slots_a_name(module.module), (slot + 1) * slots_.rank, values_of(index, source),
          index, source);
  }

  // B (out, r): its columns are the slot's rows.
  void load_b(int64_t slot, const formats::TensorIndex& index, const formats::IndexedTensor& source,
              const LoraModule& module, float scale) const {
    const std::vector<float> values = values_of(index, source);
    const int64_t out = module.out_features;
    const int64_t r = module.r;
    std::vector<float> scaled(values.size());
    for (int64_t i = 0; i < out; ++i)
      for (int64_t j = 0; j < r; ++j)
        scaled[static_cast<size_t>(j * out + i)] = values[static_cast<size_t>(i * r + j)] * scale;
    write(methods::slots_b_name(module.module), slot * slots_.rank, scaled, index, source);
  }

  static std::vector<float> values_of(const formats::TensorIndex& index,
                                      const formats::IndexedTensor& source) {
    const formats::TensorInfo& info = *source.info;
    Buffer expected;
    expected.shape = {info.shape.at(0), info.shape.at(1)};
    expected.strides = program::dense_strides(expected.shape);
    check_read(index, {.source = &source, .destination = expected}, "as the base model says");
    std::vector<std::byte> bytes(static_cast<size_t>(info.bytes()));
    index.read(source, bytes.data());
    const int64_t elements = info.bytes() / base::size_of(*info.dtype);
    check_finite(index, source,
                 {.dtype = *info.dtype, .data = bytes.data(), .first = 0, .elements = elements});
    std::vector<float> values(static_cast<size_t>(elements));
    convert(*info.dtype, bytes.data(), DType::f32, values.data(), elements);
    return values;
  }

  // Writes whole rows of a slot tensor, from `first_row` on.
  void write(const std::string& tensor, int64_t first_row, const std::vector<float>& values,
             const formats::TensorIndex& index, const formats::IndexedTensor& source) const {
    const Buffer& buffer = executor_.tensor(program::ProgramName::load_adapter, tensor);
    const auto elements = static_cast<int64_t>(values.size());
    const int64_t width = base::size_of(buffer.dtype);
    const int64_t first = first_row * buffer.shape[1];
    SNUG_CHECK(first + elements <= buffer.elements(), "{} elements from {} on in {} of {}",
               elements, first, tensor, buffer.elements());
    std::vector<std::byte> rounded(static_cast<size_t>(elements * width));
    convert(DType::f32, values.data(), buffer.dtype, rounded.data(), elements);
    check_rounded(
        index, source,
        {.dtype = buffer.dtype, .data = rounded.data(), .first = 0, .elements = elements});
    executor_.backend().copy(buffer.data + first * width, rounded.data(), elements * width);
    executor_.backend().synchronise();
  }

  const methods::LoraSlots& slots_;
  Executor& executor_;
};

}  // namespace

void load_slots(const methods::LoraSlots& slots, const std::vector<std::string>& folders,
                Executor& executor) {
  initialise_adapter(executor);
  const SlotLoader loader(slots, executor);
  for (size_t slot = 0; slot < folders.size(); ++slot)
    loader.load(static_cast<int64_t>(slot), folders[slot]);
}

}  // namespace snug::runtime
