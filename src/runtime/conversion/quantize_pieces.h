// The data path of quantize_folder: tensors are cut into pieces; two workers read and quantise
// pieces side by side and hand them in, in order, to the file being written.
#pragma once

#include "formats/folder/safetensors_writer.h"
#include "formats/folder/tensor_index.h"
#include "formats/quantization/quant_state.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace snug::runtime {

// One tensor on its way from a source file to a file of the same place.
struct StreamedTensor {
  const formats::IndexedTensor* source = nullptr;
  base::DType stored = base::DType::bf16;  // what it is rounded to, before it may be quantised
  bool quantised = false;
  bool transposed = false;  // the transpose is what is quantised
};

// The bytes of the buffers that streaming these tensors takes.
int64_t streaming_buffer_bytes(std::span<const StreamedTensor> tensors, bool double_quant);

// What a linear's JSON says, its offset apart.
formats::QuantState state_of(const StreamedTensor& tensor);

// Streams all tensors, in this order. `open_file(file)` is called before the first tensor of each
// source file and gives the writer for it; whoever gives it finishes it when it is complete. Throws
// UserError.
using OpenFile = std::function<formats::SafetensorsWriter&(size_t file)>;
void stream_tensors(const formats::TensorIndex& index, std::span<const StreamedTensor> tensors,
                    bool double_quant, const OpenFile& open_file);

}  // namespace snug::runtime
